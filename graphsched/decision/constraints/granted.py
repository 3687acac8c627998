"""What an operator grants of a node: no more than its ceilings, and nothing of what is kept for others.

This project's own, and only where a node says so: see docs/graph.md. Charged after every plugin of kube-scheduler, so
that only nodes refused for nothing else are told to be refused for it. Whoever else places pods is not held back, but
what they place counts.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import nodes
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, feasibility
from graphsched.graph import budgets, view

UNDER_CEILING = "under the operator's ceiling"
BESIDE_RESERVED = "beside what is reserved for others"


class Granted:
    """Room under the ceilings of the node, and beside what it keeps for others."""

    plugin = names.BUDGET
    static = False
    after: tuple[str, ...] = (names.NODE_RESOURCES_FIT,)

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  the graph knows who has a budget
        """Always: every pod takes room, if only its place among the pods."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: the pod keeps to what is granted."""
        mask = np.ones(check.count(graph, rows), np.bool_)
        if graph.budgets:
            for refusal in self._each(graph, subject, rows):
                mask &= ~refusal.mask
        return mask

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """For each resource, the rows above a ceiling, then those where the rest is kept for others."""
        return self._each(graph, subject, rows) if graph.budgets else []

    def _each(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        granted, columns, found = graph.budgets, graph.columns, []
        mine = budgets.holders(subject.namespace, subject.labels)
        for name, amount in [*feasibility.counted(subject), (nodes.PODS, 1)]:
            ceiling, kept = granted.ceilings.get(name), granted.kept_from(name, mine)
            if ceiling is None and kept is None:
                continue
            held = (columns.pods if name == nodes.PODS else columns.column(columns.requested, name))[rows]
            what = "Too many pods" if name == nodes.PODS else f"Insufficient {name}"
            offered = columns.column(columns.allocatable, name)[rows]
            if ceiling is not None:
                offered = np.minimum(offered, ceiling[rows])
                # Where the node itself offers too little the ceiling is not to blame.
                above = (ceiling[rows] != budgets.UNBOUNDED) & (offered - held < amount)
                found.append(check.Refusal(f"{what} {UNDER_CEILING}", above, above & (offered < amount)))
            if kept is not None:
                short = (kept[rows] > 0) & (offered - held - kept[rows] < amount)
                found.append(check.Refusal(f"{what} {BESIDE_RESERVED}", short, short & (offered < amount)))
        return found
