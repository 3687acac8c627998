"""What holds what: of several that hold a vertex, the one under which a tree or a picture shows it.

Invariant: following a vertex's holder, and its holder in turn, always ends, whatever people have patched in.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphsched.base.values import keys
from graphsched.explain.atlas import maps
from graphsched.graph import levels

_ORDER = {
    label: number
    for number, label in enumerate(
        label for family in (levels.TRUNK, *levels.FAMILIES) for level in family for label in level
    )
}
"""Labels of domains, as they follow one another where node labels are told."""

HOLDING = frozenset({maps.Relation.CONTAINS, maps.Relation.RUNS})


def ends(edge: maps.Edge) -> tuple[str, str]:
    """(outer, inner) of an edge that says what holds what."""
    return (edge.target, edge.source) if edge.kind is maps.Relation.RUNS else (edge.source, edge.target)


def holders(shown: maps.Map) -> dict[str, str]:
    """Key → key of its holder.

    Of several: one that is itself held, then a domain in the order of the labels, the one that holds most, by key.
    """
    holding: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for edge in shown.edges:
        if edge.kind in HOLDING:
            outer, inner = ends(edge)
            holding.setdefault(inner, []).append(outer)
            sizes[outer] = sizes.get(outer, 0) + 1
    chosen: dict[str, str] = {}
    for inner in sorted(holding):
        for outer in sorted(holding[inner], key=lambda key: (key not in holding, _order(key), -sizes[key], key)):
            if not within(outer, inner, chosen):
                chosen[inner] = outer
                break
    return chosen


def _order(key: str) -> int:
    kind, _, name = key.partition("/")
    return _ORDER.get(name.partition("=")[0], len(_ORDER)) if kind == keys.Kind.DOMAIN else len(_ORDER)


def within(key: str, other: str, chosen: Mapping[str, str]) -> bool:
    """Whether `key` is `other` or held by it."""
    return key == other or other in around(key, chosen)


def around(key: str, chosen: Mapping[str, str]) -> list[str]:
    """What holds a vertex, inner to outer."""
    found = []
    while key in chosen:
        key = chosen[key]
        found.append(key)
    return found
