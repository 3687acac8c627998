"""The ways from every node to a pod's partners, as vectors: `constraints/paths` limits them, `scoring/nearness` weighs.

Partners that run where ways begin alike share a vector, so a Service with a hundred pods in three racks costs three.
Ways are those from the candidate to the partner.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.decision.constraints import check
from graphsched.graph import partners, routes, view

ORIGINS_MAX = 64
"""Vectors for one partner. Its pods elsewhere are left out of a score, those of the places with fewest pods first;
whether they are within a limit is not known."""

Amounts = npt.NDArray[np.float64]


class Reach(msgspec.Struct, frozen=True, gc=False):
    """Where a partner's pods are, as far as ways to them are looked at.

    Attributes:
        rows: Rows with pods of it.
        here: How many, for each of these rows.
        origins: Where searches begin, see `routes.Routes.origins`.
        group: For each of the rows, which of the origins is its.
        places: How many origins there are; more than `ORIGINS_MAX` are not looked at.
        pods: How many pods there are at all of them.
        left_out: How many of these run at places that are not looked at.
    """

    rows: npt.NDArray[np.intp]
    here: Amounts
    origins: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]
    places: int
    pods: int
    left_out: int = 0


class Ways(msgspec.Struct, frozen=True, gc=False):
    """From every node to the pods of one partner, in one metric.

    Attributes:
        mean: A row, the mean over its pods to which a way is known; NaN where there is none.
        worst: A row, the longest way, or of widths the least; NaN where one is not known.
        left_out: Pods that run at too many places.
    """

    mean: Amounts
    worst: Amounts
    left_out: int


def limiting(graph: view.View, subject: check.Subject) -> tuple[partners.Partner, ...]:
    """The partners that the pod that is being placed, or a group of it, names."""
    return partners.limiting(graph.groups, graph.selections, subject.spec, subject.namespace, subject.labels)


def drawing(graph: view.View, subject: check.Subject) -> tuple[partners.Partner, ...]:
    """The partners that draw it, those included that name it."""
    told = subject.spec, subject.namespace, subject.labels
    return partners.drawing(graph.groups, graph.callers, graph.selections, *told)


def reach(graph: view.View, partner: partners.Partner) -> Reach | None:
    """Where the partner's pods are; None where none of them is placed."""
    counts = graph.crowd.counts(partner.matcher)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return None
    here = counts[rows].astype(np.float64)
    origins, group = np.unique(graph.routes.origins()[rows], return_inverse=True)
    found = Reach(rows, here, origins, group, places=len(origins), pods=int(here.sum()))
    if len(origins) <= ORIGINS_MAX:
        return found
    weights = np.bincount(group, weights=here)
    kept = np.sort(np.argsort(-weights, kind="stable")[:ORIGINS_MAX])
    place = np.full(len(origins), -1)
    place[kept] = np.arange(len(kept))
    chosen = place[group] >= 0
    return msgspec.structs.replace(
        found,
        rows=rows[chosen],
        here=here[chosen],
        origins=origins[kept],
        group=place[group[chosen]],
        left_out=found.pods - int(weights[kept].sum()),
    )


def prepare(graph: view.View, partner: partners.Partner, metric: routes.Metric, expired: Callable[[], bool]) -> bool:
    """Do the searches that `to` asks for, until `expired`; whether all of them are done. What was done is kept."""
    found = reach(graph, partner)
    return found is None or _searched(graph, found, metric, expired)


def to(graph: view.View, subject: check.Subject, partner: partners.Partner, metric: routes.Metric) -> Ways | None:
    """The ways to the partner's pods; None where none of them is placed, or the time was up before all was searched."""
    found = reach(graph, partner)
    if found is None:
        return None
    graph.routes.statistics.cuts += bool(found.left_out)
    if not _searched(graph, found, metric, subject.expired):
        return None
    table = np.stack([graph.routes.to_origin(metric, int(each)) for each in found.origins])
    return _summed(metric, table, found)


def _searched(graph: view.View, found: Reach, metric: routes.Metric, expired: Callable[[], bool]) -> bool:
    return all(graph.routes.prepared(metric, int(each), expired) for each in found.origins)


def from_node(graph: view.View, found: Reach, metric: routes.Metric, row: int) -> Amounts:
    """The way from one node to the pods on each of the rows of `found`; NaN where none is known."""
    each = np.array([graph.routes.to_origin(metric, int(origin))[row] for origin in found.origins])[found.group]
    each[found.rows == row] = np.inf if metric is routes.Metric.BANDWIDTH else 0.0
    return each


def _summed(metric: routes.Metric, table: Amounts, found: Reach) -> Ways:
    """Mean and worst over the pods.

    Args:
        metric: The metric.
        table: Distances of every node to each origin; changed.
        found: Where the pods are.
    """
    rows, here, group = found.rows, found.here, found.group
    weights: Amounts = np.bincount(group, weights=here).astype(np.float64)
    widest = metric is routes.Metric.BANDWIDTH
    # A node is where it is, whatever its origin is to it; for other nodes of the same origin that says what is known.
    single = here == weights[group]
    table[group[single], rows[single]] = np.inf if widest else 0.0
    known = np.isfinite(table)
    total = weights @ np.where(known, table, 0.0)
    number = weights @ known
    theirs, counted = table[group, rows], known[group, rows]
    total[rows] -= np.where(counted, here * theirs, 0.0)
    # Pods on the node itself are no way off; a width without end would say nothing beside others, so it is not counted.
    number[rows] += np.where(counted, -here, 0.0) if widest else np.where(counted, 0.0, here)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(number > 0, total / number, np.nan)
    if widest:
        mean[rows[number[rows] <= 0]] = np.inf
    worst = table.min(axis=0) if widest else table.max(axis=0)
    if found.left_out:
        worst = np.full(len(worst), np.nan)
    return Ways(mean, worst, found.left_out)
