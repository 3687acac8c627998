"""Whether GraphPolicies are followed: nothing is decided before it is known that there are none, or which."""

import asyncio
import typing

import pytest

from graphsched.app import policing
from graphsched.base.values import errors
from graphsched.graph import store as stores
from graphsched.sources import inbox as inboxes, policies as feeds
from tests.fakes import virtual

GONE = errors.NotFoundError("GET /apis/graphsched.io/v1alpha1: 404 the server could not find it", status=404)
NO_GROUP = errors.ClusterError("GET /apis/graphsched.io/v1alpha1: 404 404 page not found", status=404)
FORBIDDEN = errors.ForbiddenError("GET /apis/graphsched.io/v1alpha1: 403 no", status=403)
AWAY = errors.ClusterError("GET /apis/graphsched.io/v1alpha1: 500 no", status=500)


class Refusing:
    """A client that is answered one error."""

    def __init__(self, error: errors.ClusterError) -> None:
        self._error = error

    async def get(self, path: str, *_: object) -> bytes:
        """Raise it."""
        raise self._error


class Idle:
    """kopf, not running."""

    alive = False

    async def stop(self, *, deadline_s: float) -> None:
        """Nothing runs."""


@pytest.mark.parametrize(
    ("error", "known"), [(GONE, True), (NO_GROUP, True), (FORBIDDEN, True), (AWAY, False)], ids=str
)
@virtual.timed
async def test_deciding_begins_once_it_is_known_that_there_are_no_policies(
    error: errors.ClusterError, *, known: bool
) -> None:
    """A server that has nothing of the group says so in plain text, one that has another kind of it by a Status."""
    followed = policing.Policing(
        typing.cast("typing.Any", Refusing(error)),
        feeds.Feed(inboxes.Inbox()),
        typing.cast("typing.Any", Idle()),
        stores.Store(),
        None,
        required=False,
        leading=lambda: True,
        clock=virtual.LoopClock(),
    )
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(policing.RETRY_S / 2)
    following.cancel()

    assert known == followed.synced.is_set()
