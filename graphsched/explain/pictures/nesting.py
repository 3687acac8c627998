"""Where the vertices of a map stand in its picture: boxes within boxes, by what holds what.

A `maps.Map` comes in, `Box`es with coordinates go out. What holds something is a box around it; what is held by several
stands in one of them, and the others are for `curves` to draw. A switch stands in the innermost box with all that it
links to below it. Within a box, vertices stand in bands: rules and groups over switches, highest tier first, over
domains over nodes over pods, so that a fabric looks like one.

Invariant: equal maps are laid out alike, wherever their vertices came from; nothing is random and nothing is tried.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from graphsched.explain.atlas import holding, maps

CHAR, CHIP, HEAD, PAD, GAP, BAND_GAP = 6.9, 28.0, 26.0, 12.0, 10.0, 44.0
"""Width of a character, height of a chip and of a box's heading, room within a box, between boxes, between bands."""
SPOKEN_GAP = 118.0
"""Between boxes of one row with a link from one to the other: its words stand there."""
_SPOKEN_MAX = 12
_SQUEEZES = (0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0, 4.0)
"""Widths that are tried for a box, as shares of the one its area would have."""
_CHIP_MIN, _CHIP_MAX = 64.0, 190.0
_ASPECT = 1.7
"""How much wider than high a box is to be."""
_BANDS = {
    "rule": 0,
    "group": 0,
    "selection": 0,
    "workload": 1,
    "place": 2,
    "domain": 3,
    "node": 4,
    "device": 5,
    "pod": 6,
}


