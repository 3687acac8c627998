"""Equal values become one value: a hundred thousand replicas then share one spec.

Tables are bounded by forgetting everything when they are full: what is alive stays alive where it is used, later equals
merely start a new copy. That is simpler than ageing and costs one lookup.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable

Value = typing.TypeVar("Value", bound=Hashable)

ENTRIES_MAX = 65_536
"""A cluster has some thousand workloads, each with a handful of distinct specs and label sets."""


class Table(typing.Generic[Value]):
    """Maps each value to the first one equal to it."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries: dict[Value, Value] = {}
        self._entries_max = entries_max

    def __len__(self) -> int:
        return len(self._entries)

    def __call__(self, value: Value) -> Value:
        """The representative of `value`."""
        known = self._entries.get(value)
        if known is not None:
            return known
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[value] = value
        return value
