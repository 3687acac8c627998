"""The live loop at its end: it waits for what is under way, and for nothing else."""

from graphsched.app import parking
from tests import builders
from tests.app import live
from tests.fakes import virtual


@virtual.timed
async def test_a_loop_that_ends_waits_for_outcomes_without_turning_all_the_time() -> None:
    """A pod whose penalty is over will not be taken out of the queue any more, so it is nothing to wake for."""
    async with live.scheduler(builders.make_node("n1").cpu("2")) as it:
        it.server.faults.hang("POST", ".*/pods/web/binding")
        it.server.faults.refuse("POST", ".*/pods/other/binding", 422)
        it.pod(builders.make_pod("web").cpu("1"))
        it.pod(builders.make_pod("other").cpu("1"))
        await it.quiet(0.5)
        assert parking.Pool.ERRORS is it.pool("other")
        turn, turns = it.program.loop.turn, 0

        def counted() -> bool:
            nonlocal turns
            turns += 1
            assert turns < 100, "it turns without end"
            return turn()

        it.program.loop.turn = counted  # type: ignore[method-assign]  # to count
        it.program.loop.stop()
        await it.quiet(10.0)

        assert turns < 10
