"""Compliance: whether the policy layer lets a node have a pod, and what it makes of the node's total.

One of the three consumers of the layers, see `reachability`. A check and a score outside the class cache, since rules
tell pods apart by namespace and labels; what they answer is kept by kind of pod in the graph's book.
"""

from __future__ import annotations

import numpy as np

from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.decision.policy import books, rulings
from graphsched.graph import distances, view


class GraphPolicy:
    """What rules refuse."""

    plugin = names.GRAPH_POLICY
    static = False
    after: tuple[str, ...] = ()

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  which rules there are is for the graph to say
        """Always: where there is no rule, nothing is asked."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: no rule refuses it."""
        allowed = ruling(graph, subject).allowed
        return np.ones(check.count(graph, rows), np.bool_) if allowed is None else allowed[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """Every rule that refuses some rows. Evicting pods changes no rule."""
        found = ruling(graph, subject).refusals
        return [check.Refusal(each.reason, each.mask[rows], unresolvable=True) for each in found]


def ruling(graph: view.View, subject: check.Subject) -> rulings.Ruling:
    """What the rules say of such a pod."""
    return books.of(graph).ruling(graph, subject) if len(graph.rules) else rulings.NOTHING


def prepare(graph: view.View, subject: check.Subject, expired: distances.Expired) -> bool:
    """Find that out until `expired`; whether it is known. What was done is kept."""
    return not len(graph.rules) or books.of(graph).prepare(graph, subject, expired)


def weights(graph: view.View, subject: check.Subject) -> trace.Scores | None:
    """Int64 a row, what rules add to its total; None where they add nothing."""
    return ruling(graph, subject).total
