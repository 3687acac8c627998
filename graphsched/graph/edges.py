"""Edges by the ten thousand, as columns: which rule reaches which node, and how strongly.

Edges that follow from the graph (what a pod's affinity says of every node, say) are too many to be objects. A `Table`
holds them as two sorted columns: the identity of an edge packed into one number, and its weight. What changes between
two tables is a `Change`; all that is said of either is said in whole columns, and no edge ever becomes an object.

    identity = source number · 2⁴⁰ + target number · 2¹⁶ + kind       numbers count the names that were interned so far

Names are numbered in the order in which they came, by whoever keeps the table; whoever copies it learns new names with
the change that first uses them, so that both number alike. A `Ledger` keeps a table and remembers which edges changed
at which generation: what happened since is read off those alone, however large the table is.

Comes in: columns. Goes out: columns. Invariants: identities ascend and are distinct; columns are never changed once
they are in a table or a change. The laws are those of `delta`, as properties in `tests/laws/test_edges.py`.
"""

from __future__ import annotations

import collections
import itertools
import typing
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

IDs = npt.NDArray[np.uint64]
Weights = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.uint32]

NAMES_MAX = 1 << 24
"""Most names that can be numbered."""
KINDS_MAX = 1 << 16
_SOURCE, _TARGET = np.uint64(40), np.uint64(16)
_NUMBER_MASK, _KIND_MASK = np.uint64(NAMES_MAX - 1), np.uint64(KINDS_MAX - 1)
_NO_IDS: IDs = np.zeros(0, np.uint64)
_NO_WEIGHTS: Weights = np.zeros(0, np.float32)


def identities(source: npt.ArrayLike, target: npt.ArrayLike, kind: npt.ArrayLike) -> IDs:
    """The identities of edges between numbered names; any of the three may be one number for all."""
    columns = (np.asarray(each).astype(np.uint64) for each in (source, target, kind))
    starts, ends, sorts = columns
    packed: IDs = np.bitwise_or(np.bitwise_or(starts << _SOURCE, ends << _TARGET), sorts)
    return packed


def sources(ids: IDs) -> Numbers:
    """The number of each edge's source."""
    return (ids >> _SOURCE).astype(np.uint32)


def targets(ids: IDs) -> Numbers:
    """The number of each edge's target."""
    return (ids >> _TARGET & _NUMBER_MASK).astype(np.uint32)


def kinds(ids: IDs) -> npt.NDArray[np.uint16]:
    """The kind of each edge."""
    return (ids & _KIND_MASK).astype(np.uint16)


def within(ids: IDs, names: int, kind_count: int) -> bool:
    """Whether these edges, ascending and not none, are between the first `names` names and of the first kinds."""
    ends = ids >> _TARGET & _NUMBER_MASK
    return int(ids[-1]) >> 40 < names and int(ends.max()) < names and int((ids & _KIND_MASK).max()) < kind_count


class Table(typing.NamedTuple):
    """Edges.

    Attributes:
        ids: Identities, ascending.
        weights: The weight of each.
    """

    ids: IDs = _NO_IDS
    weights: Weights = _NO_WEIGHTS


class Change(typing.NamedTuple):
    """What leads from one table to another: what goes, then what is set, in absolute terms.

    Attributes:
        removed: Identities of edges that go away, ascending; one that is not there stays away.
        ids: Identities of edges added or given another weight, ascending; none of them is in `removed`.
        weights: Of those.
        known: Names that were numbered before.
        names: Those that are numbered by it, in order: the first gets the number `known`.
    """

    removed: IDs = _NO_IDS
    ids: IDs = _NO_IDS
    weights: Weights = _NO_WEIGHTS
    known: int = 0
    names: Sequence[str] = ()

    @property
    def rows(self) -> int:
        """Edges set or removed."""
        return len(self.removed) + len(self.ids)


def table(ids: IDs, weights: npt.ArrayLike) -> Table:
    """A table of these edges, in any order.

    Raises:
        ValueError: An edge is there twice.
    """
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    if (ascending[1:] == ascending[:-1]).any():
        message = "an edge is there twice"
        raise ValueError(message)
    return Table(ascending, np.asarray(weights, np.float32)[order])


