"""The header before an encoded buffer, which tells whether the bytes are whole before anything looks at them.

24 bytes, little endian: an identifier, the format, the length and CRC-32 of the buffer, and the generation that the
content is based on. Comes in: buffers; untrusted bytes. Goes out: bytes; the header and the buffer behind it, or why
they are refused. Nothing of the buffer is read here.
"""

from __future__ import annotations

import struct
import typing
import zlib

from graphsched.graph import delta

_HEADER = struct.Struct("<4sHHIIQ")
HEADER_BYTES = _HEADER.size


class Kind(typing.NamedTuple):
    """What an envelope may hold.

    Attributes:
        name: In a message.
        title: What the content calls itself.
        identifier: The first four bytes.
        newest: The latest format that is known; all earlier ones are.
    """

    name: str
    title: str
    identifier: bytes
    newest: int


class Header(typing.NamedTuple):
    """What stands before the buffer.

    Attributes:
        format: Of the buffer.
        length: Of the buffer, in bytes.
        checksum: CRC-32 of the buffer.
        base_generation: The generation a follower's copy must have; 0 for patches that go by their stream's sequence;
            the generation at which a follower begins for a whole graph.
    """

    format: int
    length: int
    checksum: int
    base_generation: int


def seal(kind: Kind, buffer: bytes, *, base_generation: int) -> bytes:
    """The buffer in an envelope of the newest format."""
    head = _HEADER.pack(kind.identifier, kind.newest, 0, len(buffer), zlib.crc32(buffer), base_generation)
    return head + buffer


def header(kind: Kind, data: bytes) -> Header | delta.Refused:
    """The header alone."""
    if len(data) < _HEADER.size:
        return refused(kind, f"{len(data)} bytes are less than the header's {_HEADER.size}")
    identifier, version, reserved, length, checksum, base_generation = _HEADER.unpack_from(data)
    if identifier != kind.identifier:
        return refused(kind, f"it does not start as a {kind.title} does")
    if version > kind.newest or not version or reserved:
        return refused(kind, f"format {version} is not known, formats up to {kind.newest} are")
    return Header(version, length, checksum, base_generation)


def opened(kind: Kind, data: bytes, *, bytes_max: int) -> tuple[Header, memoryview] | delta.Refused:
    """The header and the whole, undamaged buffer."""
    if len(data) > bytes_max:
        return refused(kind, f"{len(data)} bytes are more than the {bytes_max} allowed")
    head = header(kind, data)
    if isinstance(head, delta.Refused):
        return head
    buffer = memoryview(data)[_HEADER.size :]
    if len(buffer) != head.length:
        return refused(kind, f"{len(buffer)} bytes follow the header, which announces {head.length}")
    if zlib.crc32(buffer) != head.checksum:
        return refused(kind, "the checksum differs: it was damaged on the way")
    return head, buffer


def refused(kind: Kind, problem: str) -> delta.Refused:
    """The refusal of something that should have been of this kind."""
    return delta.Refused("invalid", f"{kind.name}: {problem}")
