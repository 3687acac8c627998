"""Distances from every vertex to one goal, searched backwards from it in vectors, and repaired when edges change.

What a way is. It may climb from what is held to what holds it, cross links, and descend. Containment costs nothing, but
says nothing about distance inside: a way must not climb and then descend, nor descend and then climb, without a link
between. And once it has left by a link it must not come back to anything that holds its goal: two nodes of one zone are
not as far from each other as the way out of the zone and back. Hops know no such rule: they count edges.

So a vertex has three states in the search, by how it was reached: by a link (anything may follow), by climbing (climb
on, or cross a link), by descending. Each round takes a step from all states that got better in the one before, until
none does: label-correcting, for which any order of steps gives the same, exact result. A `Search` may stop between
rounds and go on later.

Repair. A changed edge can matter only for states whose distance it made (it is *tight*), and those that hang on them by
tight edges; they are forgotten, and searched again from what is still known around them. An edge that became better is
tried.

Comes in: `arcs`. Goes out: vectors over vertex numbers. Laws, tested: a repaired search equals one made afresh, bit by
bit, and both equal Dijkstra's algorithm over the same states.
"""

from __future__ import annotations

import typing
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from graphsched.graph import arcs

REPAIRED_MAX = 4096
"""Changed edges a repair takes on; each costs a few microseconds, and a search of 50,000 edges a few milliseconds."""

_LINKED, _CLIMBED, _DESCENDED = 0, 1, 2

Float = npt.NDArray[np.float64]
Intp = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Expired = Callable[[], bool]


def never() -> bool:
    """No deadline."""
    return False


