"""Nothing is written once the term is over, and no call outlasts it; reading is free."""

import asyncio
from typing import Any

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
        for deadline_s, expected_s in ((2.0, 2.0), (30.0, 5.0)):
            for verb in ("post", "patch"):
                began, writer = virtual.now(), fence.Fence(client, Term(5.0).left_s)
                call = (
                    writer.post(EVENTS, EVENT, deadline_s=deadline_s)
                    if verb == "post"
                    else writer.patch(f"{EVENTS}/e", EVENT, kind="merge", deadline_s=deadline_s)
                )
                with pytest.raises(errors.UnreachableError):
                    await call
                assert expected_s == pytest.approx(virtual.now() - began, abs=0.1)
        began = virtual.now()
        with pytest.raises(errors.UnreachableError):
            await fence.Fence(client, Term(5.0).left_s).get(f"{EVENTS}/e", deadline_s=30.0)
        assert 30.0 == pytest.approx(virtual.now() - began, abs=0.1)


@virtual.timed
async def test_a_write_that_waited_past_the_term_for_its_turn_is_not_sent() -> None:
    """The last look is taken with the connection in hand: whatever came between the call and that, it is not sent."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        term = Term(5.0)
        writer = fence.Fence(client, term.left_s)
        await writer.post(EVENTS, EVENT)
        send = client._send

        def stopped(*args: Any, **kwargs: Any) -> Any:
            # As by a signal: time goes on, and nothing else.
            term.until = virtual.now()
            return send(*args, **kwargs)

        client._send = stopped  # type: ignore[method-assign]
        for call in (
            writer.post(EVENTS, {"metadata": {"name": "late"}}),
            writer.patch(f"{EVENTS}/e", {"note": "late"}, kind="merge"),
        ):
            term.until = virtual.now() + 5.0
            with pytest.raises(errors.FencedError, match="not sent: this replica does not lead"):
                await call
        await asyncio.sleep(1.0)

        assert 1 == len(server.requests)
