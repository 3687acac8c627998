"""Labels and the selectors over them.

Labels are sorted tuples of pairs: hashable, so that equal ones can be interned, and cheap to keep for a hundred
thousand pods. Selectors are conjunctions of requirements, the canonical form of both `matchLabels` and
`matchExpressions`. The same requirement serves node selector terms, where it also knows Gt and Lt.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

Labels = tuple[tuple[str, str], ...]
"""Sorted by key, each key once."""

NO_LABELS: Labels = ()


def from_mapping(mapping: Mapping[str, str]) -> Labels:
    """Labels out of the mapping a manifest holds."""
    return tuple(sorted(mapping.items()))


class Operator(enum.StrEnum):
    """How a requirement compares."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(msgspec.Struct, frozen=True, gc=False, order=True):
    """One comparison of one label. `values` is sorted; Gt and Lt have exactly one, an integer as text."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether a label with this value satisfies it; `None` stands for an absent label."""
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        have, bound = parse_int64(value), parse_int64(self.values[0])
        if have is None or bound is None:
            return False
        return have > bound if self.operator is Operator.GT else have < bound


class Selector(msgspec.Struct, frozen=True, gc=False):
    """A conjunction of requirements, sorted. Without any it matches all; *no* selector (None) matches nothing."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether labels satisfy every requirement."""
        if not self.requirements:
            return True
        mapping = dict(labels)
        return all(requirement.holds(mapping.get(requirement.key)) for requirement in self.requirements)


def selector(requirements: Iterable[Requirement]) -> Selector:
    """The canonical selector of these requirements: equal conjunctions become equal values."""
    return Selector(tuple(sorted(set(requirements))))


def parse_int64(text: str) -> int | None:
    """The text as Go's ParseInt(s, 10, 64) reads it, or None: no blanks, no underscores, no other digits than 0-9."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    if not body or not body.isascii() or not body.isdigit():
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None
