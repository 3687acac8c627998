"""Counts side by side: what refused the pending pods, which sizes found a place.

Rows come in, a bar chart goes out. Each row's parts stand one after the other on a common scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graphsched.explain.pictures import svg

WIDTH = 1120.0
_LABEL, _RIGHT, _ROW, _BAR = 330.0, 120.0, 30.0, 18.0


class Row(msgspec.Struct, frozen=True, gc=False):
    """One bar: its label, its parts as (count, class name, what they are), and the words at its end."""

    label: str
    parts: tuple[tuple[int, str, str], ...]
    words: str = ""


def draw(rows: Sequence[Row], *, label: str) -> str:
    """The chart; `label` says what is counted."""
    most = max((sum(count for count, _, _ in row.parts) for row in rows), default=0) or 1
    room = WIDTH - _LABEL - _RIGHT
    drawn = []
    for index, row in enumerate(rows):
        top = index * _ROW
        drawn.append(svg.text(_LABEL - 12, top + _BAR - 4, row.label, anchor="end", class_="label"))
        x = _LABEL
        for count, style, words in row.parts:
            # A part that is there is seen, however small.
            width = max(1.5, room * count / most) if count else 0.0
            if width:
                bar = svg.element(
                    "rect", svg.title(f"{words}: {count:,}"), x=x, y=top, width=width, height=_BAR, class_=style
                )
                drawn.append(bar)
            x += width
        total = sum(count for count, _, _ in row.parts)
        drawn.append(svg.text(x + 8, top + _BAR - 4, row.words or f"{total:,}", class_="value"))
    return svg.picture(WIDTH, max(len(rows) * _ROW, 1.0), drawn, label=label)
