"""The physical topology as arrays: what `distances` searches and `routes` asks.

`Arcs` follows a topology by the names of what it touched, so that a link whose health moved costs one row here, and
numpy finds the rest. Vertices have numbers and edges have slots; both are recycled, and none leaves this package's
search for ways. What changed is remembered for a while, with what was before: that is what distances are repaired from.

Comes in: a topology. Goes out: edges sorted by either end, with their cost in a metric.
"""

from __future__ import annotations

import collections
import enum
import itertools
import typing

import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, relations
from graphsched.graph import topology as topologies

Int32 = npt.NDArray[np.int32]
Intp = npt.NDArray[np.intp]
Float = npt.NDArray[np.float64]

CHANGES_MAX = 1 << 14
"""Changed edges that are remembered: with more of them a distance is quicker computed afresh than repaired."""

_FREE, _CONTAINS, _LINK = 0, 1, 2


class Metric(enum.Enum):
    """What makes one way shorter than another."""

    HOPS = "hops"
    """Its edges, containment and links alike."""
    LATENCY = "latency"
    """The milliseconds of its links, each divided by its health."""
    BANDWIDTH = "bandwidth"
    """The megabits a second of its narrowest link, each link's times its health; more is better."""
    COST = "cost"
    """The cost of its links in an operator's own units."""


class Change(typing.NamedTuple):
    """An edge that came, went or changed.

    Attributes:
        tail, head: Vertex numbers; of a containment edge, what holds and what is held.
        link: Whether it is a link.
        before: Latency, bandwidth, health and cost as they were, NaN where unknown; all NaN for one that was not there.
    """

    tail: int
    head: int
    link: bool
    before: tuple[float, float, float, float]


class Sorted(typing.NamedTuple):
    """Edges sorted by one of their ends: those at vertex v are `start[v]:start[v + 1]`.

    Attributes:
        start: One more than there are vertex numbers.
        other: The other end of each.
        slot: Its slot.
    """

    start: Intp
    other: Intp
    slot: Intp


class Costs(typing.NamedTuple):
    """What a step of a search costs in one metric; infinite where it can not be taken.

    Attributes:
        link: By slot, of a link.
        climb: By slot of a containment edge, of the step from what is held to what holds it, seen from the goal of a
            way: on the way itself this is a descent.
        descend: Likewise in the other direction.
    """

    link: Float
    climb: Float
    descend: Float


