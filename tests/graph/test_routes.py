"""
Distances and ways are what Dijkstra's algorithm finds, whatever happened to the graph before.

A history begins with a network that is dense enough for ways to compete, and goes on with nodes, places and ties that
come, change and go. After every change something is asked that was asked before, so that there is always something to
repair, and compared with the plain search of `ways` and, bit by bit, with routes made afresh. The single cases say what
counts as a way.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, stateful, strategies as st

from graphsched.base.values import keys, labels, nodes, places, relations
from graphsched.graph import delta, levels, routes, store
from tests.graph import networks, ways

# A failing example is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

Metric = routes.Metric
RACK = "topology.kubernetes.io/rack"

names = st.sampled_from(("n0", "n1", "n2", "n3", "n4", "new"))
some_labels = st.dictionaries(st.sampled_from((levels.REGION, levels.ZONE, RACK)), st.sampled_from(("", "a", "b"))).map(
    labels.from_mapping
)
place_names = st.sampled_from(("p", "q", "r"))
domain_keys = st.sampled_from(
    (
        keys.domain_key(levels.ZONE, "a"),
        keys.domain_key(levels.ZONE, "a/b"),
        keys.domain_key(levels.REGION, "a"),
        keys.domain_key(RACK, "a/:b"),
    )
)
ends = names.map(keys.node_key) | place_names.map(keys.place_key) | domain_keys
few = st.sampled_from((0.0, 0.5, 1.0, 1.25, 3.0))
healths = st.sampled_from((relations.DOWN, 0.1, 0.15, 0.5, 1.0))
links = st.builds(
    relations.Link,
    st.none() | few,
    st.none() | few,
    healths,
    st.sampled_from((0.0, 5.0)),
    st.just(""),
    st.none() | st.integers(0, 3),
)
link_ids = st.tuples(ends, ends).map(lambda pair: keys.EdgeID(*pair, keys.EdgeKind.LINK))
contain_ids = (
    st.tuples(ends, ends)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: keys.EdgeID(*pair, keys.EdgeKind.CONTAINS))
)


def vector(
    found: routes.Routes, metric: Metric, source: keys.VertexKey
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What routes say in this metric, with NaN for unknown in every one."""
    if metric is Metric.HOPS:
        hops = found.hops(source)
        return np.where(hops < 0, np.nan, hops)
    ask = {Metric.LATENCY: found.latency, Metric.BANDWIDTH: found.bottleneck, Metric.COST: found.cost}
    return ask[metric](source)


