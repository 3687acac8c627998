"""Limits on the ways between a pod and its partners: time, bandwidth, cost.

A limit holds for every placed pod of the partner: who calls a Service reaches any of them. What is not known does not
hold, and the reason says that it is unknown. Partners of which nothing is placed limit nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
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
        for limit in limits(graph, subject):
            mask &= ~(limit.beyond | limit.unknown)
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows beyond each limit, and those of which it is not known."""
        found = []
        for limit in limits(graph, subject):
            found.append(check.Refusal(limit.reason_beyond, limit.beyond[rows], unresolvable=True))
            found.append(check.Refusal(limit.reason_unknown, limit.unknown[rows], unresolvable=True))
        return found


class Limit(msgspec.Struct, frozen=True, gc=False):
    """A limit on the ways to a partner.

    Attributes:
        partner: Whose pods the ways lead to.
        metric: What is limited.
        bound: The most of it, or of bandwidth the least.
        worst: A row, the longest way to one of them, or of widths the least; NaN where one is not known.
    """

    partner: partners.Partner
    metric: routes.Metric
    bound: float
    worst: ways.Amounts

    @property
    def beyond(self) -> trace.Mask:
        """Bool a row: some way is known not to be within."""
        with np.errstate(invalid="ignore"):
            found: trace.Mask = (
                self.worst < self.bound if self.metric is routes.Metric.BANDWIDTH else self.worst > self.bound
            )
        return found

    @property
    def unknown(self) -> trace.Mask:
        """Bool a row: some way is not known."""
        return np.isnan(self.worst)

    @property
    def reason_beyond(self) -> str:
        """Why a node of `beyond` is refused."""
        return f"node(s) {_WORDS[self.metric][0].format(self.bound)} {self.partner.title}"

    @property
    def reason_unknown(self) -> str:
        """Why a node of `unknown` is refused."""
        return f"node(s) had an unknown {_WORDS[self.metric][1]} {self.partner.title}"


_WORDS = {
    routes.Metric.LATENCY: ("were more than {:g} ms from", "latency to"),
    routes.Metric.BANDWIDTH: ("had less than {:g} Mbps to", "bandwidth to"),
    routes.Metric.COST: ("were at a network cost above {:g} from", "network cost to"),
}


def concerns(graph: view.View, spec: pods.Spec, namespace: str, pod_labels: labels.Labels) -> bool:
    """Whether some partner of such a pod has a limit."""
    if spec.graph is None and not graph.groups:
        return False
    found = partners.limiting(graph.groups, graph.selections, spec, namespace, pod_labels)
    return any(partner.limited for partner in found)


def limits(graph: view.View, subject: check.Subject) -> Iterator[Limit]:
    """Every limit that the pod has, with the rows that do not keep it."""
    for partner, metric, bound in bounds(graph, subject):
        known = ways.to(graph, subject, partner, metric)
        worst = np.full(graph.columns.capacity, np.nan) if known is None else known.worst
        yield Limit(partner, metric, bound, worst)


def bounds(graph: view.View, subject: check.Subject) -> Iterator[tuple[partners.Partner, routes.Metric, float]]:
    """Every limit that the pod has on the ways to a partner of which something is placed."""
    for partner in ways.limiting(graph, subject):
        if not partner.limited or not graph.crowd.counts(partner.matcher).any():
            continue
        for metric, bound in (
            (routes.Metric.LATENCY, partner.latency_ms_max),
            (routes.Metric.BANDWIDTH, partner.bandwidth_mbps_min),
            (routes.Metric.COST, partner.cost_max),
        ):
            if bound is not None:
                yield partner, metric, bound
