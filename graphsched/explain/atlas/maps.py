"""A map: the vertices and edges of some layers of the graph, as plain values.

`survey` makes one of a store; everything that shows the graph (trees, DOT, JSON, pictures, statistics) reads one. What
the store derives rather than stores as a vertex (domains, devices, the workloads of a group) is a vertex here like any
other.

Invariants: keys are unique, both ends of every edge are vertices of the map, and both are sorted, so that equal graphs
give equal maps whatever the order in which they came to be.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Iterable, Mapping

import msgspec
import numpy as np

from graphsched.base.values import keys
from graphsched.graph import adjacency, walks

FORMAT = "graphsched.graph/v1"
"""What the JSON of a map begins with; the number changes when a reader of the old one would go wrong."""


class Layer(enum.StrEnum):
    """A part of the graph with a subject of its own."""

    PHYSICAL = "physical"
    """Nodes, domains, places; what holds what, and the links between them."""
    RESOURCES = "resources"
    """Nodes, their devices and cells, with what they have and how much of it is taken."""
    POLICY = "policy"
    """Rules, and the nodes and pods they are about."""
    WORKLOADS = "workloads"
    """Pods and what runs, selects, groups and calls them."""


class Relation(enum.StrEnum):
    """What an edge of a map says."""

    CONTAINS = "contains"
    LINK = "link"
    RUNS = "runs"
    SELECTS = "selects"
    CALLS = "calls"
    DEPENDS_ON = "depends_on"


class Vertex(msgspec.Struct, frozen=True):
    """A vertex.

    Attributes:
        key: Its key in the graph, or what a key would be for what the graph derives.
        kind: The first part of the key.
        name: What people call it, short: `zone a`, `leaf-12`; not unique.
        attributes: What is known of it; names and meanings are told in docs/graph.md.
    """

    key: str
    kind: str
    name: str
    attributes: dict[str, object] = {}


class Edge(msgspec.Struct, frozen=True):
    """An edge from one vertex to another."""

    source: str
    target: str
    kind: Relation
    attributes: dict[str, object] = {}


class Map(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Vertices and edges.

    Attributes:
        format: `FORMAT`.
        layers: What was asked for.
        around: The vertex whose neighbourhood this is; empty for everything.
        depth: How many edges the neighbourhood reaches; 0 for everything.
        vertices: Sorted by key.
        edges: Sorted by source, target, kind.
    """

    format: str = FORMAT
    layers: tuple[Layer, ...] = ()
    around: str = ""
    depth: int = 0
    vertices: tuple[Vertex, ...] = ()
    edges: tuple[Edge, ...] = ()

    @functools.cached_property
    def by_key(self) -> Mapping[str, Vertex]:
        """The vertices by their keys."""
        return {vertex.key: vertex for vertex in self.vertices}

    @functools.cached_property
    def picture(self) -> adjacency.Adjacency[str]:
        """The edges as they are walked: packed, each in both directions."""
        names = tuple(vertex.key for vertex in self.vertices)
        rows = {name: row for row, name in enumerate(names)}
        ends = np.array([(rows[edge.source], rows[edge.target]) for edge in self.edges], np.intp).reshape(-1, 2)
        both = np.concatenate([ends, ends[:, ::-1]])
        return adjacency.pack(names, both[:, 0], both[:, 1])

    def neighbourhood(self, key: str, depth: int) -> Map:
        """The part of the map that is at most `depth` edges from a vertex, edges taken in either direction."""
        picture = self.picture
        walk = walks.breadth_first(picture, [picture.rows[key]], walks.Budget(depth_max=depth))
        reached = {picture.name(row) for row in walk.rows.tolist()}
        return msgspec.structs.replace(self._only(reached), around=key, depth=depth)

    def without(self, kinds: Collection[str]) -> Map:
        """The map without the vertices of some kinds and their edges."""
        return self._only({vertex.key for vertex in self.vertices if vertex.kind not in kinds})

    def _only(self, kept: Collection[str]) -> Map:
        return msgspec.structs.replace(
            self,
            vertices=tuple(vertex for vertex in self.vertices if vertex.key in kept),
            edges=tuple(edge for edge in self.edges if edge.source in kept and edge.target in kept),
        )


class Draft:
    """A map in the making: the same vertex and edge may be put in by several layers, whose attributes are joined."""

    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}
        self._edges: dict[tuple[str, str, Relation], Edge] = {}

    def vertex(self, key: str, name: str, **attributes: object) -> None:
        """Put a vertex in; attributes that are None or empty are left out."""
        before = self._vertices.get(key)
        known = {**(before.attributes if before is not None else {}), **_told(attributes)}
        self._vertices[key] = Vertex(key, keys.kind_of(keys.VertexKey(key)), name, known)

    def edge(self, source: str, target: str, kind: Relation, **attributes: object) -> None:
        """Put an edge in; one whose ends are not both there when the map is made is left out."""
        self._edges[source, target, kind] = Edge(source, target, kind, _told(attributes))

    def __contains__(self, key: str) -> bool:
        """Whether a vertex of this key is in already."""
        return key in self._vertices

    def map(self, layers: Iterable[Layer]) -> Map:
        """The map of what was put in."""
        return Map(
            layers=tuple(layers),
            vertices=tuple(self._vertices[key] for key in sorted(self._vertices)),
            edges=tuple(
                self._edges[edge]
                for edge in sorted(self._edges)
                if edge[0] in self._vertices and edge[1] in self._vertices
            ),
        )


def _told(attributes: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", (), [], {})}
