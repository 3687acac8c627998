"""Markup of SVG: elements, escaped, with short numbers.

The pictures build on it. Colours are not said here or there but by class names, which the report's style sheet turns
into a light or a dark palette.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def number(value: float) -> str:
    """A coordinate with at most one decimal: a picture of ten thousand cells is mostly numbers."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def element(tag: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """An element. `content` is markup already; attributes are escaped, `_` in their names stands for `-`."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>"


def text(x: float, y: float, words: str, *, anchor: str = "start", class_: str = "") -> str:
    """Words at a place."""
    return element("text", _escaped(words), x=x, y=y, text_anchor=anchor, class_=class_ or None)


def title(words: str) -> str:
    """What a reader sees on pointing at the element this is the first child of."""
    return element("title", _escaped(words))


def picture(width: float, height: float, content: Iterable[str], *, label: str, size: bool = False) -> str:
    """A whole picture that scales with the page; `label` is what it shows, for those who can not see it.

    With `size` it also says how large it is by itself, for a file of its own.
    """
    return element(
        "svg",
        content,
        width=width if size else None,
        height=height if size else None,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )


def _attribute(value: object) -> str:
    return number(value) if isinstance(value, float) else _escaped(str(value))


def _escaped(words: str) -> str:
    """Words as markup; what XML has no way to write at all becomes a mark in its place."""
    return html.escape(_UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", words))
