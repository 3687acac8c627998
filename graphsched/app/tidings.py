"""What changed in the cluster since the last turn, as old and new values: what the queue's hints are asked about.

Comes in: each change, as `intake` and `loop` see it. Goes out: `News`, which `backlog` hands to `hints` with the pods
that wait. Invariant: what is forgotten, because there was too much of it, counts as anything at all.
"""

from __future__ import annotations

import enum

import msgspec

from graphsched.app import encounters
from graphsched.base.values import nodes, pods


class Event(enum.StrEnum):
    """What brought a pod into a queue, in the words of kube-scheduler's `queue_incoming_pods_total`."""

    POD_ADDED = "UnschedulablePodAdd"
    POD_UPDATED = "UnschedulablePodUpdate"
    POD_SCALED_DOWN = "UnschedulablePodUpdatePodScaleDown"
    POD_TOLERATES = "UnschedulablePodUpdatePodToleration"
    POD_UNGATED = "UnschedulablePodUpdatePodSchedulingGatesEliminated"
    POD_RELABELLED = "UnschedulablePodUpdatePodLabel"
    OTHER_ADDED = "AssignedPodAdd"
    OTHER_GONE = "AssignedPodDelete"
    OTHER_RELABELLED = "AssignedPodUpdatePodLabel"
    OTHER_SCALED_DOWN = "AssignedPodUpdatePodScaleDown"
    NODE_ADDED = "NodeAdd"
    NODE_GONE = "NodeDelete"
    NODE_ALLOCATABLE = "NodeUpdateNodeAllocatable"
    NODE_LABELS = "NodeUpdateNodeLabel"
    NODE_TAINTS = "NodeUpdateNodeTaint"
    NODE_FEATURES = "NodeUpdateNodeDeclaredFeature"
    FAILURE = "ScheduleAttemptFailure"
    BACKOFF_OVER = "BackoffComplete"
    BACKOFF_SKIPPED = "PopFromBackoffQ"
    LEFTOVER = "UnschedulableTimeout"
    WAYS = "GraphWaysChange"
    """Ours: a link, a place, a group or a Service changed."""
    RULES = "GraphPolicyUpdate"
    """Ours: a rule of a GraphPolicy came, changed or went."""
    NODE_ADDRESSES = "NodeUpdateNodeAddress"
    """Ours: networks of rules are compared with them."""
    SIBLING = "SiblingScheduled"
    """Ours: another pod of the same kind was placed, so the next one is worth a try."""


NodePair = tuple[nodes.Node | None, nodes.Node]
"""A node before (None when it is new) and after."""

PAIRS_MAX = 512
"""More node changes of one sort than this are not looked at one by one: every hint says yes."""


