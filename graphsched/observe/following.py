"""The metrics of the feed: others that copy the graph and keep the copy up to date.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

from graphsched.graph import followers
from graphsched.observe import series

ANSWERS = ("whole", "changes", "unchanged", "gap", "epoch", "busy", "malformed")
START, EXPIRED = "start", "expired"
REFUSALS = tuple(reason.value for reason in followers.Refusal)
"""What a follower says of an answer that it could not take."""


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
        self._resyncs = series.Family(
            counter(
                "graphsched_feed_resyncs_total",
                "Whole graphs handed to followers, by why they asked for one: start (they begin), expired (they were "
                "told to begin again), or why they refused the answer before, as graphsched_feed_refused_total has it.",
                "reason",
            ),
            1,
            known=[(reason,) for reason in (START, EXPIRED, *REFUSALS)],
        )
        self._refused = series.Family(
            counter(
                "graphsched_feed_refused_total",
                "Answers that a follower did not apply, as it said with its next question, by reason: oversized (too "
                "long for it), truncated or corrupted (damaged on the way), foreign (of another program, format or "
                "life of the graph), gap (based on a generation that it does not have), invalid (nothing that a graph "
                "can hold) or other.",
                "reason",
            ),
            1,
            known=[(reason,) for reason in REFUSALS],
        )
        self._bytes = counter("graphsched_feed_bytes_total", "Bytes of whole graphs and changes handed to followers.")
        self._waiting = gauge("graphsched_feed_waiting", "Followers that are waiting for the next change.")

    def told(self, answer: str, size: int = 0) -> None:
        """A follower was given one of the `ANSWERS`, of so many bytes."""
        self._answers[answer,].inc()
        if size:
            self._bytes.inc(size)

    def resynced(self, because: str) -> None:
        """A follower was given a whole graph; it said why it asked for one, or nothing."""
        known = {START, EXPIRED, *REFUSALS}
        self._resyncs[(because or START) if because in known or not because else series.OTHER,].inc()

    def refused(self, because: str) -> None:
        """A follower said why it asks: nothing is counted unless that was an answer which it did not apply."""
        if because and because not in {START, EXPIRED}:
            self._refused[because if because in REFUSALS else series.OTHER,].inc()

    def set_waiting(self, followers: int) -> None:
        """How many followers are being answered."""
        self._waiting.set(followers)
