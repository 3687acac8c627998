"""The edges of a picture: where a curve leaves one box and meets another, and where its words stand.

A `nesting.Plan` comes in, paths and words go out. Boxes above one another are tied by a curve from bottom to top,
neighbours of a row by a line between their sides or an arc above them. The ends that leave one side of a box are spread
along it in the order of where they lead, so that they do not cross there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from graphsched.explain.atlas import maps, telling
from graphsched.explain.pictures import nesting, svg

WORDS_MAX = 60
"""Edges that have words beside them; of more, only pointing at one tells."""
_WEAK, _BAD = 0.8, 0.4
_ARC, _TIP, _INSET = 26.0, 5.0, 0.16
_TRIED = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)
"""Where along a curve its words may stand, the best place first."""

_Point = tuple[float, float]
_Curve = tuple[_Point, _Point, _Point, _Point]
"""A cubic Bézier curve: start, two controls, end."""


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A drawn edge: its path, its arrow tips, its class names, and what pointing at it tells."""

    path: str
    tips: tuple[str, ...]
    style: str
    told: str


@dataclasses.dataclass(frozen=True, slots=True)
class Words:
    """Words beside an edge, around a point."""

    x: float
    y: float
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Drawn:
    """An edge, or two that say the same in both directions."""

    edge: maps.Edge
    both: bool


class _Room:
    """The parts of a picture where words may not stand."""

    def __init__(self, boxes: Sequence[nesting.Box]) -> None:
        self._taken = [(box.x, box.y, box.x + box.width, box.y + box.height) for box in boxes if not box.inside]
        self._taken += [(box.x, box.y, box.x + box.width, box.y + nesting.HEAD) for box in boxes if box.inside]

    def take(self, x: float, y: float, width: float) -> bool:
        """Reserve the place for words around a point; False where something stands there."""
        left, top, right, bottom = x - width / 2, y - 11, x + width / 2, y + 4
        if any(left < box[2] and right > box[0] and top < box[3] and bottom > box[1] for box in self._taken):
            return False
        self._taken.append((left, top, right, bottom))
        return True


def route(plan: nesting.Plan) -> tuple[list[Line], list[Words]]:
    """The curves of the plan's edges and the words beside them."""
    drawn = _merged(plan.drawn)
    ways = [_sides(plan.boxes[each.edge.source], plan.boxes[each.edge.target]) for each in drawn]
    along = _spread(plan, drawn, ways)
    room = _Room(list(plan.boxes.values()))
    paths = [
        _curve(
            _at(plan.boxes[each.edge.source], ways[number][0], along[number, 0]),
            _at(plan.boxes[each.edge.target], ways[number][1], along[number, 1]),
            ways[number],
        )
        for number, each in enumerate(drawn)
    ]
    said = [(telling.health(each.edge), telling.edge(each.edge), path) for each, path in zip(drawn, paths, strict=True)]
    spoken = sum(bool(text) for _, text, _ in said) <= WORDS_MAX
    # What is ill speaks first, so that there is room for it.
    placed = [_placed(path, text, room) for ill, text, path in sorted(said) if text and (spoken or ill < 1)]
    lines = [_line(each, path) for each, path in zip(drawn, paths, strict=True)]
    return lines, [words for words in placed if words is not None]


def _merged(edges: Sequence[maps.Edge]) -> list[_Drawn]:
    """The edges, those of a pair that says the same in both directions as one."""
    known = {(edge.source, edge.target, edge.kind): edge for edge in edges}
    found = []
    for edge in edges:
        back = known.get((edge.target, edge.source, edge.kind))
        twin = back is not None and telling.edge(back) == telling.edge(edge)
        if not twin or edge.source <= edge.target:
            found.append(_Drawn(edge, twin))
    return found


_Sides = tuple[str, str]
"""From which side of its boxes a curve goes: `top`, `bottom`, `left` or `right`."""


