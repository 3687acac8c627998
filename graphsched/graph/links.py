"""How well the nodes are linked: for every node the health of the best link it has, and all links that are not well.

A node that the cluster still calls ready may be cut off already: all its links have decayed or are down. Links count
for the nodes that are their ends, in either direction; a node without a link has no health, which is neither good nor
bad.

Comes in: links set and cut, rows given and taken, from `store`. Goes out: a column for decisions, numbers for metrics.
Invariant: it follows from the links and the nodes of the graph, whatever happened before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, relations

Float64 = npt.NDArray[np.float64]


class Links:
    """The links of the graph by what they say of nodes.

    Attributes:
        total: Number of links.
        unwell: Links whose health is below 1, with it.
        column: Float64 a row, health of the best link of the node; nan where it has none.
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        """Follow the nodes that have these rows; the mapping changes with them."""
        self._rows = rows
        self._at: dict[str, dict[keys.EdgeID, relations.Link]] = {}
        self.total = 0
        self.unwell: dict[keys.EdgeID, float] = {}
        self.column: Float64 = np.zeros(0)

    def resize(self, capacity: int) -> None:
        """Follow the node columns."""
        grown = np.full(capacity, np.nan)
        grown[: len(self.column)] = self.column
        self.column = grown

    def set(self, edge: keys.EdgeID, link: relations.Link) -> None:
        """Take in a link that was not there."""
        self.total += 1
        if link.health < 1:
            self.unwell[edge] = link.health
        for name in _ends(edge):
            self._at.setdefault(name, {})[edge] = link
            self._weigh(name)

    def cut(self, edge: keys.EdgeID) -> None:
        """Take out a link that was there."""
        self.total -= 1
        self.unwell.pop(edge, None)
        for name in _ends(edge):
            there = self._at[name]
            del there[edge]
            if not there:
                del self._at[name]
            self._weigh(name)

    def arrive(self, name: str) -> None:
        """The node was given a row."""
        self._weigh(name)

    def leave(self, row: int) -> None:
        """The row holds no node any more."""
        self._write(row, np.nan)

    def best(self, name: str) -> relations.Link | None:
        """The healthiest link of the node; of several the one measured last. None where it has none."""
        return max(self._at.get(name, {}).values(), key=lambda link: (link.health, link.at), default=None)

    def cut_off(self, sick_below: float) -> int:
        """How many nodes have links, of which the best is down or less healthy than this."""
        return int(np.count_nonzero((self.column < sick_below) | (self.column <= relations.DOWN)))

    def _weigh(self, name: str) -> None:
        row = self._rows.get(name, -1)
        if row >= 0:
            best = self.best(name)
            self._write(row, np.nan if best is None else best.health)

    def _write(self, row: int, health: float) -> None:
        self.column[row] = health


def _ends(edge: keys.EdgeID) -> set[str]:
    """Names of the nodes that are its ends."""
    return {keys.name_of(end) for end in edge[:2] if keys.kind_of(end) == keys.Kind.NODE.value}
