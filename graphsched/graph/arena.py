"""Memory for what lives as long as one walk: taken piece by piece from large blocks, given back all at once.

A million temporary vertices as Python objects are a million allocations, and the collector looks at every one of them
again and again; here they are rows of one array, and giving them back is setting a number to zero.

Invariants: no more than `bytes_max` is ever held; an array is good until the arena is reset, or its `scope` ends, and
its contents are whatever the memory held before.
"""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 1 << 20
_ALIGNED = 64
"""Each array begins on a cache line of its own."""


class ArenaFullError(MemoryError):
    """More was asked for than the arena may hold."""


class Arena:
    """Blocks of memory, filled from front to back.

    Attributes:
        bytes_max: Never held more.
        used: Bytes taken since the last reset.
        high_water: The most that was ever taken between two resets.
    """

    def __init__(self, *, bytes_max: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.bytes_max = bytes_max
        self._block_bytes = min(block_bytes, bytes_max)
        self._blocks: list[npt.NDArray[np.uint8]] = []
        self._current = 0
        self._filled = 0
        self.used = 0
        self.high_water = 0

    @property
    def held(self) -> int:
        """Bytes of all blocks, taken or not."""
        return sum(len(block) for block in self._blocks)

    def take(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[typing.Any]:
        """An array of so many items, its contents undefined.

        Raises:
            ArenaFullError: `bytes_max` would be exceeded.
        """
        kind = np.dtype(dtype)
        needed = -(-count * kind.itemsize // _ALIGNED) * _ALIGNED
        while self._current < len(self._blocks) and self._filled + needed > len(self._blocks[self._current]):
            self._current += 1
            self._filled = 0
        if self._current == len(self._blocks):
            self._grow(needed)
        begin = self._filled
        self._filled += needed
        self.used += needed
        self.high_water = max(self.high_water, self.used)
        return self._blocks[self._current][begin : begin + count * kind.itemsize].view(kind)

    def reset(self) -> None:
        """Take everything back; the blocks are kept for the next walk."""
        self._current = self._filled = self.used = 0

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Take back at its end what was taken within."""
        before = self._current, self._filled, self.used
        try:
            yield
        finally:
            self._current, self._filled, self.used = before

    def _grow(self, needed: int) -> None:
        held = self.held
        size = max(needed, min(self._block_bytes, self.bytes_max - held))
        if held + size > self.bytes_max:
            message = f"{needed:,} bytes more than the {held:,} held exceed the arena's {self.bytes_max:,}"
            raise ArenaFullError(message)
        raw = np.empty(size + _ALIGNED, np.uint8)
        misfit = -raw.__array_interface__["data"][0] % _ALIGNED
        self._blocks.append(raw[misfit : misfit + size])
