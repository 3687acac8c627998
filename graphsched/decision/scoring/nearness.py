"""Scores of the graph: near a place, near partners, wide ways to them, and away from nodes that are being cut off.

They count only where a pod, a group of it or the state of a link gives them a reason; otherwise each skips, and totals
are kube-scheduler's. Unknown is neither near nor far: a node from which no way is known gets the middle of what the
others get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graphsched.base.values import keys
from graphsched.decision import names, trace, ways
from graphsched.decision.constraints import check
from graphsched.decision.scoring import scores
from graphsched.graph import partners, routes, view

TARGETS_MAX = 64
"""Vertices that a pod wants to be near of which the distances are looked at, in the order of the annotation."""


class Distance:
    """Prefers nodes with few hops to the nearest of what the pod wants to be near: 100 − hops, and not below 0."""

    plugin = names.GRAPH_DISTANCE

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row, 0..100; None where the pod names nothing that is there."""
        wanted = targets(graph, subject)
        if not wanted or not graph.routes.prepare(routes.Metric.HOPS, wanted, subject.expired):
            return None
        nearest = np.full(graph.columns.capacity, np.nan)
        for target in wanted:
            hops = graph.routes.hops(target)
            nearest = np.fmin(nearest, np.where(hops < 0, np.nan, hops))
        return _with_middle(np.maximum(scores.SCORE_MAX - nearest, 0.0), passed)


class Peers:
    """Prefers nodes with short ways to the pod's partners.

    The mean over each partner's pods, then over the partners by their rates, stretched so that the nearest node gets
    100 and the farthest 0. Ways are measured in milliseconds where any link has some, else in an operator's cost, else
    in hops.
    """

    plugin = names.GRAPH_PEERS

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row, 0..100; None where no partner is placed."""
        drawing = ways.drawing(graph, subject)
        mean = weighed(graph, subject, drawing, metric_of(graph)) if drawing else None
        return None if mean is None else _stretched(-mean, passed)


class Bandwidth:
    """Prefers nodes with wide ways to the pod's partners, likewise: the widest gets 100, the narrowest 0."""

    plugin = names.GRAPH_BANDWIDTH

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row, 0..100; None where no partner is placed."""
        drawing = ways.drawing(graph, subject)
        if not drawing or not graph.routes.knows(routes.Metric.BANDWIDTH):
            return None
        mean = weighed(graph, subject, drawing, routes.Metric.BANDWIDTH)
        if mean is None:
            return None
        # To be where the partners are is at least as good as the widest way.
        finite = mean[np.isfinite(mean) & passed]
        mean = np.where(np.isinf(mean), finite.max() if len(finite) else 0.0, mean)
        return _stretched(mean, passed)


class Health:
    """Avoids nodes whose links are all sick or down, before their kubelets fall silent: 0 for them, 100 for others."""

    plugin = names.GRAPH_HEALTH

    def score(
        self,
        graph: view.View,
        subject: check.Subject,  # noqa: ARG002  it is about the node alone
        passed: trace.Mask,  # noqa: ARG002
    ) -> trace.Scores | None:
        """Int64 a row, 0 or 100; None where no node is so."""
        ailing = graph.routes.ailing() if graph.topology.links else None
        return None if ailing is None else np.where(ailing, 0, scores.SCORE_MAX).astype(np.int64)


def targets(graph: view.View, subject: check.Subject) -> list[keys.VertexKey]:
    """The vertices that the pod wants to be near, as far as distances to them are looked at."""
    wanted = subject.spec.graph
    if wanted is None:
        return []
    return [key for each in wanted.near for key in graph.routes.resolve(each)][:TARGETS_MAX]


def metrics_of(graph: view.View, weights: Mapping[str, int]) -> list[routes.Metric]:
    """What ways to partners are measured in by the scores that have a weight."""
    found = [metric_of(graph)] if weights.get(names.GRAPH_PEERS) else []
    if weights.get(names.GRAPH_BANDWIDTH) and graph.routes.knows(routes.Metric.BANDWIDTH):
        found.append(routes.Metric.BANDWIDTH)
    return found


def metric_of(graph: view.View) -> routes.Metric:
    """What ways to partners are measured in."""
    known = (each for each in (routes.Metric.LATENCY, routes.Metric.COST) if graph.routes.knows(each))
    return next(known, routes.Metric.HOPS)


def weighed(
    graph: view.View, subject: check.Subject, drawing: Sequence[partners.Partner], metric: routes.Metric
) -> ways.Amounts | None:
    """The mean way to these partners by their rates, a row, NaN where none is known; None where none is placed."""
    total, weight = np.zeros(graph.columns.capacity), np.zeros(graph.columns.capacity)
    found = False
    for partner in drawing:
        there = ways.to(graph, subject, partner, metric)
        if there is None:
            continue
        found = True
        known = ~np.isnan(there.mean)
        total[known] += partner.rate * there.mean[known]
        weight[known] += partner.rate
    if not found:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(weight > 0, total / weight, np.nan)


def _stretched(worth: ways.Amounts, passed: trace.Mask) -> trace.Scores | None:
    """Worth as 0..100 over the rows that passed and are known; None where nothing is known of any."""
    known = worth[passed & ~np.isnan(worth)]
    if not len(known):
        return None
    least, most = float(known.min()), float(known.max())
    if most <= least:
        return np.full(len(worth), scores.SCORE_MAX, np.int64)
    return _with_middle(np.clip((worth - least) * (scores.SCORE_MAX / (most - least)), 0, scores.SCORE_MAX), passed)


def _with_middle(found: ways.Amounts, passed: trace.Mask) -> trace.Scores | None:
    """As whole numbers, with the middle of the known ones that passed where nothing is known; None where none is."""
    known = found[passed & ~np.isnan(found)]
    if not len(known):
        return None
    middle = (float(known.min()) + float(known.max())) / 2
    # Sums may differ in their last bits with the order of their parts; what is whole but for these is whole.
    return np.round(np.where(np.isnan(found), middle, found), 6).astype(np.int64)