def find(ids: IDs, wanted: IDs) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Where each of `wanted` stands in ascending `ids`, or would stand; and whether it is there."""
    at = np.searchsorted(ids, wanted)
    if not len(ids):
        return at, np.zeros(len(wanted), np.bool_)
    return at, ids[np.minimum(at, len(ids) - 1)] == wanted


def diff(before: Table, after: Table) -> Change:
    """The smallest change that leads from one table to the other."""
    _, stays = find(after.ids, before.ids)
    at, was = find(before.ids, after.ids)
    same = was.copy()
    # A weight that is no number differs from itself, and is never in a table.
    same[was] = before.weights[at[was]] == after.weights[was]
    return Change(before.ids[~stays], after.ids[~same], after.weights[~same])


def apply(before: Table, change: Change) -> Table:
    """The table that the change leads to."""
    at, there = find(before.ids, change.ids)
    weights = before.weights.copy()
    if there.all():
        weights[at] = change.weights
        fresh = np.zeros(0, np.intp)
    else:
        weights[at[there]] = change.weights[there]
        fresh = np.flatnonzero(~there)
    gone = np.zeros(0, np.intp)
    if len(change.removed):
        places, lost = find(before.ids, change.removed)
        gone = places[lost]
    if not len(fresh) and not len(gone):
        return Table(before.ids, weights)
    seams = _seams(gone, at[fresh])
    return Table(_sewn(before.ids, change.ids[fresh], seams), _sewn(weights, change.weights[fresh], seams))


def _seams(gone: npt.NDArray[np.intp], fresh: npt.NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Where a column is cut: (up to, new ones that come there, on from); places of old rows, in order."""
    places = np.concatenate([fresh, gone])
    # Where one goes and others come, those come first.
    order = np.argsort(places, kind="stable").tolist()
    at, new = places.tolist(), len(fresh)
    return [(at[each], 1, at[each]) if each < new else (at[each], 0, at[each] + 1) for each in order]


def _sewn(
    old: npt.NDArray[typing.Any], new: npt.NDArray[typing.Any], seams: list[tuple[int, int, int]]
) -> npt.NDArray[typing.Any]:
    """The column with rows left out and put in: few pieces are copied as blocks, which masks over all rows are not."""
    pieces: list[npt.NDArray[typing.Any]] = []
    done = put = 0
    for up_to, count, onward in seams:
        if up_to > done:
            pieces.append(old[done:up_to])
        if count:
            pieces.append(new[put : put + 1])
            put += 1
        done = onward
    return np.concatenate([*pieces, old[done:]])


def merge(changes: Iterable[Change]) -> Change:
    """One change that does what these do in order.

    Raises:
        ValueError: One of them does not number its names after those before it.
    """
    parts = list(changes)
    if not parts:
        return Change()
    names: list[str] = []
    for part in parts:
        if part.known != parts[0].known + len(names):
            message = f"it numbers names from {part.known} on, {parts[0].known + len(names)} are known"
            raise ValueError(message)
        names += part.names
    ids = np.concatenate([column for part in parts for column in (part.removed, part.ids)])
    sets = np.concatenate(
        [np.full(len(column), sets) for part in parts for column, sets in ((part.removed, False), (part.ids, True))]
    )
    weights = np.concatenate(
        [column for part in parts for column in (np.zeros(len(part.removed), np.float32), part.weights)]
    )
    # Of each edge the last word counts: the first one of the whole read backwards.
    final, last = np.unique(ids[::-1], return_index=True)
    last = len(ids) - 1 - last
    held = sets[last]
    return Change(final[~held], final[held], weights[last[held]], parts[0].known, tuple(names))


def split(change: Change, *, rows_max: int) -> list[Change]:
    """Changes of at most `rows_max` edges that, in order, do what the one does; the first has all the names.

    Raises:
        ValueError: `rows_max` is below 1.
    """
    if rows_max < 1:
        message = f"rows_max is {rows_max}, not positive"
        raise ValueError(message)
    known = change.known + len(change.names)
    parts = [
        Change(removed=change.removed[start : start + rows_max], known=known)
        for start in range(0, len(change.removed), rows_max)
    ]
    parts += [
        Change(ids=change.ids[start : start + rows_max], weights=change.weights[start : start + rows_max], known=known)
        for start in range(0, len(change.ids), rows_max)
    ]
    first = parts[0] if parts else Change()
    return [first._replace(known=change.known, names=change.names), *parts[1:]]


