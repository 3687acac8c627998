"""Sums over topology domains: from counts per node to counts per value of a node label, and back.

The nodes that share a value of the key are one domain; a node without the key is in none. `constraints/neighbours` and
`constraints/spread` ask with counts of pods, their scores with weights.
"""

from __future__ import annotations

import typing

import numpy as np
import numpy.typing as npt

from graphsched.decision import trace
from graphsched.graph import view


class Domains(typing.NamedTuple):
    """The domains of one topology key.

    Attributes:
        ids: Int32 a row, number of its domain; -1 for a row in none.
        number: How many domain numbers there are.
    """

    ids: npt.NDArray[np.int32]
    number: int

    @property
    def inside(self) -> trace.Mask:
        """Bool a row: it is in some domain."""
        return self.ids >= 0

    def sums(self, counts: npt.NDArray[np.integer], among: trace.Mask | None = None) -> trace.Scores:
        """Int64 a domain, and a last 0 for "in none": the counts summed over its rows, or over those `among` them."""
        taken = self.inside if among is None else self.inside & among
        total = np.bincount(self.ids[taken], weights=counts[taken], minlength=self.number + 1)
        # Sums of int32 counts and weights of at most 100 stay far below 2**53, so the float sums are exact.
        return total.astype(np.int64)

    def present(self, among: trace.Mask) -> trace.Mask:
        """Bool a domain, and a last False: some row of it is `among` those."""
        return np.bincount(self.ids[self.inside & among], minlength=self.number + 1) > 0

    def spread(self, values: npt.NDArray[typing.Any]) -> npt.NDArray[typing.Any]:
        """For each row the value of its domain; the last one for rows in none."""
        return values[self.ids]


def of(graph: view.View, key: str) -> Domains:
    """The domains of a topology key."""
    column = graph.attributes.label(key)
    return Domains(column.ids, len(column.values))


def with_unlabelled(graph: view.View, key: str) -> Domains:
    """The domains of a topology key where nodes without it share one: that of the empty value."""
    column = graph.attributes.label(key)
    number = len(column.values)
    shared = column.values.index("") if "" in column.values else number
    return Domains(np.where(column.ids >= 0, column.ids, np.int32(shared)).astype(np.int32), number)
