"""The physical topology as arrays: what `distances` searches and `routes` asks.

`Arcs` follows a topology by the names of what it touched, so that a link whose health moved costs one row here, and
numpy finds the rest. The network itself is a compact `adjacency`: every edge is a record at either end, and its kind
says which. What an edge costs depends on the metric and is double precision, so it lies in tables by slot, a number
that each record carries. Numbers of vertices are the adjacency's rows; both they and slots are recycled, and none
leaves this package's search for ways. What changed is remembered for a while, with what was before: that is what
distances are repaired from.

Comes in: a topology. Goes out: the adjacency, what each kind of record costs in a metric, and all steps at once
(`Lane`).
"""

from __future__ import annotations

import collections
import enum
import itertools
import typing
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, relations
from graphsched.graph import adjacency, topology as topologies, visited

Int32 = npt.NDArray[np.int32]
Intp = npt.NDArray[np.intp]
Float = npt.NDArray[np.float64]
Picture = adjacency.Adjacency[keys.VertexKey]

CHANGES_MAX = 1 << 14
"""Changed edges that are remembered: with more of them a distance is quicker computed afresh than repaired."""

REWEIGHED_MAX = 64
"""Pairs of vertices whose costs are brought up to date one by one, some 30 µs each; all edges take two milliseconds."""

OUT, IN, HELD, HOLDS = 0, 1, 2, 3
"""Kinds of records: a link at its beginning, a link where it leads to, at what is held, at what holds it. From the goal
of ways backwards, steps are taken along the last three, in this order the layers that `distances` knows."""
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


class Lane(typing.NamedTuple):
    """All steps of one kind that can be taken.

    Attributes:
        goal, origin: Of each, the vertex numbers to which it leads and from which it is taken.
        cost: Of each, never infinite.
    """

    goal: Intp
    origin: Intp
    cost: Float


