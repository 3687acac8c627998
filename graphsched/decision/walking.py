"""GraphWalk: what a plugin is that walks a graph to put things in order.

A plugin declares how it walks (`mode`) and gets `walk(graph, start, ctx)`; it returns vertices in visiting order. The
mode is a promise that the contract suite (`graphsched.testing`) checks, and decides how the graph is expanded:

- BFS: whole levels at a time, so that the work is wide; whatever is returned is in order of distance from the start, by
  the shortest way or throughout by the longest, with which each vertex comes after all that lead to it;
- DFS: vertex by vertex, so that a plugin may prune; each vertex comes after one that leads to it;
- TOPO: each vertex after all that lead to it.

`Graph` is all that a plugin sees: vertices by key, edges, and walks that keep within the `Context` (deadline, limits,
cancellation). `run` calls a plugin and judges what it returns: a plugin that raises, returns what is no vertex, or
comes too late has no say, and is named. Nothing here stops a plugin that never looks at its context; `app.extensions`
does.

Invariant: with the same graph, start and limits a plugin is given the same answers.
"""

from __future__ import annotations

import collections
import enum
import itertools
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from graphsched.base.values import keys
from graphsched.graph import adjacency, dag, walks

Key = keys.VertexKey


class Mode(enum.StrEnum):
    """How a plugin walks."""

    BFS = "BFS"
    DFS = "DFS"
    TOPO = "TOPO"


class Limits(msgspec.Struct, frozen=True, gc=False):
    """How far one walk may go.

    Attributes:
        vertices_max: Vertices visited.
        edges_max: Edges followed.
        depth_max: Edges from the start.
    """

    vertices_max: int = sys.maxsize
    edges_max: int = sys.maxsize
    depth_max: int = sys.maxsize


class Context(msgspec.Struct, frozen=True):
    """What a walk may use up, and what it may know besides the graph.

    Attributes:
        expired: Whether the time is up; a plugin with loops of its own asks it every now and then.
        cancelled: Whether nobody wants the answer any more.
        limits: How far to walk.
        priorities: What is more urgent has a greater one; vertices that are not named have 0.
    """

    expired: Callable[[], bool] = walks.never
    cancelled: Callable[[], bool] = walks.never
    limits: Limits = Limits()
    priorities: Mapping[Key, int] = {}

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self.cancelled() or self.expired()


class Visit(msgspec.Struct, frozen=True):
    """What a walk of the graph visited.

    Attributes:
        keys: In visiting order.
        levels: The same level by level, or wave by wave; depth first all in one.
        ended: Why it ended; `Ended.DONE` when nothing was left out.
        stuck: TOPO: vertices that lie on a cycle or behind one, and were not visited for it.
    """

    keys: tuple[Key, ...]
    levels: tuple[tuple[Key, ...], ...]
    ended: walks.Ended
    stuck: tuple[Key, ...] = ()


