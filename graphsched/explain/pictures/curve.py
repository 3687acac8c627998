"""How utilisation grew with every arrival.

Series of shares come in, a line chart goes out, each line with its name at its end instead of a legend to look up.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graphsched.explain.pictures import svg

WIDTH, HEIGHT = 1120.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 150.0, 14.0, 34.0
POINTS_MAX = 560
"""Of a line: two pixels each are more than anybody sees."""


class Series(msgspec.Struct, frozen=True, gc=False):
    """One line: its name, its shares (0 to 1 and above) at equal steps, and its class name for the colour."""

    name: str
    values: tuple[float, ...]
    style: str


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Something that happened at a step."""

    at: int
    words: str


def draw(series: Sequence[Series], *, axis: str, marks: Sequence[Mark] = ()) -> str:
    """The chart; `axis` names the horizontal axis. All series have the same length."""
    steps = max((len(each.values) for each in series), default=0)
    top = max(1.0, *(max(each.values, default=0.0) for each in series)) if series else 1.0
    drawn = [*_grid(top), *_steps(steps, axis)]
    for mark in marks:
        x = _x(mark.at, steps)
        # Words stand on the side where there is room for them.
        right = x < WIDTH / 2
        drawn.append(svg.element("line", x1=x, y1=_TOP, x2=x, y2=HEIGHT - _BOTTOM, class_="mark"))
        drawn.append(
            svg.text(
                x + (6 if right else -6), _TOP + 12, mark.words, anchor="start" if right else "end", class_="marked"
            )
        )
    drawn.extend(
        svg.element("path", d=_path(each.values, top), class_=f"line {each.style}", fill="none") for each in series
    )
    drawn.extend(_names(series, top))
    return svg.picture(WIDTH, HEIGHT, drawn, label=f"Utilisation over {axis}")


def _x(step: float, steps: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * step / max(1, steps - 1)


def _y(share: float, top: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share / top


def _grid(top: float) -> list[str]:
    drawn = []
    for percent in range(0, int(top * 100) + 1, 25):
        y = _y(percent / 100, top)
        drawn.append(svg.element("line", x1=_LEFT, y1=y, x2=WIDTH - _RIGHT, y2=y, class_="grid"))
        drawn.append(svg.text(_LEFT - 8, y + 4, f"{percent} %", anchor="end", class_="tick"))
    return drawn


def _steps(steps: int, axis: str) -> list[str]:
    y = HEIGHT - _BOTTOM + 18
    drawn = [
        svg.text(_x(step, steps), y, f"{step:,}", anchor="middle", class_="tick")
        for step in sorted({0, steps // 4, steps // 2, 3 * steps // 4})
    ]
    return [*drawn, svg.text(WIDTH - _RIGHT, y, f"{steps:,} {axis}", anchor="end", class_="tick")]


def _path(values: Sequence[float], top: float) -> str:
    stride = max(1, len(values) // POINTS_MAX)
    chosen = sorted({*range(0, len(values), stride), len(values) - 1} - {-1})
    points = [f"{svg.number(_x(step, len(values)))} {svg.number(_y(values[step], top))}" for step in chosen]
    return "M" + "L".join(points) if points else ""


def _names(series: Sequence[Series], top: float) -> list[str]:
    """Names at the ends of the lines, pushed apart where the lines end close together."""
    # Lines that end at one height keep their order.
    ends = sorted(((_y(each.values[-1], top), each) for each in series if each.values), key=lambda end: end[0])
    drawn, below = [], -100.0
    for y, each in ends:
        below = max(y, below + 17)
        words = f"{each.name} {100 * each.values[-1]:.1f} %"
        drawn.append(svg.text(WIDTH - _RIGHT + 8, below + 4, words, class_=f"name {each.style}"))
    return drawn
