"""Numbers that a soak ends with: the trend of memory, and pods that waited although they would fit.

Pure: samples in, figures out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

MB = 1e6


@dataclasses.dataclass(frozen=True, slots=True)
class Trend:
    """A regression line through samples of memory.

    Attributes:
        slope: Bytes a second.
        error: Standard error of the slope, bytes a second.
        mean: Bytes.
    """

    slope: float
    error: float
    mean: float

    @property
    def mb_per_10_min(self) -> float:
        """The slope in megabytes per ten minutes."""
        return self.slope * 600.0 / MB


def trend(samples: Sequence[tuple[float, float]]) -> Trend:
    """The least-squares line through (seconds, bytes), at least three of them.

    Raises:
        ValueError: There are fewer, or all at one moment.
    """
    count = len(samples)
    if count < 3:
        raise ValueError(f"{count} samples make no trend")
    mean_t = sum(t for t, _ in samples) / count
    mean_y = sum(y for _, y in samples) / count
    spread = sum((t - mean_t) ** 2 for t, _ in samples)
    if not spread:
        raise ValueError("all samples are of one moment")
    slope = sum((t - mean_t) * (y - mean_y) for t, y in samples) / spread
    residual = sum((y - mean_y - slope * (t - mean_t)) ** 2 for t, y in samples)
    return Trend(slope, (residual / (count - 2) / spread) ** 0.5, mean_y)


class Starving:
    """Pods that were seen to fit somewhere again and again, and were not placed.

    Attributes:
        found: `pod: seconds`, those that waited longer than they may.
    """

    def __init__(self, *, patience_s: float) -> None:
        """A pod may be seen fitting for `patience_s`: the longest backoff and a second."""
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self.longest_s = 0.0
        self.found: dict[str, float] = {}

    def look(self, now: float, fitting: set[str]) -> None:
        """At `now` just these pods wait and would fit."""
        self._since = {uid: self._since.get(uid, now) for uid in fitting}
        for uid, since in self._since.items():
            waited = now - since
            self.longest_s = max(self.longest_s, waited)
            if waited > self._patience_s:
                self.found[uid] = waited
