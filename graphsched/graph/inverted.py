"""From labels to the selectors that match them.

A thousand matchers are alive and a pod with new labels arrives: all but a few can be ruled out without looking at them.
Each selector is filed under one requirement it can not do without, the most selective it has: an `In` under each of its
`(key, value)` pairs, an `Exists` under its key. Selectors without any such requirement (empty, or negative only) form a
short residual list that is always looked at. What is left of the requirements is evaluated on those found.

Comes in: selectors under a number. Goes out: `matching(labels)`, exactly those that match. Invariant: every selector is
found through its anchor or is residual; nothing else is ever looked at.
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


class _Filed:
    """A selector: what it is filed under, and what remains to be evaluated on those found there."""

    __slots__ = ("anchors", "by_value", "keys", "rest")

    def __init__(
        self,
        anchors: frozenset[_Anchor] | None,
        rest: tuple[labels.Requirement, ...],
        keys: frozenset[str],
    ) -> None:
        self.anchors = anchors
        self.by_value = anchors is None or not any(isinstance(anchor, str) for anchor in anchors)
        self.rest = rest
        self.keys = keys

    def met_by(self, pod_labels: labels.Labels) -> bool:
        """Whether what remains is met by labels that hold an anchor."""
        if not self.rest:
            return True
        mapping = dict(pod_labels)
        return all(requirement.holds(mapping.get(requirement.key)) for requirement in self.rest)


class SelectorIndex:
    """Selectors under numbers, found by the labels they match."""

    def __init__(self, live_keys: LiveKeys) -> None:
        """`live_keys` is told of every label key that a selector here reads."""
        self._live_keys = live_keys
        self._filed: dict[int, _Filed] = {}
        self._buckets: dict[_Anchor, set[int]] = {}
        self._residual: set[int] = set()

    def __len__(self) -> int:
        """Number of selectors."""
        return len(self._filed)

    def add(self, number: int, requirements: tuple[labels.Requirement, ...]) -> None:
        """File the conjunction of these requirements under `number`, which is not in use."""
        anchors, rest = self._split(requirements)
        filed = self._filed[number] = _Filed(anchors, rest, frozenset(part.key for part in requirements))
        self._live_keys.use(filed.keys)
        if anchors is None:
            self._residual.add(number)
            return
        for anchor in anchors:
            self._buckets.setdefault(anchor, set()).add(number)

    def remove(self, number: int) -> None:
        """Forget the selector filed under `number`."""
        filed = self._filed.pop(number)
        self._live_keys.drop(filed.keys)
        if filed.anchors is None:
            self._residual.discard(number)
            return
        for anchor in filed.anchors:
            bucket = self._buckets[anchor]
            bucket.discard(number)
            if not bucket:
                del self._buckets[anchor]

    def matching(self, pod_labels: labels.Labels) -> list[int]:
        """Numbers of all selectors that match these labels, ascending, each once."""
        if not self._filed:
            return []
        found = set(self._residual)
        if self._buckets:
            for pair in pod_labels:
                found.update(self._buckets.get(pair, ()), self._buckets.get(pair[0], ()))
        return sorted(number for number in found if self._filed[number].met_by(pod_labels))

    def matches(self, number: int, pod_labels: labels.Labels) -> bool:
        """Whether the selector under `number` matches these labels."""
        filed = self._filed[number]
        anchors = filed.anchors
        if (
            anchors is not None
            and anchors.isdisjoint(pod_labels)
            and anchors.isdisjoint([key for key, _ in pod_labels])
        ):
            return False
        return filed.met_by(pod_labels)

    def _split(
        self, requirements: tuple[labels.Requirement, ...]
    ) -> tuple[frozenset[_Anchor] | None, tuple[labels.Requirement, ...]]:
        """What to file the conjunction under (None: the residual list), and the requirements this does not settle."""
        choices = [(anchors, part) for part in requirements if (anchors := _anchors_of(part)) is not None]
        if not choices:
            return None, requirements
        anchors, anchored = min(choices, key=lambda choice: self._cost(choice[0]))
        if anchored.operator in {labels.Operator.GT, labels.Operator.LT}:
            return anchors, requirements
        return anchors, tuple(part for part in requirements if part is not anchored)

    def _cost(self, anchors: frozenset[_Anchor]) -> tuple[bool, int, int]:
        # A bare key is carried by more pods than a list of values. Among lists of one length the least crowded is best:
        # `app=web` rather than `env=production`.
        return (
            any(isinstance(anchor, str) for anchor in anchors),
            len(anchors),
            sum(len(self._buckets.get(anchor, ())) for anchor in anchors),
        )


def _anchors_of(requirement: labels.Requirement) -> frozenset[_Anchor] | None:
    """What labels must hold one of for the requirement to be met; None when the absence of the label meets it."""
    match requirement.operator:
        case labels.Operator.IN:
            return frozenset((requirement.key, value) for value in requirement.values)
        case labels.Operator.EXISTS | labels.Operator.GT | labels.Operator.LT:
            return frozenset((requirement.key,))
        case labels.Operator.NOT_IN | labels.Operator.DOES_NOT_EXIST:
            return None
