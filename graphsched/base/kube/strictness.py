"""Fields that nobody reads.

An API server refuses or drops them and says so; in a manifest that meets none a misspelt field would be left out in
silence, and what it says would not hold. A part of a manifest comes in together with the struct it was decoded to; the
first field that the struct does not have goes out as an `InputError`.
"""

from __future__ import annotations

import difflib
import types
import typing

import msgspec

from graphsched.base.values import errors

_SHOWN_MAX = 64


def unknown_field(manifest: typing.Any, kind: typing.Any, place: str) -> errors.InputError | None:
    """The first field, at any depth, that `kind` does not have; None without any.

    Args:
        manifest: What was decoded to `kind`, so that its types are known to be right.
        kind: A struct, or a type of one of its fields.
        place: Where it stands, e.g. `spec`.
    """
    if isinstance(kind, types.UnionType):
        kind = next(each for each in typing.get_args(kind) if each is not types.NoneType)
    if typing.get_origin(kind) is list:
        (inner,) = typing.get_args(kind)
        entries = (unknown_field(each, inner, f"{place}[{number}]") for number, each in enumerate(manifest or ()))
        return next(filter(None, entries), None)
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct) or not isinstance(manifest, dict):
        return None
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    inside = (_unknown(name, value, fields, place) for name, value in manifest.items())
    return next(filter(None, inside), None)


def _unknown(name: object, value: object, fields: dict[str, typing.Any], place: str) -> errors.InputError | None:
    if name in fields:
        return unknown_field(value, fields[str(name)], f"{place}.{name}")
    close = difflib.get_close_matches(str(name)[:_SHOWN_MAX], fields, n=1)
    remedy = f"write {close[0]}" if close else f"use one of: {', '.join(fields)}"
    return errors.InputError(f"{place}.{str(name)[:_SHOWN_MAX]}", problem="is no field", remedy=remedy)