def invert(change: Change, before: Table) -> Change:
    """The change that takes this one back: names stay numbered, which harms nobody."""
    at, there = find(before.ids, change.ids)
    gone, lost = find(before.ids, change.removed)
    ids = np.concatenate([change.ids[there], change.removed[lost]])
    weights = np.concatenate([before.weights[at[there]], before.weights[gone[lost]]])
    order = np.argsort(ids)
    return Change(change.ids[~there], ids[order], weights[order], change.known + len(change.names))


LATE_MAX = 1024
"""Changed edges that are kept beside a table of ten thousands, in the messages that brought them."""


class Layers:
    """A table under the changes of late, which are laid into it when there are many, or when somebody reads it.

    Taking a change so costs next to nothing, and what the table has only once in a while.
    """

    def __init__(self, base: Table, *, late_max: int = LATE_MAX) -> None:
        """Keep at most `late_max` changed edges beside the table."""
        self._base = base
        self._late: list[Change] = []
        self._rows = 0
        self._late_max = late_max

    @property
    def table(self) -> Table:
        """The table with all changes in it."""
        self._lay()
        return self._base

    def take(self, change: Change) -> None:
        """Take a change of edges; names are none of its business."""
        if not change.rows:
            return
        self._late.append(change._replace(known=0, names=()))
        self._rows += change.rows
        if self._rows > self._late_max:
            self._lay()

    def _lay(self) -> None:
        """Put what came late into the table."""
        if self._late:
            self._base = apply(self._base, merge(self._late))
            self._late, self._rows = [], 0


class Names:
    """Names and their numbers, in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)

    def __getitem__(self, number: int) -> str:
        """The name with this number."""
        return self._names[number]

    def get(self, name: str) -> int | None:
        """Its number; None while it has none."""
        return self._numbers.get(name)

    def number(self, name: str) -> int:
        """Its number, the next one if it is new.

        Raises:
            OverflowError: There are too many names.
        """
        found = self._numbers.get(name)
        if found is None:
            found = len(self._names)
            if found >= NAMES_MAX:
                message = f"{NAMES_MAX} names are numbered already"
                raise OverflowError(message)
            self._numbers[name] = found
            self._names.append(name)
        return found

    def between(self, known: int, end: int) -> tuple[str, ...]:
        """The names from the number `known` on, up to but not including `end`."""
        return tuple(self._names[known:end])


class _Dirty(typing.NamedTuple):
    generation: int
    known: int
    ids: IDs


class Ledger:
    """A table, and which of its edges changed at which generation.

    Attributes:
        table: The edges at `generation`.
        names: Number the vertices of its edges.
        generation: Counts up with every change.
    """

    def __init__(self, *, dirty_max: int = 1 << 20) -> None:
        """Remember the last `dirty_max` changed edges; who has missed more begins again."""
        self.table = Table()
        self.names = Names()
        self.generation = 0
        self._dirty_max = dirty_max
        self._dirty: collections.deque[_Dirty] = collections.deque()
        self._held = 0
        self._begins = 0
        self._numbered = 0

    def update(self, change: Change) -> int:
        """Take a change of edges between names that are numbered in `names`; returns the generation it leads to."""
        self.table = apply(self.table, change)
        self.generation += 1
        ids = np.concatenate([change.removed, change.ids]) if len(change.removed) else change.ids
        self._dirty.append(_Dirty(self.generation, self._numbered, ids))
        self._numbered = len(self.names)
        self._held += len(ids)
        while self._held > self._dirty_max:
            oldest = self._dirty.popleft()
            self._held -= len(oldest.ids)
            self._begins = oldest.generation
        return self.generation

    def since(self, generation: int) -> Change | None:
        """What leads from the table of this generation to the present one; None when that is not remembered."""
        if not self._begins <= generation <= self.generation:
            return None
        newest = list(itertools.takewhile(lambda dirty: dirty.generation > generation, reversed(self._dirty)))
        if not newest:
            return Change(known=self._numbered)
        ids = np.unique(np.concatenate([dirty.ids for dirty in newest])) if len(newest) > 1 else np.sort(newest[0].ids)
        at, there = find(self.table.ids, ids)
        known = newest[-1].known
        return Change(ids[~there], ids[there], self.table.weights[at[there]], known, self._names_since(known))

    def whole(self) -> Change:
        """The whole table, for who has nothing yet."""
        return Change(_NO_IDS, self.table.ids, self.table.weights, 0, self._names_since(0))

    def _names_since(self, known: int) -> tuple[str, ...]:
        # What has been numbered since the last change belongs to the next one.
        return self.names.between(known, self._numbered)