def _sides(a: nesting.Box, b: nesting.Box) -> _Sides:
    if a.y + a.height <= b.y:
        return "bottom", "top"
    if b.y + b.height <= a.y:
        return "top", "bottom"
    gap = max(b.x - a.x - a.width, a.x - b.x - b.width)
    if 0 <= gap <= nesting.SPOKEN_GAP + 1:
        return ("right", "left") if a.x < b.x else ("left", "right")
    return "top", "top"


def _spread(plan: nesting.Plan, drawn: Sequence[_Drawn], ways: Sequence[_Sides]) -> dict[tuple[int, int], float]:
    """(edge, end) → how far along its side the end is, 0 to 1."""
    ends: dict[tuple[str, str], list[tuple[float, int, int]]] = {}
    for number, each in enumerate(drawn):
        keys = each.edge.source, each.edge.target
        for end in (0, 1):
            side, other = ways[number][end], plan.boxes[keys[1 - end]]
            towards = other.x + other.width / 2 if side in {"top", "bottom"} else other.y + other.height / 2
            ends.setdefault((keys[end], side), []).append((towards, number, end))
    along = {}
    for waiting in ends.values():
        for place, (_, number, end) in enumerate(sorted(waiting)):
            along[number, end] = _INSET + (1 - 2 * _INSET) * (place + 1) / (len(waiting) + 1)
    return along


def _at(box: nesting.Box, side: str, along: float) -> _Point:
    if side in {"top", "bottom"}:
        return box.x + box.width * along, box.y + (box.height if side == "bottom" else 0.0)
    return box.x + (box.width if side == "right" else 0.0), box.y + box.height * along


def _curve(start: _Point, end: _Point, sides: _Sides) -> _Curve:
    (x1, y1), (x2, y2) = start, end
    if sides == ("top", "top"):
        lift = _ARC + min(60.0, abs(x2 - x1) / 8)
        top = min(y1, y2) - lift
        return start, (x1, top), (x2, top), end
    if sides[0] in {"left", "right"}:
        return start, ((x1 + x2) / 2, y1), ((x1 + x2) / 2, y2), end
    bend = max(14.0, abs(y2 - y1) * 0.42)
    down = 1 if sides[0] == "bottom" else -1
    return start, (x1, y1 + down * bend), (x2, y2 - down * bend), end


def _line(each: _Drawn, curve: _Curve) -> Line:
    start, first, second, end = curve
    path = f"M{_point(start)} C{_point(first)} {_point(second)} {_point(end)}"
    directed = each.edge.kind is not maps.Relation.CONTAINS and not each.both
    tips = (_tip(second, end),) if directed else ()
    arrow = "↔" if each.both else "→"
    lines = [f"{each.edge.source} {arrow} {each.edge.target}", f"kind: {each.edge.kind}"]
    return Line(path, tips, _style(each.edge), "\n".join([*lines, *telling.attributes(each.edge.attributes)]))


def _style(edge: maps.Edge) -> str:
    if edge.kind is not maps.Relation.LINK:
        return edge.kind.value
    health = telling.health(edge)
    if health >= _WEAK:
        return "sound"
    return "weak" if health >= _BAD else "bad"


def _tip(before: _Point, end: _Point) -> str:
    """A small triangle at the end of a curve that comes from `before`."""
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length * _TIP, dy / length * _TIP
    left = (end[0] - 1.6 * ux - 0.8 * uy, end[1] - 1.6 * uy + 0.8 * ux)
    right = (end[0] - 1.6 * ux + 0.8 * uy, end[1] - 1.6 * uy - 0.8 * ux)
    return f"M{_point(end)} L{_point(left)} {_point(right)} Z"


def _placed(curve: _Curve, said: str, room: _Room) -> Words | None:
    """The words where nothing is in their way; nowhere if there is no such place."""
    for share in _TRIED:
        x, y = _on(curve, share)
        if room.take(x, y, len(said) * nesting.CHAR * 0.9):
            return Words(x, y, said)
    return None


def _on(curve: _Curve, t: float) -> _Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    return (
        sum(weight * point[0] for weight, point in zip(weights, curve, strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, curve, strict=True)) + 4,
    )


def _point(point: _Point) -> str:
    return f"{svg.number(point[0])} {svg.number(point[1])}"
