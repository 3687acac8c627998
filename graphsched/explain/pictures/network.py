"""A map of the graph as one SVG file: boxes within boxes, links as arcs, colours for what hurts.

A `maps.Map` comes in, markup goes out, with its own style sheet for light and dark: it can be opened, mailed and put
into a page. Pointing at anything shows all that is known of it.
"""

from __future__ import annotations

import math

from graphsched.base.values import errors
from graphsched.explain.atlas import maps, telling
from graphsched.explain.pictures import curves, nesting, svg

VERTICES_MAX, EDGES_MAX = 400, 1200
"""What a picture holds before nobody can read it."""
_MARGIN, _LEGEND_ROW = 24.0, 26.0
_SHADES = ("sound", "weak", "bad")
_WORDS = {
    "node": "node",
    "pod": "pod",
    "domain": "domain",
    "place": "switch or other place",
    "device": "device",
    "rule": "rule",
    "group": "group",
    "workload": "workload",
    "selection": "Service or controller",
}
_LINES = {
    "sound": "link in health",
    "weak": "link below 0.8",
    "bad": "link below 0.4",
    "contains": "holds as well",
    "selects": "selects",
    "calls": "calls",
    "depends_on": "depends on",
}
_STYLE = """
svg { font: 12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
text { fill: #1d2733; } .soft { fill: #5d6b7a; } .paper { fill: #fbfaf7; }
.box { stroke: #d5d2c8; } .d0 { fill: #f3f1ea; } .d1 { fill: #faf9f5; } .d2 { fill: #ffffff; }
.chip { fill: #ffffff; stroke: #c3cad2; } .name { font-weight: 600; }
.k-node { fill: #1c7078; } .k-pod { fill: #e09f3e; } .k-domain { fill: #8b97a5; } .k-place { fill: #8367c7; }
.k-device { fill: #43a79c; } .k-rule { fill: #c8553d; } .k-group { fill: #34659b; } .k-workload { fill: #6f9bd1; }
.k-selection { fill: #a9874b; } .track { fill: #e6eaee; } .fill { fill: #3a9f96; } .full { fill: #c8553d; }
.line { fill: none; stroke: #8b97a5; stroke-width: 1.4; } .sound { stroke: #3a9f96; stroke-width: 1.8; }
.weak { stroke: #e09f3e; stroke-width: 2.2; } .bad { stroke: #c8553d; stroke-width: 2.2; stroke-dasharray: 6 3; }
.contains { stroke-dasharray: 1 4; stroke-linecap: round; } .selects { stroke: #a9b4c0; stroke-dasharray: 4 3; }
.calls { stroke: #34659b; } .depends_on { stroke: #34659b; stroke-dasharray: 5 3; }
.said { font-size: 11px; paint-order: stroke; stroke: #fbfaf7; stroke-width: 4px; stroke-linejoin: round; }
.tip { fill: #8b97a5; } .tip.sound { fill: #3a9f96; } .tip.weak { fill: #e09f3e; } .tip.bad { fill: #c8553d; }
.tip.calls, .tip.depends_on { fill: #34659b; } .tip { stroke: none; }
@media (prefers-color-scheme: dark) {
text { fill: #e8ecf0; } .soft { fill: #98a6b5; } .paper { fill: #14191f; } .said { stroke: #14191f; }
.box { stroke: #35414d; } .d0 { fill: #1a2129; } .d1 { fill: #202933; } .d2 { fill: #27323d; }
.chip { fill: #2b3742; stroke: #465563; } .track { fill: #3a4652; }
}
"""


def draw(shown: maps.Map) -> str:
    """The picture.

    Raises:
        InputError: It would hold more than anybody can read.
    """
    _require_legible(shown)
    plan = nesting.plan(shown)
    lines, words = curves.route(plan)
    keys = sorted({vertex.kind for vertex in shown.vertices}, key=list(_WORDS).index)
    used = [style for style in _LINES if any(line.style == style for line in lines)]
    width = max(plan.width, 360.0) + 2 * _MARGIN
    legend, legend_height = _legend(keys, used, width)
    height = plan.height + legend_height + 3 * _MARGIN
    inside = [
        *(_container(box) for box in plan.boxes.values() if box.inside),
        *(_line(line) for line in lines),
        *(_chip(box) for box in plan.boxes.values() if not box.inside),
        *(svg.text(said.x, said.y, said.words, anchor="middle", class_="said") for said in words),
    ]
    content = [
        svg.element("style", _STYLE),
        svg.element("rect", x=0.0, y=0.0, width=width, height=height, class_="paper"),
        svg.element("g", inside, transform=f"translate({svg.number((width - plan.width) / 2)} {_MARGIN:g})"),
        svg.element("g", legend, transform=f"translate({_MARGIN:g} {svg.number(plan.height + 2 * _MARGIN)})"),
    ]
    told = f"The graph: {len(shown.vertices)} vertices, {len(shown.edges)} edges"
    return svg.picture(width, height, content, label=told, size=True) + "\n"


