"""Which nodes are above a watermark: full enough to be told of, until they are clearly less so.

A node rises above when what its pods request reaches the high mark, a percentage of what may be used (what the node
offers, or its ceiling where that is less), and is below again when it falls under the low one. Between the two it stays
what it was, so that a node at the edge is told of once.

Comes in: columns, looked at whole. Goes out: crossings, and how many are above. Invariant: with the same looks at the
same columns the same nodes are above, whatever rows they had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import nodes
from graphsched.graph import budgets, columns

Mask = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


class Marks(msgspec.Struct, frozen=True, gc=False):
    """Percentages of what may be used, `low` below `high`."""

    high: float
    low: float

    def side(self, percent: float) -> str:
        """Where a node that is so full is: `above`, `below`, or `between` the marks, where it stays what it was."""
        return "above" if percent >= self.high else "below" if percent < self.low else "between"


class Filled(NamedTuple):
    """How full nodes are of one resource, a row each: what pods request, what may be used, and the percentage."""

    used: Int64
    usable: Int64
    percent: npt.NDArray[np.float64]


def filled(there: columns.Columns, granted: budgets.Budgets, resource: str) -> Filled:
    """How full the nodes are of the resource; 0 % where there is none of it."""
    usable = there.column(there.allocatable, resource)
    ceiling = granted.ceilings.get(resource)
    if ceiling is not None:
        usable = np.minimum(usable, ceiling)
    used = there.pods if resource == nodes.PODS else there.column(there.requested, resource)
    # A float is exact enough for a percentage, and a hundred times an amount need not fit 64 bits.
    return Filled(used, usable, np.divide(100.0 * used, usable, out=np.zeros(len(used)), where=usable > 0))


class Crossing(msgspec.Struct, frozen=True, gc=False):
    """A node crossed a mark of a resource.

    Attributes:
        node: Its name.
        resource: The resource.
        up: Whether it rose to the high mark; else it fell below the low one.
        used: What its pods request, in the unit of `nodes.Amounts`.
        usable: What may be used.
    """

    node: str
    resource: str
    up: bool
    used: int
    usable: int


class Watermarks:
    """Looks for crossings."""

    def __init__(self, marks: Mapping[str, Marks]) -> None:
        """Resource → its marks."""
        self._marks = marks
        self._above: dict[str, Mask] = {resource: np.zeros(0, np.bool_) for resource in marks}
        self._layout = -1
        self._names: list[str] = []

    @property
    def above(self) -> dict[str, int]:
        """Resource → number of nodes above."""
        return {resource: int(np.count_nonzero(mask)) for resource, mask in self._above.items()}

    def look(self, there: columns.Columns, granted: budgets.Budgets) -> list[Crossing]:
        """The crossings since the last look, by resource and node. A node that went has crossed nothing."""
        self._follow(there)
        found = []
        for resource, marks in self._marks.items():
            used, usable, percent = filled(there, granted, resource)
            above = self._above[resource]
            up, down = ~above & (percent >= marks.high), above & (percent < marks.low)
            self._above[resource] = (above | up) & ~down
            found += [
                Crossing(there.names[row], resource, bool(up[row]), int(used[row]), int(usable[row]))
                for row in np.flatnonzero(up | down).tolist()
            ]
        return sorted(found, key=lambda each: (each.resource, each.node))

    def _follow(self, there: columns.Columns) -> None:
        """Have the masks by the rows that there are now."""
        if there.layout == self._layout:
            return
        for resource, mask in self._above.items():
            moved = np.zeros(there.capacity, np.bool_)
            for row in np.flatnonzero(mask).tolist():
                now = there.rows.get(self._names[row])
                if now is not None:
                    moved[now] = True
            self._above[resource] = moved
        self._layout, self._names = there.layout, list(there.names)
