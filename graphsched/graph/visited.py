"""Which vertices a walk has seen: marks that are never cleared.

Each vertex has a stamp. A walk counts as seen what was stamped since it began, so that beginning the next one is
setting one number; only when the numbers run out, after some four thousand million marks, are the stamps cleared.

`Marks` belong to one walker, and concurrent walkers each take their own from a `Pool`. `Shared` marks belong to many
walkers that divide one walk among them: a vertex is claimed by exactly one.

Invariant: within one walk a vertex is fresh exactly once.
"""

from __future__ import annotations

import collections
import contextlib
import typing
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]

STAMP_MAX = (1 << 32) - 1
SHARDS = 64
"""Guards of shared marks. With more walkers than cores few are ever within one at the same time."""


class Marks:
    """The marks of one walker over rows 0 to `capacity` − 1."""

    def __init__(self, capacity: int) -> None:
        self._stamps = np.zeros(capacity, np.uint32)
        self._begun = self._next = 1
        # The same as an array, which numpy compares with at once.
        self._floor = np.array(1, np.uint32)

    @property
    def capacity(self) -> int:
        """Number of rows."""
        return len(self._stamps)

    def begin(self, capacity: int = 0) -> None:
        """Begin a walk: nothing is seen. Makes room for `capacity` rows where there is less."""
        if capacity > len(self._stamps):
            self._stamps = np.zeros(capacity, np.uint32)
            self._next = 1
        self._begun = self._next
        self._floor[()] = self._begun

    def fresh(self, rows: Rows) -> Rows:
        """Mark the rows; returns those that were not marked yet, each once, in the order given."""
        stamps = self._stamps
        if self._next + len(rows) > STAMP_MAX:
            self._renumber()
        unseen = rows.compress(np.less(stamps.take(rows), self._floor))
        count = len(unseen)
        if not count:
            return unseen
        # Where a row comes twice, what is written last stays: backwards, that is its first place.
        places = np.arange(self._next, self._next + count, dtype=np.uint32)
        stamps[unseen[::-1]] = places[::-1]
        self._next += count
        return unseen.compress(stamps.take(unseen) == places)

    def claim(self, row: int) -> bool:
        """Mark one row; returns whether it was not marked yet."""
        if self._stamps.item(row) >= self._begun:
            return False
        if self._next >= STAMP_MAX:
            self._renumber()
        self._stamps[row] = self._next
        self._next += 1
        return True

    def seen(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """For each of the rows whether it is marked."""
        return self._stamps.take(rows) >= self._begun

    def _renumber(self) -> None:
        """Begin numbering anew without forgetting what this walk has seen."""
        seen = self._stamps >= self._begun
        self._stamps[:] = 0
        self._stamps[seen] = 1
        self._begun, self._next = 1, 2
        self._floor[()] = 1


class Pool:
    """Marks for concurrent walkers. Taking and giving back are one step each, so threads need no lock.

    Attributes:
        kept_max: So many that nobody uses are kept; more than that are let go.
    """

    def __init__(self, *, kept_max: int = 8) -> None:
        self.kept_max = kept_max
        self._idle: collections.deque[Marks] = collections.deque(maxlen=kept_max)

    def __len__(self) -> int:
        """Number of marks that wait to be used."""
        return len(self._idle)

    @contextlib.contextmanager
    def marks(self, capacity: int) -> Iterator[Marks]:
        """Marks of one's own over so many rows, with nothing seen, until the end of the `with`."""
        try:
            mine = self._idle.pop()
        except IndexError:
            mine = Marks(capacity)
        mine.begin(capacity)
        try:
            yield mine
        finally:
            self._idle.append(mine)


class Shared:
    """The marks of many walkers that divide one walk among them.

    Most tests in a walk meet a vertex that is marked, and a stamp once set stays for the whole walk: that answer needs
    no guard. Only a vertex that seems unmarked is looked at again and marked under the guard of its shard.
    """

    __slots__ = ("_generation", "_guards", "_stamps", "_table")

    def __init__(
        self, capacity: int, guard: Callable[[], contextlib.AbstractContextManager[typing.Any]], *, shards: int = SHARDS
    ) -> None:
        """Prepare.

        Args:
            capacity: Number of rows.
            guard: Makes one guard, such as `threading.Lock`; `shards` of them are made.
            shards: A power of two.
        """
        self._table = np.zeros(capacity, np.uint32)
        self._stamps = self._table.data
        self._guards = tuple(guard() for _ in range(shards))
        self._generation = 1

    def begin(self) -> None:
        """Begin a walk: nothing is seen. To be called while no walker is under way."""
        if self._generation == STAMP_MAX:
            self._table[:] = 0
            self._generation = 0
        self._generation += 1

    def claim(self, row: int) -> bool:
        """Mark the row; returns whether this very call did, which is true for one of all walkers."""
        if self._stamps[row] == self._generation:
            return False
        guards = self._guards
        with guards[row & (len(guards) - 1)]:
            if self._stamps[row] == self._generation:
                return False
            self._stamps[row] = self._generation
            return True
