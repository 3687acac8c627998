"""What an audit found, as values: kinds of differences, each difference, the report of one round.

`comparing` and `bookkeeping` make differences, `auditing` makes the report, and `dumping`, the health check and the
metrics show it. Nothing here acts.
"""

from __future__ import annotations

import enum

import msgspec

KEPT_MAX = 1000
"""Differences that a report holds one by one; those beyond are counted. Some 300 kB."""


class Kind(enum.StrEnum):
    """What is not as it should be; the value is the label of the metric."""

    MISSING = "missing"
    """An object of the cluster is not in the graph."""
    STALE = "stale"
    """An object in the graph is not as the cluster has it."""
    EXTRA = "extra"
    """An object in the graph is not in the cluster."""
    HISTORY = "history"
    """The API server went back to an older database, and the watch did not tell."""
    DERIVED = "derived"
    """A count or a column that is derived from objects is not what they amount to."""
    TERMS = "terms"
    """A selector's count of pods is not what a recount gives."""
    PROMISE = "promise"
    """A node is promised to a pod whose binding has ended, or was undone."""
    QUEUE = "queue"
    """A pod is in the queue that should not be there, or is stuck in it."""
    LOST = "lost"
    """A pod waits for a node, and nobody would have looked at it again."""


class Result(enum.StrEnum):
    """How an audit ended; the value is the label of the metric."""

    CLEAN = "clean"
    MENDED = "mended"
    FAILED = "failed"
    """It could not be finished: the API server did not answer."""


class Difference(msgspec.Struct, frozen=True, gc=False):
    """One thing that was not as it should be.

    Attributes:
        kind: What kind of thing.
        key: Of the vertex it is about, or a resource's plural name.
        detail: What it was and what it should be.
    """

    kind: Kind
    key: str
    detail: str


class Report(msgspec.Struct, kw_only=True):
    """One audit.

    Attributes:
        reason: Why it was made.
        began: Seconds since the epoch.
        seconds: How long it took.
        generation: Of the graph at its end.
        objects: Objects of the cluster that were compared.
        result: How it ended.
        problem: Why it could not be finished; empty when it was.
        counts: Kind → how many differences.
        differences: The first of them.
    """

    reason: str
    began: float
    seconds: float = 0.0
    generation: int = 0
    objects: int = 0
    result: Result = Result.CLEAN
    problem: str = ""
    counts: dict[Kind, int] = {}
    differences: list[Difference] = []

    def add(self, found: Difference) -> bool:
        """Take note of a difference; returns whether it is among those kept."""
        self.counts[found.kind] = self.counts.get(found.kind, 0) + 1
        kept = len(self.differences) < KEPT_MAX
        if kept:
            self.differences.append(found)
        return kept

    @property
    def total(self) -> int:
        """Number of differences."""
        return sum(self.counts.values())

    @property
    def summary(self) -> str:
        """In a few words: `clean`, `2 stale, 1 lost, mended`, or why it failed."""
        if self.result is Result.FAILED:
            return f"not finished: {self.problem}"
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return f"{told}, mended" if told else "clean"