class Graph:
    """A picture of vertices and edges that does not change, walked within a context."""

    def __init__(self, picture: adjacency.Adjacency[Key], space: walks.Space | None = None) -> None:
        self._picture = picture
        self._space = space or walks.Space()

    def __len__(self) -> int:
        return len(self._picture)

    def __contains__(self, key: object) -> bool:
        return key in self._picture.rows

    @property
    def keys(self) -> list[Key]:
        """Every vertex, in order."""
        return sorted(self._picture.rows)

    def targets(self, key: Key) -> list[Key]:
        """Where the vertex's edges lead, in order.

        Raises:
            KeyError: There is no such vertex.
        """
        return self._picture.targets(key)

    def walk(
        self, mode: Mode, start: Iterable[Key], ctx: Context, *, prune: Callable[[Key, int], bool] | None = None
    ) -> Visit:
        """Walk from the vertices of `start`, in their order, as far as the context lets.

        Args:
            mode: In which order.
            start: Keys; those of no vertex are passed over.
            ctx: What may be used up.
            prune: DFS alone: asked with each vertex and its depth, True leaves its edges alone.

        Raises:
            ValueError: `prune` is given with another mode.
        """
        if prune is not None and mode is not Mode.DFS:
            message = f"prune goes with DFS, not with {mode}"
            raise ValueError(message)
        picture, rows = self._picture, self._rows(start)
        limits = ctx.limits
        budget = walks.Budget(limits.vertices_max, limits.edges_max, limits.depth_max, ctx.expired, ctx.cancelled)
        if mode is Mode.DFS:
            by_row = None if prune is None else lambda row, depth: prune(picture.name(row), depth)
            found = walks.depth_first(picture, rows, budget, self._space, prune=by_row)
        elif mode is Mode.BFS:
            found = walks.breadth_first(picture, rows, budget, self._space)
        else:
            found = walks.topological(picture, rows, budget, self._space)
        names = self._names(found.rows)
        bounds = found.levels.tolist() or [0, len(names)]
        levels = tuple(names[begin:end] for begin, end in itertools.pairwise(bounds) if begin < end)
        return Visit(names, levels, found.ended, self._names(found.stuck))

    def roots(self) -> list[Key]:
        """Vertices that no edge leads to, in order."""
        picture = self._picture
        led_to = np.zeros(picture.capacity, np.bool_)
        led_to[walks.targets_of(picture, np.flatnonzero(picture.ranks >= 0))] = True
        return [key for key in self.keys if not led_to[picture.rows[key]]]

    def chains(self, ctx: Context) -> Chains | None:
        """The longest chains through the vertices that no cycle holds up; None when the time is up."""
        walk = self._sorted(ctx)
        if not walk.whole:
            return None
        sound = dag.Dag(self._picture, walk.rows, walk.levels)
        depths, heights = sound.depths(), sound.heights()
        rows = list(zip(self._names(walk.rows), walk.rows.tolist(), strict=True))
        return Chains({key: int(depths[row]) for key, row in rows}, {key: int(heights[row]) for key, row in rows})

    def waves(self, ctx: Context) -> tuple[tuple[Key, ...], ...]:
        """Vertices that no edge leads to, then those that only these lead to, and so on.

        What lies on a cycle, or behind one, is in no wave. The limits on edges and depth cut off whole waves; nothing
        comes back when the time is up.
        """
        walk = self._sorted(ctx)
        if not walk.whole:
            return ()
        degrees = self._picture.ends.take(walk.rows) - self._picture.vertex_offsets.take(walk.rows)
        followed = np.concatenate(([0], np.cumsum(degrees)))[walk.levels]
        within = int(np.searchsorted(followed[:-1], ctx.limits.edges_max, "right"))
        bounds = walk.levels[: min(within, ctx.limits.depth_max + 1) + 1].tolist()
        names = self._names(walk.rows[: bounds[-1]])
        return tuple(names[begin:end] for begin, end in itertools.pairwise(bounds))

    def cycle(self, ctx: Context) -> tuple[Key, ...]:
        """Vertices each of which leads to the next and the last to the first; none where there is no cycle."""
        stuck = self._sorted(ctx).stuck
        return dag.cycle_among(self._picture, stuck).ids if len(stuck) else ()

    def _sorted(self, ctx: Context) -> walks.Walk:
        budget = walks.Budget(expired=ctx.expired, cancelled=ctx.cancelled)
        return walks.topological(self._picture, np.flatnonzero(self._picture.ranks >= 0), budget, self._space)

    def _rows(self, start: Iterable[Key]) -> list[int]:
        known = self._picture.rows
        return [known[key] for key in start if key in known]

    def _names(self, rows: walks.Rows) -> tuple[Key, ...]:
        return tuple(self._picture.name(row) for row in rows.tolist())


class Chains(msgspec.Struct, frozen=True):
    """Lengths of the longest chains, in edges.

    Attributes:
        before: Key → of the longest chain that leads to it.
        behind: Key → of the longest that begins at it.
    """

    before: dict[Key, int]
    behind: dict[Key, int]

    def through(self, key: Key) -> int:
        """Of the longest that the vertex lies on."""
        return self.before[key] + self.behind[key]


@typing.runtime_checkable
class GraphWalk(typing.Protocol):
    """A plugin.

    Attributes:
        name: How settings call it.
        mode: How it walks.
    """

    name: str
    mode: Mode

    def walk(self, graph: Graph, start: Sequence[Key], ctx: Context) -> Sequence[Key]:
        """Vertices in visiting order, each once; those left out come last, in the order of `start`."""
        ...


