"""Constraints that other pods put on a newcomer: the required anti-affinity of pods that run already.

Read from the term index, never from the pods: a term that selects the newcomer closes every domain that hosts an owner.
Semantics: the third part of kube-scheduler's InterPodAffinity filter.
"""

from __future__ import annotations

import numpy as np

from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.graph import view


class ExistingAntiAffinity:
    """No pod in any of the node's domains refuses the newcomer's company."""

    plugin = names.INTER_POD_AFFINITY
    static = False
    after: tuple[str, ...] = ()
    reason = "node(s) didn't satisfy existing pods anti-affinity rules"

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  who owns such a term is for the index to say
        """Always: whether a term selects the newcomer costs nothing to ask when there is none."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: none of its domains hosts an owner of a term that selects the newcomer."""
        mask = np.ones(graph.columns.capacity, np.bool_)
        for topology_key, owners in graph.matchers.owned_anti_affinity(subject.namespace, subject.labels):
            domains = graph.attributes.label(topology_key)
            closed = np.zeros(len(domains.values) + 1, np.bool_)
            closed[domains.ids[owners > 0]] = True
            # The last place is that of nodes without the label: they are in no domain, so nothing closes them.
            closed[-1] = False
            mask &= ~closed[domains.ids]
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows in a closed domain."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=False)]
