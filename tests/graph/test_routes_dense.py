"""Distances over dense random networks with holes, changed again and again, are those of searches made afresh."""

from __future__ import annotations

import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest

from graphsched.base.values import keys, nodes, places, relations
from graphsched.graph import delta, distances, routes, store
from tests.graph import networks, test_routes, ways


@pytest.fixture(params=("as it is", "swept", "nearest first"))
def rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the rounds of a search go: small networks would see neither a sweep nor a choice of the nearest."""
    if request.param == "swept":
        monkeypatch.setattr(distances, "SWEPT_MIN", 0)
        monkeypatch.setattr(distances, "SWEPT_FROM", 0.0)
    elif request.param == "nearest first":
        monkeypatch.setattr(distances, "NEAR", 1)
    return str(request.param)


@pytest.mark.parametrize("seed", range(30))
def test_vectors_stay_right_whatever_changes(seed: int, rounds: str) -> None:
    """Bit by bit those made afresh, and those of Dijkstra's algorithm over dictionaries."""
    network = networks.Network(seed)
    sources = [network.vertex() for _ in range(3)]
    for _ in range(5):
        for _ in range(network.draw.randrange(1, 4)):
            network.change()
        world = ways.world_of(network.store.topology.graph)
        fresh = routes.Routes(network.store.topology, network.store.columns)
        for metric in routes.Metric:
            for source in sources:
                found = test_routes.vector(network.store.routes, metric, source)
                np.testing.assert_array_equal(found, test_routes.vector(fresh, metric, source))
                plain = ways.distances(world, metric, source)
                for name, row in network.store.columns.rows.items():
                    expected = plain.get(keys.node_key(name), math.nan)
                    assert found[row] == pytest.approx(expected, nan_ok=True, rel=1e-12), (rounds, metric, name, source)
    assert network.store.routes.statistics.repairs


@pytest.mark.parametrize("seed", range(20))
def test_what_changes_while_a_search_is_unfinished_leaves_no_trace_in_it(seed: int, rounds: str) -> None:
    """Nor what changes before it was repaired for what had changed before; containment included."""
    network = networks.Network(seed)
    draw, found = random.Random(seed), network.store.routes
    sources = [network.vertex() for _ in range(3)]
    for _ in range(40):
        hurry = draw.random()
        metric, some = draw.choice(list(routes.Metric)), draw.sample(sources, 2)
        found.prepare(metric, some, lambda: draw.random() < hurry)  # noqa: B023  asked in this round only
        if draw.random() < 0.7:
            network.change()
        if draw.random() < 0.2:
            fresh = routes.Routes(network.store.topology, network.store.columns)
            for metric in draw.sample(list(routes.Metric), 2):
                source = draw.choice(sources)
                expected = test_routes.vector(fresh, metric, source)
                np.testing.assert_array_equal(
                    test_routes.vector(found, metric, source), expected, f"{rounds}, {metric}"
                )
    assert found.statistics.repairs


@pytest.mark.parametrize("metric", [routes.Metric.LATENCY, routes.Metric.BANDWIDTH])
@pytest.mark.parametrize("seed", range(60))
def test_links_that_change_after_each_round_leave_no_trace(seed: int, metric: routes.Metric) -> None:
    """Although in between states get better that had made others, and then lose what they had."""
    draw, graph = random.Random(seed), store.Store()
    held = [nodes.Node(f"n{number:02}") for number in range(20)]
    holders = [places.Place(f"p{number}") for number in range(10)]
    patch = delta.Patch()
    for place in holders:
        patch.set_vertex(place)
    for number, node in enumerate(held):
        patch.set_vertex(node)
        if number % 4:
            inside = keys.EdgeID(draw.choice(holders).key, node.key, keys.EdgeKind.CONTAINS)
            patch.set_edge(inside, relations.Contains())
    graph.apply(patch)
    goals = sorted(patch.vertices)
    ends = [draw.sample(goals, 2) for _ in range(90)]
    ties = [keys.EdgeID(start, end, keys.EdgeKind.LINK) for start, end in ends]

    def change(number: int) -> None:
        patch = delta.Patch()
        for tie in draw.sample(ties, number):
            patch.set_edge(tie, relations.Link(draw.uniform(1, 100), draw.uniform(1, 100)))
        graph.apply(patch)

    change(len(ties))
    for goal in goals:
        expired = itertools.chain((False, True), itertools.repeat(True)).__next__
        graph.routes.prepare(metric, [goal], expired)
        for _ in range(draw.randrange(1, 6)):
            change(draw.choice((1, 2, 5, 20)))
            graph.routes.prepare(metric, [goal], lambda: True)
            graph.routes.prepare(metric, [goal], itertools.cycle((False, True)).__next__)
        fresh = routes.Routes(graph.topology, graph.columns)
        found, expected = (test_routes.vector(each, metric, goal) for each in (graph.routes, fresh))
        np.testing.assert_array_equal(found, expected, str(goal))
    assert 0 == graph.routes.statistics.undone


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
    """Between rounds, as often as one likes; before the first of them nothing is begun."""
    network = networks.Network(1)
    source = network.vertex()
    assert not network.store.routes.prepare(routes.Metric.LATENCY, [source], lambda: True)
    assert 0 == network.store.routes.statistics.searches
    tries, expired = 0, itertools.cycle((False, True)).__next__
    while not network.store.routes.prepare(routes.Metric.LATENCY, [source], expired):
        tries += 1
        assert tries < 100
    assert tries > 0
    assert 1 == network.store.routes.statistics.searches
    fresh = routes.Routes(network.store.topology, network.store.columns)

    np.testing.assert_array_equal(network.store.routes.latency(source), fresh.latency(source))
    assert distances.never() is False


def test_vectors_asked_for_longest_ago_make_room() -> None:
    """What is kept has a bound, and what was dropped is searched again."""
    network = networks.Network(2)
    small = routes.Routes(network.store.topology, network.store.columns, bytes_max=1, searches_min=1)
    vertices = sorted(network.store.topology.vertices())
    for _ in range(2):
        for source in vertices:
            small.hops(source)

    assert small.statistics.evictions > 0
    np.testing.assert_array_equal(small.hops(vertices[0]), network.store.routes.hops(vertices[0]))
