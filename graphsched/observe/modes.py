"""The metrics of the modes that leave the binding to another scheduler.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

import prometheus_client

from graphsched.observe import series

GAP_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)


class _Counter(typing.Protocol):
    def __call__(self, name: str, text: str, *labels: str) -> prometheus_client.Counter: ...


class _Histogram(typing.Protocol):
    def __call__(self, name: str, text: str, *labels: str, buckets: Sequence[float]) -> prometheus_client.Histogram: ...


class Modes:
    """Advice and comparisons, and what is called to report on them."""

    def __init__(self, counter: _Counter, gauge: Callable[..., prometheus_client.Gauge], histogram: _Histogram) -> None:
        """Declare them by these functions."""
        self._advice = series.Family(
            counter(
                "graphsched_advice_ended_total",
                "Mode advise: what became of pods that were tied to a node, by outcome: bound (there), elsewhere (on "
                "another node), gone (deleted first) or given_up (not bound for so long that the room is for others "
                "again; it may still be bound later).",
                "outcome",
            ),
            1,
        )
        self._advice_outstanding = gauge(
            "graphsched_advice_outstanding",
            "Mode advise: pods that were tied to a node, are not bound yet, and whose room there is kept.",
        )
        self._advice_given_up = gauge(
            "graphsched_advice_given_up",
            "Mode advise: pods that were tied to a node, are still not bound, and whose room was given back. Nobody "
            "can loosen them; only a new pod is placed anew.",
        )
        self._advice_age = gauge(
            "graphsched_advice_oldest_age_seconds",
            "Mode advise: for how long the oldest outstanding advice has not been followed; 0 without any.",
        )
        self._compared = series.Family(
            counter(
                "graphsched_shadow_comparisons_total",
                "Mode shadow: pods that another scheduler bound, or that were deleted while they waited, by result: "
                "same (our node), equal (another of the same score), unschedulable (neither found a node), lower (a "
                "lower score), pending (it left pending what we would place), none (it placed what we would leave "
                "pending) or refused (a node that we would have refused).",
                "result",
            ),
            1,
        )
        self._skipped = series.Family(
            counter(
                "graphsched_shadow_not_compared_total",
                "Mode shadow: pods that could not be compared: unseen (bound before they were seen waiting) or gone "
                "(deleted too soon).",
                "reason",
            ),
            1,
        )
        self._gap = histogram(
            "graphsched_shadow_score_gap",
            "Mode shadow: by how many points the node that another scheduler chose scores lower than the best.",
            buckets=GAP_BUCKETS,
        )
        self._waiting = series.Family(
            gauge(
                "graphsched_shadow_waiting_pods",
                "Mode shadow: pods of the other scheduler that wait now: undecided (too early to say), unschedulable "
                "(neither finds a node) or pending (we would place them).",
                "result",
            ),
            1,
        )

    def expect_advice(self) -> None:
        """Advice will be given: what may become of it reads zero from now on."""
        for outcome in ("bound", "elsewhere", "gone", "given_up"):
            self._advice[outcome,].inc(0)

    def expect_comparisons(self, results: Iterable[str]) -> None:
        """Another scheduler will be compared: each result reads zero from now on."""
        for result in results:
            self._compared[result,].inc(0)
        for reason in ("unseen", "gone"):
            self._skipped[reason,].inc(0)

    def advice(self, outcome: str) -> None:
        """A pod that was tied to a node is bound, elsewhere, gone, or given_up."""
        self._advice[outcome,].inc()

    def set_advice(self, *, outstanding: int, given_up: int, oldest_s: float) -> None:
        """Pods tied to a node and not bound, with and without room kept, and the age of the oldest of the first."""
        self._advice_outstanding.set(outstanding)
        self._advice_given_up.set(given_up)
        self._advice_age.set(oldest_s)

    def compared(self, result: str, gap: int) -> None:
        """Another scheduler's choice was compared; `gap` is by how much its score is lower than the best."""
        self._compared[result,].inc()
        if gap:
            self._gap.observe(gap)

    def not_compared(self, reason: str) -> None:
        """A pod of another scheduler could not be compared: it was unseen or is gone."""
        self._skipped[reason,].inc()

    def set_waiting(self, waiting: Mapping[str, int]) -> None:
        """Pods of another scheduler that wait, by what that says: undecided, unschedulable or pending."""
        for result, count in waiting.items():
            self._waiting[result,].set(count)