class Arcs:
    """Vertices and edges of a topology, in arrays.

    Attributes:
        moment: Counts up with every change of an edge; see `changes`.
        numbering: Counts up when a vertex gets or loses its number.
        sick_below: Links less healthy than this count several hops.
        marks: For whoever walks, by vertex or by state.
    """

    def __init__(self, topology: topologies.Topology, *, sick_below: float) -> None:
        self.sick_below = sick_below
        self.moment = 0
        self.numbering = 0
        self.marks = visited.Pool()
        self._topology = topology
        self._followed = -1
        self._origins: tuple[Intp, npt.NDArray[np.bool_]] | None = None
        self._pairs: tuple[tuple[Intp, Intp], tuple[Intp, Intp]] | None = None
        self._writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
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
    def picture(self) -> Picture:
        """The network as it is now."""
        return self._writer.picture()

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self._slots)

    @property
    def index(self) -> Mapping[keys.VertexKey, int]:
        """Vertex → number; changes with the network."""
        return self._writer.rows

    @property
    def capacity(self) -> int:
        """How many vertex numbers there are, free ones included."""
        return len(self._writer.names)

    def key(self, number: int) -> keys.VertexKey:
        """The vertex of this number, which must not be a free one."""
        return self.picture.name(number)

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
        tie = self._topology.tie(keys.EdgeID(self.key(tail), self.key(head), keys.EdgeKind.LINK))
        return tie if isinstance(tie, relations.Link) else None

    def costs(self, metric: Metric) -> Float:
        """What a step costs backwards along a record, by its kind and slot; infinite where it can not be taken.

        As of now, and kept until something changes. A climb in a search is, on the way itself, a descent.
        """
        found = self._costs.get(metric)
        changed = self._changed.pop(metric, None)
        if found is None or found.shape[1] != len(self._kind) or len(changed or ()) > REWEIGHED_MAX:
            found = self._costs[metric] = self._weighed(metric)
        elif changed:
            self._reweigh(metric, found, changed)
        return found

    def lanes(self, metric: Metric) -> tuple[Lane, Lane, Lane]:
        """All steps along links, all that climb, and all that descend; as of now, and kept until something changes."""
        found = self._lanes.get(metric)
        if found is None:
            table = self.costs(metric)
            links, climbs, descents = (np.flatnonzero(row < np.inf) for row in table[IN:])
            tail, head = self._ends.astype(np.intp)
            found = (
                Lane(tail[links], head[links], table[IN, links]),
                Lane(tail[climbs], head[climbs], table[HELD, climbs]),
                Lane(head[descents], tail[descents], table[HOLDS, descents]),
            )
            self._lanes[metric] = found
        return found

    def costs_before(self, changes: list[Change], metric: Metric) -> Float:
        """What the links of these changes cost before; infinite where one was not there or not known."""
        table = np.array([change.before for change in changes], np.float64).reshape(len(changes), 4).T
        return _link_costs(metric, table, self.sick_below)

    def knows(self, metric: Metric) -> bool:
        """Whether any link says something in this metric."""
        return bool(np.isfinite(self.costs(metric)[IN]).any())

    def origins(self) -> tuple[Intp, npt.NDArray[np.bool_]]:
        """For each vertex the one from which searches for it may begin, and whether that holds it.

        What no link touches, what holds nothing and hangs in one place alone is as far from all else as that place.
        """
        known = self._origins
        if known is None:
            size = self.capacity
            links, inside = self._ends[:, self._kind == _LINK], self._ends[:, self._kind == _CONTAINS].astype(np.intp)
            ends = np.concatenate([links.ravel(), inside[0]])
            held: npt.NDArray[np.bool_] = np.bincount(inside[1], minlength=size) == 1
            held &= np.bincount(ends, minlength=size) == 0
            origin = np.arange(size, dtype=np.intp)
            alone = held[inside[1]]
            origin[inside[1, alone]] = inside[0, alone]
            known = self._origins = origin, held
        return known

    def ailing(self) -> npt.NDArray[np.bool_]:
        """Bool a vertex: links touch it, and all of them are sick or down."""
        links = np.flatnonzero(self._kind == _LINK)
        ends = self._ends[:, links].ravel()
        healths = self._known[2, links]
        sick = np.tile((healths < self.sick_below) | (healths <= relations.DOWN), 2)
        every = np.bincount(ends, minlength=self.capacity)
        found: npt.NDArray[np.bool_] = every > 0
        found &= np.bincount(ends, weights=sick, minlength=self.capacity) == every
        return found

    # ── following ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _clear(self) -> None:
        self._free_slots: list[int] = []
        self._slots: dict[tuple[int, int, bool], int] = {}
        self._kind: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self._ends: Int32 = np.zeros((2, 0), np.int32)
        self._known: Float = np.full((4, 0), np.nan)
        self._changes: collections.deque[Change] = collections.deque(maxlen=CHANGES_MAX)
        self._origins = self._pairs = None
        self._costs: dict[Metric, Float] = {}
        self._changed: dict[Metric, dict[tuple[int, int], None]] = {}
        self._lanes: dict[Metric, tuple[Lane, Lane, Lane]] = {}

    def _read_afresh(self) -> None:
        """Read the whole topology: quicker than edge by edge, and void what was known before."""
        self._clear()
        self.numbering += 1
        self.moment += 1
        names = sorted(self._topology.vertices())
        index = {key: number for number, key in enumerate(names)}
        edges = self._topology.edges()
        size = len(edges)
        is_link = [edge.kind is keys.EdgeKind.LINK for edge in edges]
        links = np.array(is_link, np.bool_)
        self._kind = np.where(links, _LINK, _CONTAINS).astype(np.int8)
        ends = [(index[edge.source], index[edge.target]) for edge in edges]
        self._ends = np.array(ends, np.int32).reshape(size, 2).T.copy()
        self._slots = {(*pair, link): slot for slot, (pair, link) in enumerate(zip(ends, is_link, strict=True))}
        told = [_told(self._topology.tie(edge)) for edge in edges]
        self._known = np.array(told, np.float64).reshape(size, 4).T.copy()
        tails, heads = self._ends.astype(np.intp)
        self._writer.fill(
            names,
            np.concatenate([tails, heads]),
            np.concatenate([heads, tails]),
            np.concatenate([np.where(links, OUT, HOLDS), np.where(links, IN, HELD)]),
            np.tile(np.arange(size), 2),
        )

    def _take_vertex(self, key: keys.VertexKey) -> None:
        """Give a number to a vertex that came, and take that of one that went: its edges went before it."""
        if self._topology.holds(key):
            self._number(key)
        elif key in self._writer:
            self._writer.remove(key)
            self.numbering += 1

    def _take_edge(self, edge: keys.EdgeID) -> None:
        """Be as the topology is at this edge."""
        link = edge.kind is keys.EdgeKind.LINK
        if self._topology.attached(edge):
            tail, head = self._number(edge.source), self._number(edge.target)
            slot = self._slots.get((tail, head, link))
            told = _told(self._topology.tie(edge))
            if slot is None:
                slot = self._new_slot(edge, tail, head)
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
            for table in self._costs.values():
                table[:, slot : slot + 1] = np.inf
            there, back = _KINDS[edge.kind]
            self._writer.cut(edge.source, edge.target, kind=there)
            self._writer.cut(edge.target, edge.source, kind=back)

    def _number(self, key: keys.VertexKey) -> int:
        if key not in self._writer:
            self._writer.add(key)
            self.numbering += 1
            self._origins = self._pairs = None
        return self._writer.rows[key]

    def _new_slot(self, edge: keys.EdgeID, tail: int, head: int) -> int:
        if not self._free_slots:
            size = len(self._kind)
            grown = size // 4 + 16
            self._kind = np.concatenate([self._kind, np.zeros(grown, np.int8)])
            self._ends = np.concatenate([self._ends, np.zeros((2, grown), np.int32)], axis=1)
            self._known = np.concatenate([self._known, np.full((4, grown), np.nan)], axis=1)
            self._free_slots = list(range(size + grown - 1, size - 1, -1))
        link = edge.kind is keys.EdgeKind.LINK
        slot = self._slots[tail, head, link] = self._free_slots.pop()
        self._kind[slot] = _LINK if link else _CONTAINS
        self._ends[:, slot] = tail, head
        there, back = _KINDS[edge.kind]
        self._writer.set(edge.source, edge.target, kind=there, spare=slot)
        self._writer.set(edge.target, edge.source, kind=back, spare=slot)
        return slot

    def _note(self, change: Change, *, moved: bool = False) -> None:
        """Remember the change; `moved` when the edge came or went."""
        self._changes.append(change)
        self.moment += 1
        self._lanes.clear()
        for metric in self._costs:
            self._changed.setdefault(metric, {})[min(change[:2]), max(change[:2])] = None
        if moved:
            self._pairs = self._origins = None

    # ── derived ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _weighed(self, metric: Metric) -> Float:
        """The costs of everything."""
        table = np.full((4, len(self._kind)), np.inf)
        links, inside = self._kind == _LINK, self._kind == _CONTAINS
        table[IN, links] = _link_costs(metric, self._known[:, links], self.sick_below)
        table[HELD:, inside] = _FREE_STEPS[metric]
        if metric is not Metric.HOPS:
            for row, (shadowed, parallel) in zip((HELD, HOLDS), self._parallels(), strict=True):
                table[row, shadowed[np.isfinite(table[IN, parallel])]] = np.inf
        return table

    def _reweigh(self, metric: Metric, table: Float, pairs: Iterable[tuple[int, int]]) -> None:
        """Bring the costs between these vertices up to date."""
        for pair in pairs:
            for tail, head in (pair, pair[::-1]):
                link, inside = self._slots.get((tail, head, True)), self._slots.get((tail, head, False))
                if link is not None:
                    table[:, link] = np.inf
                    table[IN, link] = _link_costs(metric, self._known[:, link], self.sick_below)
                if inside is not None:
                    table[:, inside] = np.inf
                    table[HELD:, inside] = _FREE_STEPS[metric]
            if metric is not Metric.HOPS:
                for tail, head in (pair, pair[::-1]):
                    link = self._slots.get((tail, head, True))
                    if link is not None and table[IN, link] < np.inf:
                        for row, ends in ((HELD, (tail, head)), (HOLDS, (head, tail))):
                            inside = self._slots.get((*ends, False))
                            if inside is not None:
                                table[row, inside] = np.inf

    def _parallels(self) -> tuple[tuple[Intp, Intp], tuple[Intp, Intp]]:
        """Slots of containment with a link beside it, and that link's: links as containment leads, and the others.

        Where such a link is known it tells the distance that containment leaves open, and containment is no way. A
        search goes backwards: what it climbs is, on the way itself, the step from the holder to what it holds.
        """
        if self._pairs is None:
            inside, links = np.flatnonzero(self._kind == _CONTAINS), np.flatnonzero(self._kind == _LINK)
            span = np.int64(self.capacity)
            joined = self._ends[0, links] * span + self._ends[1, links]
            sought = self._ends[:, inside].astype(np.int64)
            found = []
            for tail, head in ((0, 1), (1, 0)):
                wanted = sought[tail] * span + sought[head]
                _, here, there = np.intersect1d(wanted, joined, assume_unique=True, return_indices=True)
                found.append((inside[here], links[there]))
            self._pairs = found[0], found[1]
        return self._pairs


_UNKNOWN = (np.nan, np.nan, np.nan, np.nan)
_FREE_STEPS = {Metric.HOPS: 1.0, Metric.LATENCY: 0.0, Metric.BANDWIDTH: -np.inf, Metric.COST: 0.0}
"""What a step of containment costs."""
_KINDS = {keys.EdgeKind.LINK: (OUT, IN), keys.EdgeKind.CONTAINS: (HOLDS, HELD)}
"""Kinds of the records of an edge, at its source and at its target."""


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
    health = np.where(health > relations.DOWN, health, np.nan)  # one that is down is no step in any metric
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