class Arcs:
    """Vertices and edges of a topology, in arrays.

    Attributes:
        index: Vertex → number.
        keys: Number → vertex; empty for a free number.
        moment: Counts up with every change of an edge; see `changes`.
        numbering: Counts up when a vertex gets or loses its number.
        sick_below: Links less healthy than this count several hops.
    """

    def __init__(self, topology: topologies.Topology, *, sick_below: float) -> None:
        self.sick_below = sick_below
        self.moment = 0
        self.numbering = 0
        self._topology = topology
        self._followed = -1
        self._origins: tuple[Intp, npt.NDArray[np.bool_]] | None = None
        self._clear()

    def follow(self) -> None:
        """Be as the topology is now."""
        if self._followed == self._topology.moment:
            return
        touched = None if self._followed < 0 else self._topology.touched(self._followed)
        self._followed = self._topology.moment
        if touched is None:
            self._read_afresh()
            return
        changed = dict.fromkeys(touched)
        for name in changed:
            if isinstance(name, keys.EdgeID):
                self._take_edge(name)
        for name in changed:
            if not isinstance(name, keys.EdgeID):
                self._take_vertex(name)

    @property
    def capacity(self) -> int:
        """How many vertex numbers there are, free ones included."""
        return len(self.keys)

    def changes(self, since: int) -> list[Change] | None:
        """Edges that changed after the moment `since`, oldest first; None when that is too long ago."""
        missed = self.moment - since
        if missed > len(self._changes):
            return None
        return list(itertools.islice(reversed(self._changes), missed))[::-1]

    def slot(self, tail: int, head: int, *, link: bool) -> int | None:
        """The slot of the edge between these numbers; None where there is none."""
        return self._slots.get((tail, head, link))

    def link_of(self, tail: int, head: int) -> relations.Link | None:
        """The link between these numbers, as it was patched in."""
        tie = self._topology.tie(keys.EdgeID(self.keys[tail], self.keys[head], keys.EdgeKind.LINK))
        return tie if isinstance(tie, relations.Link) else None

    @property
    def by_head(self) -> Sorted:
        """Links by where they lead to."""
        return self._sorted("by_head", _LINK, by=1)

    @property
    def by_tail(self) -> Sorted:
        """Links by where they begin."""
        return self._sorted("by_tail", _LINK, by=0)

    @property
    def holders(self) -> Sorted:
        """Containment by what is held: what holds it."""
        return self._sorted("holders", _CONTAINS, by=1)

    @property
    def contents(self) -> Sorted:
        """Containment by what holds: what it holds."""
        return self._sorted("contents", _CONTAINS, by=0)

    def costs(self, metric: Metric) -> Costs:
        """The costs in this metric, as of now; kept until something changes."""
        found = self._costs.get(metric)
        if found is None:
            found = self._costs[metric] = self._weighed(metric)
        return found

    def costs_before(self, changes: list[Change], metric: Metric) -> Float:
        """What the links of these changes cost before; infinite where one was not there or not known."""
        table = np.array([change.before for change in changes], np.float64).reshape(len(changes), 4).T
        return _link_costs(metric, table, self.sick_below)

    def knows(self, metric: Metric) -> bool:
        """Whether any link says something in this metric."""
        return bool(np.isfinite(self.costs(metric).link).any())

    def origins(self) -> tuple[Intp, npt.NDArray[np.bool_]]:
        """For each vertex the one from which searches for it may begin, and whether that holds it.

        What no link touches, what holds nothing and hangs in one place alone is as far from all else as that place.
        """
        known = self._origins
        if known is None:
            holders = self.holders
            touched = np.diff(self.by_head.start) + np.diff(self.by_tail.start) + np.diff(self.contents.start)
            inside: npt.NDArray[np.bool_] = (touched == 0) & (np.diff(holders.start) == 1)
            origin = np.arange(self.capacity, dtype=np.intp)
            origin[inside] = holders.other[holders.start[:-1][inside]]
            known = origin, inside
            self._origins = known
        return known

    def ailing(self) -> npt.NDArray[np.bool_]:
        """Bool a vertex: links touch it, and all of them are sick."""
        links = np.flatnonzero(self._kind == _LINK)
        ends = self._ends[:, links].ravel()
        sick = np.tile(self._known[2, links] < self.sick_below, 2)
        every = np.bincount(ends, minlength=self.capacity)
        found: npt.NDArray[np.bool_] = every > 0
        found &= np.bincount(ends, weights=sick, minlength=self.capacity) == every
        return found

    # ── following ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _clear(self) -> None:
        self.index: dict[keys.VertexKey, int] = {}
        self.keys: list[keys.VertexKey] = []
        self._free_numbers: list[int] = []
        self._free_slots: list[int] = []
        self._slots: dict[tuple[int, int, bool], int] = {}
        self._kind: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self._ends: Int32 = np.zeros((2, 0), np.int32)
        self._known: Float = np.full((4, 0), np.nan)
        self._changes: collections.deque[Change] = collections.deque(maxlen=CHANGES_MAX)
        self._orders: dict[str, Sorted] = {}
        self._pairs: dict[int, tuple[Intp, Intp]] = {}
        self._origins = None
        self._costs: dict[Metric, Costs] = {}

    def _read_afresh(self) -> None:
        """Read the whole topology: quicker than edge by edge, and void what was known before."""
        self._clear()
        self.numbering += 1
        self.moment += 1
        self.keys = self._topology.vertices()
        self.index = {key: number for number, key in enumerate(self.keys)}
        edges = self._topology.edges()
        size = len(edges)
        is_link = [edge.kind is keys.EdgeKind.LINK for edge in edges]
        self._kind = np.where(np.array(is_link, np.bool_), _LINK, _CONTAINS).astype(np.int8)
        ends = [(self.index[edge.source], self.index[edge.target]) for edge in edges]
        self._ends = np.array(ends, np.int32).reshape(size, 2).T.copy()
        self._slots = {(*pair, link): slot for slot, (pair, link) in enumerate(zip(ends, is_link, strict=True))}
        told = [_told(self._topology.tie(edge)) for edge in edges]
        self._known = np.array(told, np.float64).reshape(size, 4).T.copy()

    def _take_vertex(self, key: keys.VertexKey) -> None:
        """Give a number to a vertex that came, and take that of one that went: its edges went before it."""
        if self._topology.holds(key):
            self._number(key)
            return
        number = self.index.pop(key, None)
        if number is not None:
            self.keys[number] = keys.VertexKey("")
            self._free_numbers.append(number)
            self.numbering += 1

    def _take_edge(self, edge: keys.EdgeID) -> None:
        """Be as the topology is at this edge."""
        link = edge.kind is keys.EdgeKind.LINK
        if self._topology.attached(edge):
            tail, head = self._number(edge.source), self._number(edge.target)
            slot = self._slots.get((tail, head, link))
            told = _told(self._topology.tie(edge))
            if slot is None:
                slot = self._new_slot(tail, head, link=link)
                self._note(Change(tail, head, link, _UNKNOWN), moved=True)
            else:
                before = tuple(self._known[:, slot].tolist())
                if repr(before) == repr(told):  # NaN equals NaN here
                    return
                self._note(Change(tail, head, link, typing.cast("tuple[float, float, float, float]", before)))
            self._known[:, slot] = told
            return
        ends = self.index.get(edge.source), self.index.get(edge.target)
        if ends[0] is None or ends[1] is None:
            return
        slot = self._slots.pop((ends[0], ends[1], link), None)
        if slot is not None:
            latency, bandwidth, health, cost = self._known[:, slot].tolist()
            self._note(Change(ends[0], ends[1], link, (latency, bandwidth, health, cost)), moved=True)
            self._kind[slot] = _FREE
            self._free_slots.append(slot)

    def _number(self, key: keys.VertexKey) -> int:
        number = self.index.get(key)
        if number is None:
            if not self._free_numbers:
                grown = len(self.keys) // 4 + 16
                self._free_numbers = list(range(len(self.keys) + grown - 1, len(self.keys) - 1, -1))
                self.keys.extend([keys.VertexKey("")] * grown)
                self._rearranged()
            number = self.index[key] = self._free_numbers.pop()
            self.keys[number] = key
            self.numbering += 1
        return number

    def _new_slot(self, tail: int, head: int, *, link: bool) -> int:
        if not self._free_slots:
            size = len(self._kind)
            grown = size // 4 + 16
            self._kind = np.concatenate([self._kind, np.zeros(grown, np.int8)])
            self._ends = np.concatenate([self._ends, np.zeros((2, grown), np.int32)], axis=1)
            self._known = np.concatenate([self._known, np.full((4, grown), np.nan)], axis=1)
            self._free_slots = list(range(size + grown - 1, size - 1, -1))
        slot = self._slots[tail, head, link] = self._free_slots.pop()
        self._kind[slot] = _LINK if link else _CONTAINS
        self._ends[:, slot] = tail, head
        return slot

    def _note(self, change: Change, *, moved: bool = False) -> None:
        """Remember the change; `moved` when the edge came or went."""
        self._changes.append(change)
        self.moment += 1
        self._costs.clear()
        if moved:
            self._rearranged()

    def _rearranged(self) -> None:
        self._orders.clear()
        self._pairs.clear()
        self._origins = None

    # ── derived ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sorted(self, name: str, kind: int, *, by: int) -> Sorted:
        found = self._orders.get(name)
        if found is None:
            slots = np.flatnonzero(self._kind == kind)
            ends = self._ends[by, slots]
            slots = slots[np.argsort(ends, kind="stable")]
            start = np.zeros(self.capacity + 1, np.intp)
            np.cumsum(np.bincount(ends, minlength=self.capacity), out=start[1:])
            found = self._orders[name] = Sorted(start, self._ends[1 - by, slots].astype(np.intp), slots)
        return found

    def _weighed(self, metric: Metric) -> Costs:
        links = self._kind == _LINK
        link = np.where(links, _link_costs(metric, self._known, self.sick_below), np.inf)
        inside = np.flatnonzero(self._kind == _CONTAINS)
        free = {Metric.HOPS: 1.0, Metric.BANDWIDTH: -np.inf}.get(metric, 0.0)
        climb, descend = np.full(len(self._kind), np.inf), np.full(len(self._kind), np.inf)
        climb[inside] = descend[inside] = free
        if metric is not Metric.HOPS:
            # Where a known link joins what holds and what is held, it tells the distance that containment leaves open.
            # The search goes backwards: a step up in it is a step of the way from the holder to what it holds.
            for table, (tail, head) in ((climb, (0, 1)), (descend, (1, 0))):
                shadowed, parallel = self._beside(inside, tail, head)
                table[shadowed] = np.where(np.isfinite(link[parallel]), np.inf, free)
        return Costs(link, climb, descend)

    def _beside(self, inside: Intp, tail: int, head: int) -> tuple[Intp, Intp]:
        """Those containment edges that have a link beside them from their end `tail` to `head`, and the links."""
        known = self._pairs.get(tail)
        if known is None:
            known = self._pairs[tail] = self._paired(inside, tail, head)
        return known

    def _paired(self, inside: Intp, tail: int, head: int) -> tuple[Intp, Intp]:
        slots = np.flatnonzero(self._kind == _LINK)
        if not len(slots):
            return slots, slots
        span = np.int64(self.capacity)
        pairs = self._ends[0, slots] * span + self._ends[1, slots]
        order = np.argsort(pairs)
        wanted = self._ends[tail, inside] * span + self._ends[head, inside]
        place = np.searchsorted(pairs, wanted, sorter=order)
        place[place == len(order)] = 0
        candidates = slots[order[place]]
        found = pairs[order[place]] == wanted
        return inside[found], candidates[found]


