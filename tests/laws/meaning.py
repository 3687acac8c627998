"""What a patch means, in five plain lines: the yardstick for the algebra of patches and for the store."""

from __future__ import annotations

from graphsched.base.values import keys, relations
from graphsched.graph import delta

Content = tuple[dict[keys.VertexKey, delta.Vertex], dict[keys.EdgeID, relations.Edge]]
"""Vertices and edges: all of a graph that is not derived."""


def plainly(content: Content, patch: delta.Patch) -> Content:
    """What the patch makes of the content."""
    vertices, edges = content
    vertices = {key: vertex for key, vertex in vertices.items() if key not in patch.removed} | patch.vertices
    kept = {
        edge: value
        for edge, value in edges.items()
        if edge not in patch.cut and edge.source not in patch.removed and edge.target not in patch.removed
    }
    return vertices, kept | patch.edges
