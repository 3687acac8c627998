"""Limits on the ways between a pod and its partners: time, bandwidth, cost.

A limit holds for every placed pod of the partner: who calls a Service reaches any of them. What is not known does not
hold, and the reason says that it is unknown. Partners of which nothing is placed limit nothing.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import labels, pods
from graphsched.decision import names, trace, ways
from graphsched.decision.constraints import check
from graphsched.graph import partners, routes, view


class Paths:
    """The ways to all partners are within their limits."""

    plugin = names.GRAPH_PATH
    static = False
    after: tuple[str, ...] = (names.NODE_RESOURCES_FIT,)

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  groups are for the graph to say
        """Always: `concerns` says it sooner."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: no limit is passed, and each is known to hold."""
        mask = np.ones(graph.columns.capacity, np.bool_)
        for partner in ways.limiting(graph, subject):
            for bad, unknown, _ in _judged(graph, subject, partner):
                mask &= ~(bad | unknown)
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows beyond each limit, and those of which it is not known."""
        found = []
        for partner in ways.limiting(graph, subject):
            for bad, unknown, (beyond, what) in _judged(graph, subject, partner):
                found.append(check.Refusal(f"node(s) {beyond} {partner.title}", bad[rows], unresolvable=True))
                reason = f"node(s) had an unknown {what} {partner.title}"
                found.append(check.Refusal(reason, unknown[rows], unresolvable=True))
        return found


def concerns(graph: view.View, spec: pods.Spec, namespace: str, pod_labels: labels.Labels) -> bool:
    """Whether some partner of such a pod has a limit."""
    if spec.graph is None and not graph.groups:
        return False
    found = partners.limiting(graph.groups, graph.selections, spec, namespace, pod_labels)
    return any(partner.limited for partner in found)


def _judged(
    graph: view.View, subject: check.Subject, partner: partners.Partner
) -> list[tuple[trace.Mask, trace.Mask, tuple[str, str]]]:
    """For each limit the rows beyond it, the rows where it is not known, and the words for both."""
    if not partner.limited or not graph.crowd.counts(partner.matcher).any():
        return []
    found = []
    for metric, limit, words in (
        (routes.Metric.LATENCY, partner.latency_ms_max, ("were more than {:g} ms from", "latency to")),
        (routes.Metric.BANDWIDTH, partner.bandwidth_mbps_min, ("had less than {:g} Mbps to", "bandwidth to")),
        (routes.Metric.COST, partner.cost_max, ("were at a network cost above {:g} from", "network cost to")),
    ):
        if limit is None:
            continue
        known = ways.to(graph, subject, partner, metric)
        worst = np.full(graph.columns.capacity, np.nan) if known is None else known.worst
        with np.errstate(invalid="ignore"):
            bad = worst < limit if metric is routes.Metric.BANDWIDTH else worst > limit
        found.append((bad, np.isnan(worst), (words[0].format(limit), words[1])))
    return found
