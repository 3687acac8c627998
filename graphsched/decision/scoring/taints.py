"""Taints and tolerations as weights of the edge between pod and node.

Where a pod may go to a node there is an edge; its weight in (0, 1] says how much the taints there speak against it. In
thousandths, for a taint and a toleration that covers it:

    weight = (base − 150 if the toleration has no tolerationSeconds) · 0.3 if its operator is Exists
             + 200 if the taint's effect is NoExecute                  within 50 … 1000
    base   = 1000, or 250 for PreferNoSchedule

The best toleration counts for each taint, the worst taint for each node, and an untainted node weighs 50. A taint that
no toleration covers leaves no edge: 0.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import nodes, pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.decision.scoring import scores
from graphsched.graph import view

LEAST, MOST = 50, 1000
"""Bounds of a weight, in thousandths."""


class EdgeWeight:
    """Prefers nodes whose edge weighs little: 100 · (1 − weight), 0 where there is no edge. Off by default."""

    plugin = names.GRAPH_TAINTS
    normalised = scores.Normalised.NO
    static = True

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  it counts where the profile gives it a weight
        """Always."""
        return True

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row, 0..95."""
        tolerations = subject.spec.tolerations
        column = graph.attributes.taints

        def score(taints: tuple[nodes.Taint, ...] | None) -> int:
            weight = node_weight(taints or (), tolerations)
            return (MOST - weight) // 10 if weight else 0

        return column.ask(("weight", tolerations), score, np.int64)[column.ids[rows]].astype(np.int64)


def node_weight(taints: tuple[nodes.Taint, ...], tolerations: tuple[pods.Toleration, ...]) -> int:
    """Weight of the edge to a node with these taints, in thousandths; 0 where there is no edge."""
    weights = [
        min((edge_weight(taint, each) for each in tolerations if each.tolerates(taint)), default=0) for taint in taints
    ]
    return 0 if 0 in weights else max(weights, default=LEAST)


def edge_weight(taint: nodes.Taint, toleration: pods.Toleration) -> int:
    """Weight of one taint under a toleration that covers it, in thousandths."""
    weight = 250 if taint.effect == "PreferNoSchedule" else 1000
    if toleration.seconds is None:
        weight -= 150
    if toleration.operator == "Exists":
        weight = weight * 3 // 10
    if taint.effect == "NoExecute":
        weight += 200
    return min(max(weight, LEAST), MOST)
