"""Classes: pods that no constraint or score can tell apart share one cached answer.

A class keeps, for every row, whether the node passes and what it scores. When a pod of the class comes up, only the
rows that changed since the last one are evaluated again (`columns.changed`); after a bind that is one row. What depends
on the node object alone is evaluated again only for rows that were reshaped. Normalised scores are scaled anew when the
greatest raw score among passing nodes has moved. Nominated pods and other pods' anti-affinity are not part of it: see
`cycle`.

Law, tested: whatever happened in between, a class brought up to date equals one built fresh.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import pods
from graphsched.decision import context as contexts, profile, trace
from graphsched.decision.constraints import check, spread, walk
from graphsched.decision.scoring import cells, company, nearness, scores, sharing, taints
from graphsched.graph import view

RANK_SPAN = 1 << 24
"""Rows a key can tell apart. A key is total · RANK_SPAN + (RANK_SPAN − 1 − rank): its greatest element is the best
node, the first by name among equals."""

_ALL = slice(None)
_INCREMENTAL_SHARE = 4
"""Rows are evaluated one by one while at most a quarter changed; beyond that, slices over everything are faster."""


class Statistics(msgspec.Struct):
    """What the cache did, for the metrics: counts since the start."""

    hits: int = 0
    builds: int = 0
    rows: int = 0
    evictions: int = 0
    predicate_calls: int = 0
    """Checks that the walks evaluated, each over all the rows asked about; at most one for each vertex of the DAG."""


class Ranking(NamedTuple):
    """How a class ranks the nodes for one pod.

    Attributes:
        key: Int64 a row, -1 where the node does not pass; the greatest is the best node (see `RANK_SPAN`).
        greatest: The greatest raw value among the nodes that pass, for each normalised score.
    """

    key: trace.Scores
    greatest: list[int]


class Class:
    """The cached answer for one class of pods.

    Attributes:
        subject: What is placed.
        mask: Bool a row, whether every check passes.
        totals: Int64 a row, the weighted sum of all scores; meaningful where `mask` holds.
        key: Int64 a row, -1 where the node does not pass; the greatest is the best node (see `RANK_SPAN`).
    """

    def __init__(self, subject: check.Subject, settings: profile.Profile) -> None:
        self.subject = subject
        enabled = [each for each in walk.IN_ORDER if each not in walk.OUTSIDE and each.plugin not in settings.disabled]
        planned = walk.plan(enabled, subject)
        self._static = tuple(each for each in planned if each.static)
        self._dynamic = tuple(each for each in planned if not each.static)
        self._settings = settings
        scoring = [each for each in score_plugins(settings) if each.applies(subject)]
        self._plain = tuple(each for each in scoring if each.normalised is scores.Normalised.NO)
        self._scaled = tuple(each for each in scoring if each.normalised is not scores.Normalised.NO)
        self._layout = -1
        self._images = -1
        self._seen = -1

    def refresh(self, graph: view.View, statistics: Statistics) -> None:
        """Bring the answer up to date with the view."""
        columns = graph.columns
        if self._layout != columns.layout or self._images != graph.images.version:
            # Every rank, and every score that counts nodes or holders of an image, may have moved.
            statistics.predicate_calls += self._build(graph)
            statistics.builds += 1
            statistics.rows += columns.capacity
        elif self._seen != graph.generation:
            dirty = np.flatnonzero(columns.changed > self._seen)
            if len(dirty) * _INCREMENTAL_SHARE > columns.capacity:
                statistics.predicate_calls += self._build(graph)
                statistics.builds += 1
            elif len(dirty):
                statistics.predicate_calls += self._update(graph, dirty)
                statistics.hits += 1
            else:
                statistics.hits += 1
            statistics.rows += len(dirty)
        else:
            statistics.hits += 1
        self._seen = graph.generation

    def _build(self, graph: view.View) -> int:
        """Evaluate everything; returns the number of checks in the walk."""
        columns = graph.columns
        self._layout = columns.layout
        self._images = graph.images.version
        self._allowed = walk.mask(graph, self.subject, self._static, _ALL)
        self.mask = self._allowed & walk.mask(graph, self.subject, self._dynamic, _ALL)
        self._raw = [each.raw(graph, self.subject, _ALL) for each in self._scaled]
        self._constant = [not raw.any() for raw in self._raw]
        self._greatest: list[int] = []
        self._unscaled = [each.raw(graph, self.subject, _ALL) * self._weight(each) for each in self._plain]
        self.totals: trace.Scores = np.zeros(columns.capacity, np.int64)
        self.key: trace.Scores = np.full(columns.capacity, -1, np.int64)
        self._sum_up(graph, _ALL)
        return len(self._static) + len(self._dynamic)

    def _update(self, graph: view.View, rows: npt.NDArray[np.intp]) -> int:
        """Evaluate these rows; returns the number of checks in the walk."""
        reshaped = rows[graph.columns.reshaped[rows] > self._seen]
        if len(reshaped):
            self._allowed[reshaped] = walk.mask(graph, self.subject, self._static, reshaped)
            for raw, each in zip(self._raw, self._scaled, strict=True):
                raw[reshaped] = each.raw(graph, self.subject, reshaped)
            self._constant = [not raw.any() for raw in self._raw]
        self.mask[rows] = self._allowed[rows] & walk.mask(graph, self.subject, self._dynamic, rows)
        for values, plain in zip(self._unscaled, self._plain, strict=True):
            if not plain.static or len(reshaped):
                values[rows] = plain.raw(graph, self.subject, rows) * self._weight(plain)
        self._sum_up(graph, rows)
        return len(self._dynamic) + (len(self._static) if len(reshaped) else 0)

    def _sum_up(self, graph: view.View, rows: check.Rows) -> None:
        """Totals and keys of these rows, or of all when the scale of a normalised score has moved."""
        greatest = self._greatest_within(self.mask)
        if greatest != self._greatest:
            self._greatest = greatest
            rows = _ALL
        total = self._total(graph, rows, greatest)
        self.totals[rows] = total
        self.key[rows] = np.where(self.mask[rows], _ranked(graph, rows, total), -1)

    def within(self, graph: view.View, mask: trace.Mask, extra: trace.Scores | None) -> Ranking:
        """The ranking when only the nodes of `mask` pass, some of those that the class lets pass.

        Scores are normalised over those that are left. `extra` is what scores outside the class add to the totals.
        """
        greatest = self._greatest_within(mask)
        if extra is None and greatest == self._greatest:
            return Ranking(np.where(mask, self.key, -1), greatest)
        total = self.totals if greatest == self._greatest else self._total(graph, _ALL, greatest)
        total = total if extra is None else total + extra
        return Ranking(np.where(mask, _ranked(graph, _ALL, total), -1), greatest)

    @property
    def ranking(self) -> Ranking:
        """The ranking when nothing outside the class plays a part."""
        return Ranking(self.key, self._greatest)

    def scores_at(self, row: int, greatest: list[int]) -> tuple[tuple[str, int], ...]:
        """Plugin and weighted score of one row, for the plugins that do not skip, given the scales of a ranking."""
        plain = [(each.plugin, int(values[row])) for each, values in zip(self._plain, self._unscaled, strict=True)]
        scaled = [
            (each.plugin, scores.normalise_one(int(raw[row]), most, each.normalised) * self._weight(each))
            for each, raw, most in zip(self._scaled, self._raw, greatest, strict=True)
        ]
        return (*scaled, *plain)

    def _greatest_within(self, mask: trace.Mask) -> list[int]:
        """The greatest raw value among the rows of the mask, for each normalised score."""
        return [
            0 if constant else int(raw.max(where=mask, initial=0))
            for raw, constant in zip(self._raw, self._constant, strict=True)
        ]

    def _total(self, graph: view.View, rows: check.Rows, greatest: list[int]) -> trace.Scores:
        total = np.zeros(check.count(graph, rows), np.int64)
        for values in self._unscaled:
            total += values[rows]
        for each, raw, most in zip(self._scaled, self._raw, greatest, strict=True):
            if most:
                total += scores.normalise(raw[rows], most, each.normalised) * self._weight(each)
            elif each.normalised is scores.Normalised.MAX_REVERSED:
                total += scores.SCORE_MAX * self._weight(each)
        return total

    def _weight(self, plugin: scores.Score) -> int:
        return self._settings.weights[plugin.plugin]


def _ranked(graph: view.View, rows: check.Rows, total: trace.Scores) -> trace.Scores:
    """Keys of the rows, as if all passed."""
    return total * RANK_SPAN + (RANK_SPAN - 1 - graph.columns.rank[rows])


class Classes:
    """The classes in use, least recently used first, at most `classes_max`."""

    def __init__(self, settings: profile.Profile, *, classes_max: int) -> None:
        self.statistics = Statistics()
        self._settings = settings
        self._classes_max = classes_max
        self._by_spec: OrderedDict[int, Class] = OrderedDict()

    def __len__(self) -> int:
        """Number of classes held."""
        return len(self._by_spec)

    def get(self, graph: view.View, spec: pods.Spec) -> Class:
        """The class of pods with this spec, brought up to date with the view.

        Specs are interned at the border, so identity finds all replicas. The class keeps its spec alive, which keeps
        the identity from being handed to another one.
        """
        found = self._by_spec.get(id(spec))
        if found is None:
            found = self._by_spec[id(spec)] = Class(subject_of(spec, self._settings), self._settings)
            if len(self._by_spec) > self._classes_max:
                self._by_spec.popitem(last=False)
                self.statistics.evictions += 1
        else:
            self._by_spec.move_to_end(id(spec))
        found.refresh(graph, self.statistics)
        return found


def subject_of(spec: pods.Spec, settings: profile.Profile) -> check.Subject:
    """The spec joined with what the profile adds to every pod."""
    return check.Subject(
        spec,
        added_affinity=settings.added_affinity,
        added_preferred=settings.added_preferred,
        ignored_resources=settings.ignored_resources,
        ignored_groups=settings.ignored_groups,
        pool=settings.pool,
        headroom=settings.headroom,
    )


def whole_subject(
    graph: view.View,
    pod: pods.Pod,
    settings: profile.Profile,
    expired: Callable[[], bool] = contexts.never,
) -> check.Subject:
    """The pod as every check sees it, those outside the class too: with what tells it from others of its spec and the
    constraints that it has by default, which go by who selects it in the graph.

    Args:
        graph: The view.
        pod: The pod.
        settings: The profile.
        expired: Whether the time for the decision is over.
    """
    by_default = spread.by_default(graph, settings.spread_by_default, pod)
    return msgspec.structs.replace(
        subject_of(pod.spec, settings),
        namespace=pod.namespace,
        labels=pod.labels,
        priority=pod.priority,
        default_spread=by_default,
        keys_optional=bool(by_default) and settings.default_spread is None,
        expired=expired,
    )


def company_plugins(settings: profile.Profile) -> Sequence[company.Company]:
    """The score plugins outside the classes that have a weight in this profile."""
    every: tuple[company.Company, ...] = (
        company.PodTopologySpread(),
        company.InterPodAffinity(
            hard_weight=settings.hard_affinity_weight, ignore_existing=settings.ignore_existing_preferences
        ),
    )
    return [each for each in every if settings.weights.get(each.plugin, 0)]


def graph_plugins(settings: profile.Profile) -> Sequence[company.Company]:
    """The score plugins that look at ways and cells, and have a weight in this profile."""
    every: tuple[company.Company, ...] = (
        nearness.Distance(),
        nearness.Peers(),
        nearness.Bandwidth(),
        nearness.Health(),
        cells.Cells(),
    )
    return [each for each in every if settings.weights.get(each.plugin, 0)]


def score_plugins(settings: profile.Profile) -> Sequence[scores.Score]:
    """The score plugins that have a weight in this profile."""
    every: tuple[scores.Score, ...] = (
        scores.TaintPreference(),
        scores.AffinityPreference(),
        scores.LeastAllocated(settings.allocation),
        scores.BalancedAllocation(settings.balance),
        scores.ImageLocality(),
        taints.EdgeWeight(),
        sharing.Headroom(),
    )
    return [each for each in every if settings.weights.get(each.plugin, 0)]
