"""GraphWalk: what plugins are given, how their answers are judged, and the orders of those that come along."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import msgspec
import pytest

from graphsched import testing
from graphsched.base.values import keys
from graphsched.decision import walking
from graphsched.graph import adjacency, walks


class TestPriorityQueue(testing.PluginContract):
    """The plugin that comes along keeps the contract."""

    def make(self) -> walking.GraphWalk:
        """The plugin."""
        return walking.PriorityQueue()


class TestCriticalPath(testing.PluginContract):
    """The plugin that comes along keeps the contract."""

    def make(self) -> walking.GraphWalk:
        """The plugin."""
        return walking.CriticalPath()


class Heedless:
    """A plugin that ignores some of its limits."""

    name = "heedless"

    def __init__(self, inner: walking.GraphWalk, **ignored: int) -> None:
        self.mode = inner.mode
        self._inner = inner
        self._ignored = ignored

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """What the other one would say without these limits."""
        limits = msgspec.structs.replace(ctx.limits, **self._ignored)
        return self._inner.walk(graph, start, msgspec.structs.replace(ctx, limits=limits))


@pytest.mark.parametrize("plugin", walking.SHIPPED, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("limit", walking.Limits.__struct_fields__)
def test_a_plugin_that_ignores_one_of_its_limits_does_not_pass(plugin: walking.GraphWalk, limit: str) -> None:
    """The contract names the limit; a plugin that keeps to all of them passes, as one that ignores none."""

    class Contract(testing.PluginContract):
        def __init__(self, **ignored: int) -> None:
            self._ignored = ignored

        def make(self) -> walking.GraphWalk:
            return Heedless(plugin, **self._ignored)

    Contract().test_it_leaves_out_what_its_limits_cut_off()
    with pytest.raises(AssertionError, match=rf"limits\.{limit} is"):
        Contract(**{limit: sys.maxsize}).test_it_leaves_out_what_its_limits_cut_off()


def test_breadth_first_is_by_the_shortest_way_or_by_the_longest_and_by_one_of_them_throughout() -> None:
    """The contract takes either order of distance, and neither that of depth nor a mixture."""

    class Contract(testing.PluginContract):
        def __init__(self, walk: Callable[[walking.Graph], Sequence[walking.Key]]) -> None:
            self._walk = walk

        def make(self) -> walking.GraphWalk:
            return Said(self._walk)

    def by_the_shortest(graph: walking.Graph) -> Sequence[walking.Key]:
        return graph.walk(walking.Mode.BFS, graph.roots(), walking.Context()).keys

    def by_the_longest(graph: walking.Graph) -> Sequence[walking.Key]:
        return [key for wave in graph.waves(walking.Context()) for key in wave]

    def in_depth(graph: walking.Graph) -> Sequence[walking.Key]:
        return graph.walk(walking.Mode.DFS, graph.roots(), walking.Context()).keys

    Contract(by_the_shortest).test_it_keeps_the_order_of_its_mode()
    Contract(by_the_longest).test_it_keeps_the_order_of_its_mode()
    for wrong in (in_depth, lambda graph: by_the_longest(graph)[::-1]):
        with pytest.raises(AssertionError, match="which is not BFS"):
            Contract(wrong).test_it_keeps_the_order_of_its_mode()


class Said:
    """A plugin that says it goes breadth first."""

    name = "said"
    mode = walking.Mode.BFS

    def __init__(self, walk: Callable[[walking.Graph], Sequence[walking.Key]]) -> None:
        self._walk = walk

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """What it was made with."""
        return self._walk(graph)


def graph(*edges: str, more: str = "") -> walking.Graph:
    """A graph of one-letter vertices; an edge is two letters."""
    writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
    for name in sorted(set("".join(edges) + more)):
        writer.add(keys.VertexKey(name))
    for edge in edges:
        writer.set(keys.VertexKey(edge[0]), keys.VertexKey(edge[1]))
    return walking.Graph(writer.picture())


def ordered(plugin: walking.GraphWalk, where: walking.Graph, start: str, **priorities: int) -> str:
    """The plugin's order as letters."""
    given = {keys.VertexKey(key): value for key, value in priorities.items()}
    context = walking.Context(priorities=given)
    answer = walking.run(plugin, where, [keys.VertexKey(key) for key in start], context)
    assert answer.verdict is walking.Verdict.DONE, answer.why
    return "".join(answer.keys)


