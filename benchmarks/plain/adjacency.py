"""A graph the plain way: a dict of lists of tuples, walked in breadth with a set."""

from __future__ import annotations

from collections.abc import Iterable

Edges = dict[int, list[tuple[int, float, int]]]
"""Vertex → its edges: target, weight, kind."""


def build(vertices: int, edges: Iterable[tuple[int, int, float, int]]) -> Edges:
    """The graph of edges given as source, target, weight, kind; a vertex is one object wherever it is named."""
    ids = list(range(vertices))
    graph: Edges = {vertex: [] for vertex in ids}
    for source, target, weight, kind in edges:
        graph[source].append((ids[target], weight, kind))
    return graph


def breadth_first(graph: Edges, start: int) -> list[int]:
    """Vertices in the order in which a walk in breadth sees them."""
    seen = {start}
    order = [start]
    # The list grows while it is gone through: it is the queue as well.
    for vertex in order:
        for target, _, _ in graph[vertex]:
            if target not in seen:
                seen.add(target)
                order.append(target)
    return order
