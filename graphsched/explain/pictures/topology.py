"""The cluster at a glance: every node a glyph, grouped by what it is, coloured by how full it is.

`Glyph`s come in, one a node, already measured by the caller; a picture goes out. A node with GPUs shows a cell for
each; one without shows a single cell for its CPU. The line below the cells is the CPU in use: a free cell over a full
line is a GPU nobody can reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from graphsched.explain.pictures import svg

WIDTH = 1120.0
_CELL, _GAP, _PAD, _LINE = 6.0, 1.0, 1.5, 2.5
_NODE_GAP = 3.0
_HEAD = 20.0
_GROUP_GAP = 14.0
CLASSES = 6
"""Shades of a cell: free, four quarters, full."""


class Glyph(msgspec.Struct, frozen=True, gc=False):
    """A node to be drawn.

    Attributes:
        group: What it is, e.g. `G2: 8 GPUs, 96 CPUs`; nodes of one group stand together.
        cells: Share in use of each GPU, or of the CPU alone for a node without GPUs; 0 to 1.
        cpu: Share of the CPU in use.
        words: What a reader sees on pointing at it.
    """

    group: str
    cells: tuple[float, ...]
    cpu: float
    words: str


def shade(share: float) -> int:
    """0 for nothing in use, 5 for full, 1 to 4 for the quarters between."""
    if share <= 0:
        return 0
    return CLASSES - 1 if share >= 1 else 1 + min(3, int(share * 4))


def draw(glyphs: Iterable[Glyph]) -> str:
    """The picture; groups in order of first appearance."""
    groups: dict[str, list[Glyph]] = {}
    for glyph in glyphs:
        groups.setdefault(glyph.group, []).append(glyph)
    y, drawn = 0.0, []
    for name, members in groups.items():
        markup, height = _group(name, members, y)
        drawn.append(markup)
        y += height + _GROUP_GAP
    return svg.picture(WIDTH, max(y - _GROUP_GAP, 1.0), drawn, label="Nodes by kind, coloured by utilisation")


def legend() -> Sequence[tuple[str, str]]:
    """(class name, meaning) of each shade."""
    words = ("free", "up to a quarter", "up to a half", "up to three quarters", "nearly full", "full")
    return [(f"u{number}", word) for number, word in enumerate(words)]


def _group(name: str, members: list[Glyph], top: float) -> tuple[str, float]:
    columns, rows = _grid(max(len(glyph.cells) for glyph in members))
    width = columns * (_CELL + _GAP) - _GAP + 2 * _PAD
    height = rows * (_CELL + _GAP) - _GAP + 2 * _PAD + _LINE + _GAP
    per_row = max(1, int((WIDTH + _NODE_GAP) // (width + _NODE_GAP)))
    head = svg.text(0, top + 12, f"{name} · {len(members):,} {'node' if len(members) == 1 else 'nodes'}", class_="head")
    drawn = [head]
    for index, glyph in enumerate(members):
        x = index % per_row * (width + _NODE_GAP)
        y = top + _HEAD + index // per_row * (height + _NODE_GAP)
        drawn.append(_node(glyph, x, y, columns, width=width, height=height))
    lines = math.ceil(len(members) / per_row)
    return "".join(drawn), _HEAD + lines * (height + _NODE_GAP) - _NODE_GAP


def _grid(cells: int) -> tuple[int, int]:
    """Columns and rows of the cells of one node: wide rather than high."""
    columns = cells if cells <= 2 else math.ceil(cells / 2)
    return columns, math.ceil(cells / columns)


def _node(glyph: Glyph, x: float, y: float, columns: int, *, width: float, height: float) -> str:
    paths: dict[int, list[str]] = {}
    for index, share in enumerate(glyph.cells):
        left = _PAD + index % columns * (_CELL + _GAP)
        top = _PAD + index // columns * (_CELL + _GAP)
        paths.setdefault(shade(share), []).append(
            f"M{svg.number(left)} {svg.number(top)}h{_CELL:.0f}v{_CELL:.0f}h-{_CELL:.0f}z"
        )
    inner = width - 2 * _PAD
    base = height - _PAD - _LINE
    return svg.element(
        "g",
        [
            svg.title(glyph.words),
            svg.element("rect", width=width, height=height, rx=1.5, class_="node"),
            *(svg.element("path", d="".join(path), class_=f"u{number}") for number, path in sorted(paths.items())),
            svg.element("rect", x=_PAD, y=base, width=inner, height=_LINE, class_="cpu0"),
            svg.element("rect", x=_PAD, y=base, width=inner * min(1.0, glyph.cpu), height=_LINE, class_="cpu1"),
        ],
        transform=f"translate({svg.number(x)} {svg.number(y)})",
    )
