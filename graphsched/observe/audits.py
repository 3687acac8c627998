"""The metrics of audits: how often the graph is compared with the cluster, and what was not as it should be.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

from graphsched.observe import series

KINDS = ("missing", "stale", "extra", "history", "derived", "terms", "promise", "queue", "lost")
RESULTS = ("clean", "mended", "failed")


class Audits:
    """Counts audits and differences."""

    def __init__(self, counter: series.Counter, gauge: series.Gauge) -> None:
        """Declare them by these functions."""
        self._differences = series.Family(
            counter(
                "graphsched_audit_differences_total",
                "Differences that audits found, and mended, by kind: missing, stale or extra (an object of the cluster "
                "that the graph did not have, had otherwise, or had although it is gone), history (the API server went "
                "back to an older database), derived (a count did not follow from the objects), terms (a selector's "
                "count of pods), promise (a node was kept for a pod whose binding had ended), queue (a pod was queued "
                "wrongly) or lost (a pod that waits was not queued). After a restored backup some are expected; else "
                "each is a bug.",
                "kind",
            ),
            1,
            known=[(kind,) for kind in KINDS],
        )
        self._audits = series.Family(
            counter(
                "graphsched_audits_total",
                "Comparisons of the graph with fresh lists of the whole cluster, by result: clean, mended (differences "
                "were found and removed) or failed (not finished, e.g. the API server did not answer).",
                "result",
            ),
            1,
            known=[(result,) for result in RESULTS],
        )
        self._age = gauge(
            "graphsched_audit_age_seconds",
            "Seconds since the last audit ended; since the start of the program before the first.",
        )

    def found(self, kind: str, count: int = 1) -> None:
        """An audit found `count` differences of one of the `KINDS`."""
        self._differences[kind,].inc(count)

    def ended(self, result: str) -> None:
        """An audit ended in one of the `RESULTS`."""
        self._audits[result,].inc()

    def set_age(self, seconds: float) -> None:
        """Seconds since the last audit ended."""
        self._age.set(seconds)
