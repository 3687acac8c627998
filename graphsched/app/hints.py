"""Which change may help a pod that was refused: kube-scheduler's queueing hints, asked once per kind of pod.

Comes in: what changed in the cluster since the last turn, as old and new values, and the spec of a pod that waits. Goes
out: the event that makes a retry worth while, or none. `backlog` asks and moves the pods.

A hint that says yes too often costs a wasted decision; one that says no too often loses a pod until the next flush of
leftovers. So every doubt is a yes: an unknown plugin wakes on whatever may free or add room. Hints depend on the spec
alone, those about company also on namespace and labels (see `BY_SPEC`), so one answer serves all pods of a kind.

One rule is sharper than kube-scheduler's: a pod that left a node wakes those waiting for resources only if one of them
now fits on that node. Since a removal changes no other node, nothing is missed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence

import msgspec

from graphsched.app import encounters
from graphsched.base.values import nodes, pods
from graphsched.decision import names


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
    SIBLING = "SiblingScheduled"
    """Ours: another pod of the same kind was placed, so the next one is worth a try."""


NodePair = tuple[nodes.Node | None, nodes.Node]
"""A node before (None when it is new) and after."""
Room = Callable[[Sequence[str], pods.Spec], bool]
"""Whether a pod of this spec now fits, as to resources, on any of these nodes."""

NO_NODES = "NoNodes"
"""Stands in for a plugin where there was no node to refuse: only a new node helps."""

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
    _nodes: tuple[str, ...] = ()

    @property
    def freed_nodes(self) -> tuple[str, ...]:
        """The keys of `freed`; the same object while they are the same, so that their rows can be remembered."""
        if len(self._nodes) != len(self.freed):
            self._nodes = tuple(self.freed)
        return self._nodes

    def __bool__(self) -> bool:
        """Whether anything changed that a hint reads."""
        return self.beyond_company or bool(self.company or self.removed)

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
        if (before.allocatable, before.gpus, before.gpu_model) != (after.allocatable, after.gpus, after.gpu_model):
            self.allocatable.append(pair)
        if before.labels != after.labels:
            self.labels.append(pair)
        # Cordoning helps nobody, so only the way back counts as a change of taints.
        if before.taints != after.taints or (before.unschedulable and not after.unschedulable):
            self.taints.append(pair)
        if before.features != after.features:
            self.features.append(pair)

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


def own_changes(before: pods.Pod, after: pods.Pod) -> list[Event]:
    """What a pending pod's own update means to it; the generic update when nothing more precise is known."""
    found: list[Event] = []
    if before.labels != after.labels:
        found.append(Event.POD_RELABELLED)
    if shrank(before.spec.demand, after.spec.demand):
        found.append(Event.POD_SCALED_DOWN)
    if before.gates and not after.gates:
        found.append(Event.POD_UNGATED)
    if len(before.spec.tolerations) != len(after.spec.tolerations):
        found.append(Event.POD_TOLERATES)
    return found or [Event.POD_UPDATED]


def own_hint(plugins: Iterable[str], before: pods.Pod, after: pods.Pod) -> Event | None:
    """The event that makes a pod's own update worth a retry, given who refused it; None when there is none."""
    happened = own_changes(before, after)
    for plugin in plugins:
        cares = _OWN.get(plugin)
        for event in happened:
            # A plugin of which nothing is known is asked again after any change of the spec.
            if event in cares if cares is not None else before.spec != after.spec or before.labels != after.labels:
                return event
    return None


def hint(plugins: Iterable[str], news: News, pod: pods.Pod, room: Room | None) -> Event | None:
    """The event among the news that makes a retry of `pod` worth while; None when there is none.

    Args:
        plugins: Names of the plugins that refused the pod.
        news: What changed.
        pod: A pod that waits, one of many with the same spec.
        room: Answers from the present graph; without it every pod that left a node is taken to make room.
    """
    for plugin in plugins:
        event = _HINTS.get(plugin, _any_change)(news, pod, room)
        if event is not None:
            return event
    return None


