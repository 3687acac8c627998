"""From labels to the selectors that may match them.

A thousand matchers are alive and a pod with new labels arrives: all but a few can be ruled out without looking at them.
Each selector is filed under one requirement it can not do without, the most selective it has: an `In` under each of its
`(key, value)` pairs, an `Exists` under its key. Selectors without any such requirement (empty, or negative only) form a
short residual list that is always looked at.

Comes in: selectors under a number. Goes out: `candidates(labels)`, a superset of those that match; the caller evaluates
them. Invariant: nothing that matches is missing from the candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from graphsched.base.values import labels

_Anchor = tuple[str, str] | str
"""What a selector is filed under: a label with its value, or a label alone."""


class LiveKeys:
    """The label keys that some selector reads, counted, with a version that moves when the set does.

    Attributes:
        version: Grows by one each time a key is read for the first time or no longer.
    """

    def __init__(self) -> None:
        self.version = 0
        self._uses: Counter[str] = Counter()
        self._frozen: frozenset[str] | None = frozenset()

    def use(self, keys: Iterable[str]) -> None:
        """Count one use of each key."""
        for key in keys:
            self._uses[key] += 1
            if self._uses[key] == 1:
                self._moved()

    def drop(self, keys: Iterable[str]) -> None:
        """Take one use of each key back."""
        for key in keys:
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key]
                self._moved()

    def frozen(self) -> frozenset[str]:
        """The keys in use; the same object until the version moves."""
        if self._frozen is None:
            self._frozen = frozenset(self._uses)
        return self._frozen

    def _moved(self) -> None:
        self.version += 1
        self._frozen = None


class SelectorIndex:
    """Selectors under numbers, found by the labels they may match."""

    def __init__(self, live_keys: LiveKeys) -> None:
        """`live_keys` is told of every label key that a selector here reads."""
        self._live_keys = live_keys
        self._filed: dict[int, tuple[tuple[_Anchor, ...] | None, tuple[str, ...]]] = {}
        self._buckets: dict[_Anchor, set[int]] = {}
        self._residual: set[int] = set()

    def __len__(self) -> int:
        """Number of selectors."""
        return len(self._filed)

    def add(self, number: int, requirements: tuple[labels.Requirement, ...]) -> None:
        """File the conjunction of these requirements under `number`, which is not in use."""
        anchors = self._anchors(requirements)
        keys = tuple(sorted({requirement.key for requirement in requirements}))
        self._filed[number] = anchors, keys
        self._live_keys.use(keys)
        if anchors is None:
            self._residual.add(number)
            return
        for anchor in anchors:
            self._buckets.setdefault(anchor, set()).add(number)

    def remove(self, number: int) -> None:
        """Forget the selector filed under `number`."""
        anchors, keys = self._filed.pop(number)
        self._live_keys.drop(keys)
        if anchors is None:
            self._residual.discard(number)
            return
        for anchor in anchors:
            bucket = self._buckets[anchor]
            bucket.discard(number)
            if not bucket:
                del self._buckets[anchor]

    def candidates(self, pod_labels: labels.Labels) -> list[int]:
        """Numbers of all selectors that may match these labels, ascending, each once."""
        if not self._filed:
            return []
        found = set(self._residual)
        if self._buckets:
            for pair in pod_labels:
                found.update(self._buckets.get(pair, ()), self._buckets.get(pair[0], ()))
        return sorted(found)

    def _anchors(self, requirements: tuple[labels.Requirement, ...]) -> tuple[_Anchor, ...] | None:
        """What to file the conjunction under; None puts it on the residual list."""
        choices = [anchors for anchors in map(_anchors_of, requirements) if anchors is not None]
        return min(choices, key=self._cost, default=None)

    def _cost(self, anchors: tuple[_Anchor, ...]) -> tuple[bool, int, int]:
        # A bare key is carried by more pods than a list of values. Among lists of one length the least crowded is best:
        # `app=web` rather than `env=production`.
        return (
            any(isinstance(anchor, str) for anchor in anchors),
            len(anchors),
            sum(len(self._buckets.get(anchor, ())) for anchor in anchors),
        )


def _anchors_of(requirement: labels.Requirement) -> tuple[_Anchor, ...] | None:
    """What labels must hold for the requirement to be met; None when the absence of the label meets it."""
    match requirement.operator:
        case labels.Operator.IN:
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
        case labels.Operator.EXISTS | labels.Operator.GT | labels.Operator.LT:
            return (requirement.key,)
        case labels.Operator.NOT_IN | labels.Operator.DOES_NOT_EXIST:
            return None