def test_the_longest_chain_goes_first() -> None:
    """Whole, then the shorter one, whatever the order they came in."""
    assert "dabcef" == ordered(walking.CriticalPath(), graph("da", "ab", "bc", "ef"), "efabcd")


def test_nothing_goes_before_what_it_waits_for() -> None:
    """Also where it waits for two, one of which is on a shorter way."""
    where = graph("ab", "bc", "cd", "ed")

    assert "abced" == ordered(walking.CriticalPath(), where, "abcde")


def test_of_equal_chains_the_more_urgent_goes_first_then_the_older() -> None:
    """As the queue itself would have it."""
    where = graph("ab", "cd", "ef")

    assert "efcdab" == ordered(walking.CriticalPath(), where, "cdabef", e=5)


def test_a_circle_is_left_out_and_named() -> None:
    """With what waits for it; all else keeps its order."""
    where = graph("ab", "bc", "cb", "cd", "ef")

    assert "aef" == ordered(walking.CriticalPath(), where, "abcdef")
    assert ("b", "c") == where.cycle(walking.Context())


def test_a_priority_queue_goes_wave_by_wave() -> None:
    """What waits for nobody first, by priority, then in the order given; more of it in `test_priority_queue`."""
    assert "caxbd" == ordered(walking.PriorityQueue(), graph("ab", "cd", more="x"), "axbcd", c=3)


class Plugin:
    """Returns what it is told to, or raises it."""

    name = "told"
    mode = walking.Mode.BFS

    def __init__(self, told: Sequence[str] | Exception) -> None:
        self._told = told

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """What it was told."""
        if isinstance(self._told, Exception):
            raise self._told
        return [keys.VertexKey(key) for key in self._told]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
        (["a", "z"], "returned 'z', which is no vertex of the graph"),
        (["a", "b", "a"], "returned 'a' more than once"),
    ],
)
def test_a_wrong_answer_has_no_say_and_a_reason(told: Sequence[str] | Exception, why: str) -> None:
    """It never comes through as an exception."""
    answer = walking.run(Plugin(told), graph("ab"), [], walking.Context())

    assert (walking.Verdict.FAILED, (), why) == (answer.verdict, answer.keys, answer.why)


def test_an_answer_after_the_deadline_does_not_count() -> None:
    """However good it is."""
    answer = walking.run(Plugin("ab"), graph("ab"), [], walking.Context(expired=lambda: True))

    assert walking.Verdict.LATE is answer.verdict


def test_walks_keep_within_the_context() -> None:
    """Limits and cancellation hold for what a plugin walks through the graph it is given."""
    where = graph("ab", "bc", "cd")
    context = walking.Context(limits=walking.Limits(vertices_max=2))
    visit = where.walk(walking.Mode.DFS, [keys.VertexKey("a")], context)
    cancelled = where.walk(walking.Mode.BFS, [keys.VertexKey("a")], walking.Context(cancelled=lambda: True))

    assert (("a", "b"), walks.Ended.VERTICES) == (visit.keys, visit.ended)
    assert walks.Ended.CANCELLED is cancelled.ended


def test_only_a_walk_in_depth_prunes() -> None:
    """It is told of key and depth; other modes refuse it by name."""
    where = graph("ab", "bc", "ad")
    start = [keys.VertexKey("a")]
    visit = where.walk(walking.Mode.DFS, start, walking.Context(), prune=lambda key, depth: (key, depth) == ("b", 1))

    assert ("a", "b", "d") == visit.keys
    with pytest.raises(ValueError, match="not with BFS"):
        where.walk(walking.Mode.BFS, start, walking.Context(), prune=lambda *_: True)
