"""Nodes that cross a watermark: a number, and one event on the node from the replica that leads."""

import pytest

from graphsched.app import setting_checks, settings as configuration
from graphsched.app.fullness import MarkSettings
from graphsched.base.values import errors
from tests import builders
from tests.app import live
from tests.fakes import virtual

MARKS = {"cpu": MarkSettings(high_percent=75, low_percent=50)}
N1 = builders.make_node("n1").cpu("4")


def told(it: live.Scheduler) -> list[str]:
    """Notes of the events about nodes."""
    events = (change.after for change in it.server.storage.history if change.before is None and change.after)
    return [each["note"] for each in events if each.get("kind") == "Event" and each["regarding"]["kind"] == "Node"]


UP, DOWN = (f'crossings_total{{direction="{each}",resource="cpu"}}' for each in ("up", "down"))
"""There from the start: a rate sees no growth in a series that begins with its first event."""


def numbers(it: live.Scheduler) -> dict[str, float]:
    """The metrics of watermarks."""
    lines = it.parts.meters.render().decode().splitlines()
    return {
        name.removeprefix("graphsched_watermark_"): float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if line.startswith("graphsched_watermark"))
    }


@virtual.timed
async def test_a_node_that_crosses_the_mark_is_told_of_once() -> None:
    """Our own decision takes it there; it is above until its pods have left; rising again soon after is no news."""
    async with live.scheduler(N1, watermarks=MARKS) as it:
        assert {'nodes{resource="cpu"}': 0.0, UP: 0.0, DOWN: 0.0} == numbers(it)
        for round_ in range(2):
            it.pod(builders.make_pod(f"web-{round_}").cpu("3"))
            await it.bound(f"web-{round_}")
            await it.quiet(15.0)
            assert 1.0 == numbers(it)['nodes{resource="cpu"}']
            it.delete(f"web-{round_}")
            await it.quiet(15.0)
            assert 0.0 == numbers(it)['nodes{resource="cpu"}']

        assert (2.0, 2.0) == (numbers(it)[UP], numbers(it)[DOWN])
        assert ["cpu: pods request 3 of 4 (75%), the watermark is at 75%"] == told(it)


@virtual.timed
async def test_what_is_above_at_the_start_has_crossed_nothing() -> None:
    """A restart tells nobody anew; the number is right."""
    there = builders.make_pod("web").cpu("3").node("n1")
    async with live.scheduler(N1, pods=(there,), watermarks=MARKS) as it:
        await it.quiet(15.0)

        assert {'nodes{resource="cpu"}': 1.0, UP: 0.0, DOWN: 0.0} == numbers(it)
        assert [] == told(it)


def test_marks_must_leave_room_between_them() -> None:
    """Or a node at the edge would be told of again and again."""
    marks = {"cpu": MarkSettings(high_percent=75, low_percent=75)}
    with pytest.raises(errors.InputError, match=r"watermarks.cpu.lowPercent: 75 is not below highPercent"):
        setting_checks.check(configuration.Settings(watermarks=marks), place="settings")
