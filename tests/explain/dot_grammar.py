"""The grammar of DOT, as far as a digraph of quoted names needs it: what does not parse is an error.

graph: `digraph ID { stmt* }`; stmt: `ID ATTRS? ;` or `ID -> ID ATTRS? ;`; ATTRS: `[ ID = ID (, ID = ID)* ]`.
"""

from __future__ import annotations

import collections
import re

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([A-Za-z_][A-Za-z_0-9]*)|(->|[{}\[\]=,;]))', re.DOTALL)
_DEFAULTS = frozenset({"graph", "node", "edge"})

Attributes = dict[str, str]


def parse(text: str) -> tuple[dict[str, Attributes], list[tuple[str, str, Attributes]]]:
    """The vertices and edges of a document, strings without their quotes and escapes.

    Raises:
        ValueError: It is no digraph of this grammar.
    """
    tokens = _tokens(text)
    _expect(tokens, "digraph")
    _name(tokens)
    _expect(tokens, "{")
    vertices: dict[str, Attributes] = {}
    edges: list[tuple[str, str, Attributes]] = []
    while tokens[0] != "}":
        quoted = tokens[0].startswith('"')
        first = _name(tokens)
        if tokens[0] == "->":
            tokens.popleft()
            second = _name(tokens)
            edges.append((first, second, _attributes(tokens)))
        elif quoted or first not in _DEFAULTS:
            vertices[first] = _attributes(tokens)
        else:
            _attributes(tokens)
        _expect(tokens, ";")
    _expect(tokens, "}")
    if list(tokens) != ["end"]:
        message = f"something follows the graph: {tokens[0]}"
        raise ValueError(message)
    return vertices, edges


def _tokens(text: str) -> collections.deque[str]:
    found, place, end = collections.deque[str](), 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            message = f"no token at {text[place : place + 30]!r}"
            raise ValueError(message)
        found.append(next(group for group in match.groups() if group is not None))
        place = match.end()
    found.append("end")
    return found


def _expect(tokens: collections.deque[str], wanted: str) -> None:
    found = tokens.popleft()
    if found != wanted:
        message = f"{found} where {wanted} should be"
        raise ValueError(message)


def _name(tokens: collections.deque[str]) -> str:
    found = tokens.popleft()
    if found.startswith('"'):
        return re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], found[1:-1])
    if not found.isidentifier():
        message = f"{found} where a name should be"
        raise ValueError(message)
    return found


def _attributes(tokens: collections.deque[str]) -> Attributes:
    found: Attributes = {}
    if tokens[0] != "[":
        return found
    tokens.popleft()
    while True:
        name = _name(tokens)
        _expect(tokens, "=")
        found[name] = _name(tokens)
        if tokens.popleft() == "]":
            return found
