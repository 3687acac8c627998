"""
Clocks, eternal tasks, interruptible pauses and growing waits.

Simulated: time. Excluded: real waiting.
"""

import asyncio
import random

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.kit import backoff, clock, tasks
from tests.fakes import virtual


def test_virtual_time_moves_only_when_told_to() -> None:
    """Both its faces move together."""
    virtually = clock.VirtualClock(wall=1000.0)

    virtually.advance(2.5)

    assert (2.5, 1002.5) == (virtually.monotonic(), virtually.wall())


def test_virtual_time_does_not_go_back() -> None:
    """A clock that goes back breaks every difference that was taken."""
    with pytest.raises(ValueError, match="does not go back"):
        clock.VirtualClock().advance(-1)


def test_real_time_never_goes_back() -> None:
    """Two looks, in order."""
    real = clock.RealClock()

    assert real.monotonic() <= real.monotonic()
    assert real.wall() > 1_700_000_000


async def _ends() -> None:
    """Return at once, as an eternal task must not."""


async def _fails() -> None:
    raise LookupError("no such thing")


@virtual.timed
async def test_an_eternal_task_that_returns_takes_the_group_down() -> None:
    """Nobody else would notice."""

    async def program() -> None:
        async with asyncio.TaskGroup() as group:
            tasks.start(group, _ends(), name="watch/pods")
            tasks.start(group, asyncio.Event().wait(), name="other")

    with pytest.raises(ExceptionGroup) as caught:
        await program()

    assert caught.group_contains(tasks.EndedError, match="watch/pods has ended")


@virtual.timed
async def test_a_failure_names_its_task() -> None:
    """The traceback of a group does not tell which of five reflectors it was."""
    with pytest.raises(LookupError) as caught:
        await tasks.guard(_fails(), name="watch/pods")

    assert ["in the task watch/pods"] == caught.value.__notes__


@virtual.timed
async def test_an_eternal_task_may_be_cancelled() -> None:
    """That is how the program ends."""
    async with asyncio.TaskGroup() as group:
        task = tasks.start(group, asyncio.Event().wait(), name="watch/pods")
        await asyncio.sleep(1)
        task.cancel()

    assert task.cancelled()


@virtual.timed
async def test_a_pause_lasts_its_time_or_until_the_event() -> None:
    """What is left is told."""
    event = asyncio.Event()

    whole = await tasks.pause(5, until=event)
    asyncio.get_running_loop().call_later(2, event.set)
    cut = await tasks.pause(5, until=event)
    none = await tasks.pause(5, until=event)

    assert pytest.approx([0.0, 3.0, 5.0]) == [whole, cut, none]
    assert pytest.approx(7) == virtual.now()


@hypothesis.given(seed=strategies.integers(0, 1000), at_least_s=strategies.floats(0, 100))
def test_waits_double_up_to_the_ceiling_and_keep_what_was_asked_for(seed: int, at_least_s: float) -> None:
    """Half of the ceiling at least, all of it at most, unless the other side wants more."""
    waits = backoff.Backoff(first_s=1.0, most_s=8.0, rng=random.Random(seed))

    for ceiling in (1, 2, 4, 8, 8):
        wait = waits.next(at_least_s=at_least_s)
        assert max(ceiling / 2, at_least_s) <= wait <= max(ceiling, at_least_s)

    assert 5 == waits.failures


def test_success_makes_the_next_failure_a_first_one() -> None:
    """Old failures are forgotten."""
    waits = backoff.Backoff(first_s=1.0, most_s=64.0, rng=random.Random(1))
    for _ in range(5):
        waits.next()

    waits.reset()

    assert waits.next() <= 1.0


def test_the_same_seed_gives_the_same_waits() -> None:
    """A failure that was seen can be seen again."""
    one, two = (backoff.Backoff(first_s=1.0, most_s=64.0, rng=random.Random(7)) for _ in range(2))

    assert [one.next() for _ in range(9)] == [two.next() for _ in range(9)]
