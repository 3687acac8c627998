"""Equal values become one value: a hundred thousand replicas then share one spec.

A `WeakTable` knows what somebody holds, and nothing else. The others are bounded by forgetting what nobody has asked
for in a while: entries are in two generations, and when the young one is full it becomes the old one, whose entries go
unless they are asked for again. What is alive stays alive where it is used; later equals of what was forgotten merely
start a new copy.
"""

from __future__ import annotations

import typing
import weakref
from collections.abc import Hashable

Key = typing.TypeVar("Key", bound=Hashable)
Value = typing.TypeVar("Value")
Item = typing.TypeVar("Item", bound=Hashable)

ENTRIES_MAX = 16_384
"""Of texts and label sets: a cluster has some thousand nodes and workloads."""
SPECS_MAX = 2048
"""Of whole specs, which take a kilobyte each. Replicas come together; a scheduler that pins each pod to a node of its
own would fill any table."""


class Memo(typing.Generic[Key, Value]):
    """Keeps answers; between `entries_max / 2` and `entries_max` of those asked for last."""

    def __init__(self, entries_max: int) -> None:
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._young_max = entries_max // 2

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Value | None:
        """The answer that was kept; None where there is none any more."""
        known = self._young.get(key)
        if known is None:
            known = self._old.pop(key, None)
            if known is not None:
                self.keep(key, known)
        return known

    def keep(self, key: Key, value: Value) -> None:
        """Keep an answer."""
        if len(self._young) >= self._young_max:
            self._young, self._old = {}, self._young
        self._young[key] = value


class Table(typing.Generic[Item]):
    """Maps each value to the first one equal to it."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._memo: Memo[Item, Item] = Memo(entries_max)

    def __len__(self) -> int:
        return len(self._memo)

    def __call__(self, value: Item) -> Item:
        """The representative of `value`."""
        known = self._memo.get(value)
        if known is None:
            known = value
            self._memo.keep(value, value)
        return known


class WeakTable(typing.Generic[Item]):
    """Maps each value to the first one equal to it that is still alive; it keeps none alive itself.

    For values that are known by identity elsewhere: an equal one gets the same identity as long as anybody, a pod or a
    class, holds the first, however many others come by. Their type has to allow weak references.
    """

    def __init__(self) -> None:
        self._alive: weakref.WeakKeyDictionary[Item, weakref.ref[Item]] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._alive)

    def __call__(self, value: Item) -> Item:
        """The representative of `value`."""
        reference = self._alive.get(value)
        known = None if reference is None else reference()
        if known is None:
            known = value
            self._alive[value] = weakref.ref(value)
        return known
