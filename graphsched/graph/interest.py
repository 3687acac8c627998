"""Matchers that decisions ask for, kept alive as long as they are asked for.

A decision about a pod with affinity or spread constraints needs counts per node of the pods its terms select. The first
question makes the term index count them once; from then on events keep the counts, so that the next pod of the workload
finds them ready. What was not asked for longest makes room.

Invariant: the same question gives the same counts whether or not the matcher was kept.
"""

from __future__ import annotations

from collections import OrderedDict

from graphsched.graph import matchers, tallies

MATCHERS_MAX = 2048
"""Matchers kept: as many workloads with terms of their own can take turns without a recount."""


class Interest:
    """Matchers in use, least recently asked for first."""

    def __init__(self, index: matchers.MatcherIndex, *, matchers_max: int = MATCHERS_MAX) -> None:
        self._index = index
        self._matchers_max = matchers_max
        self._numbers: OrderedDict[matchers.Matcher, int] = OrderedDict()

    def __len__(self) -> int:
        """Number of matchers kept."""
        return len(self._numbers)

    def counts(self, matcher: matchers.Matcher) -> tallies.Counts:
        """Pods that the matcher counts per row, shape (rows,), int32, read-only; good until the next patch."""
        number = self._numbers.get(matcher)
        if number is None:
            number = self._numbers[matcher] = self._index.acquire(matcher)
            if len(self._numbers) > self._matchers_max:
                _, oldest = self._numbers.popitem(last=False)
                self._index.release(oldest)
        else:
            self._numbers.move_to_end(matcher)
        return self._index.counts(number)
