"""How long to wait before trying again.

Each failure doubles the wait up to a ceiling, and a seeded generator takes up to half of it away, so that clients that
failed together do not come back together.
"""

from __future__ import annotations

import random

FACTOR = 2.0


class Backoff:
    """The waits of one thing that may fail repeatedly."""

    def __init__(self, *, first_s: float, most_s: float, rng: random.Random) -> None:
        """Start with a ceiling of `first_s`, which doubles up to `most_s`."""
        self._first_s = first_s
        self._most_s = most_s
        self._rng = rng
        self._ceiling_s = first_s
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many failed in a row."""
        return self._failures

    def next(self, *, at_least_s: float = 0.0) -> float:
        """Seconds to wait after one more failure: at least what the other side asked for."""
        ceiling_s = self._ceiling_s
        self._ceiling_s = min(ceiling_s * FACTOR, self._most_s)
        self._failures += 1
        return max(ceiling_s * (1.0 - 0.5 * self._rng.random()), at_least_s)

    def reset(self) -> None:
        """It worked: the next failure is a first one."""
        self._ceiling_s = self._first_s
        self._failures = 0
