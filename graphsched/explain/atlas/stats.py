"""The graph in numbers: how much there is of what, how it hangs together, and how its links fare.

Vertices and edges are counted over all layers; degrees, components and the diameter are those of the physical layer,
in which distances are measured, with edges taken in either direction.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import rustworkx

from graphsched.base.values import keys, relations
from graphsched.explain.atlas import maps, survey
from graphsched.graph import store, walks, watermarks

HEALTHS: tuple[tuple[str, float], ...] = (
    ("perfect", 1.0),
    ("0.8 and more", 0.8),
    ("0.4 to 0.8", 0.4),
    ("below 0.4", math.nextafter(relations.DOWN, 1.0)),
    ("down", 0.0),
)
"""Classes of links by health: what they are called, and the least health of each."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How the physical layer hangs together.

    Attributes:
        degree_mean, degree_max: Edges at a vertex.
        busiest: Key of the vertex with the most edges; the first of several by key.
        components: Parts that no edge ties to one another.
        largest: Vertices of the largest part.
        alone: Vertices without any edge.
        diameter_min: The longest of the shortest ways is at least so many edges: found by walking to the farthest
            vertex twice, exact in a tree.
        adjacency_bytes: What its edges take in the packed form in which they are walked, each in both directions.
    """

    degree_mean: float = 0.0
    degree_max: int = 0
    busiest: str = ""
    components: int = 0
    largest: int = 0
    alone: int = 0
    diameter_min: int = 0
    adjacency_bytes: int = 0


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """The links, each direction counted.

    Attributes:
        by_health: Class of `HEALTHS` → number.
        latency_ms: Least, median, greatest of those that are known; None where none is.
        bandwidth_mbps: Likewise.
        latency_unknown, bandwidth_unknown: Links of which nobody says.
        measured: Links that were ever measured, rather than stated.
        measured_oldest: When the one that was measured longest ago was, seconds since the epoch; None without any.
        unattached: Ties that miss an end: it is not in the graph, or not yet.
    """

    by_health: dict[str, int] = {}
    latency_ms: tuple[float, float, float] | None = None
    bandwidth_mbps: tuple[float, float, float] | None = None
    latency_unknown: int = 0
    bandwidth_unknown: int = 0
    measured: int = 0
    measured_oldest: float | None = None
    unattached: int = 0


class Level(msgspec.Struct, frozen=True):
    """The domains that one node label makes: how many, and how many nodes they hold."""

    label: str
    domains: int
    nodes_min: int
    nodes_median: float
    nodes_max: int


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """One resource over all nodes, in the unit of `nodes.Amounts`.

    Attributes:
        resource: Its name.
        capacity: What there is.
        allocatable: What kubelets offer of it.
        usable: What operators leave of that: no more than each node's ceiling.
        requested: What pods request; promised ones count.
        reserved: What is kept for somebody and not used by them.
    """

    resource: str
    capacity: int
    allocatable: int
    usable: int
    requested: int
    reserved: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """All of it; `vertices` and `edges` by kind."""

    format: str = "graphsched.graph.stats/v1"
    generation: int = 0
    vertices: dict[str, int] = {}
    edges: dict[str, int] = {}
    shape: Shape = Shape()
    links: Links = Links()
    levels: tuple[Level, ...] = ()
    resources: tuple[Amount, ...] = ()


def stats(graph: store.Store) -> Stats:
    """Measure the graph."""
    whole = survey.survey(graph)
    kinds = Counter(vertex.kind for vertex in whole.vertices)
    # No layer shows these two, which only say something of pods.
    for kind in (keys.Kind.NAMESPACE, keys.Kind.PRIORITY_CLASS):
        kinds[kind.value] = len(graph.vertex_keys(f"{kind}/"))
    return Stats(
        generation=graph.generation,
        vertices={kind: number for kind, number in sorted(kinds.items()) if number},
        edges=dict(sorted(Counter(edge.kind.value for edge in whole.edges).items())),
        shape=_shape(survey.survey(graph, (maps.Layer.PHYSICAL,))),
        links=_links(graph),
        levels=_levels(graph),
        resources=_resources(graph),
    )


def _shape(physical: maps.Map) -> Shape:
    if not physical.vertices:
        return Shape()
    rows = {vertex.key: row for row, vertex in enumerate(physical.vertices)}
    drawn: rustworkx.PyGraph[str, None] = rustworkx.PyGraph(multigraph=True)
    drawn.add_nodes_from([vertex.key for vertex in physical.vertices])
    drawn.add_edges_from([(rows[edge.source], rows[edge.target], None) for edge in physical.edges])
    degrees = [drawn.degree(row) for row in range(len(rows))]
    busiest = max(range(len(rows)), key=lambda row: (degrees[row], -row))
    parts = [sorted(part) for part in rustworkx.connected_components(drawn)]
    largest = max(parts, key=lambda part: (len(part), -part[0]))
    far, _ = _farthest(physical.picture, largest[0])
    return Shape(
        degree_mean=round(statistics.fmean(degrees), 2),
        degree_max=degrees[busiest],
        busiest=physical.vertices[busiest].key if degrees[busiest] else "",
        components=len(parts),
        largest=len(largest),
        alone=sum(not degree for degree in degrees),
        diameter_min=_farthest(physical.picture, far)[1],
        adjacency_bytes=physical.picture.nbytes,
    )


def _farthest(picture: walks.Picture, start: int) -> tuple[int, int]:
    """(row, edges to it) of the vertex that is farthest from `start`; the first of several by key."""
    walk = walks.breadth_first(picture, [start])
    last = walk.rows[walk.levels[-2] :]
    return int(last.min()), len(walk.levels) - 2


def _links(graph: store.Store) -> Links:
    ties = graph.topology.ties
    links = [tie for tie in ties.values() if isinstance(tie, relations.Link)]
    known = set(graph.topology.graph.nodes())
    classes = Counter(next(name for name, least in HEALTHS if link.health >= least) for link in links)
    measured = [link.at for link in links if link.at]
    latencies = [link.latency_ms for link in links if link.latency_ms is not None]
    bandwidths = [link.bandwidth_mbps for link in links if link.bandwidth_mbps is not None]
    return Links(
        by_health={name: classes[name] for name, _ in HEALTHS if classes[name]},
        latency_ms=_range(latencies),
        bandwidth_mbps=_range(bandwidths),
        latency_unknown=len(links) - len(latencies),
        bandwidth_unknown=len(links) - len(bandwidths),
        measured=len(measured),
        measured_oldest=min(measured, default=None),
        unattached=sum(1 for tie in ties if tie.source not in known or tie.target not in known),
    )


def _range(values: Sequence[float]) -> tuple[float, float, float] | None:
    return (min(values), statistics.median(values), max(values)) if values else None


def _levels(graph: store.Store) -> tuple[Level, ...]:
    sizes: dict[str, list[int]] = {}
    for domain in graph.topology.domains():
        label = keys.name_of(domain).partition("=")[0]
        sizes.setdefault(label, []).append(len(graph.topology.members(domain)))
    return tuple(_level(label, sizes[label]) for label in sorted(sizes, key=lambda label: (len(sizes[label]), label)))


def _resources(graph: store.Store) -> tuple[Amount, ...]:
    columns, granted = graph.columns, graph.view().budgets
    found = []
    for resource in sorted({*columns.installed, *columns.allocatable, *columns.requested}):
        filled = watermarks.filled(columns, granted, resource)
        kept = granted.kept.get(resource)
        told = Amount(
            resource=resource,
            capacity=_sum(columns.column(columns.installed, resource)),
            allocatable=_sum(columns.column(columns.allocatable, resource)),
            usable=_sum(filled.usable),
            requested=_sum(filled.used),
            reserved=0 if kept is None else _sum(kept),
        )
        if told.capacity or told.allocatable or told.requested:
            found.append(told)
    return tuple(found)


def _sum(column: watermarks.Int64) -> int:
    """Exact, however much it is."""
    return sum(column.tolist())


def _level(label: str, sizes: Iterable[int]) -> Level:
    counted = sorted(sizes)
    return Level(label, len(counted), counted[0], float(statistics.median(counted)), counted[-1])