# ── one function per plugin ────────────────────────────────────────────────────────────────────────────────────────


def _first(pairs: Sequence[NodePair], event: Event, helps: Callable[[NodePair], bool]) -> Event | None:
    if not pairs:
        return None
    return event if len(pairs) > PAIRS_MAX or any(helps(pair) for pair in pairs) else None


def _unconditional(news: News) -> Event | None:
    # A plugin that waits for new nodes is also woken by every change of taints, as in kube-scheduler, where a node
    # usually arrives with the not-ready taint and is of no use before that is lifted.
    return Event.NODE_TAINTS if news.taints else None


def _node_resources_fit(news: News, pod: pods.Pod, room: Room | None) -> Event | None:
    spec = pod.spec
    return (
        _first(news.added, Event.NODE_ADDED, lambda pair: fits_empty(spec, pair[1]))
        or _first(
            news.allocatable,
            Event.NODE_ALLOCATABLE,
            lambda pair: fits_empty(spec, pair[1]) and pair[0] is not None and _grew(spec, pair[0], pair[1]),
        )
        or _unconditional(news)
        or _after_departure(news, spec, room)
        or _after_shrinking(news, spec)
    )


def _after_departure(news: News, spec: pods.Spec, room: Room | None) -> Event | None:
    if not news.freed:
        return None
    return Event.OTHER_GONE if room is None or room(news.freed_nodes, spec) else None


def _after_shrinking(news: News, spec: pods.Spec) -> Event | None:
    if any(amount and name in news.shrunk for name, amount in spec.demand.amounts):
        return Event.OTHER_SCALED_DOWN
    return None


def fits_empty(spec: pods.Spec, node: nodes.Node) -> bool:
    """Whether the node would do if nothing ran on it, as to resources and devices."""
    offered = dict(node.allocatable)
    if offered.get(nodes.PODS, 0) < 1:
        return False
    gpu = spec.gpu
    if gpu is not None and (node.gpus < gpu.count or (gpu.models and node.gpu_model not in gpu.models)):
        return False
    return all(amount <= offered.get(name, 0) for name, amount in spec.demand.amounts)


def _grew(spec: pods.Spec, before: nodes.Node, after: nodes.Node) -> bool:
    had, has = dict(before.allocatable), dict(after.allocatable)
    if has.get(nodes.PODS, 0) > had.get(nodes.PODS, 0) or (spec.gpu is not None and after.gpus > before.gpus):
        return True
    return any(has.get(name, 0) > had.get(name, 0) for name, amount in spec.demand.amounts if amount)


