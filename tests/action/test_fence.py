"""Nothing is written once the term is over, and no call outlasts it; reading is free."""

import asyncio

import pytest

from graphsched.action import fence
from graphsched.base.values import errors
from tests.fakes import apiserver, virtual

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {"metadata": {"name": "e"}}


class Term:
    """For how long it is still allowed to write."""

    def __init__(self, seconds: float) -> None:
        self.until = virtual.now() + seconds

    def left_s(self) -> float:
        """As the fence asks."""
        return self.until - virtual.now()


@virtual.timed
async def test_writes_pass_during_the_term_and_are_not_sent_after_it() -> None:
    """The refusal is no answer of the server's, so nobody needs to look whether it took effect."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        writer = fence.Fence(client, Term(5.0).left_s)
        await writer.post(EVENTS, EVENT)
        await writer.patch(f"{EVENTS}/e", {"note": "more"}, kind="merge")
        await asyncio.sleep(5.0)
        sent = len(server.requests)
        for call in (writer.post(EVENTS, EVENT), writer.patch(f"{EVENTS}/e", {"note": "late"}, kind="merge")):
            with pytest.raises(errors.FencedError, match="not sent: this replica does not lead"):
                await call

        assert 2 == sent == len(server.requests)
        assert b"more" in await writer.get(f"{EVENTS}/e")


@virtual.timed
async def test_a_write_under_way_ends_with_the_term() -> None:
    """Whatever deadline it has of its own; a shorter one holds."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.hang("*", ".*", times=9)
        writer = fence.Fence(client, Term(5.0).left_s)
        with pytest.raises(errors.UnreachableError):
            await writer.post(EVENTS, EVENT, deadline_s=2.0)
        assert 2.0 == pytest.approx(virtual.now(), abs=0.1)
        with pytest.raises(errors.UnreachableError):
            await writer.patch(f"{EVENTS}/e", EVENT, kind="merge", deadline_s=30.0)
        assert 5.0 == pytest.approx(virtual.now(), abs=0.1)
        with pytest.raises(errors.UnreachableError):
            await writer.get(f"{EVENTS}/e", deadline_s=30.0)
        assert 35.0 == pytest.approx(virtual.now(), abs=0.1)
