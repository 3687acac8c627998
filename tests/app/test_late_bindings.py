"""The room of a binding is for others only when its call can not be carried out any more."""

from graphsched.action import bind
from tests import builders
from tests.app import live
from tests.fakes import virtual

N1 = builders.make_node("n1").cpu("2")


@virtual.timed
async def test_the_room_of_a_binding_that_was_turned_away_is_for_others() -> None:
    """Whoever found no room because of it is tried at once, while the failed one waits out its penalty."""
    async with live.scheduler(N1) as it:
        it.server.faults.refuse("POST", ".*/first/binding", 422, times=99)
        it.pod(builders.make_pod("first").cpu("2"))
        await it.until(lambda: it.bindings("first") == 1)
        it.pod(builders.make_pod("second").cpu("2"))
        await it.bound("second")

        assert virtual.now() < 5.0
        it.require_sound()


@virtual.timed
async def test_the_room_of_a_binding_without_an_answer_is_kept_until_it_can_not_arrive_any_more() -> None:
    """A call that was cut off may still be carried out, so nobody else gets its place before a minute is over."""
    async with live.scheduler(N1) as it:
        it.server.faults.drop("POST", ".*/first/binding", times=bind.TRIES_MAX)
        it.pod(builders.make_pod("first").cpu("2"))
        await it.until(lambda: it.bindings("first") == bind.TRIES_MAX)
        last = virtual.now()
        it.pod(builders.make_pod("second").cpu("2").priority(5))
        await it.quiet(bind.LATE_S - 1.0)
        assert "" == it.where("second")
        await it.bound("second")

        assert bind.LATE_S <= virtual.now() - last
        it.require_sound()


@virtual.timed
async def test_a_no_after_a_call_without_an_answer_does_not_free_the_room_either() -> None:
    """The first call was cut off, the second one refused: the first may still be carried out."""
    async with live.scheduler(N1) as it:
        it.server.faults.drop("POST", ".*/first/binding")
        it.server.faults.refuse("POST", ".*/first/binding", 422, times=99)
        it.pod(builders.make_pod("first").cpu("2"))
        await it.until(lambda: it.bindings("first") == 2)
        it.pod(builders.make_pod("second").cpu("2"))
        await it.quiet(bind.LATE_S - 5.0)
        assert "" == it.where("second")
        await it.bound("second")

        it.require_sound()
