"""What groups of settings are made of; `settings` puts the groups together, reads and checks them."""

from __future__ import annotations

import typing

import msgspec

_YEAR_S = 366 * 86_400
_MANY = 1_000_000

# Each has an upper bound: what is infinite, or a slip of many digits, fails at the start and not in a sum hours later.
Count = typing.Annotated[int, msgspec.Meta(ge=1, le=_MANY)]
Seconds = typing.Annotated[float, msgspec.Meta(gt=0, le=_YEAR_S)]
SecondsOrNone = typing.Annotated[float, msgspec.Meta(ge=0, le=_YEAR_S)]
"""0 for something that is switched off."""
Share = typing.Annotated[float, msgspec.Meta(ge=0, le=1)]
Rate = typing.Annotated[float, msgspec.Meta(gt=0, le=_MANY)]


class Group(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all groups of settings."""
