"""Walks over a compact adjacency: breadth first, depth first, topological.

A picture and starting rows come in, a `Walk` goes out: rows in visiting order, and why it ended. All three orders are
fixed by the picture alone. Breadth first goes level by level, a level being a few numpy calls however wide; depth first
goes vertex by vertex, so that it can be told not to go further; topological goes wave by wave over what can be reached,
a vertex when all that lead to it have been visited. Ties go by the order of ids: a row's edges are sorted by it, and
so is each wave.

A walk that may be long asks its `Budget` between pieces of at most `CHUNK_EDGES` edges, a millisecond or two each, and
ends where the budget does with what it has visited so far.

Invariant: each vertex is visited at most once, and the same picture, start and limits give the same walk.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import typing
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.graph import adjacency, arena, visited

CHUNK_EDGES = 1 << 16
"""Edges between two looks at the budget: at 10 to 30 ns an edge one or two milliseconds."""
SCRATCH_BYTES_MAX = 1 << 28
"""What a walk's temporary structures may take: 16 bytes a vertex, for 16 million."""

Rows = npt.NDArray[np.intp]
Picture = adjacency.Adjacency[typing.Any]


def never() -> bool:
    """The moment that never comes."""
    return False


class Ended(enum.Enum):
    """Why a walk ended."""

    DONE = "done"
    """Everything was visited that can be reached."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    VERTICES = "vertices"
    EDGES = "edges"
    DEPTH = "depth"
    """Vertices at the greatest depth have edges that were not followed."""


class Budget(msgspec.Struct, frozen=True):
    """How far a walk may go.

    Attributes:
        vertices_max: Visits so many at most.
        edges_max: Follows so many at most; a row that does not fit whole is not begun.
        depth_max: Goes no further than so many edges from the start.
        expired: Whether the time is up.
        cancelled: Whether nobody wants the answer any more.
    """

    vertices_max: int = sys.maxsize
    edges_max: int = sys.maxsize
    depth_max: int = sys.maxsize
    expired: Callable[[], bool] = never
    cancelled: Callable[[], bool] = never

    def over(self) -> Ended | None:
        """Why to stop now, limits aside; None to go on."""
        if self.cancelled():
            return Ended.CANCELLED
        return Ended.EXPIRED if self.expired() else None


UNBOUNDED = Budget()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What a walk visited.

    Attributes:
        rows: In visiting order.
        levels: Where each level or wave begins in `rows`, and where the last one ends; empty depth first.
        ended: Why it ended.
        edges: How many it followed.
        finished: Depth first: rows in the order in which all that can be reached from them was visited.
        stuck: Topological: rows that were not visited as they are on a cycle or behind one.
    """

    rows: Rows
    levels: npt.NDArray[np.int64]
    ended: Ended
    edges: int
    finished: Rows = dataclasses.field(default_factory=lambda: _NOTHING)
    stuck: Rows = dataclasses.field(default_factory=lambda: _NOTHING)

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return self.ended is Ended.DONE


class Space:
    """What a walker works with: marks, and memory for temporary structures. One walk at a time."""

    def __init__(self, *, scratch_bytes_max: int = SCRATCH_BYTES_MAX) -> None:
        self.marks = visited.Marks(0)
        self.scratch = arena.Arena(bytes_max=scratch_bytes_max)

    def begin(self, picture: Picture) -> None:
        """Forget the last walk."""
        self.marks.begin(picture.capacity)
        self.scratch.reset()


_NOTHING: Rows = np.zeros(0, np.intp)
_NO_LEVELS = np.zeros(0, np.int64)
# Four times each number: records are addressed as words, four of them each.
_WORDS = np.arange(0, 4 * CHUNK_EDGES, 4)
# Arrays of no dimension spare numpy the conversion of a Python number, a third of a microsecond each time.
_RECORD_WORDS = np.array(4)
_PIECE_EDGES = 1 << 13
"""The same for walks that go vertex by vertex, which take some ten times as long an edge."""


def breadth_first(
    picture: Picture, starts: Iterable[int], budget: Budget = UNBOUNDED, space: Space | None = None
) -> Walk:
    """Visit level by level: the starts in their order, then what their edges lead to, edge by edge, and so on."""
    tour = _Tour(picture, budget, space or Space())
    level = tour.visit(_as_rows(starts))
    while len(level) and tour.ended is None:
        level = tour.expand(level)
    return tour.walk()


