"""What kubelets teach: a node that turned a pod of ours away looks worse for a while.

Comes in: pods that left the watch, and how they ended. Goes out: the cost of nodes, as the context of decisions, and
what `explain` tells of them. The kubelet decides on the truth of its node, and the graph shows it a little later; a pod
that its controller makes anew would otherwise run into the same wall until then.

A cost halves every half-life and is gone when it is below one point. It never refuses a node: where only one fits, that
is where the pod goes.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping

import msgspec

from graphsched.action import inquests
from graphsched.app import races
from graphsched.base.values import nodes, pods
from graphsched.decision import context as contexts
from graphsched.observe import metrics as meters

NODES_MAX = 1024
"""Nodes remembered; the one that was rejected longest ago makes room."""
PENALTIES_MAX = 5.0
"""A node costs at most so many penalties at a time, however many pods it turned away."""

CLASSES: Mapping[str, str] = {
    "OutOfcpu": "cpu",
    "OutOfmemory": "memory",
    "OutOfephemeral-storage": "storage",
    "OutOfpods": "pods",
    "UnexpectedAdmissionError": "admission",
    "TopologyAffinityError": "topology",
    "SMTAlignmentError": "topology",
    "NodeAffinity": "node",
    "NodeName": "node",
    "NodePorts": "ports",
    "TaintToleration": "node",
    "NodeShutdown": "node",
    "Evicted": "pressure",
}
"""Reason a kubelet gives for turning a pod away that another node might take → its class."""
EXTENDED = "extended"
"""Class of `OutOf` any other resource."""


def class_of(reason: str) -> str:
    """The class of a reason; empty for one that says nothing of the node, such as a forbidden sysctl."""
    return CLASSES.get(reason) or (EXTENDED if reason.startswith("OutOf") else "")


class Rejected(msgspec.Struct, frozen=True, gc=False):
    """The last time a node turned a pod of ours away.

    Attributes:
        reason: In the kubelet's word.
        at: When we learned of it, on the loop's clock.
        cost: Points it cost the node at that time.
    """

    reason: str
    at: float
    cost: float


class Rejections:
    """Remembers which nodes turned pods of ours away."""

    def __init__(
        self,
        inquest: inquests.Inquests,
        seen: races.Races,
        metrics: meters.Metrics,
        *,
        scheduler: str,
        penalty: int,
        half_life_s: float,
    ) -> None:
        self._inquest = inquest
        self._races = seen
        self._meters = metrics
        self._scheduler = scheduler
        self._penalty = penalty
        self._half_life_s = half_life_s
        self._nodes: dict[str, Rejected] = {}

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node that went takes what was known of it along."""
        if after is None and before is not None:
            self._nodes.pop(before.name, None)

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went: of ours, those that ended before they had begun are asked about.

        A pod that was turned away never had a start time before it was Failed; one that ran, or is being deleted, is of
        no interest.
        """
        if before is None or (after is not None and after.uid == before.uid):
            return
        if before.scheduler == self._scheduler and before.node and before.started is None and not before.deleting:
            self._inquest.ask(before)

    async def run(self) -> typing.NoReturn:
        """Find out, until cancelled."""
        await self._inquest.run()

    def settle(self, now: float) -> None:
        """Take note of what was found out."""
        for finding in self._inquest.fetch():
            kind = class_of(finding.reason)
            if kind:
                self._meters.rejection(kind)
                self._races.rejected(finding.pod, f"{finding.reason}: {finding.message}")
                self._charge(finding.pod.node, finding.reason, now)

    def context(self, now: float) -> contexts.Context:
        """What a decision made now should know."""
        if not self._nodes:
            return contexts.PLAIN
        costs = {name: int(self._left(rejected, now)) for name, rejected in self._nodes.items()}
        for name in [name for name, cost in costs.items() if cost < 1]:
            del costs[name], self._nodes[name]
        return contexts.Context(costs) if costs else contexts.PLAIN

    def told(self, now: float) -> dict[str, tuple[str, float]]:
        """Node → the last reason, and how many seconds ago, of the nodes that still cost something."""
        return {
            name: (rejected.reason, now - rejected.at)
            for name, rejected in self._nodes.items()
            if self._left(rejected, now) >= 1
        }

    def _charge(self, node: str, reason: str, now: float) -> None:
        known = self._nodes.pop(node, None)
        left = 0.0 if known is None else self._left(known, now)
        if not self._penalty:
            return
        cost = min(left + self._penalty, PENALTIES_MAX * self._penalty)
        self._nodes[node] = Rejected(reason, now, cost)
        if len(self._nodes) > NODES_MAX:
            del self._nodes[next(iter(self._nodes))]

    def _left(self, rejected: Rejected, now: float) -> float:
        return rejected.cost * math.exp2(-(now - rejected.at) / self._half_life_s)
