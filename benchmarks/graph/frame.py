"""What a row of the graph benchmark is, and the measuring that rows share.

A row is a module in `rows`. It fixes its shape, its edges and its seed in code, does the same work the plain way (from
`benchmarks/plain`) and ours in the same process, compares the answers, and returns an `Outcome`. The bar is a ratio
of the two, since absolute numbers vary between runs of a shared machine; the reference is what another implementation,
in Go, reached for the same kind of work.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import statistics
import time
import tracemalloc
import typing
from collections.abc import Callable

import msgspec

from benchmarks.graph import rows


class Ratio(msgspec.Struct, frozen=True, tag=True):
    """The plain way beside ours.

    Attributes:
        what: What was measured, e.g. `full BFS`.
        unit: Of both, e.g. `ms`.
        plain, ours: The measured values.
        bar: How many times better ours has to be at least; 0 where it is only shown.
        more: Whether more is better, as with a throughput.
    """

    what: str
    unit: str
    plain: float
    ours: float
    bar: float
    more: bool = False

    @property
    def ratio(self) -> float:
        """How many times better ours is; infinite where nothing is left to be better than."""
        better, worse = (self.plain, self.ours) if self.more else (self.ours, self.plain)
        return worse / better if better else float("inf")

    @property
    def passed(self) -> bool:
        """Whether it reaches the bar."""
        return self.ratio >= self.bar


class Limit(msgspec.Struct, frozen=True, tag=True):
    """A value of ours that must not exceed a limit.

    Attributes:
        what: What was measured, e.g. `predicate calls a walk`.
        unit: Its unit; may be empty.
        ours: The measured value.
        at_most: The limit.
    """

    what: str
    unit: str
    ours: float
    at_most: float

    @property
    def passed(self) -> bool:
        """Whether it keeps within the limit."""
        return self.ours <= self.at_most


class Outcome(msgspec.Struct, frozen=True):
    """A row that was run.

    Attributes:
        equal: Whether both ways gave the same answers; without that no measure counts.
        measures: In the order in which they are shown.
        notes: What else is to be said, a sentence each.
    """

    equal: bool
    measures: tuple[Ratio | Limit, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the answers are equal and every bar is reached."""
        return self.equal and all(each.passed for each in self.measures)


class Row(typing.Protocol):
    """The module of a row.

    Attributes:
        NAME: How `--row` calls it.
        SHAPE: Size, edges and seed in one line.
        REFERENCE: What the other implementation went from and to.
    """

    NAME: str
    SHAPE: str
    REFERENCE: str

    def run(self, *, quick: bool) -> Outcome:
        """Do the work both ways; `quick` does it at a tiny size, for the equality of the answers alone."""
        ...


def find() -> list[Row]:
    """Every row, by name."""
    names = [each.name for each in pkgutil.iter_modules(rows.__path__)]
    found = [typing.cast("Row", importlib.import_module(f"{rows.__name__}.{name}")) for name in names]
    return sorted(found, key=lambda row: row.NAME)


def seconds(work: Callable[[], object], *, rounds: int = 5) -> float:
    """How long it takes: the median of some rounds, each with the collector off and nothing left to collect."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        try:
            begun = time.perf_counter()
            kept = work()
            taken.append(time.perf_counter() - begun)
        finally:
            gc.enable()
        del kept
    return statistics.median(taken)


def race(plain: Callable[[], object], ours: Callable[[], object], *, rounds: int = 5) -> tuple[float, float]:
    """Seconds of each, median of rounds that take turns, so that a noisy neighbour bothers both."""
    pairs = [(seconds(plain, rounds=1), seconds(ours, rounds=1)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def held_bytes(build: Callable[[], object]) -> int:
    """Bytes that the thing that `build` makes holds on to, counted by the allocator and not by the system."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = build()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        del kept
    finally:
        tracemalloc.stop()
    return held