class _Tour:
    """A walk level by level, under way.

    Attributes:
        ended: Why it has ended; None while it has not.
    """

    def __init__(self, picture: Picture, budget: Budget, space: Space) -> None:
        space.begin(picture)
        self._picture = picture
        self._budget = budget
        self._marks = space.marks
        self._order = space.scratch.take(picture.capacity, np.intp)
        self._count = self._edges = 0
        self._levels = [0]
        self.ended: Ended | None = None

    def walk(self) -> Walk:
        """What was visited."""
        levels = np.array(self._levels, np.int64)
        return Walk(self._order[: self._count].copy(), levels, self.ended or Ended.DONE, self._edges)

    def visit(self, rows: Rows) -> Rows:
        """Visit those of the rows that have not been, as one level; returns them."""
        begun = self._count
        self._take(rows)
        return self._level(begun)

    def expand(self, level: Rows) -> Rows:
        """Visit what the level's edges lead to; returns it."""
        self.ended = self._budget.over()
        if self.ended is not None:
            return _NOTHING
        ends = self._picture.ends.take(level)
        counts = ends - self._picture.vertex_offsets.take(level)
        sums = np.add.accumulate(counts)
        total, begun = sums.item(-1), self._count
        if not total:
            return _NOTHING
        if len(self._levels) > self._budget.depth_max + 1:
            self.ended = Ended.DEPTH
            return _NOTHING
        left = self._budget.edges_max - self._edges
        if total <= min(left, CHUNK_EDGES):
            self._follow(ends, counts, sums, total)
            return self._level(begun)
        fitting = len(level) if total <= left else int(sums.searchsorted(left, "right"))
        for first, last in _pieces(sums[:fitting]):
            before = int(sums[first - 1]) if first else 0
            self._follow(ends[first:last], counts[first:last], sums[first:last] - before, int(sums[last - 1]) - before)
            if self.ended is None:
                self.ended = self._budget.over()
            if self.ended is not None:
                break
        if fitting < len(level):
            self.ended = self.ended or Ended.EDGES
        return self._level(begun)

    def _follow(self, ends: Rows, counts: Rows, sums: Rows, total: int) -> None:
        index = np.multiply(ends - sums, _RECORD_WORDS).repeat(counts)
        index += _WORDS[:total] if total <= CHUNK_EDGES else np.arange(0, 4 * total, 4)
        self._edges += total
        self._take(self._picture.words.take(index).astype(np.intp))

    def _take(self, rows: Rows) -> None:
        found = self._marks.fresh(rows)
        room = self._budget.vertices_max - self._count
        if len(found) > room:
            self.ended = Ended.VERTICES
            found = found[:room]
        end = self._count + len(found)
        self._order[self._count : end] = found
        self._count = end

    def _level(self, begun: int) -> Rows:
        if self._count > begun:
            self._levels.append(self._count)
        return self._order[begun : self._count]


def depth_first(
    picture: Picture,
    starts: Iterable[int],
    budget: Budget = UNBOUNDED,
    space: Space | None = None,
    *,
    prune: Callable[[int, int], bool] | None = None,
) -> Walk:
    """Visit each start and, before the next, all that its edges lead to, the first edge's all before the second's.

    Args:
        picture: Where to walk.
        starts: Rows, in order.
        budget: How far.
        space: To work in.
        prune: Asked with a row that is visited and its depth: True leaves its edges alone.
    """
    space = space or Space()
    space.begin(picture)
    descent = _Descent(picture, budget, space, prune)
    for start in _as_rows(starts).tolist():
        if not descent.visit(start):
            break
    return descent.walk()


class _Descent:
    """A walk vertex by vertex, under way."""

    def __init__(
        self, picture: Picture, budget: Budget, space: Space, prune: Callable[[int, int], bool] | None
    ) -> None:
        self._picture = picture
        self._budget = budget
        self._claim = space.marks.claim
        self._prune = prune
        self._order: list[int] = []
        self._finished: list[int] = []
        self._stack: list[tuple[int, Iterator[int]]] = []
        self._edges = self._piece = 0
        self._ended: Ended | None = None
        self._shallow = False

    def walk(self) -> Walk:
        """What was visited."""
        ended = self._ended or (Ended.DEPTH if self._shallow else Ended.DONE)
        order, finished = np.array(self._order, np.intp), np.array(self._finished, np.intp)
        return Walk(order, _NO_LEVELS, ended, self._edges, finished)

    def visit(self, start: int) -> bool:
        """Visit a row and all that can be reached from it; returns whether to go on."""
        if not self._claim(start):
            return True
        self._enter(start)
        while self._stack and self._ended is None:
            row, targets = self._stack[-1]
            for target in targets:
                if self._claim(target):
                    self._enter(target)
                    break
            else:
                self._finished.append(row)
                self._stack.pop()
        return self._ended is None

    def _enter(self, row: int) -> None:
        """Visit one row, which is marked, and begin with its edges."""
        if len(self._order) >= self._budget.vertices_max:
            self._ended = Ended.VERTICES
            return
        depth = len(self._stack)
        self._order.append(row)
        begin, end = self._picture.vertex_offsets.item(row), self._picture.ends.item(row)
        self._piece += 1 + end - begin
        if self._piece >= _PIECE_EDGES:
            self._piece = 0
            self._ended = self._budget.over()
        pruned = self._prune is not None and self._prune(row, depth)
        if begin < end and not pruned and depth >= self._budget.depth_max:
            self._shallow = pruned = True
        if begin < end and not pruned and self._edges + end - begin > self._budget.edges_max:
            self._ended = Ended.EDGES
            return
        if pruned:
            begin = end
        self._edges += end - begin
        self._stack.append((row, iter(self._picture.words[4 * begin : 4 * end : 4].tolist())))


