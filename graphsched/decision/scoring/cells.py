"""The score of NUMA cells: a Guaranteed pod goes where one cell holds all of it.

Off by default. It counts for pods whose containers kubelets align with cells, which are those of the QoS class
Guaranteed, and only while a node that passed tells of its cells. What agents report is a moment old, so this prefers
and never refuses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from graphsched.base.values import nodes, places
from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.decision.scoring import scores
from graphsched.graph import cells, view

UNKNOWN = 10
"""For a node that tells nothing of its cells: less than for any where the pod would run, more than for one whose
kubelet would turn it away."""


class Cells:
    """Prefers nodes where the whole pod fits into one NUMA cell: 100; 100 / k where it takes k of them.

    Nothing where there is not enough in all of them, or the kubelet's policy would turn the pod away.
    """

    plugin = names.GRAPH_CELLS

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row, 0..100; None for a pod that is not aligned, and where nobody tells of cells."""
        there = graph.cells
        if not there or not subject.spec.guaranteed:
            return None
        known = there.count > 0
        if not (known & passed).any():
            return None
        amounts = subject.spec.demand.amounts
        taken = taken_by_row(there.available, there.count, amounts)
        points = np.where(taken > 0, scores.SCORE_MAX // np.maximum(taken, 1), 0)
        at_best = taken_by_row(there.offered, there.count, amounts)
        turned_away = (there.strict == cells.Strictness.SINGLE) & (taken != 1)
        turned_away |= (there.strict == cells.Strictness.RESTRICTED) & (taken != at_best)
        points[turned_away] = 0
        return np.where(known, points, UNKNOWN).astype(np.int64)


def taken_by_row(table: cells.Table, count: cells.Int64, amounts: nodes.Amounts) -> cells.Int64:
    """`taken` of every node, a row; whatever where it tells of no cell."""
    depth = max((len(column) for column in table.values()), default=1)
    fits = np.arange(depth)[:, np.newaxis] < count
    most = np.ones(len(count), np.int64)
    for resource, amount in amounts:
        column = table.get(resource)
        if column is None or not amount:
            continue
        told = column[0] >= 0
        fits &= (column >= amount) | ~told
        # Those with most first: how many it takes until there is enough.
        sums = np.cumsum(np.maximum(-np.sort(-column, axis=0), 0), axis=0)
        most = np.where(told, np.maximum(most, 1 + np.count_nonzero(sums < amount, axis=0)), most)
    several = np.where(most > depth, 0, np.maximum(most, 2))
    return np.where(fits.any(axis=0), 1, several)


def holder(there: Sequence[places.Place], amounts: nodes.Amounts) -> places.Place | None:
    """The first of a node's cells that has all of it available, of what the cells tell of; None where none has."""
    told = {name for cell in there for name, _ in cell.available}
    wanted = [(name, amount) for name, amount in amounts if name in told]
    free = ((cell, dict(cell.available)) for cell in there)
    return next((cell for cell, has in free if all(has.get(name, 0) >= amount for name, amount in wanted)), None)


def taken(there: Sequence[places.Place], amounts: nodes.Amounts) -> int:
    """How many of a node's cells the amounts take by what is available: 1 where one has all of them.

    Where none has, at least as many as any resource by itself takes, and at least 2; 0 where there is not enough. A
    resource that no cell tells of counts nowhere.
    """
    if holder(there, amounts) is not None:
        return 1
    most = 2
    free = [dict(cell.available) for cell in there]
    for name, amount in amounts:
        have = sorted((cell[name] for cell in free if name in cell), reverse=True)
        if not have or not amount:
            continue
        number = next((number for number, total in enumerate(itertools.accumulate(have), 1) if total >= amount), 0)
        if not number:
            return 0
        most = max(most, number)
    return most
