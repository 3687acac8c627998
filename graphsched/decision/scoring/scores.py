"""The scores of kube-scheduler's default profile, as vectors over nodes, integer truncation included.

A score plugin gives a raw int64 for each row asked about. Where `normalised` says so, raw values are scaled afterwards
over the nodes that passed (`normalise`); the others lie in 0..100 already.
"""

from __future__ import annotations

import enum
import typing

import numpy as np

from graphsched.base.values import nodes, pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, identity
from graphsched.graph import view

SCORE_MAX = 100
_MIB = 1 << 20
_IMAGE_MIN = 23 * _MIB
_IMAGE_MAX_PER_CONTAINER = 1000 * _MIB


class Normalised(enum.Enum):
    """How raw scores become 0..100."""

    NO = "they are"
    MAX = "the greatest becomes 100"
    MAX_REVERSED = "the greatest becomes 0, zero becomes 100"


class Score(typing.Protocol):
    """A score plugin.

    Attributes:
        plugin: Its name.
        normalised: How its raw values become 0..100.
        static: Whether raw values depend on the node object alone.
    """

    plugin: str
    normalised: Normalised
    static: bool

    def applies(self, subject: check.Subject) -> bool:
        """Whether it scores at all; otherwise it counts 0 and is left out of explanations."""

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each of the rows."""


class LeastAllocated:
    """Prefers nodes with more room: the weighted mean over resources of (allocatable − requested) · 100 / allocatable.

    CPU and memory are counted with the defaults for containers that request none (`Demand.scored_*`).
    """

    plugin = names.NODE_RESOURCES_FIT
    normalised = Normalised.NO
    static = False

    def __init__(self, resources: tuple[tuple[str, int], ...]) -> None:
        self.resources = resources

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row, 0..100."""
        total: trace.Scores | None = None
        weights: trace.Scores | None = None
        for name, weight in self.resources:
            held, added = _scored(graph, subject.spec.demand, name)
            if added == 0 and _scalar(name):
                continue
            offered = graph.columns.column(graph.columns.allocatable, name)[rows]
            left = offered - held[rows] - added
            score = np.maximum(left, 0) * SCORE_MAX // np.maximum(offered, 1) * weight
            share = (offered > 0) * np.int64(weight)
            total = score if total is None else total + score
            weights = share if weights is None else weights + share
        if total is None or weights is None:
            return np.zeros(check.count(graph, rows), np.int64)
        # Where nothing is offered the numerator is 0 too: left is not positive there.
        return total // np.maximum(weights, 1)