@dataclasses.dataclass(slots=True)
class Box:
    """A vertex in the picture.

    Attributes:
        vertex: What it shows.
        inside: What stands in it; a box without anything in it is a chip.
        depth: How many boxes are around it.
        x, y, width, height: Its place, from the upper left corner of the picture.
    """

    vertex: maps.Vertex
    inside: list[Box]
    depth: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def moved(self, dx: float, dy: float) -> None:
        """Shift it with all that stands in it."""
        self.x += dx
        self.y += dy
        for each in self.inside:
            each.moved(dx, dy)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A picture's boxes.

    Attributes:
        boxes: Every vertex's box, by key, outer ones before what stands in them.
        drawn: The edges that nesting does not show.
        width, height: Of the whole.
    """

    boxes: dict[str, Box]
    drawn: tuple[maps.Edge, ...]
    width: float
    height: float


def plan(shown: maps.Map) -> Plan:
    """Lay the map out."""
    holder = _holders(shown)
    boxes = {vertex.key: Box(vertex, []) for vertex in shown.vertices}
    roots: list[Box] = []
    for key, box in boxes.items():
        (boxes[holder[key]].inside if key in holder else roots).append(box)
    near = _near(shown)
    width, height = _pack(roots, near)
    ordered: dict[str, Box] = {}
    _note(roots, 0, ordered)
    return Plan(ordered, tuple(edge for edge in shown.edges if not _nested(edge, holder)), width, height)


def _holders(shown: maps.Map) -> dict[str, str]:
    """Key → key of the vertex in whose box it stands."""
    chosen = holding.holders(shown)
    _adopt(shown, chosen)
    return chosen


def _adopt(shown: maps.Map, chosen: dict[str, str]) -> None:
    """Put switches, and domains that are no boxes, into the innermost box that holds all they lead to below them."""
    below: dict[str, set[str]] = {}
    known = shown.by_key
    for edge in shown.edges:
        if edge.kind in {maps.Relation.LINK, maps.Relation.CONTAINS}:
            below.setdefault(edge.source, set()).add(edge.target)
    boxed = set(chosen.values())
    movable = [key for key in below if known[key].kind in {"place", "domain"} and key not in boxed]
    for key in sorted(movable, key=lambda key: (_height(known[key]), key)):
        lower = [other for other in below[key] if _height(known[other]) < _height(known[key])]
        common = _common(lower, chosen)
        held = chosen.get(key)
        if common is not None and common != key and (held is None or holding.within(common, held, chosen)):
            chosen[key] = common


def _height(vertex: maps.Vertex) -> float:
    """How far above the nodes it stands: 0 for a node, its tier for a place."""
    if vertex.kind not in {"place", "domain"}:
        return 0.0
    tier = vertex.attributes.get("tier")
    return float(tier) if isinstance(tier, int) else 1.0


def _common(lower: Sequence[str], chosen: dict[str, str]) -> str | None:
    """The innermost box around all of these."""
    chains = [holding.around(key, chosen) for key in lower]
    if not chains:
        return None
    shared = set(chains[0]).intersection(*chains[1:])
    return next((key for key in chains[0] if key in shared), None)


def _nested(edge: maps.Edge, holder: dict[str, str]) -> bool:
    if edge.kind not in holding.HOLDING:
        return False
    outer, inner = holding.ends(edge)
    return outer in holding.around(inner, holder)


def _near(shown: maps.Map) -> dict[str, list[str]]:
    """Key → what links, selections and calls tie it to."""
    near: dict[str, list[str]] = {}
    for edge in shown.edges:
        if edge.kind is not maps.Relation.RUNS:
            near.setdefault(edge.source, []).append(edge.target)
            near.setdefault(edge.target, []).append(edge.source)
    return near


def _note(boxes: Iterable[Box], depth: int, ordered: dict[str, Box]) -> None:
    for box in boxes:
        box.depth = depth
        ordered[box.vertex.key] = box
        _note(box.inside, depth + 1, ordered)


def _pack(boxes: list[Box], near: dict[str, list[str]]) -> tuple[float, float]:
    """Give the boxes and all within them their places, from (0, 0); returns the size of the whole."""
    for box in boxes:
        _measure(box, near)
    bands = _bands(boxes, near)
    boxes[:] = [box for band in bands for box in band]
    for band in bands:
        _even(band)
    gaps = [_gap(band, near) for band in bands]
    area = sum((box.width + GAP) * (box.height + GAP) for box in boxes)
    widest = max((box.width for box in boxes), default=0.0)
    rooms = [max(math.sqrt(area * _ASPECT) * squeeze, widest) for squeeze in _SQUEEZES]
    width, height = min((_shelve(bands, gaps, room) for room in rooms), key=_oddness)
    # The last attempt stands where it was laid, so the best one is laid again.
    for room in rooms:
        if _shelve(bands, gaps, room) == (width, height):
            break
    return width, height


def _shelve(bands: Sequence[Sequence[Box]], gaps: Sequence[float], room: float) -> tuple[float, float]:
    """Lay the bands in rows no wider than `room`; returns the size of the whole."""
    shelves = [_rows(band, gap, room) for band, gap in zip(bands, gaps, strict=True)]
    width = max((_length(row, gap) for rows, gap in zip(shelves, gaps, strict=True) for row in rows), default=0.0)
    y = 0.0
    for rows, gap in zip(shelves, gaps, strict=True):
        for row in rows:
            x = (width - _length(row, gap)) / 2
            tallest = max(box.height for box in row)
            for box in row:
                box.moved(x - box.x, y - box.y)
                x += box.width + gap
            y += tallest + (GAP if gap == GAP else BAND_GAP)
        # Links between bands need room to be seen.
        y += BAND_GAP - (GAP if gap == GAP else BAND_GAP)
    return width, max(y - BAND_GAP, 0.0)


def _oddness(size: tuple[float, float]) -> float:
    """How far the shape is from the one wanted."""
    return abs(math.log(max(size[0], 1.0) / max(size[1], 1.0) / _ASPECT))


def _gap(band: Sequence[Box], near: dict[str, list[str]]) -> float:
    """Room between the boxes of a row."""
    own = {box.vertex.key for box in band}
    tied = any(other in own for key in own for other in near.get(key, ()))
    return SPOKEN_GAP if tied and len(band) <= _SPOKEN_MAX else GAP


def _measure(box: Box, near: dict[str, list[str]]) -> None:
    words = len(box.vertex.name) * CHAR
    if not box.inside:
        box.width, box.height = min(max(words + 2 * PAD, _CHIP_MIN), _CHIP_MAX), CHIP
        return
    width, height = _pack(box.inside, near)
    # The heading begins with a dot.
    box.width = max(width, min(words + PAD, _CHIP_MAX)) + 2 * PAD
    box.height = height + HEAD + PAD
    for each in box.inside:
        each.moved(PAD + (box.width - 2 * PAD - width) / 2, HEAD)


def _bands(boxes: Sequence[Box], near: dict[str, list[str]]) -> list[list[Box]]:
    """The boxes by kind and tier, top to bottom, each band ordered by what the one above it is tied to."""
    by_rank: dict[tuple[float, ...], list[Box]] = {}
    for box in boxes:
        by_rank.setdefault(_rank(box), []).append(box)
    bands: list[list[Box]] = []
    place: dict[str, float] = {}
    for rank in sorted(by_rank):
        band = sorted(by_rank[rank], key=lambda box: (_centre(box, near, place), box.vertex.name, box.vertex.key))
        place |= {key: number / len(band) for number, box in enumerate(band) for key in _all_keys(box)}
        bands.append(band)
    return bands


def _rank(box: Box) -> tuple[float, ...]:
    kind = box.vertex.kind
    tier = box.vertex.attributes.get("tier")
    height = -float(tier) if isinstance(tier, int) else 0.0
    return (_BANDS.get(kind, len(_BANDS)), height)


def _centre(box: Box, near: dict[str, list[str]], place: dict[str, float]) -> float:
    """Where above it its ties lead, 0 left to 1 right; the middle where none does."""
    ties = [place[other] for key in _all_keys(box) for other in near.get(key, ()) if other in place]
    return round(sum(ties) / len(ties), 6) if ties else 0.5


def _all_keys(box: Box) -> list[str]:
    return [box.vertex.key, *(key for each in box.inside for key in _all_keys(each))]


def _even(band: Sequence[Box]) -> None:
    """Chips of one band are equally wide, so that they stand in columns."""
    chips = [box for box in band if not box.inside]
    widest = max((box.width for box in chips), default=0.0)
    for box in chips:
        box.width = widest


def _rows(band: Sequence[Box], gap: float, room: float) -> list[tuple[Box, ...]]:
    rows: list[tuple[Box, ...]] = []
    row: list[Box] = []
    for box in band:
        if row and _length([*row, box], gap) > room + 0.5:
            rows.append(tuple(row))
            row = []
        row.append(box)
    return [*rows, tuple(row)] if row else rows


def _length(row: Sequence[Box], gap: float) -> float:
    return sum(box.width for box in row) + gap * (len(row) - 1)