class HistoryLeavesNoTrace(stateful.RuleBasedStateMachine):
    """Routes with a past equal those without, and the plain search."""

    def __init__(self) -> None:
        super().__init__()
        self.store = store.Store()
        self.network: networks.Network
        self.watched: tuple[tuple[keys.VertexKey, Metric], ...] = ()
        self.turn = 0

    @stateful.initialize(seed=st.integers(0, 9999))
    def begin(self, seed: int) -> None:
        """A network is there, and some distances in it were asked for."""
        self.network = networks.Network(seed)
        self.store = self.network.store
        sources = [self.network.vertex() for _ in range(2)]
        self.watched = tuple(itertools.product(sources, Metric))
        self.check_all()

    def teardown(self) -> None:
        """Nothing that was asked for is wrong at the end."""
        self.check_all()

    def apply(self, patch: delta.Patch) -> None:
        """Take the patch, and look again at one of the distances that were asked for."""
        assert isinstance(self.store.apply(patch), delta.Applied)
        self.look_again()

    def look_again(self) -> None:
        """One after the other, so that each is repaired for several changes at once."""
        self.turn += 1
        self.check(*self.watched[self.turn * 3 % len(self.watched)])

    def check_all(self) -> None:
        """Everything that was asked for is as the plain search says."""
        for source, metric in self.watched:
            self.check(source, metric)

    def check(self, source: keys.VertexKey, metric: Metric) -> None:
        """The distances to this source are as the plain search says, and bit by bit those made afresh."""
        found = vector(self.store.routes, metric, source)
        fresh = vector(routes.Routes(self.store.topology, self.store.columns), metric, source)
        np.testing.assert_array_equal(found, fresh)
        plain = ways.distances(ways.world_of(self.store.topology.graph), metric, source)
        for name, row in self.store.columns.rows.items():
            expected = plain.get(keys.node_key(name), math.nan)
            assert found[row] == pytest.approx(expected, nan_ok=True, rel=1e-12), (name, source, metric)

    @stateful.rule(times=st.integers(1, 5))
    def happen(self, times: int) -> None:
        """Something happens to what is there: a link is measured, cut or moved, a node changes its rack or goes."""
        for _ in range(times):
            self.network.change()
        self.look_again()

    @stateful.rule(name=names, node_labels=some_labels)
    def set_node(self, name: str, node_labels: labels.Labels) -> None:
        """A node arrives, or its labels change."""
        self.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name, labels=node_labels)}))

    @stateful.rule(number=st.integers(1, 3))
    def join(self, number: int) -> None:
        """Nodes arrive of which nothing else is said."""
        patch = delta.Patch()
        for each in range(number):
            patch.set_vertex(nodes.Node(f"bare{each}"))
        self.apply(patch)

    @stateful.rule()
    def leave(self) -> None:
        """And go."""
        self.apply(delta.Patch(removed={keys.node_key(f"bare{each}") for each in range(3)}))

    @stateful.rule(name=place_names)
    def set_place(self, name: str) -> None:
        """A place arrives."""
        self.apply(delta.Patch(vertices={keys.place_key(name): places.Place(name)}))

    @stateful.rule(key=names.map(keys.node_key) | place_names.map(keys.place_key))
    def remove(self, key: keys.VertexKey) -> None:
        """A node or place leaves, with its ties."""
        self.apply(delta.Patch(removed={key}))

    @stateful.rule(ties=st.dictionaries(link_ids, links, max_size=4))
    def link(self, ties: dict[keys.EdgeID, relations.Link]) -> None:
        """Links are stated or measured."""
        self.apply(delta.Patch(edges=dict(ties)))

    @stateful.rule(tie=contain_ids)
    def contain(self, tie: keys.EdgeID) -> None:
        """A place is said to hold something, in whatever order."""
        self.apply(delta.Patch(edges={tie: relations.Contains()}))

    @stateful.rule(tie=link_ids | contain_ids)
    def cut(self, tie: keys.EdgeID) -> None:
        """A tie is cut, or one that was not there."""
        self.apply(delta.Patch(cut={tie}))

    @stateful.rule(source=ends, metric=st.sampled_from(Metric))
    def ask(self, source: keys.VertexKey, metric: Metric) -> None:
        """A distance is asked for, which is then there to be repaired."""
        self.check(source, metric)

    @stateful.rule(start=ends, goal=ends, metric=st.sampled_from(Metric))
    def ask_way(self, start: keys.VertexKey, goal: keys.VertexKey, metric: Metric) -> None:
        """The way itself is one of the graph, and as long as the plain search says."""
        world = ways.world_of(self.store.topology.graph)
        plain = ways.distance(world, metric, start, goal)
        found = self.store.routes.route(start, goal, metric)
        assert (found is None) == (plain is None)
        if found is None:
            return
        assert found == routes.Routes(self.store.topology, self.store.columns).route(start, goal, metric)
        assert (found.vertices[0], found.vertices[-1]) == (start, goal)
        assert found.hops == len(found.vertices) - 1
        costs = []
        for leg, (here, there) in zip(found.legs, itertools.pairwise(found.vertices), strict=True):
            assert (leg.start, leg.end) == (here, there)
            link = world.edges.get(keys.EdgeID(here, there, keys.EdgeKind.LINK))
            if leg.link is None:
                inside = {keys.EdgeID(*pair, keys.EdgeKind.CONTAINS) for pair in ((here, there), (there, here))}
                assert inside & world.edges.keys()
                costs.append(1.0 if metric is Metric.HOPS else math.inf if metric is Metric.BANDWIDTH else 0.0)
            else:
                assert leg.link == link
                cost = ways.cost_of(leg.link, metric)
                assert cost is not None
                costs.append(cost)
        total = min(costs, default=math.inf) if metric is Metric.BANDWIDTH else sum(costs)
        assert total == pytest.approx(plain, rel=1e-12)


TestHistoryLeavesNoTrace = HistoryLeavesNoTrace.TestCase
# How long a step takes is no matter: the machine may be busy.
TestHistoryLeavesNoTrace.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
