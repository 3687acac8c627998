"""What is near what: distances of every node to a vertex, and the ways themselves.

`Routes` asks `distances` for a vector once for each goal and metric, keeps it, and has it repaired when links change,
so that a decision reads vectors and nothing else. What counts as a way is told there. A node that no link touches is as
far from all else as what holds it, so the nodes of a rack share one search (`origins`).

Unknown is neither near nor far: a node from which no way is known has -1 hops, NaN milliseconds, NaN megabits.

Comes in: the topology, and the rows of the nodes from `columns`. Goes out: read-only vectors by node row, good until
the next change, and `Route`s for explanations.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, relations
from graphsched.graph import arcs, columns, distances, levels, topology

Metric = arcs.Metric
SICK_BELOW = 0.2
"""Unless said otherwise: a link less healthy than this counts as many hops as its health goes into one, rounded up, so
that another way is taken while one exists. 0 for no link."""
BYTES_MAX = 64 << 20
"""What is kept of vectors; the one asked for longest ago makes room."""
SEARCHES_MIN = 256
"""So many are kept whatever they take, some 350 kB each at 10,000 nodes: four partners with pods at 64 places each. One
decision asks for as many, and if each pushed out the one that is asked for next, they would never be at hand together.
"""

_Origin = tuple[int, bool]
"""Vertex number from which a search begins, and whether its goal is inside."""
Hops = npt.NDArray[np.int32]
Amounts = npt.NDArray[np.float64]


class Leg(msgspec.Struct, frozen=True, gc=False):
    """One step of a way.

    Attributes:
        start, end: The vertices it joins.
        link: The link it crosses; None where it leads from what is held to what holds it, or back.
    """

    start: keys.VertexKey
    end: keys.VertexKey
    link: relations.Link | None = None


class Route(msgspec.Struct, frozen=True, gc=False):
    """A shortest way.

    Attributes:
        vertices: From the start to the goal.
        legs: The steps between them.
        latency_ms: The time of its links one way, each divided by its health; None where one of them is not known, or
            where it says nothing of time: it climbs and then descends without a link between.
        bandwidth_mbps: Likewise the least of its links' bandwidths, each times its health; None also without any link.
    """

    vertices: tuple[keys.VertexKey, ...]
    legs: tuple[Leg, ...] = ()
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None

    @property
    def hops(self) -> int:
        """Number of its edges."""
        return len(self.legs)

    @property
    def links(self) -> tuple[relations.Link, ...]:
        """The links it crosses, in order."""
        return tuple(leg.link for leg in self.legs if leg.link is not None)


class Statistics(msgspec.Struct):
    """What the searches cost, as counts since the start.

    Attributes:
        searches: How many were begun.
        undone: How many had to be begun anew before they were finished, as what changed was too much to work in.
        repairs: How often what changed was worked into one.
        hits: How often one was at hand.
        evictions: How many made room for others.
        cuts: Partners of which only the pods at some of their places were looked at.
    """

    searches: int = 0
    undone: int = 0
    repairs: int = 0
    hits: int = 0
    evictions: int = 0
    cuts: int = 0


class Routes:
    """Distances and ways over one topology.

    Attributes:
        statistics: What the searches did.
        sick_below: Links less healthy than this are sick.
    """

    def __init__(
        self,
        topology: topology.Topology,
        nodes: columns.Columns,
        *,
        bytes_max: int = BYTES_MAX,
        searches_min: int = SEARCHES_MIN,
        sick_below: float = SICK_BELOW,
    ) -> None:
        self.statistics = Statistics()
        self.sick_below = sick_below
        self._arcs = arcs.Arcs(topology, sick_below=sick_below)
        self._nodes = nodes
        self._bytes_max = bytes_max
        self._searches_min = searches_min
        self._bytes = 0
        self._kept: collections.OrderedDict[tuple[Metric, _Origin], _Kept] = collections.OrderedDict()
        self._ailing: npt.NDArray[np.bool_] | None = None
        self._ailing_as_of: object = None
        self._named: dict[tuple[str, str], tuple[keys.VertexKey, ...]] = {}
        self._named_as_of = -1
        self._of_row: npt.NDArray[np.intp] = np.zeros(0, np.intp)
        self._rows_as_of = (-1, -1)

    def follow(self) -> None:
        """Take over what changed in the topology, so that no question has to wait for all of it at once."""
        self._arcs.follow()

    def hops(self, source: keys.VertexKey) -> Hops:
        """Edges on the shortest way from each node to `source`, int32 a row; -1 where no way is known.

        Containment counts in both directions, links in theirs.
        """
        found = self._found(Metric.HOPS, source).astype(np.int32)
        found.flags.writeable = False
        return found

    def latency(self, source: keys.VertexKey) -> Amounts:
        """Milliseconds from each node to `source`, a row; NaN where not known, 0 for `source` and what it holds."""
        return self._found(Metric.LATENCY, source)

    def bottleneck(self, source: keys.VertexKey) -> Amounts:
        """Megabits a second on the widest way from each node to `source`, a row.

        NaN where not known, infinite for `source` and what it holds.
        """
        return self._found(Metric.BANDWIDTH, source)

    def cost(self, source: keys.VertexKey) -> Amounts:
        """Cost of the cheapest way from each node to `source`, a row, in an operator's units; NaN where not known."""
        return self._found(Metric.COST, source)

    def prepare(
        self, metric: Metric, sources: Iterable[keys.VertexKey], expired: distances.Expired = distances.never
    ) -> bool:
        """Do the work that asking for these vectors would cost, until `expired`; whether all of it is done.

        What was done is kept, and the next call goes on from there.
        """
        self._arcs.follow()
        index = self._arcs.index
        origins = [self._origin(index[source]) for source in sources if source in index]
        return all(self._search(metric, origin, expired) is not None for origin in origins)

    def knows(self, metric: Metric) -> bool:
        """Whether any link says something in this metric."""
        self._arcs.follow()
        return self._arcs.knows(metric)

    def origins(self) -> npt.NDArray[np.intp]:
        """A number a row, equal for nodes that share their vectors but for their own entries; -1 for a free row.

        Good until the next change, for `prepared` and `to_origin`.
        """
        self._arcs.follow()
        of_row = self._rows()
        origin, inside = self._arcs.origins()
        return np.append(2 * origin + inside, -1)[of_row]

    def prepared(self, metric: Metric, origin: int, expired: distances.Expired) -> bool:
        """`prepare` for one of `origins`."""
        return self._search(metric, (origin // 2, bool(origin % 2)), expired) is not None

    def to_origin(self, metric: Metric, origin: int) -> Amounts:
        """Distances of each node to those that share this origin, a row, NaN where not known.

        The own entries of those nodes are not right where there are several of them.
        """
        found = self._vector(metric, (origin // 2, bool(origin % 2)))
        if metric is not Metric.HOPS:
            return found
        return np.where(found < 0, np.nan, found + origin % 2)

    def ailing(self) -> npt.NDArray[np.bool_] | None:
        """Bool a row: links touch the node, and all of them are sick or down; None where there is no such node."""
        self._arcs.follow()
        rows = self._rows()
        as_of = self._arcs.moment, self._rows_as_of
        if as_of != self._ailing_as_of:
            found = np.append(self._arcs.ailing(), False)[rows]
            self._ailing, self._ailing_as_of = (found if found.any() else None), as_of
        return self._ailing

    def resolve(self, target: keys.VertexKey) -> tuple[keys.VertexKey, ...]:
        """The vertices that somebody means by this key, sorted: itself, or the domains whose label has that value.

        The key of a domain names all that holds it, which nobody who asks to be near zone `a` has to know.
        """
        self._arcs.follow()
        if target in self._arcs.index or keys.kind_of(target) != keys.Kind.DOMAIN:
            return (target,) if target in self._arcs.index else ()
        if self._named_as_of != self._arcs.numbering:
            named: dict[tuple[str, str], list[keys.VertexKey]] = {}
            for key in self._arcs.index:
                if keys.kind_of(key) == keys.Kind.DOMAIN:
                    label, _, path = keys.name_of(key).partition("=")
                    named.setdefault((label, levels.innermost(path)), []).append(key)
            self._named = {name: tuple(sorted(found)) for name, found in named.items()}
            self._named_as_of = self._arcs.numbering
        label, _, value = keys.name_of(target).partition("=")
        return self._named.get((label, levels.escaped(value)), ())

    def route(self, start: keys.VertexKey, goal: keys.VertexKey, metric: Metric) -> Route | None:
        """A shortest way, of those with the fewest edges and then the first by the keys of its vertices.

        None where one of the two is not there, or no way is known.
        """
        self._arcs.follow()
        index = self._arcs.index
        if start not in index or goal not in index:
            return None
        search = self._search(metric, (index[goal], False), distances.never)
        strides = search.way(index[start]) if search is not None else None
        return None if strides is None else self._told(strides)

    # ── inside ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _found(self, metric: Metric, source: keys.VertexKey) -> Amounts:
        """The vector, of the rows of the nodes, as users read it."""
        self._arcs.follow()
        number = self._arcs.index.get(source)
        unknown = -1.0 if metric is Metric.HOPS else np.nan
        if number is None:
            return np.full(len(self._rows()), unknown)
        origin = self._origin(number)
        found = self._vector(metric, origin)
        if origin[1]:
            # What shares the search is as far from all else, but not from itself.
            found = np.where(found < 0, found, found + 1) if metric is Metric.HOPS else found.copy()
            found[self._rows() == number] = np.inf if metric is Metric.BANDWIDTH else 0.0
            found.flags.writeable = False
        return found

    def _origin(self, number: int) -> _Origin:
        """Where a search for this vertex begins."""
        origin, inside = self._arcs.origins()
        return int(origin[number]), bool(inside[number])

    def _vector(self, metric: Metric, origin: _Origin) -> Amounts:
        search = self._search(metric, origin, distances.never)
        assert search is not None  # noqa: S101  without a deadline every search ends
        return self._kept[metric, origin].vector(self._rows(), self._rows_as_of)

    def _search(self, metric: Metric, origin: _Origin, expired: distances.Expired) -> distances.Search | None:
        """The finished search from there, as of now; None where it was not finished in time.

        `expired` is asked before any work is begun as well.
        """
        name = metric, origin
        held = self._kept.get(name)
        moment = self._arcs.moment
        if (held is None or not held.search.settled) and expired():
            return None
        if held is not None and held.search.bring_up_to_date():
            self.statistics.hits += held.moment == moment
            self.statistics.repairs += held.moment != moment
            self._kept.move_to_end(name)
        else:
            self.statistics.searches += 1
            self.statistics.undone += held is not None and not held.search.done
            self._drop(name)
            held = self._kept[name] = _Kept(distances.Search(self._arcs, metric, origin[0], inside=origin[1]))
        held.touch(moment)
        done = held.search.advance(expired)
        self._bytes += held.resized()
        while self._bytes > self._bytes_max and len(self._kept) > self._searches_min:
            self.statistics.evictions += 1
            self._drop(next(iter(self._kept)))
        return held.search if done else None

    def _drop(self, name: tuple[Metric, _Origin]) -> None:
        held = self._kept.pop(name, None)
        if held is not None:
            self._bytes -= held.size

    def _rows(self) -> npt.NDArray[np.intp]:
        """Vertex number of each node row, -1 for a free row."""
        as_of = self._nodes.layout, self._arcs.numbering
        if as_of != self._rows_as_of:
            index = self._arcs.index
            found = np.full(self._nodes.capacity, -1, np.intp)
            for name, row in self._nodes.rows.items():
                found[row] = index.get(keys.node_key(name), -1)
            self._of_row, self._rows_as_of = found, as_of
        return self._of_row

    def _told(self, strides: list[distances.Stride]) -> Route:
        network = self._arcs
        legs = [
            Leg(
                network.key(here.vertex),
                network.key(there.vertex),
                network.link_of(here.vertex, there.vertex) if there.link else None,
            )
            for here, there in itertools.pairwise(strides)
        ]
        links = [leg.link for leg in legs if leg.link is not None]
        times = [None if link.latency_ms is None else link.latency_ms / link.health for link in links]
        widths = [None if link.bandwidth_mbps is None else link.bandwidth_mbps * link.health for link in links]
        turns = self._turns(strides)
        return Route(
            tuple(network.key(stride.vertex) for stride in strides),
            tuple(legs),
            latency_ms=None if turns or None in times else sum(each for each in times if each is not None),
            bandwidth_mbps=None if turns or None in widths else min((w for w in widths if w is not None), default=None),
        )

    def _turns(self, strides: list[distances.Stride]) -> bool:
        """Whether it climbs and then descends, or the other way round, without a link between."""
        before = ""
        for here, there in itertools.pairwise(strides):
            if there.link:
                before = ""
                continue
            climbs = self._arcs.slot(there.vertex, here.vertex, link=False) is not None
            direction = "up" if climbs else "down"
            if before not in ("", direction):
                return True
            before = direction
        return False


class _Kept:
    """A search, and its vector by node row once it was asked for."""

    __slots__ = ("_as_of", "_vector", "moment", "search", "size")

    def __init__(self, search: distances.Search) -> None:
        self.search = search
        self.moment = -1
        self.size = 0
        self._vector: Amounts | None = None
        self._as_of = (-1, -1)

    def touch(self, moment: int) -> None:
        """It is as of this moment now."""
        if self.moment != moment:
            self.moment, self._vector = moment, None

    def resized(self) -> int:
        """By how many bytes it has grown since this was last asked."""
        size = self.search.size + (0 if self._vector is None else self._vector.nbytes)
        grown, self.size = size - self.size, size
        return grown

    def vector(self, rows: npt.NDArray[np.intp], as_of: tuple[int, int]) -> Amounts:
        """The distances of the nodes in these rows as users read them; the search must be done."""
        if self._vector is None or self._as_of != as_of:
            found = np.append(self.search.vertices(), np.inf)[rows]
            if self.search.metric is Metric.BANDWIDTH:
                found = -found
                found[found == -np.inf] = np.nan
            else:
                found[found == np.inf] = -1.0 if self.search.metric is Metric.HOPS else np.nan
            found.flags.writeable = False
            self._vector, self._as_of = found, as_of
        return self._vector
