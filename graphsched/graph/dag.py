"""Graphs without cycles: their order, their longest chains, and the cycle where there is one after all.

A picture comes in, a `Dag` or a `Cycle` goes out. An edge leads from what comes first to what waits for it. The order
is `walks.topological` over all vertices; of several cycles always the same one is named.

Invariant: in a `Dag` each edge leads to a later wave; a `Cycle` is one that a person can check edge by edge.
"""

from __future__ import annotations

import dataclasses
import typing

import numpy as np
import numpy.typing as npt

from graphsched.graph import adjacency, walks

IdT = typing.TypeVar("IdT", bound=adjacency.Id)
Rows = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Dag(typing.Generic[IdT]):
    """A graph without cycles.

    Attributes:
        picture: The graph.
        order: Rows, each after those that lead to it; ties by id. All of them, or all that no cycle holds up.
        waves: Where each wave begins in `order`, and where the last one ends.
    """

    picture: adjacency.Adjacency[IdT]
    order: Rows
    waves: npt.NDArray[np.int64]

    def depths(self) -> npt.NDArray[np.int64]:
        """Edges on the longest chain that leads to each row; 0 for rows without a vertex."""
        found = np.zeros(self.picture.capacity, np.int64)
        for begin, end in zip(self.waves, self.waves[1:], strict=False):
            rows = self.order[begin:end]
            counts = self.picture.ends[rows] - self.picture.vertex_offsets[rows]
            np.maximum.at(found, walks.targets_of(self.picture, rows), found[rows].repeat(counts) + 1)
        return found

    def heights(self) -> npt.NDArray[np.int64]:
        """Edges on the longest chain that begins at each row; 0 for rows without a vertex."""
        found = np.zeros(self.picture.capacity, np.int64)
        for begin, end in zip(self.waves[-2::-1], self.waves[:0:-1], strict=False):
            rows = self.order[begin:end]
            counts = self.picture.ends[rows] - self.picture.vertex_offsets[rows]
            np.maximum.at(found, rows.repeat(counts), found[walks.targets_of(self.picture, rows)] + 1)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Cycle(typing.Generic[IdT]):
    """Why there is no order.

    Attributes:
        ids: Each leads to the next and the last to the first, which is the first of them in order.
    """

    ids: tuple[IdT, ...]

    def __str__(self) -> str:
        return " → ".join(map(str, (*self.ids, self.ids[0])))


def build(
    picture: adjacency.Adjacency[IdT], budget: walks.Budget = walks.UNBOUNDED, space: walks.Space | None = None
) -> Dag[IdT] | Cycle[IdT] | walks.Ended:
    """The order of all vertices, or the cycle that keeps them from one, or why the budget ended before either."""
    starts = np.flatnonzero(picture.ranks >= 0)
    walk = walks.topological(picture, starts, budget, space)
    if not walk.whole:
        return walk.ended
    if len(walk.stuck):
        return cycle_among(picture, walk.stuck)
    return Dag(picture, walk.rows, walk.levels)


def cycle_among(picture: adjacency.Adjacency[IdT], stuck: Rows) -> Cycle[IdT]:
    """A cycle among rows that a topological walk over all vertices left `stuck`."""
    return Cycle(tuple(picture.name(row) for row in _cycle(picture, stuck.tolist())))


def _cycle(picture: adjacency.Adjacency[IdT], stuck: list[int]) -> list[int]:
    """One cycle among rows of which each has another before it; `stuck` is in the order of ids."""
    among, before = set(stuck), dict[int, int]()
    for row in stuck:
        for target in picture.out(row)["target"].tolist():
            if target in among:
                before.setdefault(target, row)
    # Backwards there is no end, so it comes round.
    way, row = dict[int, None](), stuck[0]
    while row not in way:
        way[row] = None
        row = before[row]
    passed = list(way)
    cycle = passed[passed.index(row) :][::-1]
    first = min(range(len(cycle)), key=lambda place: int(picture.ranks[cycle[place]]))
    return cycle[first:] + cycle[:first]
