"""The plain way to find ways: Dijkstra's algorithm over dictionaries, written from what a way is.

`test_routes` compares every vector with it. It follows the topology's own graph, knows nothing of numbers or slots, and
searches forward from each start.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import msgspec

from graphsched.base.values import keys, relations
from graphsched.graph import routes, topology

Edges = dict[keys.EdgeID, relations.Link | None]
Steps = dict[keys.VertexKey, list[tuple[keys.VertexKey, str, float]]]
"""Vertex → where a step leads, of what kind it is (link, up, down), and what it costs."""


class World(msgspec.Struct):
    """Vertices and edges; containment has no link."""

    vertices: set[keys.VertexKey]
    edges: Edges


def world_of(graph: topology.Graph) -> World:
    """The content of a topology."""
    edges: Edges = {}
    for source, target, payload in graph.weighted_edge_list():
        if isinstance(payload, relations.Link):
            edges[keys.EdgeID(graph[source], graph[target], keys.EdgeKind.LINK)] = payload
        else:
            edges[keys.EdgeID(graph[source], graph[target], keys.EdgeKind.CONTAINS)] = None
    return World(set(graph.nodes()), edges)


def cost_of(link: relations.Link, metric: routes.Metric) -> float | None:
    """What crossing the link costs; None where it can not be crossed. Of widths the greater is the better."""
    if link.health <= relations.DOWN:
        return None
    if metric is routes.Metric.HOPS:
        return 1.0 if link.health >= routes.SICK_BELOW else float(math.ceil(1.0 / link.health))
    if metric is routes.Metric.LATENCY:
        return None if link.latency_ms is None else link.latency_ms / link.health
    if metric is routes.Metric.COST:
        return None if link.cost is None else link.cost / link.health
    return link.bandwidth_mbps * link.health if link.bandwidth_mbps else None


def steps(world: World, metric: routes.Metric) -> Steps:
    """Every step that can be taken."""
    found: Steps = {key: [] for key in world.vertices}
    inside = 1.0 if metric is routes.Metric.HOPS else math.inf if metric is routes.Metric.BANDWIDTH else 0.0
    known = set()
    for edge, link in world.edges.items():
        cost = None if link is None else cost_of(link, metric)
        if cost is not None:
            known.add((edge.source, edge.target))
            found[edge.source].append((edge.target, "link", cost))
    for edge, link in world.edges.items():
        if link is None:
            for here, there, kind in ((edge.source, edge.target, "down"), (edge.target, edge.source, "up")):
                if metric is routes.Metric.HOPS or (here, there) not in known:
                    found[here].append((there, kind, inside))
    return found


def roof(world: World, metric: routes.Metric, goal: keys.VertexKey) -> set[keys.VertexKey]:
    """The goal and all that holds it."""
    held, due = {goal}, [goal]
    downs = [(here, there) for here, each in steps(world, metric).items() for there, kind, _ in each if kind == "down"]
    while due:
        inner = due.pop()
        for outer, held_by in downs:
            if held_by == inner and outer not in held:
                held.add(outer)
                due.append(outer)
    return held


def distance(world: World, metric: routes.Metric, start: keys.VertexKey, goal: keys.VertexKey) -> float | None:
    """The distance from start to goal, of which a width is the greater the better; None where no way is known."""
    return distances(world, metric, goal, [start]).get(start)


def distances(
    world: World, metric: routes.Metric, goal: keys.VertexKey, starts: Iterable[keys.VertexKey] | None = None
) -> dict[keys.VertexKey, float]:
    """Start → distance to the goal, those from which a way is known; of all vertices where no starts are given."""
    over = set() if metric is routes.Metric.HOPS else roof(world, metric, goal)
    around = steps(world, metric)
    begun = world.vertices if starts is None else set(starts)
    found = {start: _distance(around, over, metric, start, goal) for start in begun & world.vertices}
    return {start: value for start, value in found.items() if value is not None}


def _distance(
    around: Steps, over: set[keys.VertexKey], metric: routes.Metric, start: keys.VertexKey, goal: keys.VertexKey
) -> float | None:
    """The distance from start to goal.

    A state is a vertex, how it was reached, and whether the way is on its last stretch: it has come to something that
    holds the goal, and now only descends.
    """
    widest, counted = metric is routes.Metric.BANDWIDTH, metric is routes.Metric.HOPS
    queue: list[tuple[float, keys.VertexKey, str, bool]] = [
        (-math.inf if widest else 0.0, start, "link", start in over),
    ]
    seen: set[tuple[keys.VertexKey, str, bool]] = set()
    while queue:
        value, vertex, how, ending = heapq.heappop(queue)
        if (vertex, how, ending) in seen:
            continue
        seen.add((vertex, how, ending))
        if vertex == goal:
            return -value if widest else value
        for there, kind, cost in around[vertex]:
            total = max(value, -cost) if widest else value + cost
            if counted:
                heapq.heappush(queue, (total, there, "link", False))
            elif ending:
                if kind == "down" and there in over:
                    heapq.heappush(queue, (total, there, kind, True))
            elif {how, kind} != {"up", "down"} and (there not in over or kind == "link" or there == goal):
                heapq.heappush(queue, (total, there, kind, there in over))
    return None
