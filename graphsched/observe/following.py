"""The metrics of the feed: others that copy the graph and keep the copy up to date.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

from graphsched.observe import series

ANSWERS = ("whole", "changes", "unchanged", "gap", "epoch", "busy", "malformed")


class Following:
    """Counts what followers were told."""

    def __init__(self, counter: series.Counter, gauge: series.Gauge) -> None:
        """Declare them by these functions."""
        self._answers = series.Family(
            counter(
                "graphsched_feed_answers_total",
                "Answers to those who copy the graph from /debug/graph, by what they were told: whole (the graph to "
                "begin with), changes (what happened since), unchanged (nothing did), gap (begin again: they were away "
                "for longer than the log goes back), epoch (begin again: the scheduler was restarted), busy (too many "
                "followers ask at a time) or malformed (the question was none).",
                "answer",
            ),
            1,
            known=[(answer,) for answer in ANSWERS],
        )
        self._bytes = counter("graphsched_feed_bytes_total", "Bytes of whole graphs and changes handed to followers.")
        self._waiting = gauge("graphsched_feed_waiting", "Followers that are waiting for the next change.")

    def told(self, answer: str, size: int = 0) -> None:
        """A follower was given one of the `ANSWERS`, of so many bytes."""
        self._answers[answer,].inc()
        if size:
            self._bytes.inc(size)

    def set_waiting(self, followers: int) -> None:
        """How many followers are being answered."""
        self._waiting.set(followers)
