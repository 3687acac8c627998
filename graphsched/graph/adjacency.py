"""Compact adjacency: every edge a packed record of 16 bytes, a vertex's edges side by side, for walks over the graph.

Vertices come in by id (a key, or any ids that sort), edges as arrays or one by one. Ids become dense row numbers, the
edges are sorted by source, and `vertex_offsets` say where each row's records begin: a walk that expands a thousand
vertices is a handful of numpy calls, and reads memory from one end to the other.

`Writer` takes changes and gives `Adjacency`, a picture that never changes. What a picture costs after changes:
- the dirty rows are merged, sorted and appended behind the other records, so no reader's record is overwritten;
- two numbers a vertex are copied (1.6 MB, a fifth of a millisecond, for 100,000 vertices);
- removed vertices cost one look at every record, however many they are (2 ms for a million edges);
- new vertices cost ranking all ids anew (some 10 ms for 100,000), as ties in walks go by the order of ids;
- when more than half of the buffer is records of rows written anew since, all are packed again.

Invariants: a row's records are sorted by the rank of the target's id, then by kind, and none is there twice; whatever
the history of changes, `Writer.compact` gives byte for byte what a fresh build gives.
"""

from __future__ import annotations

import bisect
import typing
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

RECORD = np.dtype([("target", "<u4"), ("weight", "<f4"), ("kind", "<u4"), ("spare", "<u4")])
"""An edge: row of its target, weight, kind (the lowest 8 bits) with flags above, and what its writer wants to find it
by: of a topology's edges the slot where their latencies lie, which four bytes could not hold."""
assert RECORD.itemsize == 16  # noqa: S101  four records are one cache line, and other languages read them

KIND_BITS = 8
"""Of `kind`, those that tell edges of the same ends apart; the flags above them do not."""
_KIND_MASK = (1 << KIND_BITS) - 1
PENDING_MAX = 4096
"""Changes that wait for somebody to ask for a picture; in a large graph as many as it has records."""
_SLACK_RECORDS = 1024
"""Fewer dead records than this are never worth packing."""

Rows = npt.NDArray[np.intp]
Records = npt.NDArray[np.void]


class Id(typing.Protocol):
    """What names a vertex: hashable, and ordered among its like."""

    def __hash__(self) -> int: ...

    def __lt__(self, other: typing.Any, /) -> bool: ...


IdT = typing.TypeVar("IdT", bound=Id)


