"""What comparing with another scheduler has found: each finding, and all of them counted.

Comes in: weighings of what the other scheduler chose, from `shadowing`. Goes out: a `Report` for the debug endpoint and
`graphsched shadow`, and numbers for the metrics. Every pod counts once, under its last finding: while it waits it is
among the waiting of the moment, and when it is bound or gone it is added up for good. Agreements are only counted; of
the disagreements the last ones are kept, with their reasons.
"""

from __future__ import annotations

import collections
import enum

import msgspec

from graphsched.base.values import pods
from graphsched.decision import trace
from graphsched.explain import refusals
from graphsched.observe import modes

WORST_MAX = 20
"""So many disagreements a report names unless asked for another number."""


class Result(enum.StrEnum):
    """How the other scheduler's choice compares with ours; the labels of `graphsched_shadow_comparisons_total`."""

    SAME = "same"
    """The node that we would have chosen."""
    EQUAL = "equal"
    """Another node with the greatest score: we go by name, kube-scheduler draws lots."""
    UNSCHEDULABLE = "unschedulable"
    """Neither found a node."""
    LOWER = "lower"
    """A node with a lower score than the best."""
    PENDING = "pending"
    """It left pending what we would have placed."""
    NONE = "none"
    """It placed what we would have left pending."""
    REFUSED = "refused"
    """A node that we would have refused."""


ORDER = tuple(Result)
"""From the best to the worst."""
AGREED = frozenset({Result.SAME, Result.EQUAL, Result.UNSCHEDULABLE})
WAITING = (Result.UNSCHEDULABLE, Result.PENDING)
"""What may be found of a pod that waits."""

Waiting = dict[Result | None, int]
"""Pods that wait at this moment, by what that says; None for those of which it is too early to say anything."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One pod compared.

    Attributes:
        number: Counts up by one with every finding.
        pod: `namespace/name`.
        time: When, in seconds since the epoch.
        result: How the two compare.
        ours: The node that we would have chosen; empty for none.
        theirs: Where the pod was bound; empty where it was not.
        our_score: The greatest total of all nodes; 0 where totals play no part.
        their_score: The total of the node that it was bound to.
        plugin: Who would have refused that node.
        reasons: Why; or why we found no node.
        in_flight: Pods that were in the other scheduler's hands at that moment, so that the graph it decided on is
            known but for them.
    """

    number: int
    pod: str
    time: float
    result: Result
    ours: str = ""
    theirs: str = ""
    our_score: int = 0
    their_score: int = 0
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    in_flight: int = 0

    @property
    def gap(self) -> int:
        """By how much the score is lower."""
        return self.our_score - self.their_score


def finding(weighing: trace.Weighing, pod: pods.Pod, node: str, *, number: int, time: float) -> Finding:
    """What a weighing says of the other scheduler's choice of `node`."""
    decision, refused = weighing.decision, weighing.status
    plugin = ""
    reasons: tuple[str, ...] = ()
    if decision.node == node:
        result = Result.SAME
    elif decision.diagnosis is not None and not refused.ok:
        result, plugin, reasons = Result.NONE, refused.by, (refusals.text(decision.diagnosis),)
    elif not refused.ok:
        result, plugin, reasons = Result.REFUSED, refused.by, refused.reasons
    else:
        result = Result.EQUAL if weighing.total >= weighing.best else Result.LOWER
    scored = result in {Result.EQUAL, Result.LOWER}
    return Finding(
        number=number,
        pod=pod.full_name,
        time=time,
        result=result,
        ours=decision.node,
        theirs=node,
        our_score=weighing.best if scored else 0,
        their_score=weighing.total if scored else 0,
        plugin=plugin,
        reasons=reasons,
    )


class Report(msgspec.Struct, frozen=True):
    """All there is to tell.

    Attributes:
        scheduler: Whose choices were compared.
        seconds: For how long.
        compared: How many pods.
        agreed: Of how many the outcome is as good as ours.
        results: Result → pods, those that wait at this moment included.
        undecided: Pods that wait and of which it is too early to say anything.
        not_compared: Why not → pods: `unseen` (bound before it was seen waiting) or `gone` (deleted too soon).
        gap_sum: By how much the scores were lower, all together.
        gap_most: By how much at most.
        disagreements: How many disagreements are kept.
        worst: The worst of those, at most as many as asked for.
    """

    scheduler: str
    seconds: float
    compared: int
    agreed: int
    results: dict[Result, int]
    undecided: int
    not_compared: dict[str, int]
    gap_sum: int
    gap_most: int
    disagreements: int
    worst: tuple[Finding, ...]


class Tally:
    """Adds findings up.

    Attributes:
        scheduler: Whose choices are compared.
    """

    def __init__(self, scheduler: str, *, kept: int, meters: modes.Modes) -> None:
        self.scheduler = scheduler
        self._meters = meters
        meters.expect_comparisons(result.value for result in Result)
        self._results: collections.Counter[Result] = collections.Counter()
        self._not_compared = {"unseen": 0, "gone": 0}
        self._gap_sum = self._gap_most = 0
        self._disagreements: collections.deque[Finding] = collections.deque(maxlen=kept)

    @property
    def next_number(self) -> int:
        """Of the finding that comes next."""
        return self._results.total() + 1

    def add(self, found: Finding) -> None:
        """A pod was compared for good."""
        self._results[found.result] += 1
        self._gap_sum += found.gap
        self._gap_most = max(self._gap_most, found.gap)
        self._meters.compared(found.result.value, found.gap)
        if found.result not in AGREED:
            self._disagreements.append(found)

    def not_compared(self, reason: str) -> None:
        """A pod could not be compared: `unseen` or `gone`."""
        self._not_compared[reason] += 1
        self._meters.not_compared(reason)

    def report(self, waiting: Waiting, *, seconds: float, limit: int = WORST_MAX) -> Report:
        """All of it, with the pods that wait at this moment."""
        results = {result: self._results[result] + waiting.get(result, 0) for result in ORDER}
        worst = sorted(self._disagreements, key=lambda each: (-ORDER.index(each.result), -each.gap, -each.number))
        return Report(
            scheduler=self.scheduler,
            seconds=seconds,
            compared=sum(results.values()),
            agreed=sum(results[result] for result in AGREED),
            results=results,
            undecided=waiting.get(None, 0),
            not_compared=dict(self._not_compared),
            gap_sum=self._gap_sum,
            gap_most=self._gap_most,
            disagreements=len(self._disagreements),
            worst=tuple(worst[:limit]),
        )