_UNKNOWN = (np.nan, np.nan, np.nan, np.nan)


def _told(tie: topologies.Tie | None) -> tuple[float, float, float, float]:
    """Latency, bandwidth, health and cost of a tie; NaN where it does not say."""
    if not isinstance(tie, relations.Link):
        return _UNKNOWN
    latency = np.nan if tie.latency_ms is None else float(tie.latency_ms)
    bandwidth = np.nan if tie.bandwidth_mbps is None else float(tie.bandwidth_mbps)
    return latency, bandwidth, tie.health, np.nan if tie.cost is None else float(tie.cost)


def _link_costs(metric: Metric, known: Float, sick_below: float) -> Float:
    """What links cost, given their latencies, bandwidths, healths and costs; infinite where that is not known."""
    latency, bandwidth, health, cost = known
    if metric is Metric.HOPS:
        found = np.where(health < sick_below, np.ceil(1.0 / health), 1.0)
        return np.where(np.isnan(health), np.inf, found)
    if metric is Metric.LATENCY:
        found = latency / health
    elif metric is Metric.BANDWIDTH:
        # The search looks for the least, and the widest link is the one with the least negative width. A link without
        # any bandwidth carries nothing.
        found = np.where(bandwidth > 0, -(bandwidth * health), np.inf)
    else:
        found = cost / health
    return np.where(np.isnan(found), np.inf, found)