class Sorted(Mapping[IdT, int]):
    """Id → row where the ids are sorted and each row holds one: a search instead of a table of its own."""

    def __init__(self, names: Sequence[IdT]) -> None:
        self._names = names

    def __getitem__(self, name: IdT) -> int:
        row = bisect.bisect_left(self._names, name)
        if row == len(self._names) or self._names[row] != name:
            raise KeyError(name)
        return row

    def __iter__(self) -> Iterator[IdT]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Adjacency(typing.Generic[IdT]):
    """A picture of the edges; nothing of it ever changes, so any number of readers may walk it at a time.

    Attributes:
        names: Id of each row; None for a row that holds no vertex.
        rows: Id → row.
        ranks: Place of each row's id among all in order, -1 for a row without a vertex.
        vertex_offsets: Where each row's records begin.
        ends: Where they end.
        records: All records, those of no row among them.
    """

    __slots__ = ("ends", "names", "ranks", "records", "rows", "vertex_offsets", "words")

    def __init__(
        self,
        names: Sequence[IdT | None],
        rows: Mapping[IdT, int],
        ranks: Rows,
        vertex_offsets: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        records: Records,
    ) -> None:
        self.names = names
        self.rows = rows
        self.ranks = ranks
        self.vertex_offsets = _frozen(vertex_offsets)
        self.ends = _frozen(ends)
        self.records = _frozen(records)
        # The same memory as plain numbers, four a record: taking every fourth is quicker than taking a field.
        self.words: npt.NDArray[np.uint32] = self.records.view(np.uint32)

    def __len__(self) -> int:
        """Number of vertices."""
        return len(self.rows)

    @property
    def capacity(self) -> int:
        """Number of rows, those without a vertex included."""
        return len(self.names)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return int((self.ends - self.vertex_offsets).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of records and offsets."""
        return self.records.nbytes + self.vertex_offsets.nbytes + self.ends.nbytes

    def out(self, row: int) -> Records:
        """The row's records, a view."""
        return self.records[self.vertex_offsets[row] : self.ends[row]]

    def name(self, row: int) -> IdT:
        """Id of a row that holds a vertex."""
        found = self.names[row]
        assert found is not None  # noqa: S101  rows without a vertex are no target and never handed out
        return found

    def targets(self, name: IdT) -> list[IdT]:
        """Where the vertex's edges lead, by id; one that is there by several kinds is named as often.

        Raises:
            KeyError: There is no such vertex.
        """
        return [self.name(row) for row in self.out(self.rows[name])["target"].tolist()]

    def live(self) -> tuple[Rows, Records]:
        """Source row and record of every edge, row by row."""
        counts = self.ends - self.vertex_offsets
        sources = np.arange(self.capacity).repeat(counts)
        return sources, self.records[_spans(self.vertex_offsets, counts)]

    def degrees(self, rows: Rows) -> npt.NDArray[np.int64]:
        """How many records each of the rows has."""
        counts: npt.NDArray[np.int64] = self.ends.take(rows) - self.vertex_offsets.take(rows)
        return counts

    def gathered(self, rows: Rows) -> tuple[Records, npt.NDArray[np.int64]]:
        """A copy of the rows' records, row by row, and how many each has."""
        counts = self.degrees(rows)
        return self.records.take(_spans(self.vertex_offsets.take(rows), counts)), counts


def load(
    sources: npt.ArrayLike,
    targets: npt.ArrayLike,
    weights: npt.ArrayLike = 0.0,
    kinds: npt.ArrayLike = 0,
    *,
    vertices: npt.ArrayLike = (),
) -> Adjacency[typing.Any]:
    """The picture of edges given as arrays of ids of any one kind that numpy sorts; of equal edges the last one counts.

    Args:
        sources: Ids where each edge begins.
        targets: Ids where each ends.
        weights: Of each, or one for all.
        kinds: Likewise.
        vertices: Further ids, for those that have no edge.
    """
    source_ids, target_ids = np.asarray(sources), np.asarray(targets)
    further = np.asarray(vertices, source_ids.dtype)
    names, rows = np.unique(np.concatenate([source_ids, target_ids, further]), return_inverse=True)
    count = len(source_ids)
    return pack(names, rows[:count], rows[count : 2 * count], weights, kinds)


def pack(
    names: Sequence[IdT] | npt.NDArray[typing.Any],
    sources: Rows,
    targets: Rows,
    weights: npt.ArrayLike = 0.0,
    kinds: npt.ArrayLike = 0,
    spares: npt.ArrayLike = 0,
) -> Adjacency[IdT]:
    """The picture of edges between rows of `names`, which are sorted and each there once."""
    count, capacity = len(sources), len(names)
    records = np.zeros(count, RECORD)
    records["target"], records["weight"], records["kind"], records["spare"] = targets, weights, kinds, spares
    identity = (sources.astype(np.int64) * capacity + targets << KIND_BITS) + (records["kind"] & _KIND_MASK)
    order = np.argsort(identity, kind="stable")
    identity = identity[order]
    last = np.ones(count, np.bool_)
    last[:-1] = identity[1:] != identity[:-1]
    order = order[last]
    offsets = np.zeros(capacity + 1, np.int64)
    np.cumsum(np.bincount(sources[order], minlength=capacity), out=offsets[1:])
    known = typing.cast("Sequence[IdT]", names)
    return Adjacency(known, Sorted(known), np.arange(capacity), offsets[:-1], offsets[1:], records[order])


class _Change(typing.NamedTuple):
    source: int
    target: int
    kind: int
    weight: float
    spare: int
    there: bool


class Writer(typing.Generic[IdT]):
    """Takes changes of vertices and edges, and gives pictures of what there is."""

    def __init__(self) -> None:
        self._rows: dict[IdT, int] = {}
        self._names: list[IdT | None] = []
        self._free: list[int] = []
        self._doomed: list[int] = []
        self._changes: list[_Change] = []
        self._arrived = False
        self._buffer: Records = np.zeros(0, RECORD)
        self._used = 0
        self._picture: Adjacency[IdT] = _empty()
        self._stale = False

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    @property
    def rows(self) -> Mapping[IdT, int]:
        """Id → row, of what there is now; it changes with every vertex."""
        return self._rows

    @property
    def names(self) -> Sequence[IdT | None]:
        """Id of each row, None for a row that holds no vertex; it changes with every vertex."""
        return self._names

    def fill(
        self, names: Sequence[IdT], sources: Rows, targets: Rows, kinds: npt.ArrayLike = 0, spares: npt.ArrayLike = 0
    ) -> None:
        """Replace all there is by these vertices, sorted and each there once, and edges between their places."""
        self._doomed, self._changes, self._arrived, self._stale = [], [], False, False
        self._hold(pack(names, sources, targets, kinds=kinds, spares=spares))

    def add(self, name: IdT) -> None:
        """Add a vertex; nothing changes where it is there."""
        if name in self._rows:
            return
        if self._free:
            row = self._free.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
        self._rows[name] = row
        self._arrived = self._stale = True

    def remove(self, name: IdT) -> None:
        """Remove a vertex with every edge from and to it; nothing changes where it is not there."""
        row = self._rows.pop(name, None)
        if row is not None:
            # Its number is free for others only when no record holds it any more.
            self._names[row] = None
            self._doomed.append(row)
            self._stale = True
            self._bound()

    def set(self, source: IdT, target: IdT, *, kind: int = 0, weight: float = 0.0, spare: int = 0) -> None:
        """Add an edge, or replace the one of the same ends and kind.

        Raises:
            KeyError: An end is not there.
        """
        self._changes.append(_Change(self._rows[source], self._rows[target], kind, weight, spare, there=True))
        self._stale = True
        self._bound()

    def cut(self, source: IdT, target: IdT, *, kind: int = 0) -> None:
        """Remove an edge; nothing changes where it is not there, nor where an end is not."""
        ends = self._rows.get(source), self._rows.get(target)
        if ends[0] is not None and ends[1] is not None:
            self._changes.append(_Change(ends[0], ends[1], kind, 0.0, 0, there=False))
            self._stale = True
            self._bound()

    def picture(self) -> Adjacency[IdT]:
        """What there is now; the same object until something changes."""
        if self._stale:
            self._settle()
        return self._picture

    def _bound(self) -> None:
        """Take in what is pending before it is more than what there is: nobody may ever ask for a picture."""
        if len(self._changes) + len(self._doomed) > max(PENDING_MAX, len(self._picture.records)):
            self._settle()

    def compact(self) -> Adjacency[IdT]:
        """What there is now, packed as a fresh build packs it: rows in the order of ids, no record without a row."""
        before = self.picture()
        names = sorted(self._rows)
        renumbered = np.full(before.capacity, -1, np.intp)
        renumbered[[self._rows[name] for name in names]] = np.arange(len(names))
        sources, records = before.live()
        ends = renumbered[sources], renumbered[records["target"]]
        return self._hold(pack(names, *ends, records["weight"], records["kind"], records["spare"]))

    def _hold(self, packed: Adjacency[IdT]) -> Adjacency[IdT]:
        """Go on from this, all of whose rows hold a vertex."""
        names = tuple(typing.cast("Sequence[IdT]", packed.names))
        self._rows = {name: row for row, name in enumerate(names)}
        self._names, self._free = list(names), []
        self._buffer, self._used = packed.records, len(packed.records)
        self._picture = Adjacency(
            names, dict(self._rows), packed.ranks, packed.vertex_offsets, packed.ends, packed.records
        )
        return self._picture

    def _settle(self) -> None:
        before = self._picture
        grown = len(self._names) - before.capacity
        offsets = np.concatenate([before.vertex_offsets, np.zeros(grown, np.int64)])
        ends = np.concatenate([before.ends, np.zeros(grown, np.int64)])
        names, rows, ranks = before.names, before.rows, before.ranks
        if self._arrived or self._doomed:
            names, rows, ranks = tuple(self._names), dict(self._rows), self._ranked()
        dirty, fresh = self._merged(offsets, ends, ranks)
        counts = np.bincount(fresh[0], minlength=len(offsets))[dirty]
        begin = self._append(fresh[1])
        ends[dirty] = begin + np.cumsum(counts)
        offsets[dirty] = ends[dirty] - counts
        alive = int((ends - offsets).sum())
        if self._used > 2 * alive + _SLACK_RECORDS:
            lengths = ends - offsets
            self._buffer = self._buffer[_spans(offsets, lengths)]
            self._used = alive
            ends = np.cumsum(lengths)
            offsets = ends - lengths
        self._free.extend(self._doomed)
        self._doomed.clear()
        self._changes.clear()
        self._arrived = self._stale = False
        self._picture = Adjacency(names, rows, ranks, offsets, ends, self._buffer[: self._used])

    def _ranked(self) -> Rows:
        ranks = np.full(len(self._names), -1, np.intp)
        ranks[[self._rows[name] for name in sorted(self._rows)]] = np.arange(len(self._rows))
        return ranks

    def _merged(
        self, offsets: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], ranks: Rows
    ) -> tuple[Rows, tuple[Rows, Records]]:
        """The rows that change; of all their new records the source row, and the records, both in their final order."""
        changes = [each for each in self._changes if ranks[each.source] >= 0 and ranks[each.target] >= 0]
        sources = np.array([each.source for each in changes], np.intp)
        dirty = np.unique(sources)
        if self._doomed:
            gone = np.zeros(len(offsets), np.bool_)
            gone[self._doomed] = True
            holders, records = self._picture.live()
            hit = gone[holders] | gone[records["target"].astype(np.intp)]
            dirty = np.unique(np.concatenate([dirty, holders[hit], np.array(self._doomed, np.intp)]))
        counts = ends[dirty] - offsets[dirty]
        old = self._buffer[_spans(offsets[dirty], counts)]
        added = np.zeros(len(changes), RECORD)
        added["target"] = [each.target for each in changes]
        added["weight"] = [each.weight for each in changes]
        added["kind"] = [each.kind for each in changes]
        added["spare"] = [each.spare for each in changes]
        holders = np.concatenate([dirty.repeat(counts), sources])
        records = np.concatenate([old, added])
        there = np.ones(len(records), np.bool_)
        there[len(old) :] = [each.there for each in changes]
        goals = ranks[records["target"].astype(np.intp)]
        kinds = records["kind"] & _KIND_MASK
        # Stable, so that of one edge's records the newest comes last; it alone counts.
        order = np.lexsort((kinds, goals, holders))
        holders, records, there = holders[order], records[order], there[order]
        goals, kinds = goals[order], kinds[order]
        last = np.ones(len(records), np.bool_)
        last[:-1] = (holders[1:] != holders[:-1]) | (goals[1:] != goals[:-1]) | (kinds[1:] != kinds[:-1])
        kept = last & there & (goals >= 0) & (ranks[holders] >= 0)
        return dirty, (holders[kept], records[kept])

    def _append(self, records: Records) -> int:
        """Write records behind all others; returns where they begin."""
        begin, needed = self._used, self._used + len(records)
        if needed > len(self._buffer):
            grown = np.zeros(max(needed, 2 * len(self._buffer)), RECORD)
            grown[:begin] = self._buffer[:begin]
            self._buffer = grown
        if len(records):
            self._buffer[begin:needed] = records
        self._used = needed
        return begin


def _spans(begins: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Rows:
    """Every index of the spans, one span after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return (begins - ends + counts).repeat(counts) + np.arange(total)


def _frozen(array: npt.NDArray[typing.Any]) -> npt.NDArray[typing.Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _empty() -> Adjacency[typing.Any]:
    nothing = np.zeros(0, np.int64)
    return Adjacency((), {}, np.zeros(0, np.intp), nothing, nothing, np.zeros(0, RECORD))
