"""Whether GraphPolicies are followed: nothing is decided before it is known that there are none, or which."""

import asyncio
import typing

import pytest

from graphsched.app import policing, settings
from graphsched.base.values import errors
from graphsched.graph import store as stores
from graphsched.sources import inbox as inboxes, policies as feeds
from tests.app import live
from tests.fakes import virtual

GONE = errors.NotFoundError("GET /apis/graphsched.io/v1alpha1: 404 the server could not find it", status=404)
NO_GROUP = errors.ClusterError("GET /apis/graphsched.io/v1alpha1: 404 404 page not found", status=404)
FORBIDDEN = errors.ForbiddenError("GET /apis/graphsched.io/v1alpha1: 403 no", status=403)
UNAUTHORIZED = errors.ForbiddenError("GET /apis/graphsched.io/v1alpha1: 401 Unauthorized", status=401)
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

    def start(self) -> None:
        """Nothing runs."""

    async def stop(self, *, deadline_s: float) -> None:
        """Nothing runs."""


def policies_of(client: object, inbox: inboxes.Inbox) -> policing.Policing:
    """Who follows the policies that this client tells of."""
    return policing.Policing(
        typing.cast("typing.Any", client),
        feeds.Feed(inbox),
        typing.cast("typing.Any", Idle()),
        stores.Store(),
        None,
        required=False,
        leading=lambda: True,
        clock=virtual.LoopClock(),
    )


@pytest.mark.parametrize(
    ("error", "known"),
    [(GONE, True), (NO_GROUP, True), (FORBIDDEN, True), (UNAUTHORIZED, False), (AWAY, False)],
    ids=str,
)
@virtual.timed
async def test_deciding_begins_once_it_is_known_that_there_are_no_policies(
    error: errors.ClusterError, *, known: bool
) -> None:
    """A server that has nothing of the group says so in plain text, one that has another kind of it by a Status."""
    followed = policies_of(Refusing(error), inboxes.Inbox())
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(policing.RETRY_S / 2)
    following.cancel()

    assert known == followed.synced.is_set()
    assert known == (not followed.trouble()), "what /readyz says of it"


POLICY = (
    b'{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "stop", "uid": "u", '
    b'"resourceVersion": "5"}, "spec": {"rules": [{"name": "all", "action": "deny"}]}}]}'
)


class Forbidding:
    """A client that is answered at first, and then refused."""

    def __init__(self) -> None:
        self.forbids = False

    async def get(self, path: str) -> bytes:
        """The group."""
        return b"{}"

    async def page(self, path: str, query: object) -> bytes:
        """The list."""
        if self.forbids:
            raise FORBIDDEN
        return POLICY


@virtual.timed
async def test_rules_stay_in_force_when_the_right_to_read_them_goes_away(caplog: pytest.LogCaptureFixture) -> None:
    """A denial must not be dropped because somebody took a right away, or the API server has not loaded it yet."""
    client, inbox = Forbidding(), inboxes.Inbox()
    followed = policies_of(client, inbox)
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(policing.RETRY_S / 2)
    client.forbids = True
    await asyncio.sleep(3 * followed.look_s)
    following.cancel()

    assert {"stop"} == followed.feed.known.keys()
    assert 1 == len(inbox), "the rules were set, and nothing was removed"
    assert 1 == caplog.text.count("the rules that they had stay in force")


@virtual.timed
async def test_readiness_names_the_policies_that_are_waited_for() -> None:
    """Nothing is decided without them where the settings say so, and `/readyz` does not claim otherwise."""
    required = settings.PolicySettings(enabled="always")
    async with live.scheduler(started=False, policies=required) as running:
        await running.quiet()
        report = running.program.sights.health().report("readyz")

        assert not report.ok
        assert "[-]policies failed: GraphPolicies are not known yet: waiting for the definition" in report.text()
        assert not running.program.loop.started
