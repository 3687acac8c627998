"""Temporary vertices: rows of an arena beside one Python object each."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.graph import frame
from benchmarks.plain import temporary as plain
from graphsched.graph import arena

NAME = "1 M temporary vertices"
SHAPE = "1,000,000 vertices with row, parent, distance and weight: made, summed up, given back; nothing drawn"
REFERENCE = "82 → 9.3 ms; 142 → 36 MB; GC pause 12.4 → 0.8 ms"

VERTEX = np.dtype([("row", "<u4"), ("parent", "<u4"), ("distance", "<u4"), ("weight", "<f4")])
COLLECTIONS = 5


def run(*, quick: bool) -> frame.Outcome:
    """Time, memory while they are there, and how long the collector stops everything meanwhile."""
    count, rounds = (1_000, 1) if quick else (1_000_000, 7)
    memory = arena.Arena(bytes_max=count * VERTEX.itemsize + 4096)

    def ours() -> tuple[int, float]:
        memory.reset()
        return _summed(_make(memory, count))

    def theirs() -> tuple[int, float]:
        return plain.summed(plain.make(count))

    equal = ours() == theirs()
    slow, fast = frame.race(theirs, ours, rounds=rounds)
    before = frame.held_bytes(lambda: plain.make(count))
    after = frame.held_bytes(lambda: _make(arena.Arena(bytes_max=count * VERTEX.itemsize + 4096), count))
    memory.reset()
    return frame.Outcome(
        equal=equal,
        measures=(
            frame.Ratio("time", "ms", slow * 1e3, fast * 1e3, bar=8.8),
            frame.Ratio("memory", "MB", before / 1e6, after / 1e6, bar=4),
            frame.Ratio(
                "pause of the collector",
                "ms",
                _pause(lambda: plain.make(count)) * 1e3,
                _pause(lambda: _make(memory, count)) * 1e3,
                bar=15,
            ),
        ),
    )


def _make(memory: arena.Arena, count: int) -> npt.NDArray[np.void]:
    vertices = memory.take(count, VERTEX)
    rows = np.arange(count, dtype=np.uint32)
    vertices["row"] = rows
    np.right_shift(rows, 1, out=vertices["parent"])
    np.remainder(rows, 97, out=vertices["distance"])
    np.multiply(rows, np.float32(0.5), out=vertices["weight"], casting="unsafe")
    return vertices


def _summed(vertices: npt.NDArray[np.void]) -> tuple[int, float]:
    return int(vertices["distance"].sum(dtype=np.int64)), float(vertices["weight"].sum(dtype=np.float64))


def _pause(make: Callable[[], object]) -> float:
    """Seconds that a full collection takes while the vertices are there; what was there before is frozen, as it is in
    the scheduler once it has taken its first lists.
    """
    gc.collect()
    gc.freeze()
    try:
        kept = make()
        taken = []
        for _ in range(COLLECTIONS):
            begun = time.perf_counter()
            gc.collect()
            taken.append(time.perf_counter() - begun)
        del kept
    finally:
        gc.unfreeze()
    return statistics.median(taken)