class News(msgspec.Struct, gc=False):
    """What changed, sorted by who may care, and no longer than the cluster has nodes.

    Attributes:
        added: New nodes.
        allocatable, labels, taints, features: Nodes that changed in this respect.
        freed: Names of nodes that a pod left, or on which it lost a nomination; the values mean nothing.
        freed_ports: Host ports those pods held.
        shrunk: Resources of which some bound pod now holds less.
        removed: Nodes that went.
        company: Pods that came, went or changed their labels.
        ways: Whether a link, a place, a group or what selects pods changed.
        rules: Whether a rule changed.
        addresses: Whether a node has other addresses.
    """

    added: list[NodePair] = msgspec.field(default_factory=list)
    allocatable: list[NodePair] = msgspec.field(default_factory=list)
    labels: list[NodePair] = msgspec.field(default_factory=list)
    taints: list[NodePair] = msgspec.field(default_factory=list)
    features: list[NodePair] = msgspec.field(default_factory=list)
    freed: dict[str, None] = msgspec.field(default_factory=dict)
    freed_ports: set[pods.HostPort] = msgspec.field(default_factory=set)
    shrunk: set[str] = msgspec.field(default_factory=set)
    removed: list[nodes.Node] = msgspec.field(default_factory=list)
    company: encounters.Encounters = msgspec.field(default_factory=encounters.Encounters)
    ways: bool = False
    rules: bool = False
    addresses: bool = False
    _nodes: tuple[str, ...] = ()

    @property
    def freed_nodes(self) -> tuple[str, ...]:
        """The keys of `freed`; the same object while they are the same, so that their rows can be remembered."""
        if len(self._nodes) != len(self.freed):
            self._nodes = tuple(self.freed)
        return self._nodes

    def __bool__(self) -> bool:
        """Whether anything changed that a hint reads."""
        return self.beyond_company or bool(self.company or self.removed or self.ways or self.rules or self.addresses)

    @property
    def beyond_company(self) -> bool:
        """Whether anything changed that others than the plugins of `COMPANY` read."""
        return bool(
            self.added or self.freed or self.allocatable or self.labels or self.taints or self.features or self.shrunk
        )

    def node(self, before: nodes.Node | None, after: nodes.Node) -> None:
        """A node came or changed."""
        pair = (before, after)
        if before is None:
            self.added.append(pair)
            return
        offers = (before.allocatable, before.budget, before.gpus, before.gpu_model)
        if offers != (after.allocatable, after.budget, after.gpus, after.gpu_model):
            self.allocatable.append(pair)
        if before.labels != after.labels:
            self.labels.append(pair)
        # Cordoning helps nobody, so only the way back counts as a change of taints.
        if before.taints != after.taints or (before.unschedulable and not after.unschedulable):
            self.taints.append(pair)
        if before.features != after.features:
            self.features.append(pair)
        self.addresses = self.addresses or before.addresses != after.addresses

    def pod(self, before: pods.Pod | None, after: pods.Pod | None, *, assumed: str = "") -> None:
        """A pod came, changed or went; `assumed` is the node it counted on by our decision alone."""
        same = before is not None and after is not None and before.uid == after.uid
        if after is not None and after.node and not (same and before is not None and before.node):
            # Also our own decisions, once they are confirmed: whoever was refused before that is told now.
            self.company.came(after)
        if before is None:
            return
        held = before.node or assumed or before.nominated
        if not held:
            return
        holds = (after.node or assumed or after.nominated) if after is not None and same else ""
        if held != holds:
            self.left(before, held)
        elif after is not None:
            self.company.changed(before, after)
            if before.held.amounts != after.held.amounts:
                now = dict(after.held.amounts)
                self.shrunk.update(name for name, amount in before.held.amounts if now.get(name, 0) < amount)

    def left(self, pod: pods.Pod, node: str) -> None:
        """A pod no longer counts on the node."""
        self.freed[node] = None
        self.freed_ports.update(pod.spec.ports)
        self.company.left(pod)

    def gone(self, node: nodes.Node) -> None:
        """A node went."""
        self.removed.append(node)

    def merge(self, later: News) -> None:
        """Take in what changed after this."""
        self.added.extend(later.added)
        self.allocatable.extend(later.allocatable)
        self.labels.extend(later.labels)
        self.taints.extend(later.taints)
        self.features.extend(later.features)
        self.freed.update(later.freed)
        self.freed_ports.update(later.freed_ports)
        self.shrunk.update(later.shrunk)
        self.removed.extend(later.removed)
        self.company.merge(later.company)
        self.rules = self.rules or later.rules
        self.ways = self.ways or later.ways
        self.addresses = self.addresses or later.addresses
        for pairs in (self.added, self.allocatable, self.labels, self.taints, self.features):
            # One more than the bound is as good as all of them.
            del pairs[PAIRS_MAX + 1 :]
        del self.removed[PAIRS_MAX + 1 :]


def shrank(before: pods.Demand, after: pods.Demand) -> bool:
    """Whether some amount got smaller."""
    if before is after or before.amounts == after.amounts:
        return False
    have = dict(after.amounts)
    return any(have.get(name, 0) < amount for name, amount in before.amounts)
