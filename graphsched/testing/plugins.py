"""The contract of GraphWalk plugins as tests.

A plugin author derives a class and says how the plugin is made:

    class TestMine(PluginContract):
        def make(self) -> GraphWalk:
            return Mine()

Each test asks the plugin about graphs from `sample` and judges the answer by what the mode promises; the assertion says
what was promised and not kept.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from graphsched.base.values import keys
from graphsched.decision import walking
from graphsched.graph import adjacency

SEEDS = range(20)


def sample(seed: int, *, acyclic: bool = True) -> walking.Graph:
    """A random graph with some vertices that have no edge; the same seed gives the same graph."""
    rng = random.Random(seed)
    names = [keys.VertexKey(f"pod/default/p{number:02}") for number in range(rng.randrange(1, 30))]
    writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
    for name in names:
        writer.add(name)
    # Edges lead along a shuffled order, so that the order of the keys tells nothing.
    shuffled = rng.sample(names, len(names))
    for _ in range(rng.randrange(0, 3 * len(names))):
        one, other = sorted(rng.choices(range(len(names)), k=2))
        if one != other:
            writer.set(shuffled[one], shuffled[other])
    if not acyclic and len(names) > 1:
        writer.set(shuffled[0], shuffled[1])
        writer.set(shuffled[1], shuffled[0])
    return walking.Graph(writer.picture())


class PluginContract:
    """What every plugin keeps to; derive from it and override `make`."""

    def make(self) -> walking.GraphWalk:
        """The plugin under test."""
        message = "override make() and return your plugin"
        raise NotImplementedError(message)

    def test_it_says_what_it_is(self) -> None:
        """It has a name and one of the modes."""
        plugin = self.make()
        assert isinstance(plugin, walking.GraphWalk), "a plugin has name, mode and walk(graph, start, ctx)"
        assert plugin.name, "its name is not empty"
        assert plugin.mode in set(walking.Mode), f"its mode is one of {', '.join(walking.Mode)}"

    def test_it_returns_vertices_each_once(self) -> None:
        """Of the graph it was given, cycles or not."""
        for seed in SEEDS:
            for acyclic in (True, False):
                answer = self._ask(sample(seed, acyclic=acyclic), walking.Context())
                assert answer.verdict is walking.Verdict.DONE, f"seed {seed}: {answer.why}"

    def test_it_takes_the_empty_graph(self) -> None:
        """Nothing waits: there is nothing to say."""
        answer = walking.run(self.make(), walking.Graph(adjacency.Writer[keys.VertexKey]().picture()), [], _ENDLESS)
        assert not answer.keys, "it returned vertices of none"
        assert answer.verdict is walking.Verdict.DONE, answer.why

    def test_it_keeps_the_order_of_its_mode(self) -> None:
        """On graphs without cycles, from their roots."""
        for seed in SEEDS:
            graph = sample(seed)
            problem = _JUDGES[self.make().mode](graph, self._ask(graph, _ENDLESS).keys)
            assert not problem, f"seed {seed}: {problem}"

    def test_the_same_question_gets_the_same_answer(self) -> None:
        """Replays depend on it: no clock, no dice, no order of a set."""
        for seed in SEEDS:
            graph = sample(seed)
            first, second = self._ask(graph, _ENDLESS), self._ask(graph, _ENDLESS)
            assert first == second, f"seed {seed}: it answered {first.keys}, then {second.keys}"

    def test_it_ends_when_its_time_is_up(self) -> None:
        """And does not raise for it; what it returns does not count then."""
        for context in (walking.Context(expired=lambda: True), walking.Context(cancelled=lambda: True)):
            answer = self._ask(sample(1), context)
            assert answer.verdict is walking.Verdict.LATE, answer.why

    def test_it_leaves_out_what_its_limits_cut_off(self) -> None:
        """It goes no further than each of them lets, answers all the same, and in the order of its mode."""
        for seed in SEEDS:
            for bound in (0, 1, 3):
                for limits in (
                    walking.Limits(vertices_max=bound),
                    walking.Limits(edges_max=bound),
                    walking.Limits(depth_max=bound),
                ):
                    graph = sample(seed)
                    answer = self._ask(graph, walking.Context(limits=limits))
                    assert answer.verdict is walking.Verdict.DONE, f"seed {seed}: {answer.why}"
                    problem = _too_far(graph, answer.keys, limits) or _JUDGES[self.make().mode](graph, answer.keys)
                    assert not problem, f"seed {seed}: {problem}"

    def _ask(self, graph: walking.Graph, context: walking.Context) -> walking.Answer:
        return walking.run(self.make(), graph, graph.roots(), context)


_ENDLESS = walking.Context()


def _by_distance(graph: walking.Graph, found: Sequence[walking.Key]) -> str:
    problem = ""
    for way, levels in (("longest", graph.waves(_ENDLESS)), ("shortest", _levels(graph))):
        distance = {key: number for number, level in enumerate(levels) for key in level}
        wrong = next((pair for pair in itertools.pairwise(found) if distance[pair[0]] > distance[pair[1]]), None)
        if wrong is None:
            return ""
        places = " comes before ".join(f"{key} at distance {distance[key]}" for key in wrong)
        problem = f"{places} by the {way} way, and by the longest it is out of order as well, which is not BFS"
    return problem


def _levels(graph: walking.Graph) -> Sequence[Sequence[walking.Key]]:
    """The vertices by how many edges they are from the nearest root."""
    return graph.walk(walking.Mode.BFS, graph.roots(), _ENDLESS).levels


def _too_far(graph: walking.Graph, found: Sequence[walking.Key], limits: walking.Limits) -> str:
    """What of an answer can not have been come by within the limits."""
    if len(found) > limits.vertices_max:
        return f"it returned {len(found)} vertices, where limits.vertices_max is {limits.vertices_max}"
    # The start is there without an edge; every other vertex takes one at least that leads to it.
    beyond = len(set(found) - set(graph.roots()))
    if beyond > limits.edges_max:
        return f"it returned {beyond} vertices beyond the start, where limits.edges_max is {limits.edges_max}"
    distance = {key: number for number, level in enumerate(_levels(graph)) for key in level}
    far = next((key for key in found if distance[key] > limits.depth_max), None)
    if far is not None:
        return f"{far} is {distance[far]} edges from the start, where limits.depth_max is {limits.depth_max}"
    return ""


def _led_to(graph: walking.Graph, found: Sequence[walking.Key]) -> str:
    reached = set(graph.roots())
    for key in found:
        if key not in reached:
            return f"{key} comes before everything that leads to it, which is not DFS"
        reached.update(graph.targets(key))
    return ""


def _after_all(graph: walking.Graph, found: Sequence[walking.Key]) -> str:
    place = {key: number for number, key in enumerate(found)}
    for key in found:
        for target in graph.targets(key):
            if place.get(target, len(found)) < place[key]:
                return f"{target} comes before {key}, which leads to it: that is not TOPO"
    return ""


_JUDGES = {walking.Mode.BFS: _by_distance, walking.Mode.DFS: _led_to, walking.Mode.TOPO: _after_all}
