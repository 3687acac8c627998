"""Distances over dense random networks with holes, changed again and again, are those of searches made afresh."""

from __future__ import annotations

import math
import random

import networkx as nx
import numpy as np
import pytest

from graphsched.base.values import keys, nodes, places, relations
from graphsched.graph import delta, distances, levels, routes, store
from tests.graph import test_routes, ways

RACK = "topology.kubernetes.io/rack"


class Network:
    """A store with nodes in racks and zones, switches, and links between any of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.store = store.Store()
        self.store.apply(delta.Patch(vertices={place.key: place for place in map(places.Place, "pqr")}))
        for _ in range(9):
            self.node()
        for _ in range(24):
            self.link()
        for _ in range(3):
            self.contain()

    def vertex(self) -> keys.VertexKey:
        """One that is there."""
        return self.draw.choice(sorted(self.store.topology.vertices()))

    def node(self) -> None:
        """A node comes, or moves."""
        name = f"n{self.draw.randrange(10)}"
        labels = ((RACK, self.draw.choice("12")), (levels.ZONE, self.draw.choice("ab")))
        some = tuple(label for label in labels if self.draw.random() < 0.8)
        self.store.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name, labels=some)}))

    def link(self) -> None:
        """A link comes, or is measured anew."""
        draw = self.draw
        edge = keys.EdgeID(self.vertex(), self.vertex(), keys.EdgeKind.LINK)
        if draw.random() < 0.5:
            edge = draw.choice(sorted(self.store.edge_ids(keys.EdgeKind.LINK)) or [edge])
        latency, bandwidth = (draw.choice([None, 0.0, 0.5, 1.0, 1.25, 3.0]) for _ in range(2))
        cost = draw.choice([None, 1, 2])
        self.store.apply(
            delta.Patch(edges={edge: relations.Link(latency, bandwidth, draw.choice([0.1, 0.5, 1.0]), cost=cost)})
        )

    def contain(self) -> None:
        """A place holds something."""
        outer, inner = keys.place_key(self.draw.choice("pqr")), self.vertex()
        if outer != inner:
            edge = keys.EdgeID(outer, inner, keys.EdgeKind.CONTAINS)
            self.store.apply(delta.Patch(edges={edge: relations.Contains()}))

    def cut(self) -> None:
        """An edge goes, or a node with all of its own."""
        edges = sorted((*self.store.edge_ids(keys.EdgeKind.LINK), *self.store.edge_ids(keys.EdgeKind.CONTAINS)))
        if self.draw.random() < 0.3:
            self.store.apply(delta.Patch(removed={keys.node_key(f"n{self.draw.randrange(10)}")}))
        elif edges:
            self.store.apply(delta.Patch(cut={self.draw.choice(edges)}))


@pytest.mark.parametrize("seed", range(30))
def test_vectors_stay_right_whatever_changes(seed: int) -> None:
    """Bit by bit those made afresh, and those of Dijkstra's algorithm over dictionaries."""
    network = Network(seed)
    sources = [network.vertex() for _ in range(3)]
    for _ in range(5):
        for _ in range(network.draw.randrange(1, 4)):
            network.draw.choice([network.link, network.link, network.cut, network.contain, network.node])()
        world = ways.world_of(network.store.topology.graph)
        fresh = routes.Routes(network.store.topology, network.store.columns)
        for metric in routes.Metric:
            for source in sources:
                found = test_routes.vector(network.store.routes, metric, source)
                np.testing.assert_array_equal(found, test_routes.vector(fresh, metric, source))
                for name, row in network.store.columns.rows.items():
                    plain = ways.distance(world, metric, keys.node_key(name), source)
                    expected = math.nan if plain is None else plain
                    assert found[row] == pytest.approx(expected, nan_ok=True, rel=1e-12), (metric, name, source)
    assert network.store.routes.statistics.repairs


@pytest.mark.parametrize("seed", range(10))
def test_over_links_alone_they_are_those_of_networkx(seed: int) -> None:
    """Hops and latency of a network in which nothing holds anything."""
    draw = random.Random(seed)
    graph, plain = store.Store(), nx.DiGraph()
    names = [f"n{number}" for number in range(40)]
    graph.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name) for name in names}))
    for _ in range(120):
        start, end = draw.sample(names, 2)
        time = draw.choice([0.25, 0.5, 1.0, 2.5])
        edge = keys.EdgeID(keys.node_key(start), keys.node_key(end), keys.EdgeKind.LINK)
        graph.apply(delta.Patch(edges={edge: relations.Link(time)}))
        plain.add_edge(end, start, time=time)
    goal = draw.choice(names)
    plain.add_node(goal)
    lengths = nx.single_source_dijkstra_path_length(plain, goal, weight="time")
    hops = nx.single_source_shortest_path_length(plain, goal)
    for name, row in graph.columns.rows.items():
        assert graph.routes.latency(keys.node_key(goal))[row] == pytest.approx(lengths.get(name, math.nan), nan_ok=True)
        assert graph.routes.hops(keys.node_key(goal))[row] == hops.get(name, -1)


def test_a_search_that_is_interrupted_goes_on_where_it_was() -> None:
    """Between rounds, as often as one likes."""
    network = Network(1)
    source = network.vertex()
    tries = 0
    while not network.store.routes.prepare(routes.Metric.LATENCY, [source], lambda: True):
        tries += 1
        assert tries < 100
    fresh = routes.Routes(network.store.topology, network.store.columns)

    np.testing.assert_array_equal(network.store.routes.latency(source), fresh.latency(source))
    assert distances.never() is False


def test_vectors_asked_for_longest_ago_make_room() -> None:
    """What is kept has a bound, and what was dropped is searched again."""
    network = Network(2)
    small = routes.Routes(network.store.topology, network.store.columns, bytes_max=1)
    vertices = sorted(network.store.topology.vertices())
    for _ in range(2):
        for source in vertices:
            small.hops(source)

    assert small.statistics.evictions > 0
    np.testing.assert_array_equal(small.hops(vertices[0]), network.store.routes.hops(vertices[0]))
