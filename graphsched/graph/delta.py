"""The patch: a change to the graph, as a value.

Every source and every outcome of an action becomes a `Patch`, and `store.apply(patch)` is the only way in. A patch
says what is removed and what is set; removals come first, so "delete and re-create under the same name" is one patch.
Setting is absolute, never relative, which is what makes applying twice the same as applying once.

The laws below are properties in `tests/laws`: `merge(p, q)` equals applying in order, `diff(g, h)` turns g into h, and
`invert`, as `Applied.undo`, turns it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from graphsched.base.values import groups, keys, nodes, places, pods, policies, relations, selections, status

Vertex = (
    nodes.Node
    | pods.Pod
    | nodes.Namespace
    | nodes.PriorityClass
    | selections.Selection
    | places.Place
    | groups.Group
    | policies.Rule
)
"""The value structs that are stored as vertices; each knows its `key`."""


Content = tuple[Mapping[keys.VertexKey, Vertex], Mapping[keys.EdgeID, relations.Edge]]
"""Vertices and edges: all of a graph that is not derived."""


class Stream(msgspec.Struct, frozen=True, gc=False):
    """Position of a patch in the sequence of its source.

    Attributes:
        source: Who sends, e.g. `watch/pods`.
        epoch: One life of that source; a restarted source starts a new one.
        sequence: Counts up by one from 1 within the epoch.
    """

    source: str
    epoch: int
    sequence: int


class Patch(msgspec.Struct, gc=False):
    """What is removed, then what is set.

    Attributes:
        removed: Vertices that go away, each with all its edges.
        cut: Edges that go away.
        vertices: Vertices added or replaced.
        edges: Edges added or replaced.
        stream: Position in its source's sequence; None for a patch made in this process by the store's own owner,
            which needs no protection against repetition.
    """

    removed: set[keys.VertexKey] = msgspec.field(default_factory=set)
    cut: set[keys.EdgeID] = msgspec.field(default_factory=set)
    vertices: dict[keys.VertexKey, Vertex] = msgspec.field(default_factory=dict)
    edges: dict[keys.EdgeID, relations.Edge] = msgspec.field(default_factory=dict)
    stream: Stream | None = None

    def set_vertex(self, vertex: Vertex) -> Patch:
        """Add or replace a vertex; returns the patch, so that calls chain."""
        self.vertices[vertex.key] = vertex
        return self

    def set_edge(self, edge: keys.EdgeID, attributes: relations.Edge) -> Patch:
        """Add or replace an edge; returns the patch, so that calls chain."""
        self.cut.discard(edge)
        self.edges[edge] = attributes
        return self

    def remove(self, key: keys.VertexKey) -> Patch:
        """Remove a vertex with its edges, also those this patch has set so far; returns the patch."""
        self.vertices.pop(key, None)
        self.removed.add(key)
        if self.edges:
            self.edges = {edge: value for edge, value in self.edges.items() if key not in edge[:2]}
        return self

    def cut_edge(self, edge: keys.EdgeID) -> Patch:
        """Remove an edge; returns the patch, so that calls chain."""
        self.edges.pop(edge, None)
        self.cut.add(edge)
        return self

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.removed) + len(self.cut) + len(self.vertices) + len(self.edges)


class Applied(msgspec.Struct, frozen=True, gc=False):
    """The store took a patch.

    Attributes:
        generation: The graph's generation afterwards.
        undo: The patch that restores what was before; None when it was not asked for.
        repeated: The patch's sequence had been seen: nothing was changed.
    """

    generation: int
    undo: Patch | None = None
    repeated: bool = False


class Refused(msgspec.Struct, frozen=True, gc=False):
    """The store took nothing of a patch.

    Attributes:
        reason: `gap` (ask the source to resync), `epoch` (unknown life of the source) or `invalid`.
        detail: One sentence with the place and the problem.
    """

    reason: str
    detail: str

    @property
    def status(self) -> status.Status:
        """The same as a status, for those who handle all refusals alike."""
        return status.Status(status.Code.ERROR, (self.detail,), "DeltaGraph")


def merge(patches: Iterable[Patch]) -> Patch:
    """One patch that does what these do in order. Streams are dropped: the result is no row of any sequence."""
    merged = Patch()
    for patch in patches:
        # As `remove` for each, but the edges are gone through once: a relist removes thousands of vertices.
        merged.removed |= patch.removed
        for key in patch.removed & merged.vertices.keys():
            del merged.vertices[key]
        if patch.removed and merged.edges:
            merged.edges = {edge: kept for edge, kept in merged.edges.items() if patch.removed.isdisjoint(edge[:2])}
        for edge in patch.cut:
            merged.cut_edge(edge)
        merged.vertices.update(patch.vertices)
        for edge, value in patch.edges.items():
            # A cut stays: the edge is cut, then set, and both orders of a repeated merge agree.
            merged.edges[edge] = value
    return merged


def split(patch: Patch, *, rows_max: int) -> list[Patch]:
    """Patches of at most `rows_max` rows that, applied in order, do what the one does.

    Raises:
        ValueError: `rows_max` is below 1.
    """
    if rows_max < 1:
        message = f"rows_max is {rows_max}, not positive"
        raise ValueError(message)
    parts: list[Patch] = []
    part = Patch()

    def room() -> Patch:
        nonlocal part
        if len(part) >= rows_max:
            parts.append(part)
            part = Patch()
        return part

    for key in sorted(patch.removed):
        room().removed.add(key)
    for edge in sorted(patch.cut):
        room().cut.add(edge)
    for key, vertex in patch.vertices.items():
        room().vertices[key] = vertex
    for edge, value in patch.edges.items():
        room().edges[edge] = value
    return [*parts, part] if len(part) or not parts else parts


def invert(
    patch: Patch, before: Content, edges_at: Callable[[keys.VertexKey], Iterable[keys.EdgeID]] | None = None
) -> Patch:
    """The patch that takes this one back: applied to what the patch makes of `before`, it gives `before`.

    Args:
        patch: What is to be taken back.
        before: The graph that it is, or was, applied to.
        edges_at: The edges of `before` that touch a vertex, for whoever has them at hand; else all are gone through.
    """
    vertices, edges = before
    if edges_at is None:
        edges_at = _edges_at(patch, edges)
    back = Patch()
    lost = {edge for key in patch.removed for edge in edges_at(key)} | patch.cut
    for edge in (*lost, *patch.edges):
        value = edges.get(edge)
        if value is not None:
            back.edges[edge] = value
        else:
            back.cut.add(edge)
    for key in (*patch.removed, *patch.vertices):
        vertex = vertices.get(key)
        if vertex is not None:
            back.vertices[key] = vertex
        else:
            back.removed.add(key)
    # Removing a vertex on the way back would take along edges that were dangling from it before.
    for key in back.removed:
        back.edges.update({edge: edges[edge] for edge in edges_at(key)})
    return back


def _edges_at(
    patch: Patch, edges: Mapping[keys.EdgeID, relations.Edge]
) -> Callable[[keys.VertexKey], Iterable[keys.EdgeID]]:
    """The edges at every vertex that the patch touches, found in one pass."""
    found: dict[keys.VertexKey, set[keys.EdgeID]] = {key: set() for key in (*patch.removed, *patch.vertices)}
    if found:
        for edge in edges:
            for end in edge[:2]:
                if end in found:
                    found[end].add(edge)
    return lambda key: found[key]


def diff(before: Content, after: Content) -> Patch:
    """The smallest patch that turns one graph's (vertices, edges) into the other's."""
    old_vertices, old_edges = before
    new_vertices, new_edges = after
    patch = Patch()
    patch.removed = {key for key in old_vertices if key not in new_vertices}
    patch.vertices = {key: vertex for key, vertex in new_vertices.items() if old_vertices.get(key) != vertex}
    patch.edges = {
        edge: value
        for edge, value in new_edges.items()
        # An edge that touches a removed vertex went with it, so it is set again even if it looks unchanged.
        if old_edges.get(edge) != value or not patch.removed.isdisjoint(edge[:2])
    }
    patch.cut = {edge for edge in old_edges if edge not in new_edges and patch.removed.isdisjoint(edge[:2])}
    return patch
