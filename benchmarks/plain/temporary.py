"""Temporary vertices the plain way: one object each."""

from __future__ import annotations

from collections.abc import Iterable


class Vertex:
    """What a walk notes of one vertex while it lasts."""

    __slots__ = ("distance", "parent", "row", "weight")

    def __init__(self, row: int, parent: int, distance: int, weight: float) -> None:
        self.row = row
        self.parent = parent
        self.distance = distance
        self.weight = weight


def make(count: int) -> list[Vertex]:
    """So many vertices of a binary tree, each with its distance modulo 97 and a weight."""
    return [Vertex(row, row >> 1, row % 97, row * 0.5) for row in range(count)]


def summed(vertices: Iterable[Vertex]) -> tuple[int, float]:
    """Distances and weights, summed up."""
    distance, weight = 0, 0.0
    for vertex in vertices:
        distance += vertex.distance
        weight += vertex.weight
    return distance, weight
