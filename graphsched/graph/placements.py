"""Compact records of the placed pods, for the questions that concern many of them at once.

Pods that share namespace and labels share a *profile*; what selects one selects all. A record is then a profile number,
a row and whether the pod is terminating: nine bytes in three columns, so that a matcher that is born counts a hundred
thousand pods in one vector operation.

Comes in: profile numbers and rows from `matchers`. Goes out: counts per row. Invariant: slots are recycled, and a slot
without a pod is on no row.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator

import numpy as np

from graphsched.base.values import keys
from graphsched.graph import tallies

NOWHERE = -1
"""The row of a pod whose node is not known."""

_SLOTS_AT_FIRST = 64


class Record(typing.NamedTuple):
    """Where a pod is, and whom it is like."""

    profile: int
    row: int
    deleting: bool


class Placements:
    """The records, by pod key."""

    def __init__(self) -> None:
        self._slots: dict[keys.VertexKey, int] = {}
        self._free: list[int] = []
        self._profiles = np.zeros(_SLOTS_AT_FIRST, np.int32)
        self._rows = np.full(_SLOTS_AT_FIRST, NOWHERE, np.int32)
        self._deleting = np.zeros(_SLOTS_AT_FIRST, np.bool_)

    def __len__(self) -> int:
        """Number of pods."""
        return len(self._slots)

    def get(self, key: keys.VertexKey) -> Record | None:
        """The record of this pod."""
        slot = self._slots.get(key)
        return None if slot is None else self._read(slot)

    def put(self, key: keys.VertexKey, record: Record) -> None:
        """Add a record, or overwrite it."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._free.pop() if self._free else len(self._slots)
            if slot >= len(self._rows):
                self._grow()
            self._slots[key] = slot
        self._profiles[slot], self._rows[slot], self._deleting[slot] = record

    def pop(self, key: keys.VertexKey) -> Record | None:
        """Remove and return the record of this pod."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return None
        record = self._read(slot)
        self._rows[slot] = NOWHERE
        self._free.append(slot)
        return record

    def records(self) -> Iterator[Record]:
        """Every record, for audits."""
        return map(self._read, self._slots.values())

    def counts(self, profiles: Iterable[int], *, rows: int, deleting_too: bool) -> tallies.Counts:
        """Pods of these profiles per row, shape (at least `rows`,), int32, the caller's own."""
        wanted = np.fromiter(profiles, np.int32)
        if not len(wanted):
            return np.zeros(rows, np.int32)
        chosen = np.zeros(max(int(wanted.max()), int(self._profiles.max())) + 1, np.bool_)
        chosen[wanted] = True
        mask = chosen[self._profiles] & (self._rows >= 0)
        if not deleting_too:
            mask &= ~self._deleting
        return np.bincount(self._rows[mask], minlength=rows).astype(np.int32)

    def _read(self, slot: int) -> Record:
        return Record(int(self._profiles[slot]), int(self._rows[slot]), bool(self._deleting[slot]))

    def _grow(self) -> None:
        size = 2 * len(self._rows)
        old = len(self._rows)
        for name in ("_profiles", "_rows", "_deleting"):
            column = getattr(self, name)
            grown = np.zeros(size, column.dtype)
            grown[:old] = column
            setattr(self, name, grown)
        self._rows[old:] = NOWHERE
