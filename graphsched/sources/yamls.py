"""YAML the way Kubernetes tools read it, from people who may not mean well.

Text comes in, documents of plain mappings, lists and scalars go out, each with the line it begins on; `documents` says
which file it was. The parser's events are put together here rather than by its own constructor: that one lets a
repeated key win silently, turns `2024-01-01` into a date and `1:30` into 90, and builds whatever aliases ask for.

Invariants: nesting, expansion of aliases and the length of numbers are bounded; every failure is an `InputError` with
line and column; the values of an anchor are shared, so nobody may change what comes out.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator

import yaml

from graphsched.base.values import errors

DEPTH_MAX = 100
"""Levels of nesting. A pod has about 12."""
EXPANSION_MAX = 1_000_000
"""Values that aliases may add to one document."""
_NUMBER_LENGTH_MAX = 64
"""Longer digits are no number the API knows; they stay text, and text is told apart from numbers later."""

_SHOWN_MAX = 60

_Parser: typing.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0b_*[01][01_]*|0o_*[0-7][0-7_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMERIC_START = frozenset("0123456789+-.")


class Document(typing.NamedTuple):
    """A document and the line it begins on, counted from 1."""

    line: int
    body: object


class _Frame:
    """A mapping or list that is still open."""

    __slots__ = ("anchor", "key", "merges", "size", "value")

    def __init__(self, value: dict[object, object] | list[object], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: object = _NO_KEY
        self.merges: list[object] = []
        self.size = 1


_NO_KEY = object()
_MERGE = object()


def load(text: str) -> Iterator[Document]:
    """The documents of a text, empty ones left out.

    Raises:
        InputError: The text is no YAML, or one beyond the bounds above; the place is `line:column`.
    """
    parser = _Parser(text)
    try:
        builder = _Builder()
        while True:
            event = parser.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                return
            document = builder.feed(event)
            if document is not None and document.body is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _mistake(mark, _sentence(error), _remedy(error)) from error
    except yaml.reader.ReaderError as error:
        raise errors.InputError(
            problem=f"holds the control character #x{_code(error):02x}",
            remedy="remove it",
        ) from error
    except RecursionError as error:
        raise errors.InputError(problem=f"is nested deeper than {DEPTH_MAX} levels", remedy="flatten it") from error
    finally:
        parser.dispose()


class _Builder:
    """Puts events together, one document after the other."""

    def __init__(self) -> None:
        self._open: list[_Frame] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._expanded = 0
        self._line = 0

    def feed(self, event: typing.Any) -> Document | None:
        """Take an event; a finished document comes back."""
        if isinstance(event, yaml.ScalarEvent):
            return self._add(event, self._scalar(event), anchor=event.anchor)
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event)
            return None
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            return self._end(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}
            self._expanded = 0
            self._line = 0
        return None

    def _begin(self, event: typing.Any) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise _mistake(event.start_mark, f"is nested deeper than {DEPTH_MAX} levels", "flatten it")
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag is not None and event.tag not in {"!", _TAG + ("map" if mapping else "seq")}:
            raise _mistake(event.start_mark, f'the tag "{event.tag}" is not supported', "leave it out")
        if self._open and self._open[-1].key is _NO_KEY and isinstance(self._open[-1].value, dict):
            raise _mistake(event.start_mark, "a key is a mapping or list, not a text", "write a text")
        self._line = self._line or event.start_mark.line + 1
        self._open.append(_Frame({} if mapping else [], event.anchor))

    def _end(self, event: typing.Any) -> Document | None:
        frame = self._open.pop()
        if frame.merges and isinstance(frame.value, dict):
            merged: dict[object, object] = {}
            for source in frame.merges:
                for entry in source if isinstance(source, list) else [source]:
                    if not isinstance(entry, dict):
                        raise _mistake(event.start_mark, "only mappings can be merged by <<", "name a mapping")
                    merged = {**entry, **merged}
            frame.value = {**merged, **frame.value}
        return self._add(event, frame.value, anchor=frame.anchor, size=frame.size)

    def _alias(self, event: typing.Any) -> Document | None:
        known = self._anchors.get(event.anchor)
        if known is None:
            inside = any(frame.anchor == event.anchor for frame in self._open)
            problem = f'alias "*{event.anchor}" ' + ("contains itself" if inside else "has no anchor")
            raise _mistake(event.start_mark, problem, "write the value out")
        value, size = known
        self._expanded += size
        if self._expanded > EXPANSION_MAX:
            problem = f"its aliases stand for more than {EXPANSION_MAX:,} values"
            raise _mistake(event.start_mark, problem, "write the values out")
        return self._add(event, value, size=size)

    def _add(self, event: typing.Any, value: object, *, anchor: str | None = None, size: int = 1) -> Document | None:
        """Put a finished value where it belongs: into what is open, or out as the document."""
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            return Document(self._line or event.start_mark.line + 1, value)
        frame = self._open[-1]
        frame.size += size
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is _NO_KEY:
            self._take_key(event, frame, value)
        elif frame.key is _MERGE:
            frame.merges.append(value)
            frame.key = _NO_KEY
        else:
            frame.value[frame.key] = value
            frame.key = _NO_KEY
        return None

    def _take_key(self, event: typing.Any, frame: _Frame, key: object) -> None:
        if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            frame.key = _MERGE
            return
        if isinstance(key, dict | list):
            raise _mistake(event.start_mark, "a key is a mapping or list, not a text", "write a text")
        if isinstance(frame.value, dict) and key in frame.value:
            raise _mistake(event.start_mark, f'the key "{shortened(str(key))}" appears twice', "remove one")
        frame.key = key

    def _scalar(self, event: typing.Any) -> object:
        if event.tag is not None:
            return event.value if event.tag == "!" else _tagged(event)
        # Only what stands without quotes can be anything but text.
        return _resolve(event.value) if event.implicit[0] else event.value


def shortened(text: str) -> str:
    """The text on one line and at a length that leaves room for a sentence about it."""
    return text[:_SHOWN_MAX].encode("unicode_escape").decode() + ("…" if len(text) > _SHOWN_MAX else "")


def _resolve(text: str) -> object:
    """What an unquoted scalar means in YAML 1.1 without dates and base 60."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _NUMERIC_START and len(text) <= _NUMBER_LENGTH_MAX:
        if _INTEGER.fullmatch(text):
            return _integer(text)
        if _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    unsigned = digits.lstrip("+-")
    if unsigned.startswith("0") and unsigned.isdigit() and len(unsigned) > 1:
        return int(digits, 8)
    return int(digits, 0)


def _tagged(event: typing.Any) -> object:
    kind = event.tag.removeprefix(_TAG)
    if kind == "str":
        return event.value
    value = _resolve(event.value)
    types: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
    if kind not in types:
        raise _mistake(event.start_mark, f'the tag "{event.tag}" is not supported', "leave it out")
    if not isinstance(value, types[kind]):
        raise _mistake(event.start_mark, f'"{event.value}" is no {kind}', "correct the value or its tag")
    return value


def _mistake(mark: typing.Any, problem: str, remedy: str) -> errors.InputError:
    place = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
    return errors.InputError(place, problem=problem, remedy=remedy)


def _sentence(error: yaml.MarkedYAMLError) -> str:
    return f"broken YAML: {error.problem or error.context or 'cannot be parsed'}"


def _remedy(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if "'\\t'" in problem:
        return "indent with spaces, not tabs"
    if "nesting depth" in problem:
        return f"flatten it to {DEPTH_MAX} levels"
    return error.context or "check quotes and indentation here and on the line before"


def _code(error: yaml.reader.ReaderError) -> int:
    return error.character if isinstance(error.character, int) else ord(error.character)
