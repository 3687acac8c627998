"""What is followed: a kind of objects, where the API server has them, and how each becomes rows of a patch.

`resources` and `custom` name them all; `reflector` follows one.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable

import msgspec

from graphsched.base.kube import wire
from graphsched.base.values import descriptions, keys
from graphsched.graph import delta


class Identified(typing.Protocol):
    """A decoded object."""

    @property
    def metadata(self) -> wire.Metadata:
        """What identifies it."""
        ...


Body = typing.TypeVar("Body", bound=Identified)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource(typing.Generic[Body]):
    """A kind of object and how it becomes vertices.

    Attributes:
        name: Plural name: the stream is `watch/<name>`.
        path: Of the collection.
        fields: Field selector, empty for all objects.
        key: The key of the object with these metadata.
        decode: The object in a JSON text; raises InputError.
        convert: Its vertex, or what it describes, see `surveys`; raises InputError.
        optional: Whether decisions are made without it where the right to follow it is missing.
        custom: Whether it is somebody's own kind, which may not be installed; it is then looked for again and again.
        described: Whether `convert` gives descriptions.
        others: Paths of the collection in other versions of its API, any of which will do.
    """

    name: str
    path: str
    fields: str = ""
    key: Callable[[wire.Metadata], keys.VertexKey]
    decode: Callable[[bytes | msgspec.Raw], Body]
    convert: Callable[[Body], delta.Vertex | descriptions.Description]
    optional: bool = False
    custom: bool = False
    described: bool = False
    others: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """What the keys of its objects begin with, and no others."""
        return self.key(wire.Metadata()).rstrip("/") + "/"
