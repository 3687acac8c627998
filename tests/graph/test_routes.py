"""
Distances and ways are what Dijkstra's algorithm finds, whatever happened to the graph before.

A random history of nodes, places and ties, asked now and then so that there is something to repair, is compared with
the plain search of `ways` and, bit by bit, with routes made afresh; the single cases say what counts as a way.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import settings, stateful, strategies as st

from graphsched.base.values import keys, labels, nodes, places, relations
from graphsched.graph import delta, levels, routes, store
from tests.graph import ways

# A failing example is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

Metric = routes.Metric
RACK = "topology.kubernetes.io/rack"

names = st.sampled_from(("a", "b", "c", "d", "e"))
some_labels = st.dictionaries(st.sampled_from((levels.REGION, levels.ZONE, RACK)), st.sampled_from(("", "x", "y"))).map(
    labels.from_mapping
)
place_names = st.sampled_from(("p", "q", "r"))
domain_keys = st.sampled_from(
    (
        keys.domain_key(levels.ZONE, "x"),
        keys.domain_key(levels.ZONE, "x/y"),
        keys.domain_key(levels.REGION, "x"),
        keys.domain_key(RACK, "x/:y"),
    )
)
ends = names.map(keys.node_key) | place_names.map(keys.place_key) | domain_keys
few = st.sampled_from((0.0, 0.5, 1.0, 1.25, 3.0))
healths = st.sampled_from((0.1, 0.15, 0.5, 1.0))
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

    def apply(self, patch: delta.Patch) -> None:
        """Take the patch."""
        assert isinstance(self.store.apply(patch), delta.Applied)

    @stateful.rule(name=names, node_labels=some_labels)
    def set_node(self, name: str, node_labels: labels.Labels) -> None:
        """A node arrives, or its labels change."""
        self.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name, labels=node_labels)}))

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
        found = vector(self.store.routes, metric, source)
        fresh = vector(routes.Routes(self.store.topology, self.store.columns), metric, source)
        np.testing.assert_array_equal(found, fresh)
        world = ways.world_of(self.store.topology.graph)
        for name, row in self.store.columns.rows.items():
            plain = ways.distance(world, metric, keys.node_key(name), source)
            assert found[row] == pytest.approx(math.nan if plain is None else plain, nan_ok=True, rel=1e-12), name

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
TestHistoryLeavesNoTrace.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
