"""How many pods of one sort are on each node.

One tally belongs to one matcher or to one owned term. Pods come and go one at a time (`add`), decisions read the whole
vector (`dense`). Most owned terms are never read and have owners on a handful of nodes: a tally stays a small dict
until it is read for the first time, and is a vector from then on, kept up to date in place.

Invariant: no count is negative, and the vector never shows a row that was not asked for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int32]
"""Pods per row, shape (rows,), int32, read-only."""


class Tally:
    """Counts per row.

    Attributes:
        total: Sum over all rows.
    """

    __slots__ = ("_dense", "_shown", "_sparse", "total")

    def __init__(self, counts: npt.NDArray[np.int32] | None = None) -> None:
        """Start empty, or from counts per row, which the tally then owns."""
        self.total = 0 if counts is None else int(counts.sum())
        self._sparse: dict[int, int] = {}
        self._dense = counts
        self._shown: Counts | None = None

    def add(self, row: int, amount: int) -> None:
        """Count `amount` pods more (or less, when negative) on this row."""
        self.total += amount
        if self._dense is None:
            count = self._sparse.get(row, 0) + amount
            if count:
                self._sparse[row] = count
            else:
                del self._sparse[row]
            return
        if row >= len(self._dense):
            self._grow(row + 1)
        self._dense[row] += amount

    def dense(self, rows: int) -> Counts:
        """Counts over the first `rows` rows; follows later changes until the number of rows changes."""
        if self._dense is None:
            self._dense = np.zeros(max(rows, max(self._sparse, default=-1) + 1), np.int32)
            if self._sparse:
                self._dense[list(self._sparse)] = list(self._sparse.values())
                self._sparse = {}
        if len(self._dense) < rows:
            self._grow(rows)
        if self._shown is None or len(self._shown) != rows:
            self._shown = self._dense[:rows]
            self._shown.flags.writeable = False
        return self._shown

    def as_dict(self) -> dict[int, int]:
        """Row → count where it is not zero."""
        if self._dense is None:
            return dict(self._sparse)
        return {int(row): int(self._dense[row]) for row in np.flatnonzero(self._dense)}

    def _grow(self, rows: int) -> None:
        assert self._dense is not None  # noqa: S101  both callers have just read it
        # Twice the size, so that a cluster that grows node by node copies each count a bounded number of times.
        grown = np.zeros(max(rows, 2 * len(self._dense)), np.int32)
        grown[: len(self._dense)] = self._dense
        self._dense = grown
        self._shown = None