def _node_affinity(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    spec = pod.spec
    return (
        _first(news.added, Event.NODE_ADDED, lambda pair: matches(spec, pair[1]))
        or _first(
            news.labels,
            Event.NODE_LABELS,
            lambda pair: matches(spec, pair[1]) and not (pair[0] is not None and matches(spec, pair[0])),
        )
        or _unconditional(news)
    )


def matches(spec: pods.Spec, node: nodes.Node) -> bool:
    """Whether the node satisfies node selector and required node affinity."""
    have = dict(node.labels)
    if any(have.get(key) != value for key, value in spec.selector):
        return False
    if spec.affinity is None:
        return True
    return any(
        term.valid
        and not term.empty
        and all(requirement.holds(have.get(requirement.key)) for requirement in term.expressions)
        and all(requirement.holds(node.name) for requirement in term.fields)
        for term in spec.affinity
    )


_CORDON = nodes.Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def _taints(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    def helps(pair: NodePair) -> bool:
        return _tolerated(pod.spec, pair[1]) and not (pair[0] is not None and _tolerated(pod.spec, pair[0]))

    return _first(news.added, Event.NODE_ADDED, helps) or _first(news.taints, Event.NODE_TAINTS, helps)


def _tolerated(spec: pods.Spec, node: nodes.Node) -> bool:
    return all(
        any(toleration.tolerates(taint) for toleration in spec.tolerations)
        for taint in node.taints
        if taint.effect != "PreferNoSchedule"
    )


def _cordons(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    if any(toleration.tolerates(_CORDON) for toleration in pod.spec.tolerations):
        return Event.NODE_ADDED if news.added else Event.NODE_TAINTS if news.taints else None

    def helps(pair: NodePair) -> bool:
        return not pair[1].unschedulable and (pair[0] is None or pair[0].unschedulable)

    return _first(news.added, Event.NODE_ADDED, helps) or _first(news.taints, Event.NODE_TAINTS, helps)


def _node_name(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    wanted = pod.spec.node_name
    return _first(news.added, Event.NODE_ADDED, lambda pair: pair[1].name == wanted) or _unconditional(news)


def _node_ports(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    if news.added:
        return Event.NODE_ADDED
    if any(port.conflicts(wanted) for port in news.freed_ports for wanted in pod.spec.ports):
        return Event.OTHER_GONE
    return _unconditional(news)


def _node_features(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    def helps(pair: NodePair) -> bool:
        return set(pod.spec.features) <= set(pair[1].features)

    return (
        _first(news.added, Event.NODE_ADDED, helps)
        or _first(news.features, Event.NODE_FEATURES, helps)
        or _unconditional(news)
    )


def _pod_affinity(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    # A term of any pod on any node may have refused, so no label of a node is without meaning.
    if news.added:
        return Event.NODE_ADDED
    if news.labels:
        return Event.NODE_LABELS
    spec, seen, own = pod.spec, news.company, (pod.namespace, pod.labels)
    if seen.many:
        return Event.OTHER_GONE
    if any(encounters.befriends(spec, kind) for kind in seen.arrived):
        return Event.OTHER_ADDED
    for kind, terms in seen.departed:
        # Once the last one it wants to be near is gone, a pod that wants its own kind may be the first anywhere.
        if encounters.avoids(spec.pod_anti_affinity, kind) or encounters.avoids(terms, own):
            return Event.OTHER_GONE
        if encounters.befriends(spec, kind) and encounters.befriends(spec, own):
            return Event.OTHER_GONE
    for namespace, before, after in seen.relabelled:
        was, now = (namespace, before), (namespace, after)
        if encounters.befriends(spec, was) != encounters.befriends(spec, now):
            return Event.OTHER_RELABELLED
        if any(encounters.selects(term, was) > encounters.selects(term, now) for term in spec.pod_anti_affinity):
            return Event.OTHER_RELABELLED
    return _unconditional(news)


def _spread(news: News, pod: pods.Pod, _room: Room | None) -> Event | None:
    spec, seen = pod.spec, news.company
    hard = [constraint for constraint in spec.spread if constraint.hard]
    if not hard:
        # Spread by the profile's constraints, which are not at hand.
        return _any_change(news, pod, None) or (Event.OTHER_ADDED if seen or news.removed else None)
    if len(news.removed) > PAIRS_MAX or any(_keyed(hard, node) for node in news.removed):
        return Event.NODE_GONE
    found = (
        _first(news.added, Event.NODE_ADDED, lambda pair: _keyed(hard, pair[1]))
        or _first(news.labels, Event.NODE_LABELS, lambda pair: _counts_otherwise(spec, hard, pair))
        or _first(news.taints, Event.NODE_TAINTS, lambda pair: _keyed(hard, pair[1]))
    )
    if found is not None or not seen:
        return found
    if seen.many:
        return Event.OTHER_GONE
    if any(any(encounters.counted(spec, pod.namespace, kind)) for kind in seen.arrived):
        return Event.OTHER_ADDED
    gone = [*(kind for kind, _ in seen.departed), *seen.ending]
    if any(any(encounters.counted(spec, pod.namespace, kind)) for kind in gone):
        return Event.OTHER_GONE
    for namespace, before, after in seen.relabelled:
        was = encounters.counted(spec, pod.namespace, (namespace, before))
        if was != encounters.counted(spec, pod.namespace, (namespace, after)):
            return Event.OTHER_RELABELLED
    return None


def _keyed(hard: Sequence[pods.SpreadConstraint], node: nodes.Node) -> bool:
    """Whether the node has the keys of all the constraints: others take no part in any count."""
    have = dict(node.labels)
    return all(constraint.topology_key in have for constraint in hard)


def _counts_otherwise(spec: pods.Spec, hard: Sequence[pods.SpreadConstraint], pair: NodePair) -> bool:
    """Whether the node's part in the counting changed with its labels."""
    before, after = pair
    if before is None or _keyed(hard, before) != _keyed(hard, after):
        return True
    if not _keyed(hard, after):
        return False
    had, has = dict(before.labels), dict(after.labels)
    moved = any(had[constraint.topology_key] != has[constraint.topology_key] for constraint in hard)
    return moved or matches(spec, before) != matches(spec, after)


def _candidates(news: News, _pod: pods.Pod, _room: Room | None) -> Event | None:
    # Which label makes a node a candidate is not at hand.
    return Event.NODE_ADDED if news.added else Event.NODE_LABELS if news.labels else _unconditional(news)


def _unsupported(_news: News, _pod: pods.Pod, _room: Room | None) -> Event | None:
    # The pod as a whole is refused, whatever the cluster looks like: only its own update can help.
    return None


def _any_change(news: News, _pod: pods.Pod, _room: Room | None) -> Event | None:
    for happened, event in (
        (news.added, Event.NODE_ADDED),
        (news.freed, Event.OTHER_GONE),
        (news.allocatable, Event.NODE_ALLOCATABLE),
        (news.labels, Event.NODE_LABELS),
        (news.taints, Event.NODE_TAINTS),
        (news.features, Event.NODE_FEATURES),
        (news.shrunk, Event.OTHER_SCALED_DOWN),
    ):
        if happened:
            return event
    return None


Hint = Callable[[News, pods.Pod, Room | None], Event | None]

_HINTS: dict[str, Hint] = {
    NO_NODES: _candidates,
    names.NODE_UNSCHEDULABLE: _cordons,
    names.NODE_NAME: _node_name,
    names.TAINT_TOLERATION: _taints,
    names.NODE_AFFINITY: _node_affinity,
    names.NODE_PORTS: _node_ports,
    names.NODE_RESOURCES_FIT: _node_resources_fit,
    names.NODE_DECLARED_FEATURES: _node_features,
    names.INTER_POD_AFFINITY: _pod_affinity,
    names.POD_TOPOLOGY_SPREAD: _spread,
    names.GPU_DEVICES: _node_resources_fit,
    names.HEADROOM: _node_resources_fit,
    names.POOL: _candidates,
    names.UNSUPPORTED: _unsupported,
}

COMPANY = frozenset({names.INTER_POD_AFFINITY, names.POD_TOPOLOGY_SPREAD})
"""Plugins that look at other pods."""
BY_KIND = frozenset(_HINTS)
"""Plugins whose refusal depends on nothing of the pod but its spec, its namespace and its labels."""
BY_SPEC = BY_KIND - COMPANY
"""Plugins whose refusal depends on nothing of the pod but its spec."""

_NEVER: frozenset[Event] = frozenset()
_OWN: dict[str, frozenset[Event]] = {
    NO_NODES: _NEVER,
    names.NODE_UNSCHEDULABLE: frozenset({Event.POD_TOLERATES}),
    names.NODE_NAME: _NEVER,
    names.TAINT_TOLERATION: frozenset({Event.POD_TOLERATES}),
    names.NODE_AFFINITY: _NEVER,
    names.NODE_PORTS: _NEVER,
    names.NODE_RESOURCES_FIT: frozenset({Event.POD_SCALED_DOWN}),
    names.NODE_DECLARED_FEATURES: _NEVER,
    names.GPU_DEVICES: _NEVER,
    names.INTER_POD_AFFINITY: frozenset({Event.POD_RELABELLED, Event.POD_UPDATED}),
    names.POD_TOPOLOGY_SPREAD: frozenset({Event.POD_RELABELLED, Event.POD_TOLERATES}),
}
