"""Changes of an edge table as bytes, and back without an object for any edge.

`schemas/edge_columns.fbs` describes the bytes. Decoding maps the columns where they lie in the message and checks them
whole, in vectors: order, range, kinds, weights. Names are left encoded until somebody asks for one, so that what it
costs to take a message does not grow with objects per edge or per name.

Comes in: changes; untrusted bytes. Goes out: bytes; changes that are well formed. Invariants: `decode(encode(c)) == c`;
`decode` never raises, whatever the bytes.
"""

from __future__ import annotations

import itertools
import struct
import typing
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from graphsched.graph import codec, delta, edges, envelope, wire

FORMAT = 1
KIND = envelope.Kind("encoded edges", "table of edges", b"GSEC", FORMAT)

_VECTORS: dict[str, tuple[int, np.dtype[np.generic]]] = {
    "text": (3, np.dtype(np.uint8)),
    "text_ends": (4, np.dtype("<u4")),
    "removed": (5, np.dtype("<u8")),
    "ids": (6, np.dtype("<u8")),
    "weights": (7, np.dtype("<f4")),
}
"""Name → field id in the schema and row type."""
_EPOCH, _GENERATION, _KNOWN = 0, 1, 2
_FIELDS = 8
_HEAD = struct.Struct("<I4s 10H i qqI 5I")
_LENGTH = struct.Struct("<I")
_VTABLE, _VTABLE_BYTES = 8, 4 + 2 * _FIELDS
_TABLE, _TABLE_END = 28, 72
_EPOCH_AT, _GENERATION_AT, _KNOWN_AT = 4, 12, 20
_FIELD_AT = {"text": 24, "text_ends": 28, "removed": 32, "ids": 36, "weights": 40}
"""Within the table, whose 64-bit numbers so stand at multiples of 8 in the buffer."""
_CONTINUES_MASK, _CONTINUES = 0xC0, 0x80
"""A byte of UTF-8 that goes on with a character has these two bits."""


class Message(typing.NamedTuple):
    """A change, and where it belongs.

    Attributes:
        change: What happened.
        epoch: The life of the table it is about.
        base, generation: It leads from the one to the other; both are the same for a whole table.
    """

    change: edges.Change
    epoch: int
    base: int
    generation: int


class _Names(Sequence[str]):
    """Names as they came, each made when it is asked for."""

    def __init__(self, text: bytes, ends: npt.NDArray[np.uint32]) -> None:
        self._text = text
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @typing.overload
    def __getitem__(self, place: int) -> str: ...

    @typing.overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        number = range(len(self))[place]
        start = int(self._ends[number - 1]) if number else 0
        return self._text[start : int(self._ends[number])].decode()

    def __iter__(self) -> Iterator[str]:
        bounds = [0, *self._ends.tolist()]
        return (self._text[start:end].decode() for start, end in itertools.pairwise(bounds))


