"""A run as one HTML page that can be mailed: figures, pictures, explanations, everything inline.

A `Page` of finished values comes in, text goes out. The page asks nobody for anything when it is opened and holds no
script; it follows the reader's light or dark setting.
"""

from __future__ import annotations

import functools

import jinja2
import msgspec

PENDING_MAX = 500
"""Pending pods listed by name."""


class Tile(msgspec.Struct, frozen=True, gc=False):
    """One figure with what it counts; `tone` is `good`, `bad` or empty."""

    figure: str
    words: str
    tone: str = ""


class Picture(msgspec.Struct, frozen=True, gc=False):
    """A picture with its heading, a sentence on how to read it, and a legend of (class name, meaning).

    `markup` goes into the page as it is: `pictures` makes it and escapes what it is given.
    """

    title: str
    caption: str
    markup: str
    legend: tuple[tuple[str, str], ...] = ()


class Page(msgspec.Struct, frozen=True, gc=False):
    """What the page shows, from top to bottom.

    Attributes:
        title: Of the page.
        subtitle: One sentence under it.
        tiles: Figures.
        pictures: In order.
        explanations: (heading, text of an explanation).
        pending: (pod, message) of pods that found no node.
        footer: The last line.
    """

    title: str
    subtitle: str
    tiles: tuple[Tile, ...]
    pictures: tuple[Picture, ...]
    explanations: tuple[tuple[str, str], ...] = ()
    pending: tuple[tuple[str, str], ...] = ()
    footer: str = ""


def html(page: Page) -> str:
    """The page."""
    return _environment().get_template("report.html.j2").render(page=page, pending_max=PENDING_MAX)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("graphsched.explain", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
