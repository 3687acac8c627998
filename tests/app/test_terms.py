"""A replica that loses its term and gets another one takes up what it had to leave."""

import asyncio

from tests import builders
from tests.app import live
from tests.fakes import virtual

STATUS = ".*/status"


@virtual.timed
async def test_what_was_left_unsaid_when_a_term_ended_is_said_in_the_next() -> None:
    """A pod that was refused is tried again at once, and not only when it has waited for five minutes."""
    async with live.scheduler(builders.make_node("n1").cpu("1")) as running:
        leads = True
        running.program.loop._leading = lambda: leads
        running.server.faults.refuse("PATCH", STATUS, 503, times=1_000_000)
        running.pod(builders.make_pod("big").cpu("2"))
        await asyncio.sleep(20.0)
        leads = False
        await asyncio.sleep(20.0)
        running.server.faults.clear()
        leads = True
        began = virtual.now()
        await running.until(lambda: bool(running.message("big")))

        assert virtual.now() - began < 30.0