class Search:
    """Distances in one metric to one goal.

    Attributes:
        metric: The metric.
        goal: Vertex number of the goal.
        inside: Whether the goal is not that vertex itself but something inside, which no link touches and nothing else
            holds: then what else is inside is not near.
    """

    def __init__(self, network: arcs.Arcs, metric: arcs.Metric, goal: int, *, inside: bool = False) -> None:
        self.metric = metric
        self.goal = goal
        self.inside = inside and metric is not arcs.Metric.HOPS
        self._network = network
        self._moment = network.moment
        self._layers = 1 if metric is arcs.Metric.HOPS else 3
        self._widest = metric is arcs.Metric.BANDWIDTH
        size = self._size = network.capacity
        self._start = -np.inf if self._widest else 0.0
        self._best: Float = np.full(self._layers * size, np.inf)
        self._best[self._first] = self._start
        self._closed = self._closure()
        self._frontier: Intp = np.array([self._first], np.intp)

    @property
    def done(self) -> bool:
        """Whether the search has come to its end."""
        return not len(self._frontier)

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return self._best.nbytes + self._closed.nbytes

    @property
    def states(self) -> Float:
        """A copy of the distances by state, shape (layers, vertices)."""
        return self._best.reshape(self._layers, self._size).copy()

    @property
    def _first(self) -> int:
        """The state in which the search begins."""
        return self.goal + (_CLIMBED * self._size if self.inside else 0)

    def vertices(self) -> Float:
        """Distance by vertex number, infinite where no way is known; widths are negative."""
        nearest: Float = self._best.reshape(self._layers, self._size).min(axis=0)
        return nearest

    def advance(self, expired: Expired = never) -> bool:
        """Search on until the end, or until `expired`, which is asked between rounds; returns whether it is done."""
        while len(self._frontier):
            self._frontier = self._step(self._frontier)
            if len(self._frontier) and expired():
                return False
        return True

    def bring_up_to_date(self) -> bool:
        """Take over what changed since; False where that is better computed afresh."""
        network = self._network
        if self._moment == network.moment:
            return True
        changes = network.changes(self._moment)
        if changes is None or len(changes) > REPAIRED_MAX or not self.done:
            return False
        self._grow(network.capacity)
        if not np.array_equal(self._closed, self._closure()):
            return False
        self._repair(changes)
        self._moment = network.moment
        return True

    # ── steps ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self, frontier: Intp) -> Intp:
        """Take every step from these states; returns the states that got better."""
        targets, values = self._reached(frontier)
        better = (values < self._best[targets]) & ~self._closed[targets]
        targets, values = targets[better], values[better]
        if not len(targets):
            return targets
        np.minimum.at(self._best, targets, values)
        moved = np.zeros(len(self._best), np.bool_)
        moved[targets] = True
        improved = np.flatnonzero(moved)
        if self._layers == 1:
            return improved
        # A state reached by a link may do all that the other two may, so these are of no use where it is as near.
        return improved[(improved < self._size) | (self._best[improved] < self._best[improved % max(self._size, 1)])]

    def _reached(self, states: Intp) -> tuple[Intp, Float]:
        """Where each step from these states leads, and how far that is from the goal."""
        network, costs, size = self._network, self._network.costs(self.metric), self._size
        layer, vertex = np.divmod(states, size)
        best = self._best[states]
        one = self._layers == 1
        found = [self._along(network.by_head, vertex, best, costs.link, 0)]
        for order, table, target in (
            (network.holders, costs.climb, _CLIMBED),
            (network.contents, costs.descend, _DESCENDED),
        ):
            if len(order.other):
                may = slice(None) if one else (layer == _LINKED) | (layer == target)
                found.append(self._along(order, vertex[may], best[may], table, 0 if one else target * size))
        return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])

    def _along(self, order: arcs.Sorted, vertex: Intp, best: Float, costs: Float, offset: int) -> tuple[Intp, Float]:
        """The steps along one kind of edge from these vertices."""
        picked, number = _gathered(order.start, vertex)
        step = costs[order.slot[picked]]
        from_here = np.repeat(best, number)
        values = np.maximum(from_here, step) if self._widest else from_here + step
        return order.other[picked] + offset, values

    def _closure(self) -> Mask:
        """Bool a state: a way that has left by a link must not come back to it, since it holds the goal."""
        closed = np.zeros(len(self._best), np.bool_)
        if self._layers == 1:
            return closed
        network, climb = self._network, self._network.costs(self.metric).climb
        roof = np.zeros(self._size, np.bool_)
        roof[self.goal] = True
        frontier = np.array([self.goal], np.intp)
        while len(frontier):
            picked, _ = _gathered(network.holders.start, frontier)
            above = network.holders.other[picked[climb[network.holders.slot[picked]] < np.inf]]
            frontier = np.unique(above[~roof[above]])
            roof[frontier] = True
        closed[: self._size] = closed[2 * self._size :] = roof
        closed[self.goal] = self.inside
        return closed

    # ── the way itself ─────────────────────────────────────────────────────────────────────────────────────────────

    def way(self, start: int) -> list[Stride] | None:
        """A shortest way from this vertex to the goal, its first stride being to stand on `start`.

        Of those as short the one with the fewest edges, and then the first by the keys of its vertices. None where no
        way is known. The search must be done.
        """
        level = self._levels(start)
        by_layer = level.reshape(self._layers, self._size)
        nearest = self._best.reshape(self._layers, self._size)[:, start]
        here = [
            layer for layer in range(self._layers) if by_layer[layer, start] >= 0 and nearest[layer] == nearest.min()
        ]
        if not here:
            return None
        steps = min(int(by_layer[layer, start]) for layer in here)
        states = {start + layer * self._size for layer in here if by_layer[layer, start] == steps}
        found = [Stride(start, link=False)]
        while steps:
            steps -= 1
            before = self._step_back(states, level == steps)
            vertex, link = min(
                {each[:2] for each in before}, key=lambda each: (self._network.keys[each[0]], not each[1])
            )
            states = {state for *chosen, state in before if chosen == [vertex, link]}
            found.append(Stride(vertex, link))
        return found

    def _levels(self, start: int) -> Intp:
        """Edges of the shortest ways by state, -1 where there is none, as far as is needed to see one from `start`."""
        level = np.full(len(self._best), -1, np.intp)
        level[self._first] = 0
        frontier = np.array([self._first], np.intp)
        wanted = start + np.arange(self._layers) * self._size
        wanted = wanted[self._best[wanted] == self._best[wanted].min()]
        while len(frontier) and (level[wanted] < 0).all():
            depth = level[frontier[0]] + 1
            targets, values = self._reached(frontier)
            new = (values == self._best[targets]) & (values < np.inf) & (level[targets] < 0) & ~self._closed[targets]
            frontier = np.unique(targets[new])
            level[frontier] = depth
        return level

    def _step_back(self, states: set[int], allowed: Mask) -> list[tuple[int, bool, int]]:
        """Vertex, whether by a link, and state of all that one tight step leads from to one of these states."""
        around = np.unique(np.concatenate(self._before(np.array(sorted(states), np.intp))))
        candidates = (around + np.arange(self._layers)[:, None] * self._size).ravel()
        found: list[tuple[int, bool, int]] = []
        for state in candidates[allowed[candidates]].tolist():
            targets, values = self._reached(np.array([state], np.intp))
            links = int(np.diff(self._network.by_head.start[[state % self._size, state % self._size + 1]])[0])
            for place, (target, value) in enumerate(zip(targets.tolist(), values.tolist(), strict=True)):
                if target in states and value == self._best[target] < np.inf:
                    found.append((state % self._size, place < links, state))
        return found

    # ── repair ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _repair(self, changes: list[arcs.Change]) -> None:
        """Forget what the changed edges may have made, and leave as the frontier where the search must go on."""
        links, inside = self._changed(changes)
        tried = np.unique(np.concatenate([links.source, inside.ravel()]))
        lost = np.zeros(len(self._best), np.bool_)
        if (links.after > links.before).any() or inside.size:
            seeds = [links.target[self._tight(links.source, links.target, links.before, (0, 1, 2))]]
            step = 1.0 if self._layers == 1 else self._start
            for target in (_CLIMBED, _DESCENDED) if inside.size else ():
                source, reached = inside[::-1] if target == _CLIMBED else inside
                state = reached if self._layers == 1 else reached + target * self._size
                before = np.full(len(source), step)
                seeds.append(state[self._tight(source, state, before, (_LINKED, target))])
            self._forget(np.unique(np.concatenate(seeds)), lost)
        around = np.unique(np.concatenate([tried, *self._before(np.flatnonzero(lost))]))
        self._best[lost] = np.inf
        states = (around + np.arange(self._layers)[:, None] * self._size).ravel()
        self._frontier = states[self._best[states] < np.inf]

    def _changed(self, changes: list[arcs.Change]) -> tuple[_Links, Intp]:
        """The links whose cost is another than it was; and of containment, the pairs of holder and held concerned."""
        network, costs = self._network, self._network.costs(self.metric)
        first: dict[tuple[int, int, bool], arcs.Change] = {}
        for change in changes:
            first.setdefault((change.tail, change.head, change.link), change)
        moved = [change for change in first.values() if change.link]
        slots = [network.slot(change.tail, change.head, link=True) for change in moved]
        after = np.array([np.inf if slot is None else costs.link[slot] for slot in slots])
        before = network.costs_before(moved, self.metric)
        differs = np.flatnonzero(after != before)
        tails = np.array([moved[each].tail for each in differs], np.intp)
        heads = np.array([moved[each].head for each in differs], np.intp)
        inside = {(tail, head) for tail, head, link in first if not link}
        appeared = np.isfinite(after) != np.isfinite(before)
        for each in np.flatnonzero(appeared).tolist():
            tail, head = moved[each].tail, moved[each].head
            inside.update(pair for pair in ((tail, head), (head, tail)) if network.slot(*pair, link=False) is not None)
        pairs = np.array(sorted(inside), np.intp).reshape(len(inside), 2).T
        return _Links(heads, tails, before[differs], after[differs]), pairs

    def _tight(self, source: Intp, state: Intp, before: Float, layers: tuple[int, ...]) -> Mask:
        """Bool for each step from a vertex (in one of these layers) to a state: it made the state's distance."""
        by_layer = self._best.reshape(self._layers, self._size)
        allowed = [layer for layer in layers if layer < self._layers]
        nearest = by_layer[allowed][:, source].min(axis=0)
        values = np.maximum(nearest, before) if self._widest else nearest + before
        tight: Mask = (values == self._best[state]) & (values < np.inf) & (state != self._first)
        return tight

    def _forget(self, seeds: Intp, lost: Mask) -> None:
        """Mark these states, and all that hang on them by tight edges."""
        lost[seeds] = True
        frontier = seeds
        while len(frontier):
            targets, values = self._reached(frontier)
            hanging = (values == self._best[targets]) & (values < np.inf) & ~lost[targets] & (targets != self._first)
            frontier = np.unique(targets[hanging])
            lost[frontier] = True

    def _before(self, states: Intp) -> list[Intp]:
        """Vertices from which some step leads to these states."""
        network, size = self._network, self._size
        layer, vertex = np.divmod(states, size)
        found = []
        for target, order in enumerate((network.by_tail, network.contents, network.holders)):
            picked, _ = _gathered(order.start, vertex if self._layers == 1 else vertex[layer == target])
            found.append(order.other[picked])
        return found

    def _grow(self, size: int) -> None:
        """Follow the numbers of vertices; new ones are reached by nothing yet."""
        if size == self._size:
            return
        best = np.full((self._layers, size), np.inf)
        best[:, : self._size] = self._best.reshape(self._layers, self._size)
        closed = np.zeros((self._layers, size), np.bool_)
        closed[:, : self._size] = self._closed.reshape(self._layers, self._size)
        self._best, self._closed, self._size = best.ravel(), closed.ravel(), size


class Stride(typing.NamedTuple):
    """One vertex of a way, and whether a link leads there rather than containment."""

    vertex: int
    link: bool


class _Links(typing.NamedTuple):
    """Links of which a search takes steps, backwards, with what a step costs.

    Attributes:
        source, target: Vertex numbers: where the link leads to, where it begins.
        before, after: The costs.
    """

    source: Intp
    target: Intp
    before: Float
    after: Float


def _gathered(start: Intp, vertex: Intp) -> tuple[Intp, Intp]:
    """Places in a sorted list of the edges at these vertices, vertex by vertex, and how many each of them has."""
    first = start[vertex]
    number = start[vertex + 1] - first
    ends = np.cumsum(number)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(first - ends + number, number) + np.arange(total), number