class BalancedAllocation:
    """Prefers nodes whose resources get used more evenly by taking the pod in: 50 + (50 + B(with) − B(without)) / 2,
    where B = trunc((1 − std of the used fractions) · 100).
    """

    plugin = names.BALANCED_ALLOCATION
    normalised = Normalised.NO
    static = False

    def __init__(self, resources: tuple[str, ...]) -> None:
        self.resources = resources

    def applies(self, subject: check.Subject) -> bool:
        """Unless the pod requests none of the resources: such pods would all flock to one node."""
        amounts = dict(subject.spec.demand.amounts)
        return any(amounts.get(name, 0) for name in self.resources)

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row, 50..100."""
        columns = graph.columns
        amounts = dict(subject.spec.demand.amounts)
        counted = [name for name in self.resources if amounts.get(name, 0) or not _scalar(name)]
        offered = [columns.column(columns.allocatable, name)[rows] for name in counted]
        held = [columns.column(columns.requested, name)[rows] for name in counted]
        wanted = [have + amounts.get(name, 0) for have, name in zip(held, counted, strict=True)]
        change = _balance(wanted, offered) - _balance(held, offered)
        # Go truncates towards zero; 50 + change is never negative, so a floor is the same.
        return SCORE_MAX // 2 + (SCORE_MAX // 2 + change) // 2


def _balance(used: list[trace.Scores], offered: list[trace.Scores]) -> trace.Scores:
    """trunc((1 − std) · 100) for each row, over the resources the row offers."""
    if len(used) == 2 and offered[0].all() and offered[1].all():
        first = np.minimum(used[0] / offered[0], 1.0)
        second = np.minimum(used[1] / offered[1], 1.0)
        return ((1.0 - np.abs((first - second) / 2)) * SCORE_MAX).astype(np.int64)
    if not used:
        return np.zeros(0, np.int64)
    present = np.array([each > 0 for each in offered])
    fractions = np.array(
        [np.minimum(have / np.maximum(most, 1), 1.0) for have, most in zip(used, offered, strict=True)]
    )
    fractions = np.where(present, fractions, 0.0)
    number = present.sum(axis=0)
    # Summed in order, as the reference does: floating-point addition is not associative.
    total = np.zeros(number.shape)
    for row in fractions:
        total = total + row
    mean = total / np.maximum(number, 1)
    square = np.zeros(number.shape)
    for row, there in zip(fractions, present, strict=True):
        square = square + np.where(there, (row - mean) * (row - mean), 0.0)
    deviation = np.sqrt(square / np.maximum(number, 1))
    least = np.where(present, fractions, np.inf).min(axis=0)
    most = np.where(present, fractions, -np.inf).max(axis=0)
    with np.errstate(invalid="ignore"):
        half = np.abs((most - least) / 2)
    spread = np.where(number == 2, half, np.where(number > 2, deviation, 0.0))
    balance: trace.Scores = ((1.0 - spread) * SCORE_MAX).astype(np.int64)
    return balance


class ImageLocality:
    """Prefers nodes that hold the pod's images, scaled by how widely each image is spread already."""

    plugin = names.IMAGE_LOCALITY
    normalised = Normalised.NO
    static = True

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  it scores 0 where no image is known
        """Always."""
        return True

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row, 0..100."""
        spec = subject.spec
        columns = graph.columns
        sums = np.zeros(columns.capacity, np.int64)
        total = len(columns.rows)
        for name in (*spec.images, *spec.image_volumes):
            holders, size = graph.images.holders(name)
            if len(holders):
                sums[holders] += int(size * (len(holders) / total))
        ceiling = _IMAGE_MAX_PER_CONTAINER * spec.image_containers
        if ceiling <= _IMAGE_MIN:
            return np.zeros(check.count(graph, rows), np.int64)
        clamped = np.clip(sums[rows], _IMAGE_MIN, ceiling)
        return SCORE_MAX * (clamped - _IMAGE_MIN) // (ceiling - _IMAGE_MIN)


class TaintPreference:
    """Avoids nodes with PreferNoSchedule taints the pod does not tolerate; raw is their number."""

    plugin = names.TAINT_TOLERATION
    normalised = Normalised.MAX_REVERSED
    static = True

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  it never skips: untainted clusters score 100
        """Always."""
        return True

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row: untolerated PreferNoSchedule taints."""
        tolerations = tuple(each for each in subject.spec.tolerations if each.effect in ("", "PreferNoSchedule"))
        column = graph.attributes.taints
        if not column.values:
            return np.zeros(check.count(graph, rows), np.int64)

        def untolerated(taints: tuple[nodes.Taint, ...] | None) -> int:
            return sum(
                taint.effect == "PreferNoSchedule" and not any(each.tolerates(taint) for each in tolerations)
                for taint in taints or ()
            )

        return column.ask(("untolerated", tolerations), untolerated, np.int64)[column.ids[rows]].astype(np.int64)


class AffinityPreference:
    """Prefers nodes by the summed weights of the preferred node affinity terms they match."""

    plugin = names.NODE_AFFINITY
    normalised = Normalised.MAX
    static = True

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod or the profile prefers anything."""
        return bool(subject.spec.preferred) or bool(subject.added_preferred)

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row: summed weights."""
        sums = np.zeros(check.count(graph, rows), np.int64)
        for preferred in (*subject.spec.preferred, *subject.added_preferred):
            if preferred.weight and not preferred.term.empty:
                sums += identity.term_holds(graph, preferred.term, rows) * np.int64(preferred.weight)
        return sums


def normalise(raw: trace.Scores, greatest: int, how: Normalised) -> trace.Scores:
    """Raw scores as 0..100, given the greatest raw score of a node that passed.

    As kube-scheduler's DefaultNormalizeScore: when the greatest is 0, everything is 0, or 100 when reversed.
    """
    if how is Normalised.NO:
        return raw
    scaled = np.zeros_like(raw) if greatest == 0 else raw * SCORE_MAX // greatest
    return SCORE_MAX - scaled if how is Normalised.MAX_REVERSED else scaled


def normalise_one(raw: int, greatest: int, how: Normalised) -> int:
    """`normalise` for a single score."""
    return int(normalise(np.array([raw], np.int64), greatest, how)[0])


def _scored(graph: view.View, demand: pods.Demand, name: str) -> tuple[trace.Scores, int]:
    """What the rows hold of a resource as the allocation score counts it, and what the pod adds."""
    columns = graph.columns
    if name == nodes.CPU:
        return columns.scored_cpu, demand.scored_cpu
    if name == nodes.MEMORY:
        return columns.scored_memory, demand.scored_memory
    return columns.column(columns.requested, name), dict(demand.amounts).get(name, 0)


def _scalar(name: str) -> bool:
    """Whether a resource is dropped from scores of pods that do not request it: all but the three native ones."""
    return name not in (nodes.CPU, nodes.MEMORY, nodes.EPHEMERAL_STORAGE)
