"""A map as DOT, for Graphviz and whatever else reads it.

Vertices carry their key as identity and their name as label; what is known of them goes into the tooltip. Containment
is drawn as edges like the rest, since a vertex may be held by several others and a cluster of DOT by one.
"""

from __future__ import annotations

import re

from graphsched.explain.atlas import maps, telling

_SHAPES = {
    "node": "box",
    "pod": "ellipse",
    "domain": "folder",
    "place": "hexagon",
    "device": "component",
    "rule": "note",
    "group": "octagon",
    "workload": "tab",
    "selection": "cds",
}
_EDGES = {
    maps.Relation.CONTAINS: {"color": "gray60", "arrowhead": "none"},
    maps.Relation.LINK: {"color": "teal", "penwidth": "2", "constraint": "false"},
    maps.Relation.RUNS: {"color": "gray40"},
    maps.Relation.SELECTS: {"color": "steelblue", "style": "dashed", "constraint": "false"},
    maps.Relation.CALLS: {"color": "darkorange", "constraint": "false"},
    maps.Relation.DEPENDS_ON: {"color": "darkorange", "style": "dashed", "constraint": "false"},
}
_HURT = 0.8
"""A link below this health is drawn in red."""

TOOLTIP_MAX = 2_000
"""Characters; ten thousand nodes with every label that clouds give them would be a hundred megabytes."""


def text(drawn: maps.Map) -> str:
    """The document, ending with a newline."""
    lines = [
        "digraph graphsched {",
        '  graph [rankdir="TB", fontname="sans-serif"];',
        '  node [shape="box", style="filled,rounded", fillcolor="white", fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize="9"];',
    ]
    for vertex in drawn.vertices:
        shape = _SHAPES.get(vertex.kind, "box")
        told = _shortened("\n".join([vertex.key, *telling.attributes(vertex.attributes)]))
        lines.append(f"  {_quoted(vertex.key)} [{_listed({'label': vertex.name, 'shape': shape, 'tooltip': told})}];")
    for edge in drawn.edges:
        style = {"label": telling.edge(edge), **_EDGES[edge.kind]}
        if telling.health(edge) < _HURT:
            style["color"] = "red"
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [{_listed(style)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _shortened(words: str) -> str:
    """What a tooltip can show; everything is in the JSON."""
    return words if len(words) <= TOOLTIP_MAX else f"{words[: TOOLTIP_MAX - 1]}…"


def _listed(attributes: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items() if value)


def _quoted(value: str) -> str:
    """A string of DOT, in which only quotes and backslashes mean anything; its lines stay lines."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + re.sub(r"[\x00-\x1f\x7f]", " ", escaped) + '"'
