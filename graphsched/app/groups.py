"""What groups of settings are made of; `settings` puts the groups together, reads and checks them."""

from __future__ import annotations

import typing

import msgspec

Count = typing.Annotated[int, msgspec.Meta(ge=1)]
Seconds = typing.Annotated[float, msgspec.Meta(gt=0)]
Rate = typing.Annotated[float, msgspec.Meta(gt=0)]


class Group(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all groups of settings."""