def _require_legible(shown: maps.Map) -> None:
    if not shown.vertices:
        raise errors.InputError("graph", problem="there is nothing to draw", remedy="choose another --layer")
    for number, most, what in (
        (len(shown.vertices), VERTICES_MAX, "vertices"),
        (len(shown.edges), EDGES_MAX, "edges"),
    ):
        if number > most:
            raise errors.InputError(
                "graph",
                problem=f"a picture of {number:,} {what} could not be read; at most {most:,} fit",
                remedy="narrow it with --layer, --around and --depth or --without pod, or take --output dot or json",
            )


def _container(box: nesting.Box) -> str:
    vertex = box.vertex
    shade = f"box d{min(box.depth, 2)}"
    about = telling.used(vertex.attributes)
    count = about if about and len(about) * nesting.CHAR < box.width - 120 else ""
    parts = [
        _title(vertex),
        svg.element("rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=8, class_=shade),
        svg.element("circle", cx=box.x + 15, cy=box.y + 13, r=4, class_=f"k-{vertex.kind}"),
        svg.text(box.x + 25, box.y + 17, _fitted(vertex.name, box.width - 32), class_="name"),
    ]
    if count:
        parts.append(svg.text(box.x + box.width - 10, box.y + 17, count, anchor="end", class_="soft"))
    return svg.element("g", parts)


def _chip(box: nesting.Box) -> str:
    vertex = box.vertex
    parts = [
        _title(vertex),
        svg.element("rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=5, class_="chip"),
        svg.element("rect", x=box.x, y=box.y + 5, width=4.0, height=box.height - 10, rx=2, class_=f"k-{vertex.kind}"),
        svg.text(
            box.x + box.width / 2 + 2,
            box.y + 18,
            _fitted(vertex.name, box.width - 18),
            anchor="middle",
            class_="chipped",
        ),
    ]
    share = telling.share(vertex.attributes)
    if share is not None:
        room = box.width - 16
        parts.append(svg.element("rect", x=box.x + 8, y=box.y + 23, width=room, height=3, rx=1, class_="track"))
        filled = "fill" if share < 1 else "full"
        length = room * min(1.0, share)
        if length:
            parts.append(svg.element("rect", x=box.x + 8, y=box.y + 23, width=length, height=3, rx=1, class_=filled))
    return svg.element("g", parts)


def _line(line: curves.Line) -> str:
    parts = [svg.title(line.told), svg.element("path", d=line.path, class_=f"line {line.style}")]
    parts += [svg.element("path", d=tip, class_=f"tip {line.style}") for tip in line.tips]
    return svg.element("g", parts)


def _title(vertex: maps.Vertex) -> str:
    used = telling.used(vertex.attributes)
    lines = [vertex.key, *([used] if used else []), *telling.attributes(vertex.attributes)]
    return svg.title("\n".join(lines))


def _fitted(words: str, room: float) -> str:
    most = max(3, math.floor(room / nesting.CHAR))
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _legend(kinds: list[str], lines: list[str], width: float) -> tuple[list[str], float]:
    """What the colours mean, in as many rows as it takes, and its height."""
    parts: list[str] = []
    x, y = 0.0, 0.0
    for name, words in [*((kind, _WORDS[kind]) for kind in kinds), *((line, _LINES[line]) for line in lines)]:
        length = 34 + len(words) * nesting.CHAR
        if x and x + length > width - 2 * _MARGIN:
            x, y = 0.0, y + _LEGEND_ROW
        if name in _WORDS:
            parts.append(svg.element("circle", cx=x + 8, cy=y - 4, r=5, class_=f"k-{name}"))
        else:
            parts.append(svg.element("path", d=f"M{svg.number(x)} {svg.number(y - 4)} h20", class_=f"line {name}"))
        parts.append(svg.text(x + (20 if name in _WORDS else 26), y, words, class_="soft"))
        x += length + 8
    return parts, y
