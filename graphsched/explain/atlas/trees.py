"""A map as text: a tree of what holds what, then the edges that no tree shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from graphsched.explain import wording
from graphsched.explain.atlas import holding, maps, naming, telling

LINES_MAX = 400
"""Lines of the tree before it is cut."""


class Row(msgspec.Struct, frozen=True):
    """An edge beside the tree."""

    source: str
    target: str
    kind: str
    words: str


def lines(shown: maps.Map, lines_max: int = LINES_MAX) -> list[str]:
    """The tree, a line for each vertex, cut where it would be longer than anybody reads."""
    chosen = holding.holders(shown)
    inside: dict[str, list[maps.Vertex]] = {}
    roots: list[maps.Vertex] = []
    for vertex in shown.vertices:
        (inside.setdefault(chosen[vertex.key], []) if vertex.key in chosen else roots).append(vertex)
    others = _others(shown, chosen)
    found: list[str] = []
    for line in _tree(roots, inside, others, ""):
        if len(found) == lines_max:
            more = len(shown.vertices) - lines_max
            return [*found, f"… and {wording.count(more, 'vertex', 'vertices')} more (narrow with --around or --layer)"]
        found.append(line)
    return found


def rows(shown: maps.Map) -> list[Row]:
    """The edges that say more than what holds what, those of a pair that says the same both ways as one."""
    known = {(edge.source, edge.target, edge.kind): edge for edge in shown.edges}
    found = []
    for edge in shown.edges:
        if edge.kind in holding.HOLDING:
            continue
        back = known.get((edge.target, edge.source, edge.kind))
        twin = back is not None and back.attributes == edge.attributes
        if not twin or edge.source <= edge.target:
            kind = f"{edge.kind} ↔" if twin else f"{edge.kind} →"
            source, target = (telling.printable(naming.short(end)) for end in (edge.source, edge.target))
            found.append(Row(source, target, kind, telling.edge(edge)))
    return found


def _tree(
    level: Sequence[maps.Vertex],
    inside: Mapping[str, Sequence[maps.Vertex]],
    others: Mapping[str, Sequence[str]],
    margin: str,
    *,
    top: bool = True,
) -> Iterator[str]:
    for number, vertex in enumerate(level):
        last = number == len(level) - 1
        branch = "" if top else ("└─ " if last else "├─ ")
        yield f"{margin}{branch}{telling.printable(f'{vertex.name}{_about(vertex, others.get(vertex.key, ()))}')}"
        deeper = margin if top else margin + ("   " if last else "│  ")
        yield from _tree(inside.get(vertex.key, ()), inside, others, deeper, top=False)


def _about(vertex: maps.Vertex, others: Sequence[str]) -> str:
    known = vertex.attributes
    parts = (
        []
        if vertex.kind in {"node", "domain", "pod"}
        else [str(known.get("place") or known.get("object") or vertex.kind)]
    )
    if used := telling.used(known):
        parts.append(used)
    parts += telling.limits(known)
    if known.get("cordoned"):
        parts.append("cordoned")
    if vertex.kind == "rule":
        parts += [f"{known['action']}, priority {known['priority']}"]
    if others:
        parts.append(f"also in {wording.both(others)}")
    return f"   {' · '.join(parts)}" if parts else ""


def _others(shown: maps.Map, chosen: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for edge in shown.edges:
        if edge.kind is maps.Relation.CONTAINS and chosen.get(edge.target) != edge.source:
            found.setdefault(edge.target, []).append(shown.by_key[edge.source].name)
    return found