def encode(message: Message) -> bytes:
    """The message as bytes.

    The table is always laid out alike, so it is written as a whole; the builder of the library costs ten times as much.

    Raises:
        OverflowError: A number does not fit its column.
    """
    change = message.change
    encoded = [name.encode() for name in change.names]
    columns = {
        "ids": change.ids.astype("<u8", copy=False).tobytes(),
        "removed": change.removed.astype("<u8", copy=False).tobytes(),
        "weights": change.weights.astype("<f4", copy=False).tobytes(),
        "text_ends": np.array(list(itertools.accumulate(map(len, encoded))), "<u4").tobytes(),
        "text": b"".join(encoded),
    }
    parts, end, offsets = [b""], _TABLE_END, dict.fromkeys(_VECTORS, 0)
    for name, data in columns.items():
        if not data:
            continue
        # Its length stands right before the rows, which begin where their width asks for it.
        padding = -(end + _LENGTH.size) % 8
        offsets[name] = end + padding
        parts += [bytes(padding), _LENGTH.pack(len(data) // _VECTORS[name][1].itemsize), data]
        end += padding + _LENGTH.size + len(data)
    try:
        parts[0] = _head(message, offsets)
    except struct.error as error:
        raise OverflowError(str(error)) from error
    return envelope.seal(KIND, b"".join(parts), base_generation=message.base)


def _head(message: Message, offsets: dict[str, int]) -> bytes:
    """Everything before the vectors: where the table is, which fields it has, and the table."""
    # A field that is left out has the place 0; where a vector is, is counted from its field.
    places = (_EPOCH_AT, _GENERATION_AT, _KNOWN_AT, *(at if offsets[name] else 0 for name, at in _FIELD_AT.items()))
    fields = (_TABLE + at for at in _FIELD_AT.values())
    forward = (offsets[name] and offsets[name] - field for name, field in zip(_FIELD_AT, fields, strict=True))
    layout = (_TABLE, KIND.identifier, _VTABLE_BYTES, _TABLE_END - _TABLE, *places, _TABLE - _VTABLE)
    return _HEAD.pack(*layout, message.epoch, message.generation, message.change.known, *forward)


def decode(data: bytes, *, kinds: int, limits: codec.Limits = codec.DEFAULT_LIMITS) -> Message | delta.Refused:
    """The message in these bytes, or why they are refused (reason `invalid`). Never raises.

    Args:
        data: Anything.
        kinds: Edges are of kinds below this number.
        limits: What the receiver is ready to take.
    """
    found = envelope.opened(KIND, data, bytes_max=limits.bytes_max)
    if isinstance(found, delta.Refused):
        return found
    head, buffer = found
    slots = wire.root_slots(buffer, KIND.identifier, _FIELDS)
    if isinstance(slots, str):
        return envelope.refused(KIND, slots)
    columns: dict[str, npt.NDArray[typing.Any]] = {}
    for name, (slot, dtype) in _VECTORS.items():
        column = wire.mapped(buffer, slots.get(slot), dtype, len(buffer) if name == "text" else limits.rows_max)
        if isinstance(column, str):
            return envelope.refused(KIND, f"{name}: {column}")
        columns[name] = column
    scalars = _scalars(buffer, slots)
    if isinstance(scalars, str):
        return envelope.refused(KIND, scalars)
    epoch, generation, known = scalars
    text = columns["text"].tobytes()
    problem = (
        _name_problem(text, columns["text_ends"])
        or _edge_problem(columns, known + len(columns["text_ends"]), kinds)
        or ("it leads back" if generation < head.base_generation else None)
    )
    if problem:
        return envelope.refused(KIND, problem)
    names = _Names(text, columns["text_ends"]) if text or len(columns["text_ends"]) else ()
    change = edges.Change(columns["removed"], columns["ids"], columns["weights"], known, names)
    return Message(change, epoch, head.base_generation, generation)


def _scalars(buffer: memoryview, slots: dict[int, int]) -> tuple[int, int, int] | str:
    values = []
    for slot, layout in ((_EPOCH, "<q"), (_GENERATION, "<q"), (_KNOWN, "<I")):
        at = slots.get(slot)
        if at is not None and at + struct.calcsize(layout) > len(buffer):
            return "a number lies outside the buffer"
        values.append(0 if at is None else int(struct.unpack_from(layout, buffer, at)[0]))
    return values[0], values[1], values[2]


def _name_problem(text: bytes, ends: npt.NDArray[np.uint32]) -> str | None:
    if not len(ends):
        return "text: it belongs to no name" if text else None
    if (ends[1:] <= ends[:-1]).any() or int(ends[-1]) != len(text) or not ends[0]:
        return "text_ends: the ends do not divide the text into names"
    try:
        text.decode()
    except UnicodeDecodeError:
        return "text: it is not UTF-8"
    # The whole is UTF-8, so a name is as well if it does not begin amid a character.
    first = np.frombuffer(text, np.uint8)[ends[:-1]]
    return "text: a name begins amid a character" if (first & _CONTINUES_MASK == _CONTINUES).any() else None


def _edge_problem(columns: dict[str, npt.NDArray[typing.Any]], names: int, kinds: int) -> str | None:
    ids, removed, weights = columns["ids"], columns["removed"], columns["weights"]
    if len(ids) != len(weights):
        return f"weights: {len(weights)} are there for {len(ids)} edges"
    for name, column in (("ids", ids), ("removed", removed)):
        if len(column) and not (column[1:] > column[:-1]).all():
            return f"{name}: the edges are not sorted, or one is there twice"
    both = ids
    if len(removed):
        both = np.concatenate([removed, ids])
        both.sort()
        if (both[1:] == both[:-1]).any():
            return "removed: an edge is set as well"
    if len(both) and not edges.within(both, names, kinds):
        return "ids, removed: a number is that of no name, or a kind is not known"
    if not np.isfinite(weights).all():
        return "weights: one is no finite number"
    return None
