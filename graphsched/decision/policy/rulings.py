"""From the rules that match to what holds: which nodes are refused and why, and what the others gain or lose.

Of the rules that allow or deny a node to a pod those of the greatest priority decide, and among those a denial. A rule
that requires something of the way stands beside them: each that matches must hold, whatever is allowed. Weights add up
and are cut to -100 … 100. Where it can not be told whether a rule applies, it denies, unless it is a mere weight, which
then counts nothing: a preference refuses nobody.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from graphsched.base.values import policies
from graphsched.decision import trace
from graphsched.decision.policy import answers, words

WEIGHT_MAX = 100
DECIDING = frozenset({policies.Action.ALLOW, policies.Action.DENY})
"""Of these the greatest priority decides."""


class Refusal(typing.NamedTuple):
    """A rule that refuses, the reason, and the nodes: bool a row."""

    rule: policies.Rule
    reason: str
    mask: trace.Mask


class Weight(typing.NamedTuple):
    """A rule that weighs, and the nodes it is about: bool a row."""

    rule: policies.Rule
    mask: trace.Mask


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """What the rules say of one kind of pod.

    Attributes:
        refusals: Who refuses which nodes; a row may stand in several.
        weights: Rules that match and weigh.
        allowed: Bool a row: nobody refuses it; None where nobody refuses any.
        total: Int64 a row, the sum of the weights; None where it is 0 everywhere.
    """

    refusals: tuple[Refusal, ...] = ()
    weights: tuple[Weight, ...] = ()
    allowed: trace.Mask | None = None
    total: trace.Scores | None = None

    @property
    def size(self) -> int:
        """Bytes of what it holds a row."""
        masks = [*(each.mask for each in self.refusals), *(each.mask for each in self.weights)]
        return sum(each.nbytes for each in (*masks, self.allowed, self.total) if each is not None)


NOTHING = Ruling()

Matched = tuple[policies.Rule, answers.Answers]
"""A rule of which some node and the pod match, or may, and its answers for the two together."""
Shortfalls = Callable[[policies.Path], Iterable[tuple[str, trace.Mask]]]
"""What keeps nodes from meeting a requirement, and which nodes: bool a row."""


def together(of_pod: int, of_nodes: answers.Answers) -> answers.Answers:
    """The answers for a pod and each node: no where either does not match, no telling where either can not be told."""
    if of_pod == answers.YES:
        return of_nodes
    return np.where(of_nodes == answers.NO, np.int8(answers.NO), np.int8(of_pod))


def rule(matched: Sequence[Matched], shortfalls: Shortfalls) -> Ruling:
    """What holds.

    Args:
        matched: The greatest priority first, then by policy and number.
        shortfalls: Looks at the ways.
    """
    deciding = [each for each in matched if each[0].action in DECIDING]
    refusals = list(_denials(deciding))
    weights: list[Weight] = []
    for one, found in matched:
        if one.action is policies.Action.REQUIRE and one.path is not None:
            refusals += _unmet(one, found, shortfalls)
        elif one.action is policies.Action.WEIGHT and one.weight:
            mask = found == answers.YES
            if mask.any():
                weights.append(Weight(one, mask))
    if not refusals and not weights:
        return NOTHING
    return Ruling(tuple(refusals), tuple(weights), _allowed(refusals), _total(weights))


def _denials(deciding: Sequence[Matched]) -> Iterable[Refusal]:
    open_rows: trace.Mask | None = None
    for _, group in itertools.groupby(deciding, key=lambda each: each[0].priority):
        equals = list(group)
        if open_rows is None:
            open_rows = np.ones(len(equals[0][1]), np.bool_)
        for one, found in equals:
            denies = [(answers.FAILED, words.undecided(one))]
            if one.action is policies.Action.DENY:
                denies.append((answers.YES, words.denied(one)))
            for answer, reason in denies:
                hit = open_rows & (found == answer)
                if hit.any():
                    open_rows = open_rows & ~hit
                    yield Refusal(one, reason, hit)
        for one, found in equals:
            if one.action is policies.Action.ALLOW:
                open_rows = open_rows & (found != answers.YES)


def _unmet(one: policies.Rule, found: answers.Answers, shortfalls: Shortfalls) -> Iterable[Refusal]:
    assert one.path is not None  # noqa: S101  the caller has looked
    failed = found == answers.FAILED
    if failed.any():
        yield Refusal(one, words.undecided(one), failed)
    about = found == answers.YES
    if about.any():
        for what, short in shortfalls(one.path):
            hit = about & short
            if hit.any():
                yield Refusal(one, words.unmet(one, what), hit)


def _allowed(refusals: Sequence[Refusal]) -> trace.Mask | None:
    refused: trace.Mask | None = None
    for each in refusals:
        refused = each.mask if refused is None else refused | each.mask
    return None if refused is None else ~refused


def _total(weights: Sequence[Weight]) -> trace.Scores | None:
    if not weights:
        return None
    total = np.zeros(len(weights[0].mask), np.int64)
    for each in weights:
        total += each.rule.weight * each.mask
    return np.clip(total, -WEIGHT_MAX, WEIGHT_MAX)
