"""What rules have to do with a node, in words.

The reasons of a refusal, or a node that passed, come in; sentences that name policy, rule and priority go out. What is
said of a rule is read from the graph, where it is a vertex.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graphsched.base.values import pods
from graphsched.decision.constraints import check
from graphsched.decision.policy import compliance, words
from graphsched.graph import view


class Weighing(msgspec.Struct, frozen=True, gc=False):
    """A rule that adds to a node's total.

    Attributes:
        policy, rule: Their names.
        priority: Of the rule.
        points: What it adds, negative to take away.
    """

    policy: str
    rule: str
    priority: int
    points: int

    def __str__(self) -> str:
        return f"{self.points:+d} by policy {self.policy} rule {self.rule} (priority {self.priority})"


def obstacle(graph: view.View, reasons: Sequence[str]) -> str:
    """What is in the way of a node that rules refuse."""
    return " and ".join(_obstacle(graph, reason) for reason in reasons)


def weighing(graph: view.View, pod: pods.Pod, node: str) -> tuple[Weighing, ...]:
    """The rules that weigh the node for the pod, the greatest priority first."""
    row = graph.columns.rows.get(node)
    if row is None:
        return ()
    subject = check.Subject(pod.spec, namespace=pod.namespace, labels=pod.labels, priority=pod.priority)
    return tuple(
        Weighing(each.rule.policy, words.name(each.rule), each.rule.priority, each.rule.weight)
        for each in compliance.ruling(graph, subject).weights
        if each.mask[row]
    )


def _obstacle(graph: view.View, reason: str) -> str:
    told = words.told(reason)
    if told is None:
        return reason
    rules = (rule for rule in graph.rules.all() if rule.policy == told.policy and words.name(rule) == told.rule)
    priority = next((f" (priority {rule.priority})" for rule in rules), "")
    what = f": {told.what}" if told.what else ""
    verb = "not meeting" if reason == words.UNMET.format(told.policy, told.rule, told.what) else "denied by"
    return f"{verb} policy {told.policy} rule {told.rule}{priority}{what}"