def topological(
    picture: Picture, starts: Iterable[int], budget: Budget = UNBOUNDED, space: Space | None = None
) -> Walk:
    """Visit what can be reached from the starts, each vertex after all of these that lead to it.

    Wave by wave: first those that none leads to, in the order of their ids, then those that only these lead to, and so
    on. What lies on a cycle, or behind one, is not visited, and named as `stuck`. Where the budget ends while it is
    found out what can be reached, nothing is visited: an order of half of it might be wrong. A depth limit takes what
    is so near, in a topological order of that.
    """
    space = space or Space()
    reach = breadth_first(picture, starts, budget, space)
    if not reach.whole and reach.ended is not Ended.DEPTH:
        return Walk(_NOTHING, _NO_LEVELS, reach.ended, reach.edges)
    with space.scratch.scope():
        waiting = space.scratch.take(picture.capacity, np.int64)
        waiting[:] = 0
        within = space.scratch.take(picture.capacity, np.bool_)
        within[:] = False
        within[reach.rows] = True
        for targets in _all_targets(picture, reach.rows):
            np.add.at(waiting, targets[within[targets]], 1)
        order: list[Rows] = []
        wave = _by_rank(picture, reach.rows[waiting[reach.rows] == 0])
        ended = budget.over()
        while len(wave) and ended is None:
            order.append(wave)
            ready = []
            for targets in _all_targets(picture, wave):
                reached, times = np.unique(targets[within[targets]], return_counts=True)
                waiting[reached] -= times
                ready.append(reached[waiting[reached] == 0])
            ended = budget.over()
            wave = _by_rank(picture, np.concatenate(ready)) if ready else _NOTHING
        stuck = _NOTHING if ended is not None else _by_rank(picture, reach.rows[waiting[reach.rows] > 0])
    rows = np.concatenate(order) if order else _NOTHING
    levels = np.cumsum([0, *map(len, order)])
    return Walk(rows, levels, ended or reach.ended, reach.edges, stuck=stuck)


def targets_of(picture: Picture, rows: Rows) -> Rows:
    """Where the rows' edges lead, row by row."""
    ends = picture.ends.take(rows)
    counts = ends - picture.vertex_offsets.take(rows)
    sums = counts.cumsum()
    total = int(sums[-1]) if len(sums) else 0
    index = ((ends - sums) << 2).repeat(counts)
    index += np.arange(0, 4 * total, 4)
    targets: Rows = picture.words.take(index).astype(np.intp)
    return targets


def _all_targets(picture: Picture, rows: Rows) -> Iterator[Rows]:
    """Where the rows' edges lead, in pieces; nothing where no edge leads anywhere."""
    sums = (picture.ends.take(rows) - picture.vertex_offsets.take(rows)).cumsum()
    if len(sums) and sums[-1]:
        for first, last in _pieces(sums):
            yield targets_of(picture, rows[first:last])


def _pieces(sums: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Spans of a level, each with `CHUNK_EDGES` edges at most, or one row; `sums` are the rows' edges summed up."""
    first = 0
    while first < len(sums):
        before = int(sums[first - 1]) if first else 0
        last = max(first + 1, int(sums.searchsorted(before + CHUNK_EDGES, "right")))
        yield first, last
        first = last


def _by_rank(picture: Picture, rows: Rows) -> Rows:
    return rows[np.argsort(picture.ranks[rows])]


def _as_rows(starts: Iterable[int]) -> Rows:
    rows: Rows = starts.astype(np.intp) if isinstance(starts, np.ndarray) else np.fromiter(starts, np.intp)
    return rows
