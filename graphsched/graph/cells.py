"""The NUMA cells of the nodes: what each has free by the last report of the node's agent, in columns.

Kubelets that align containers with cells turn away, or spread over several cells, what no single cell can hold; how
much is free in a node as a whole does not say. Agents write NodeResourceTopologies, whose zones are places of the
physical layer (`places.Place.cell`); those that say what is available are kept here by node.

Comes in: places set and removed, rows given and taken, from `store`. Goes out: columns, for `decision`. Invariant: it
follows from the places and the nodes of the graph, whatever happened before. What agents have not reported yet, such as
the pod that was bound a moment ago, is not subtracted. Nothing is kept, and nothing is to be paid, without such places.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from graphsched.base.values import nodes, places

Int64 = npt.NDArray[np.int64]
Table = dict[str, Int64]
"""Resource → int64 (cell, row): how much; 0 in a cell of a node that tells of the resource in other cells alone, and -1
in all of a node that does not tell of it, and beyond the last cell."""
CELLS_MAX = 32
"""Cells of one node that are looked at, the first by name; the largest machines have 16."""


class Strictness(enum.IntEnum):
    """What a kubelet does with a pod that it can not align: its topology manager's policy."""

    LENIENT = 0
    """It runs, spread over cells."""
    RESTRICTED = 1
    """It is turned away, if fewer cells would do for it on an empty node."""
    SINGLE = 2
    """It is turned away."""


def strictness(policy: str) -> Strictness:
    """Of a policy as kubelets write it (`single-numa-node`) or as older agents do (`SingleNUMANodePodLevel`)."""
    text = policy.lower().replace("-", "")
    if text.startswith("singlenumanode"):
        return Strictness.SINGLE
    return Strictness.RESTRICTED if text.startswith("restricted") else Strictness.LENIENT


class Cells:
    """The cells of the nodes that tell of any.

    Attributes:
        available: What is free.
        offered: What there is for pods when nothing runs.
        count: Int64 a row, number of cells; 0 where nobody tells.
        strict: Int64 a row, `Strictness`.
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        """Follow the nodes that have these rows; the mapping changes with them."""
        self._rows = rows
        self._of: dict[str, dict[str, places.Place]] = {}
        self._depth = 0
        self.available: Table = {}
        self.offered: Table = {}
        self.count: Int64 = np.zeros(0, np.int64)
        self.strict: Int64 = np.zeros(0, np.int64)

    def __bool__(self) -> bool:
        """Whether any node tells of its cells."""
        return bool(self._of)

    def of(self, node: str) -> list[places.Place]:
        """The cells of the node that are looked at, in the order of their rows in the tables."""
        return [place for _, place in sorted(self._of.get(node, {}).items())[:CELLS_MAX]]

    def set(self, before: places.Place | None, after: places.Place | None) -> None:
        """A place came, changed or went; None for one that is not there."""
        was = before.cell if before is not None and before.available else None
        now = after.cell if after is not None and after.available else None
        if was is not None and was != now:
            there = self._of[was[0]]
            del there[was[1]]
            if not there:
                del self._of[was[0]]
            self._write(was[0])
        if now is not None and after is not None:
            self._of.setdefault(now[0], {})[now[1]] = after
            self._write(now[0])
        if not self._of:
            self.available, self.offered, self._depth = {}, {}, 0

    def resize(self, capacity: int) -> None:
        """Follow the node columns."""
        self.count = _grown(self.count, (capacity,), 0)
        self.strict = _grown(self.strict, (capacity,), 0)
        self._reshape()

    def arrive(self, name: str) -> None:
        """The node was given a row."""
        if name in self._of:
            self._write(name)

    def leave(self, row: int) -> None:
        """The row holds no node any more."""
        self._clear(row)

    def row(self, name: str) -> dict[str, object]:
        """All that is derived of one node, for those who check it."""
        row = self._rows[name]
        told = {
            what: {key: column[:, row].tolist() for key, column in table.items() if column[0, row] >= 0}
            for what, table in (("available", self.available), ("offered", self.offered))
        }
        depth = int(self.count[row])
        return {
            "cells": depth,
            "strictness": int(self.strict[row]),
            **{f"{what} in cells": {key: each[:depth] for key, each in table.items()} for what, table in told.items()},
        }

    def _write(self, name: str) -> None:
        row = self._rows.get(name, -1)
        if row < 0:
            return
        self._clear(row)
        cells = self.of(name)
        if len(cells) > self._depth:
            self._depth = len(cells)
            self._reshape()
        self.count[row] = len(cells)
        self.strict[row] = max((strictness(dict(cell.labels).get(places.POLICY, "")) for cell in cells), default=0)
        for index, cell in enumerate(cells):
            for table, amounts in ((self.available, cell.available), (self.offered, cell.amounts)):
                self._tell(table, row, index, len(cells), amounts)

    def _tell(self, table: Table, row: int, index: int, cells: int, amounts: nodes.Amounts) -> None:
        for resource, amount in amounts:
            if resource not in table:
                table[resource] = np.full((self._depth, len(self.count)), -1, np.int64)
            column = table[resource][:, row]
            if column[0] < 0:
                column[:cells] = 0
            column[index] = amount

    def _clear(self, row: int) -> None:
        self.count[row] = self.strict[row] = 0
        for table in (self.available, self.offered):
            for column in table.values():
                column[:, row] = -1

    def _reshape(self) -> None:
        shape = (self._depth, len(self.count))
        for table in (self.available, self.offered):
            for resource, column in table.items():
                table[resource] = _grown(column, shape, -1)


def _grown(column: Int64, shape: tuple[int, ...], fill: int) -> Int64:
    grown = np.full(shape, fill, np.int64)
    grown[tuple(slice(length) for length in column.shape)] = column
    return grown
