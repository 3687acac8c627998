"""Distances from every vertex to one goal, searched backwards from it in vectors, and repaired when edges change.

What a way is. It may climb from what is held to what holds it, cross links, and descend. Containment costs nothing, but
says nothing about distance inside: a way must not climb and then descend, nor descend and then climb, without a link
between. And once it has left by a link it must not come back to anything that holds its goal: two nodes of one zone are
not as far from each other as the way out of the zone and back. Hops know no such rule: they count edges.

So a vertex has three states in the search, by how it was reached: by a link (anything may follow), by climbing (climb
on, or cross a link), by descending. Each round takes a step from states that got better in one before, until none did:
label-correcting, for which any order of steps gives the same, exact result. A few states are walked from, along their
records in the adjacency, the nearest ones first; where many got better, all steps there are are taken at once, which
costs a tenth for each and needs no sorting out. A `Search` may stop between rounds and go on later.

Repair. A changed edge can matter only for states whose distance it made (it is *tight*), and those that hang on them by
tight edges; they are forgotten, and searched again from what is still known around them. An edge that became better is
tried. This goes in rounds too, may stop between them, and may begin while a search, or a repair, is unfinished. Then
a state may have got better since it made the distance of another, so that the step between them is not tight any more:
whatever a step could have made, being no farther than what is known, is forgotten. What is left has always been made
by what is left and by edges as they are, so it is the length of a way; and the frontier holds all states from which
some step was not tried.

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

SWEPT_FROM = 1 / 10
"""Records at the states that got better, as a share of all edges, from which on taking every step there is costs less:
walking costs some 30 ns a record, a sweep 4 ns an edge (10,000 nodes, 50,000 links)."""
SWEPT_MIN = 2048
"""With fewer records the calls cost more than the work."""
NEAR = 1024
"""So many records, or a few more, are walked at most in one round that is no sweep, those of the nearest states: what
is farther will mostly get better before it is its turn. With fewer the calls cost more than the work."""

_LINKED, _CLIMBED, _DESCENDED = 0, 1, 2
"""Layers of states; a step along a record of kind k leads to layer k − 1."""

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
        self._falling = _NOTHING
        """States that are to be forgotten, and still have the distance by which to tell what hangs on them."""
        self._lost: list[Intp] = []
        """States that were forgotten in the repair under way."""
        self._around = _NOTHING
        """Vertices at which edges changed in the repair under way."""

    @property
    def done(self) -> bool:
        """Whether the search has come to its end."""
        return not len(self._frontier) and not len(self._falling)

    @property
    def settled(self) -> bool:
        """Whether it has come to its end, and nothing has changed since."""
        return self.done and self._moment == self._network.moment

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
        while not self.done:
            if len(self._falling):
                self._forget()
            else:
                self._frontier = self._round(self._frontier)
            if expired():
                break
        return self.done

    def bring_up_to_date(self) -> bool:
        """Take over what changed since, to be worked in by `advance`; False where that is better computed afresh."""
        network = self._network
        if network.capacity < self._size:
            return False
        # A vertex without edges changes no way, and yet has a number that is asked for.
        self._grow(network.capacity)
        if self._moment == network.moment:
            return True
        changes = network.changes(self._moment)
        if changes is None or len(changes) > REPAIRED_MAX:
            return False
        if not np.array_equal(self._closed, self._closure()):
            return False
        self._repair(changes)
        self._moment = network.moment
        return True

    # ── steps ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _round(self, pending: Intp) -> Intp:
        """Take every step from some of these states, or all there are; returns the states from which to go on."""
        picture, size = self._network.picture, self._size
        records = int(picture.degrees(pending % size).sum())
        if records >= SWEPT_MIN and records >= SWEPT_FROM * self._network.edges:
            return self._useful(self._sweep())
        if records <= NEAR or self._layers == 1:
            return self._useful(self._step(pending))
        values, number = self._best[pending], len(pending) * NEAR // records
        near = values <= np.partition(values, number)[number]
        further = self._useful(self._step(pending[near]))
        with self._network.marks.marks(len(self._best)) as marks:
            return marks.fresh(np.concatenate([further, pending[~near]]))

    def _useful(self, improved: Intp) -> Intp:
        """Those of the states from which to go on.

        One reached by a link may do all that the other two may, so these are of no use where it is as near.
        """
        if self._layers == 1:
            return improved
        return improved[(improved < self._size) | (self._best[improved] < self._best[improved % self._size])]

    def _step(self, frontier: Intp) -> Intp:
        """Take every step from these states; returns the states that got better."""
        targets, values, _, _ = self._reached(frontier)
        better = np.flatnonzero((values < self._best[targets]) & ~self._closed[targets])
        targets = targets[better]
        np.minimum.at(self._best, targets, values[better])
        with self._network.marks.marks(len(self._best)) as marks:
            return marks.fresh(targets)

    def _sweep(self) -> Intp:
        """Take every step there is; returns the states that got better."""
        before, lanes = self._best.copy(), self._network.lanes(self.metric)
        best = self._best.reshape(self._layers, self._size)
        if self._layers == 1:
            for lane in lanes:
                self._take(lane, best[0], best[0])
        else:
            closed = self._closed.reshape(self._layers, self._size)
            for layer in (_LINKED, _CLIMBED, _DESCENDED):
                here = np.minimum(best[_LINKED], best[layer]) if layer else best.min(axis=0)
                self._take(lanes[layer], here, best[layer])
                best[layer, closed[layer]] = np.inf
        return np.flatnonzero(self._best < before)

    def _take(self, lane: arcs.Lane, here: Float, there: Float) -> None:
        """Take every step of the lane from `here`, into `there`."""
        values = here.take(lane.origin)
        (np.maximum if self._widest else np.add)(values, lane.cost, out=values)
        np.minimum.at(there, lane.goal, values)

    def _reached(self, states: Intp) -> tuple[Intp, Float, Intp, Intp]:
        """Of each step from these states: where it leads, how far that is from the goal, its layer, and its start.

        The start is a place in `states`. Among the steps are some that can not be taken; they lead infinitely far.
        """
        size = self._size
        layer, vertex = np.divmod(states, size)
        targets, kinds, slots, number = _gathered(self._network.picture, vertex)
        values = self._network.costs(self.metric)[kinds, slots]
        start = np.repeat(np.arange(len(states)), number)
        from_here = self._best[states][start]
        values = np.maximum(from_here, values) if self._widest else from_here + values
        there = kinds - arcs.IN
        if self._layers == 1:
            return targets, values, there, start
        # Who has climbed must not descend, nor the other way round.
        values[layer[start] + there == _CLIMBED + _DESCENDED] = np.inf
        return targets + there * size, values, there, start

    def _closure(self) -> Mask:
        """Bool a state: a way that has left by a link must not come back to it, since it holds the goal."""
        closed = np.zeros(len(self._best), np.bool_)
        if self._layers == 1:
            return closed
        climb = self._network.costs(self.metric)[arcs.HELD]
        roof = np.zeros(self._size, np.bool_)
        roof[self.goal] = True
        frontier = np.array([self.goal], np.intp)
        while len(frontier):
            targets, kinds, slots, _ = _gathered(self._network.picture, frontier)
            above = targets[(kinds == arcs.HELD) & (climb[slots] < np.inf)]
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
                {each[:2] for each in before}, key=lambda each: (self._network.key(each[0]), not each[1])
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
            targets, values, _, _ = self._reached(frontier)
            new = (values == self._best[targets]) & (values < np.inf) & (level[targets] < 0) & ~self._closed[targets]
            frontier = np.unique(targets[new])
            level[frontier] = depth
        return level

    def _step_back(self, states: set[int], allowed: Mask) -> list[tuple[int, bool, int]]:
        """Vertex, whether by a link, and state of all that one tight step leads from to one of these states."""
        around = np.unique(self._before(np.array(sorted(states), np.intp)))
        candidates = (around + np.arange(self._layers)[:, None] * self._size).ravel()
        candidates = candidates[allowed[candidates]]
        targets, values, layers, start = self._reached(candidates)
        tight = np.isin(targets, list(states)) & (values == self._best[targets]) & (values < np.inf)
        return [
            (int(candidates[start[each]]) % self._size, bool(layers[each] == _LINKED), int(candidates[start[each]]))
            for each in np.flatnonzero(tight)
        ]

    # ── repair ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _repair(self, changes: list[arcs.Change]) -> None:
        """Find what the changed edges may have made, which is to be forgotten, and where to search on if nothing is."""
        links, inside = self._changed(changes)
        self._around = np.concatenate([self._around, links.source, inside.ravel()])
        if (links.after > links.before).any() or inside.size:
            seeds = [links.target[self._made(links.source, links.target, links.before, (0, 1, 2))]]
            step = 1.0 if self._layers == 1 else self._start
            for target in (_CLIMBED, _DESCENDED) if inside.size else ():
                source, reached = inside[::-1] if target == _CLIMBED else inside
                state = reached if self._layers == 1 else reached + target * self._size
                before = np.full(len(source), step)
                seeds.append(state[self._made(source, state, before, (_LINKED, target))])
            self._falling = np.unique(np.concatenate([self._falling, *seeds]))
        if not len(self._falling):
            self._resume()

    def _forget(self) -> None:
        """Forget the states that fall; those that hang on them are the next to. After the last, search on."""
        fell = self._falling
        targets, values, _, _ = self._reached(fell)
        self._best[fell] = np.inf
        self._lost.append(fell)
        known = self._best[targets]
        hanging = targets[(values <= known) & (known < np.inf) & (targets != self._first)]
        with self._network.marks.marks(len(self._best)) as marks:
            self._falling = marks.fresh(hanging)
        if not len(self._falling):
            self._resume()

    def _resume(self) -> None:
        """Go on from what is still known around all that was forgotten and that changed, and where the search stood."""
        lost = np.concatenate(self._lost) if self._lost else _NOTHING
        around = np.unique(np.concatenate([self._around, lost % self._size, self._before(lost)]))
        states = np.concatenate([self._frontier, (around + np.arange(self._layers)[:, None] * self._size).ravel()])
        self._frontier = np.unique(states[self._best[states] < np.inf])
        self._lost, self._around = [], _NOTHING

    def _changed(self, changes: list[arcs.Change]) -> tuple[_Links, Intp]:
        """The links whose cost is another than it was; and of containment, the pairs of holder and held concerned."""
        network, cost = self._network, self._network.costs(self.metric)[arcs.IN]
        first: dict[tuple[int, int, bool], arcs.Change] = {}
        for change in changes:
            first.setdefault((change.tail, change.head, change.link), change)
        moved = [change for change in first.values() if change.link]
        slots = [network.slot(change.tail, change.head, link=True) for change in moved]
        after = np.array([np.inf if slot is None else cost[slot] for slot in slots])
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

    def _made(self, source: Intp, state: Intp, before: Float, layers: tuple[int, ...]) -> Mask:
        """Bool for each step from a vertex (in one of these layers) to a state: it may have made the state's distance.

        It has if it is tight; of an unfinished search also if it would be nearer.
        """
        by_layer = self._best.reshape(self._layers, self._size)
        allowed = [layer for layer in layers if layer < self._layers]
        nearest = by_layer[allowed][:, source].min(axis=0)
        values = np.maximum(nearest, before) if self._widest else nearest + before
        known = self._best[state]
        tight: Mask = values == known if self.done else values <= known
        made: Mask = tight & (values < np.inf) & (known < np.inf) & (state != self._first)
        return made

    def _before(self, states: Intp) -> Intp:
        """Vertices from which some step leads to these states, perhaps repeatedly."""
        layer, vertex = np.divmod(states, self._size)
        targets, kinds, _, number = _gathered(self._network.picture, vertex)
        leads: Mask = kinds != arcs.IN if self._layers == 1 else kinds == _SEEN_FROM_ABOVE[np.repeat(layer, number)]
        found: Intp = targets[leads]
        return found

    def _grow(self, size: int) -> None:
        """Follow the numbers of vertices; new ones are reached by nothing yet."""
        if size == self._size:
            return
        best = np.full((self._layers, size), np.inf)
        best[:, : self._size] = self._best.reshape(self._layers, self._size)
        closed = np.zeros((self._layers, size), np.bool_)
        closed[:, : self._size] = self._closed.reshape(self._layers, self._size)
        self._frontier, self._falling, *self._lost = (
            states // self._size * size + states % self._size for states in (self._frontier, self._falling, *self._lost)
        )
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


_NOTHING: Intp = np.zeros(0, np.intp)
_SEEN_FROM_ABOVE: Intp = np.array([arcs.OUT, arcs.HOLDS, arcs.HELD], np.intp)
"""By layer, the kind of the records at a vertex that lead to where a step into that layer comes from."""


def _gathered(picture: arcs.Picture, vertex: Intp) -> tuple[Intp, Intp, Intp, Intp]:
    """Targets, kinds and slots of the records at these vertices, and how many each vertex has."""
    records, number = picture.gathered(vertex)
    words = records.view(np.uint32).reshape(-1, 4)
    return words[:, 0].astype(np.intp), words[:, 2].astype(np.intp), words[:, 3].astype(np.intp), number
