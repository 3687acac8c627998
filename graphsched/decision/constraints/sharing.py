"""What living beside other schedulers asks for: a pool of nodes of our own, and headroom on nodes that are shared.

Both are this project's own and off unless the profile says otherwise; kube-scheduler's answers are then untouched. The
pool is a matter of the node object alone. The headroom is charged last, after every plugin of kube-scheduler, so that
only nodes refused for nothing else are told to be refused for it.
"""

from __future__ import annotations

import typing

import numpy as np

from graphsched.base.values import labels, nodes
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, feasibility
from graphsched.graph import view

DIVISIBLE = frozenset({nodes.CPU, nodes.MEMORY, nodes.EPHEMERAL_STORAGE, nodes.PODS})
"""Resources of which a share can be kept free. Devices are few and rarely wanted by two schedulers: a share of eight
GPUs would be a whole one, idle for ever."""
NEARLY_FULL = 4
"""A node that keeps less than so many times the headroom is nearly full: bursts of two schedulers that do not see each
other for some tenths of a second took up to a fifth of a node in the soak, with a headroom of a twentieth."""
Amount = typing.TypeVar("Amount", int, trace.Scores)
OUTSIDE_HEADROOM = "outside the headroom of"


class Pool:
    """Only the nodes of the pool that the profile names."""

    plugin = names.POOL
    static = True
    after: tuple[str, ...] = ()

    def applies(self, subject: check.Subject) -> bool:
        """Where the profile names a pool."""
        return subject.pool is not None

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: it carries the pool's label."""
        if subject.pool is None:
            return np.ones(check.count(graph, rows), np.bool_)
        key, value = subject.pool
        return graph.attributes.holds(labels.Requirement(key, labels.Operator.IN, (value,)), rows)

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """All the other rows."""
        if subject.pool is None:
            return []
        reason = f"node(s) were outside the pool {'='.join(subject.pool)}"
        return [check.Refusal(reason, ~self.passes(graph, subject, rows), unresolvable=True)]


class Headroom:
    """A share of what the node offers stays free: of its pods and of each divisible resource the pod requests."""

    plugin = names.HEADROOM
    static = False
    after: tuple[str, ...] = (names.NODE_RESOURCES_FIT,)

    def applies(self, subject: check.Subject) -> bool:
        """Where the profile keeps a share."""
        return subject.headroom > 0

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: the share stays free."""
        mask = np.ones(check.count(graph, rows), np.bool_)
        for name, amount in concerned(subject):
            mask &= free(graph, subject, name, rows) >= amount
        return mask

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """For each resource the rows where the share would be touched."""
        found = []
        for name, amount in concerned(subject):
            short = free(graph, subject, name, rows) < amount
            least = kept(graph.columns.column(graph.columns.allocatable, name)[rows], subject.headroom)
            offered = graph.columns.column(graph.columns.allocatable, name)[rows] - least
            what = "Too many pods" if name == nodes.PODS else f"Insufficient {name}"
            reason = f"{what} {OUTSIDE_HEADROOM} {subject.headroom}%"
            found.append(check.Refusal(reason, short, short & (offered < amount)))
        return found


def free(graph: view.View, subject: check.Subject, name: str, rows: check.Rows) -> trace.Scores:
    """Int64 for each row: what is free of the resource, less the headroom."""
    columns = graph.columns
    offered = columns.column(columns.allocatable, name)[rows]
    held = columns.pods[rows] if name == nodes.PODS else columns.column(columns.requested, name)[rows]
    return offered - held - kept(offered, subject.headroom)


def kept(offered: Amount, percent: int) -> Amount:
    """The share of each amount, rounded down to whole units; exact for whatever fits into 64 bits."""
    return offered // 100 * percent + offered % 100 * percent // 100


def nearly_full(offered: Amount, percent: int) -> Amount:
    """A node is nearly full while less than this is free of it beside the headroom."""
    return kept(offered, percent) * (NEARLY_FULL - 1)


def concerned(subject: check.Subject) -> list[tuple[str, int]]:
    """What the pod takes of resources that are kept free."""
    return [(nodes.PODS, 1), *(entry for entry in feasibility.counted(subject) if entry[0] in DIVISIBLE)]
