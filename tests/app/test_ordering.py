"""The queue in the order of dependencies: by a plugin, within one priority, and only where settings ask for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from graphsched.app import backlog, ordering, settings
from graphsched.base.kit import clock as clocks
from graphsched.base.values import pods
from graphsched.decision import walking
from graphsched.explain import why
from tests.app import ties


def pod(name: str, priority: int = 0) -> pods.Pod:
    """A waiting pod whose app is the first letter of its name."""
    return ties.pod(name, name[0], priority)


class Counts(list[str]):
    """What became of each walk."""

    def walked(self, result: str) -> None:
        """Note it."""
        self.append(result)


class World:
    """A queue and who orders it, in virtual time."""

    def __init__(self, plugin: walking.GraphWalk) -> None:
        self.queue = backlog.Backlog()
        self.clock = clocks.VirtualClock()
        self.results = Counts()
        self.ordering = ordering.Ordering(plugin, self.queue, budget_s=0.01, clock=self.clock, observer=self.results)

    def add(self, *waiting: pods.Pod) -> None:
        """Pods arrive."""
        for each in waiting:
            self.queue.add(each, self.clock.monotonic())
            self.ordering.pod(None, each)

    def order(self) -> list[str]:
        """Arrange, and take everybody out."""
        self.clock.advance(1)
        self.ordering.arrange(self.clock.monotonic())
        found = []
        while (entry := self.queue.pop()) is not None:
            found.append(entry.pod.name)
        return found


def test_the_longest_chain_goes_first_and_what_it_waits_for_before_it() -> None:
    """Pods without dependencies come last, in the order they came."""
    world = World(walking.CriticalPath())
    world.add(pod("x1"), pod("a1"), pod("b1"), pod("c1"), pod("x2"), pod("c2"))
    world.ordering.group(None, ties.group("g", a="b", b="c", c=""))

    assert ["c1", "c2", "b1", "a1", "x1", "x2"] == world.order()


def test_a_higher_priority_goes_first_all_the_same() -> None:
    """Dependencies order pods of one priority only."""
    world = World(walking.CriticalPath())
    world.add(pod("a1"), pod("b1"), pod("x1", priority=5))
    world.ordering.group(None, ties.group("g", a="b", b=""))

    assert ["x1", "b1", "a1"] == world.order()


def test_pods_that_come_later_are_put_where_they_belong() -> None:
    """And the order is made anew only when something changed."""
    world = World(walking.CriticalPath())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    world.add(pod("a1"), pod("x1"))
    world.clock.advance(1)
    world.ordering.arrange(world.clock.monotonic())
    world.add(pod("b1"))

    assert ["b1", "a1", "x1"] == world.order()
    assert ["done"] * 2 == world.results
    world.order()
    assert ["done"] * 2 == world.results


def test_an_order_that_takes_long_to_make_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes beside the walk, as sorting a long queue does, counts as well: a tenth of the time in all."""
    world = World(walking.CriticalPath())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    rank = world.queue.rank

    def slow(*args: Any, **named: Any) -> None:
        world.clock.advance(0.5)
        rank(*args, **named)

    monkeypatch.setattr(world.queue, "rank", slow)
    for number in range(100):
        world.add(pod(f"a{number}"))
        world.clock.advance(0.2)
        world.ordering.arrange(world.clock.monotonic())

    assert 4 <= len(world.results) <= 1 + (100 * 0.2 + len(world.results) * 0.5) / 5


def test_each_pod_is_told_its_place_and_whom_it_comes_after() -> None:
    """Of all that wait; one that is gone has none, and holds up nobody any more."""
    world = World(walking.CriticalPath())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    b1 = pod("b1")
    world.add(pod("x1"), pod("a1"), b1)
    world.clock.advance(1)
    world.ordering.arrange(world.clock.monotonic())

    def told() -> list[why.Order | None]:
        return [world.ordering.told(pod(name).key) for name in ("b1", "a1", "x1")]

    after = ("default/b1",)
    assert [why.Order("criticalPath", place, 3, after if place == 2 else ()) for place in (1, 2, 3)] == told()
    world.queue.remove(b1.key, 0)
    world.ordering.pod(b1, msgspec.structs.replace(b1, node="n1"))
    assert [None, why.Order("criticalPath", 1, 2), why.Order("criticalPath", 2, 2)] == told()


def test_a_place_is_told_by_the_dependencies_there_are_even_if_nobody_was_decided_on_since() -> None:
    """What came within the pause between two orders counts; a plugin that has no say is not asked for it."""
    world = World(walking.CriticalPath())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    world.add(pod("x1"), pod("a1"))
    world.ordering.arrange(world.clock.monotonic())
    world.add(pod("b1"))
    world.ordering.arrange(world.clock.monotonic())

    assert why.Order("criticalPath", 1, 3) == world.ordering.told(pod("b1").key)
    failing = World(Broken())
    failing.ordering.group(None, ties.group("g", a="b", b=""))
    failing.add(pod("a1"))
    failing.order()
    failing.add(pod("b1"))
    failing.ordering.told(pod("b1").key)
    assert ["failed"] == failing.results


