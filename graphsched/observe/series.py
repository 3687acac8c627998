"""Small wrappers round the metrics library: what a metric says, children that are held, totals that are followed.

`metrics` declares with them. Invariants: a family never has more than `SERIES_MAX` series, whatever is reported; a
child is looked up in a dict and made once, since the library's own `labels()` takes a lock and builds strings.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec
import prometheus_client
from prometheus_client import metrics as wrappers

OTHER = "other"
"""Takes the place of all label values once a family has `SERIES_MAX` series."""
SERIES_MAX = 200

Metric = TypeVar("Metric", bound=wrappers.MetricWrapperBase)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bucket bounds, each `factor` times the one before, free of floating-point dust."""
    return tuple(float(f"{start * factor**step:.12g}") for step in range(count))


class Counter(typing.Protocol):
    """Declares a counter."""

    def __call__(self, name: str, text: str, *labels: str) -> prometheus_client.Counter:
        """Its name, what it says, the names of its labels."""
        ...


class Gauge(typing.Protocol):
    """Declares a gauge."""

    def __call__(self, name: str, text: str, *labels: str) -> prometheus_client.Gauge:
        """Its name, what it says, the names of its labels."""
        ...


class Declared(msgspec.Struct, frozen=True, gc=False):
    """One metric as the documentation shows it.

    Attributes:
        name: Name as scraped; a histogram's without `_bucket`, `_sum`, `_count`.
        kind: `counter`, `gauge` or `histogram`.
        labels: Names of its labels.
        help: What it says, as a sentence.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


class Family(Generic[Metric]):
    """The children of one labelled metric, made on first use and held; the number of series is bounded.

    Label values that are `known` beforehand have their series from the start: a rate sees no growth in a series that
    begins with its first event, so an alert on rare events would miss the first of them.
    """

    def __init__(self, parent: Metric, labels: int, *, known: Iterable[tuple[str, ...]] = ()) -> None:
        self._parent = parent
        self._labels = labels
        self._children: dict[tuple[str, ...], Metric] = {}
        for values in known:
            self._make(values)

    def __getitem__(self, values: tuple[str, ...]) -> Metric:
        child = self._children.get(values)
        return self._make(values) if child is None else child

    def values(self) -> list[tuple[str, ...]]:
        """The label values in use."""
        return list(self._children)

    def _make(self, values: tuple[str, ...]) -> Metric:
        if len(self._children) >= SERIES_MAX:
            values = (OTHER,) * self._labels
        child = self._children[values] = self._parent.labels(*values)
        return child


class Total:
    """A counter that follows a running total kept elsewhere, in code that knows no metrics."""

    def __init__(self, counter: prometheus_client.Counter) -> None:
        self._counter = counter
        self._seen = 0

    def follow(self, total: int) -> None:
        """Bring the counter to `total`; a total that shrank was started anew and counts from zero."""
        grown = total - self._seen if total >= self._seen else total
        self._seen = total
        if grown:
            self._counter.inc(grown)
