"""The one queue between the world and the graph.

Every source puts its patches in, the loop that owns the store drains them. The order in which a source put its patches
is the order in which they come out.

Overflow rule: nothing is dropped. When the rows that wait exceed the bound, `put` waits; a reflector then stops reading
its watch, TCP pushes back, and in the end the API server ends the watch, which the reflector knows how to mend.
"""

from __future__ import annotations

import asyncio
import collections

from graphsched.graph import delta

ROWS_MAX = 20_000
"""About a second of events at the rate one core decodes them, and some 20 MB of values."""


class Inbox:
    """A bounded queue of patches."""

    def __init__(self, *, rows_max: int = ROWS_MAX) -> None:
        """Hold at most `rows_max` rows, or a single patch of any size."""
        self._rows_max = rows_max
        self._patches: collections.deque[delta.Patch] = collections.deque()
        self._rows = 0
        self._room = asyncio.Event()
        self.ready = asyncio.Event()
        """Set while patches wait: what the loop sleeps on."""
        self.waits = 0
        """How often `put` had to wait."""

    def __len__(self) -> int:
        """Number of patches that wait."""
        return len(self._patches)

    @property
    def rows(self) -> int:
        """Number of rows that wait, a patch without rows counting as one."""
        return self._rows

    async def put(self, patch: delta.Patch) -> None:
        """Add a patch; wait while there is no room for it."""
        if not self._fits(patch):
            self.waits += 1
        while not self._fits(patch):
            self._room.clear()
            await self._room.wait()
        self._patches.append(patch)
        self._rows += _size(patch)
        self.ready.set()

    def drain(self, *, rows_max: int | None = None) -> list[delta.Patch]:
        """Take the patches that wait, oldest first: all, or as many as have `rows_max` rows together (one at least)."""
        taken: list[delta.Patch] = []
        rows = 0
        while self._patches and (rows_max is None or not taken or rows + _size(self._patches[0]) <= rows_max):
            patch = self._patches.popleft()
            rows += _size(patch)
            taken.append(patch)
        self._rows -= rows
        self._room.set()
        if not self._patches:
            self.ready.clear()
        return taken

    def _fits(self, patch: delta.Patch) -> bool:
        return not self._patches or self._rows + _size(patch) <= self._rows_max


def _size(patch: delta.Patch) -> int:
    return len(patch) or 1