def test_a_pod_that_is_bound_holds_up_nobody() -> None:
    """It leaves the graph with the queue."""
    world = World(walking.CriticalPath())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    b1 = pod("b1")
    world.add(pod("x1"), pod("a1"), b1)
    world.queue.remove(b1.key, 0)
    world.ordering.pod(b1, msgspec.structs.replace(b1, node="n1"))

    assert 2 == len(world.ordering._dependencies)
    assert ["a1", "x1"] == world.order()


class Broken:
    """A plugin that raises."""

    name = "broken"
    mode = walking.Mode.BFS

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """Raise."""
        message = "out of order"
        raise RuntimeError(message)


def test_a_broken_plugin_is_counted_and_asked_again_after_a_pause_that_doubles(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The queue keeps its order, and the log names the plugin and what went wrong."""
    world = World(Broken())
    world.ordering.group(None, ties.group("g", a="b", b=""))
    world.add(pod("a1"), pod("b1"))
    with caplog.at_level(logging.WARNING):
        for _ in range(8):
            world.clock.advance(1)
            world.ordering.arrange(world.clock.monotonic())

    assert ["failed"] * 4 == world.results  # after 1, 2, 4 and 8 seconds
    assert 'the plugin "broken" has no say' in caplog.text
    assert "RuntimeError: out of order" in caplog.text
    assert ["a1", "b1"] == world.order()


@pytest.mark.parametrize("plugin", walking.SHIPPED, ids=lambda plugin: plugin.name)
def test_a_circle_of_dependencies_is_told_once(plugin: walking.GraphWalk, caplog: pytest.LogCaptureFixture) -> None:
    """By the pods on it."""
    world = World(plugin)
    world.ordering.group(None, ties.group("one", a="b", b=""))
    world.ordering.group(None, ties.group("other", b="a", a=""))
    with caplog.at_level(logging.WARNING):
        world.add(pod("a1"), pod("b1"))
        assert ["a1", "b1"] == world.order()
        world.add(pod("a2"))
        world.order()

    assert 1 == caplog.text.count("depend on each other in a circle")
    assert "pod/default/a1 → " in caplog.text


@pytest.mark.parametrize("plugin", walking.SHIPPED, ids=lambda plugin: plugin.name)
def test_a_circle_behind_a_pod_that_waits_for_nobody_is_told_once(
    plugin: walking.GraphWalk, caplog: pytest.LogCaptureFixture
) -> None:
    """What is on it keeps its place behind those that have an order, and nothing is told anew while it stays."""
    world = World(plugin)
    world.ordering.group(None, ties.group("one", a="r", r=""))
    world.ordering.group(None, ties.group("two", a="b", b=""))
    world.ordering.group(None, ties.group("three", b="a", a=""))
    with caplog.at_level(logging.WARNING):
        world.add(pod("b1"), pod("a1"), pod("r1"))
        assert ["r1", "b1", "a1"] == world.order()
        world.add(pod("r2"))
        world.order()

    assert 1 == caplog.text.count("depend on each other in a circle")
    assert "pod/default/a1 → " in caplog.text
    assert "pod/default/r1" not in caplog.text


@pytest.mark.parametrize("plugin", walking.SHIPPED, ids=lambda plugin: plugin.name)
def test_a_pod_goes_after_all_that_it_waits_for(plugin: walking.GraphWalk) -> None:
    """Where web (w) waits for api (a) and db (d), and api for db: also if web is the oldest and api the youngest."""
    world = World(plugin)
    world.ordering.group(None, ties.group("shop", w="d a", a="d", d=""))
    world.add(pod("w1"), pod("d1"), pod("a1"))

    assert ["d1", "a1", "w1"] == world.order()


def test_without_the_setting_nothing_orders_the_queue() -> None:
    """Nothing is made, so nothing is paid."""
    clock, queue = clocks.VirtualClock(), backlog.Backlog()

    assert () == ordering.wired(settings.QueueSettings(), queue, Counts(), clock=clock)
    assert 1 == len(ordering.wired(settings.QueueSettings(order="criticalPath"), queue, Counts(), clock=clock))


def test_a_simulation_orders_as_the_live_queue_does() -> None:
    """The same pods, given at once."""
    waiting = [pod("x1", priority=1), pod("a1"), pod("b1"), pod("x2")]
    found = ordering.in_order(walking.CriticalPath(), [ties.group("g", a="b", b="")], waiting, budget_s=10)

    assert ["x1", "b1", "a1", "x2"] == [each.name for each in found]