class Verdict(enum.StrEnum):
    """What became of a call."""

    DONE = "done"
    FAILED = "failed"
    """It raised, or returned what it must not."""
    LATE = "late"
    """Its time was up before it returned."""


class Answer(msgspec.Struct, frozen=True):
    """What a plugin returned, judged.

    Attributes:
        verdict: Whether it counts.
        keys: In visiting order; empty unless it counts.
        why: What was wrong, for people; empty when nothing was.
    """

    verdict: Verdict
    keys: tuple[Key, ...] = ()
    why: str = ""


def run(plugin: GraphWalk, graph: Graph, start: Sequence[Key], ctx: Context) -> Answer:
    """Call the plugin; whatever it does, the answer is a value."""
    try:
        returned = plugin.walk(graph, start, ctx)
        found = tuple(returned)
    except Exception as error:  # noqa: BLE001  somebody else's code may raise anything
        return Answer(Verdict.FAILED, why=f"{type(error).__name__}: {error}")
    if ctx.over:
        return Answer(Verdict.LATE, why="its time was up before it returned")
    problem = _problem(found, graph)
    return Answer(Verdict.FAILED, why=problem) if problem else Answer(Verdict.DONE, found)


def _problem(found: tuple[Key, ...], graph: Graph) -> str:
    strange = next((key for key in found if key not in graph), None)
    if strange is not None:
        return f"returned {strange!r}, which is no vertex of the graph"
    if len(set(found)) != len(found):
        twice = next(key for place, key in enumerate(found) if key in found[:place])
        return f"returned {twice!r} more than once"
    return ""


class PriorityQueue:
    """Breadth first: what waits for nobody, then what waits for that alone, and so on, the more urgent first in a wave.

    A vertex is in a wave once all that it waits for is in those before, so nothing goes before what it waits for, and
    without any dependency the order is the one it was given. What lies on a cycle of dependencies, or behind one, is
    not put before anything.
    """

    name = "priorityQueue"
    mode = Mode.BFS

    def walk(self, graph: Graph, start: Sequence[Key], ctx: Context) -> Sequence[Key]:
        """Vertices wave by wave; in a wave by priority, then in the start's order."""
        place = {key: number for number, key in enumerate(start)}

        def order(key: Key) -> tuple[int, int]:
            return -ctx.priorities.get(key, 0), place.get(key, len(place))

        found: list[Key] = []
        for wave in graph.waves(ctx):
            if ctx.over or len(found) >= ctx.limits.vertices_max:
                break
            found += sorted(wave, key=order)
        return found[: ctx.limits.vertices_max]


class CriticalPath:
    """Depth first along dependencies: what lies on the longest chain first, what others wait for before them.

    The longest chain decides when all of it can run, so each of its members that waits makes all of it late. What lies
    on a cycle of dependencies, or behind one, is not put before anything.
    """

    name = "criticalPath"
    mode = Mode.DFS

    def walk(self, graph: Graph, start: Sequence[Key], ctx: Context) -> Sequence[Key]:
        """Vertices chain by chain, the longest chain first; of equal ones the more urgent, then the start's order."""
        chains = graph.chains(ctx)
        if chains is None:
            return ()
        place = {key: number for number, key in enumerate(start)}

        def order(key: Key) -> tuple[int, int, int]:
            return -chains.through(key), -ctx.priorities.get(key, 0), place.get(key, len(place))

        waits_for = collections.Counter(target for key in chains.before for target in graph.targets(key))
        stack = sorted((key for key in chains.before if not waits_for[key]), key=order, reverse=True)
        found: list[Key] = []
        edges_left = ctx.limits.edges_max
        while stack and len(found) < ctx.limits.vertices_max and not ctx.over:
            key = stack.pop()
            found.append(key)
            targets = graph.targets(key) if chains.before[key] < ctx.limits.depth_max else []
            edges_left -= len(targets)
            if edges_left < 0:
                break
            ready = []
            for target in targets:
                waits_for[target] -= 1
                if not waits_for[target] and target in chains.before:
                    ready.append(target)
            stack.extend(sorted(ready, key=order, reverse=True))
        return found


SHIPPED: tuple[GraphWalk, ...] = (PriorityQueue(), CriticalPath())
"""The plugins that come along."""
