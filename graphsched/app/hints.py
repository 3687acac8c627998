"""Which change may help a pod that was refused: kube-scheduler's queueing hints, asked once per kind of pod.

Comes in: what changed in the cluster since the last turn, as old and new values, and the spec of a pod that waits. Goes
out: the event that makes a retry worth while, or none. `backlog` asks and moves the pods.

A hint that says yes too often costs a wasted decision; one that says no too often loses a pod until the next flush of
leftovers. So every doubt is a yes: an unknown plugin wakes on whatever may free or add room. Hints depend on the spec
alone, those about company also on namespace and labels (see `BY_SPEC`), those about what is kept for somebody on whom
the pod belongs to (`BY_HOLDER`), so one answer serves all pods of a kind.

One rule is sharper than kube-scheduler's: a pod that left a node wakes those waiting for resources only if one of them
now fits on that node. Since a removal changes no other node, nothing is missed. And a pod that waits for ways to its
partners is woken by no pod but one of those.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Sequence

from graphsched.app import encounters, tidings
from graphsched.base.values import nodes, pods
from graphsched.decision import names
from graphsched.graph import budgets

Leaving = Callable[[encounters.Kind, encounters.Kind | None], bool]
"""Whether a pod that was of the first kind and is of the second now, or gone, is one less that a limit speaks of."""


class Room(typing.Protocol):
    """What is asked of the present graph."""

    def __call__(self, names: Sequence[str], spec: pods.Spec) -> bool:
        """Whether a pod of this spec now fits, as to resources, on any of these nodes."""

    def granted(self, names: Sequence[str], pod: pods.Pod) -> bool:
        """Whether it also keeps to what is granted there to whom the pod belongs to: ceilings and reservations."""

    def leaving(self, pod: pods.Pod) -> Leaving:
        """Tells who is one less of those to whom the pod limits the way."""


NO_NODES = "NoNodes"
"""Stands in for a plugin where there was no node to refuse: only a new node helps."""


def own_changes(before: pods.Pod, after: pods.Pod) -> list[tidings.Event]:
    """What a pending pod's own update means to it; the generic update when nothing more precise is known."""
    found: list[tidings.Event] = []
    if before.labels != after.labels:
        found.append(tidings.Event.POD_RELABELLED)
    if tidings.shrank(before.spec.demand, after.spec.demand):
        found.append(tidings.Event.POD_SCALED_DOWN)
    if before.gates and not after.gates:
        found.append(tidings.Event.POD_UNGATED)
    if len(before.spec.tolerations) != len(after.spec.tolerations):
        found.append(tidings.Event.POD_TOLERATES)
    return found or [tidings.Event.POD_UPDATED]


def own_hint(plugins: Iterable[str], before: pods.Pod, after: pods.Pod) -> tidings.Event | None:
    """The event that makes a pod's own update worth a retry, given who refused it; None when there is none."""
    happened = own_changes(before, after)
    for plugin in plugins:
        cares = _OWN.get(plugin)
        for event in happened:
            # A plugin of which nothing is known is asked again after any change of the spec.
            if event in cares if cares is not None else before.spec != after.spec or before.labels != after.labels:
                return event
    return None


def hint(plugins: Iterable[str], news: tidings.News, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    """The event among the news that makes a retry of `pod` worth while; None when there is none.

    Args:
        plugins: Names of the plugins that refused the pod.
        news: What changed.
        pod: A pod that waits, one of many with the same spec.
        room: Answers from the present graph; without it every pod that left a node is taken to make room, and to have
            been in the way.
    """
    for plugin in plugins:
        event = _HINTS.get(plugin, _any_change)(news, pod, room)
        if event is not None:
            return event
    return None


# ── one function per plugin ────────────────────────────────────────────────────────────────────────────────────────


def _first(
    pairs: Sequence[tidings.NodePair], event: tidings.Event, helps: Callable[[tidings.NodePair], bool]
) -> tidings.Event | None:
    if not pairs:
        return None
    return event if len(pairs) > tidings.PAIRS_MAX or any(helps(pair) for pair in pairs) else None


def _earliest(*happenings: tuple[object, tidings.Event]) -> tidings.Event | None:
    """The event beside the first of these that holds anything."""
    return next((event for happened, event in happenings if happened), None)


def _unconditional(news: tidings.News) -> tidings.Event | None:
    # A plugin that waits for new nodes is also woken by every change of taints, as in kube-scheduler, where a node
    # usually arrives with the not-ready taint and is of no use before that is lifted.
    return tidings.Event.NODE_TAINTS if news.taints else None


def _node_resources_fit(news: tidings.News, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    spec = pod.spec
    return (
        _some_node(news, lambda node: fits_empty(spec, node), lambda before, after: _grew(spec, before, after))
        or _after_departure(news, spec, room)
        or _after_shrinking(news, spec)
    )


def _some_node(
    news: tidings.News,
    takes: Callable[[nodes.Node], bool],
    better: Callable[[nodes.Node, nodes.Node], bool],
) -> tidings.Event | None:
    """Whether a node came that takes the pod if nothing runs there, or became one, or a taint went."""
    return (
        _first(news.added, tidings.Event.NODE_ADDED, lambda pair: takes(pair[1]))
        or _first(
            news.allocatable,
            tidings.Event.NODE_ALLOCATABLE,
            lambda pair: takes(pair[1]) and pair[0] is not None and better(pair[0], pair[1]),
        )
        or _unconditional(news)
    )


def _after_departure(news: tidings.News, spec: pods.Spec, room: Room | None) -> tidings.Event | None:
    if not news.freed:
        return None
    return tidings.Event.OTHER_GONE if room is None or room(news.freed_nodes, spec) else None


def _after_shrinking(news: tidings.News, spec: pods.Spec) -> tidings.Event | None:
    if any(amount and name in news.shrunk for name, amount in spec.demand.amounts):
        return tidings.Event.OTHER_SCALED_DOWN
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


def _budget(news: tidings.News, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    spec = pod.spec
    return (
        _some_node(
            news,
            lambda node: grants_empty(pod, node),
            lambda before, after: _grew(spec, before, after) or _loosened(spec, before.budget, after.budget),
        )
        or _granted_after_departure(news, pod, room)
        or _after_shrinking(news, spec)
        or _after_changing_hands(news.company)
    )


def grants_empty(pod: pods.Pod, node: nodes.Node) -> bool:
    """Whether the node would do if nothing ran on it; what is kept for others is out of reach all the same."""
    if not fits_empty(pod.spec, node):
        return False
    offered, ceilings = dict(node.allocatable), dict(node.budget.ceilings)
    mine = budgets.holders(pod.namespace, pod.labels)
    others = [kept for holder, kept in budgets.left(node.budget.reserved, ()).items() if holder not in mine]
    return all(
        amount + sum(kept.get(name, 0) for kept in others)
        <= min(offered.get(name, 0), ceilings.get(name, budgets.UNBOUNDED))
        for name, amount in (*pod.spec.demand.amounts, (nodes.PODS, 1))
        if amount
    )


def _loosened(spec: pods.Spec, before: nodes.Budget, after: nodes.Budget) -> bool:
    # A reservation of the same size may now be for somebody who has used it up, so no two are compared.
    if before.reserved != after.reserved:
        return True
    had, has = dict(before.ceilings), dict(after.ceilings)
    return any(
        has.get(name, budgets.UNBOUNDED) > had.get(name, budgets.UNBOUNDED)
        for name, amount in (*spec.demand.amounts, (nodes.PODS, 1))
        if amount
    )


def _granted_after_departure(news: tidings.News, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    if not news.freed:
        return None
    return tidings.Event.OTHER_GONE if room is None or room.granted(news.freed_nodes, pod) else None


def _after_changing_hands(seen: encounters.Encounters) -> tidings.Event | None:
    # What a pod holds counts against what is kept for its holder, so that less is kept from others when it gets one.
    if len(seen.relabelled) > encounters.KINDS_MAX or any(
        budgets.holders(namespace, before) != budgets.holders(namespace, after)
        for namespace, before, after in seen.relabelled
    ):
        return tidings.Event.OTHER_RELABELLED
    return None


def _node_affinity(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    spec = pod.spec
    return (
        _first(news.added, tidings.Event.NODE_ADDED, lambda pair: matches(spec, pair[1]))
        or _first(
            news.labels,
            tidings.Event.NODE_LABELS,
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


def _taints(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    def helps(pair: tidings.NodePair) -> bool:
        return _tolerated(pod.spec, pair[1]) and not (pair[0] is not None and _tolerated(pod.spec, pair[0]))

    return _first(news.added, tidings.Event.NODE_ADDED, helps) or _first(news.taints, tidings.Event.NODE_TAINTS, helps)


def _tolerated(spec: pods.Spec, node: nodes.Node) -> bool:
    return all(
        any(toleration.tolerates(taint) for toleration in spec.tolerations)
        for taint in node.taints
        if taint.effect != "PreferNoSchedule"
    )


def _cordons(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    if any(toleration.tolerates(_CORDON) for toleration in pod.spec.tolerations):
        return tidings.Event.NODE_ADDED if news.added else tidings.Event.NODE_TAINTS if news.taints else None

    def helps(pair: tidings.NodePair) -> bool:
        return not pair[1].unschedulable and (pair[0] is None or pair[0].unschedulable)

    return _first(news.added, tidings.Event.NODE_ADDED, helps) or _first(news.taints, tidings.Event.NODE_TAINTS, helps)


def _node_name(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    wanted = pod.spec.node_name
    return _first(news.added, tidings.Event.NODE_ADDED, lambda pair: pair[1].name == wanted) or _unconditional(news)


def _node_ports(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    if news.added:
        return tidings.Event.NODE_ADDED
    if any(port.conflicts(wanted) for port in news.freed_ports for wanted in pod.spec.ports):
        return tidings.Event.OTHER_GONE
    return _unconditional(news)


def _node_features(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    def helps(pair: tidings.NodePair) -> bool:
        return set(pod.spec.features) <= set(pair[1].features)

    return (
        _first(news.added, tidings.Event.NODE_ADDED, helps)
        or _first(news.features, tidings.Event.NODE_FEATURES, helps)
        or _unconditional(news)
    )


def _pod_affinity(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    # A term of any pod on any node may have refused, so no label of a node is without meaning.
    if news.added:
        return tidings.Event.NODE_ADDED
    if news.labels:
        return tidings.Event.NODE_LABELS
    spec, seen, own = pod.spec, news.company, (pod.namespace, pod.labels)
    if seen.many:
        return tidings.Event.OTHER_GONE
    if any(encounters.befriends(spec, kind) for kind in seen.arrived):
        return tidings.Event.OTHER_ADDED
    for kind, terms in seen.departed:
        # Once the last one it wants to be near is gone, a pod that wants its own kind may be the first anywhere.
        if encounters.avoids(spec.pod_anti_affinity, kind) or encounters.avoids(terms, own):
            return tidings.Event.OTHER_GONE
        if encounters.befriends(spec, kind) and encounters.befriends(spec, own):
            return tidings.Event.OTHER_GONE
    for namespace, before, after in seen.relabelled:
        was, now = (namespace, before), (namespace, after)
        if encounters.befriends(spec, was) != encounters.befriends(spec, now):
            return tidings.Event.OTHER_RELABELLED
        if any(encounters.selects(term, was) > encounters.selects(term, now) for term in spec.pod_anti_affinity):
            return tidings.Event.OTHER_RELABELLED
    return _unconditional(news)


def _spread(news: tidings.News, pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    spec, seen = pod.spec, news.company
    hard = [constraint for constraint in spec.spread if constraint.hard]
    if not hard:
        # Spread by the profile's constraints, which are not at hand.
        return _any_change(news, pod, None) or (tidings.Event.OTHER_ADDED if seen or news.removed else None)
    if len(news.removed) > tidings.PAIRS_MAX or any(_keyed(hard, node) for node in news.removed):
        return tidings.Event.NODE_GONE
    found = (
        _first(news.added, tidings.Event.NODE_ADDED, lambda pair: _keyed(hard, pair[1]))
        or _first(news.labels, tidings.Event.NODE_LABELS, lambda pair: _counts_otherwise(spec, hard, pair))
        or _first(news.taints, tidings.Event.NODE_TAINTS, lambda pair: _keyed(hard, pair[1]))
    )
    if found is not None or not seen:
        return found
    if seen.many:
        return tidings.Event.OTHER_GONE
    if any(any(encounters.counted(spec, pod.namespace, kind)) for kind in seen.arrived):
        return tidings.Event.OTHER_ADDED
    gone = [*(kind for kind, _ in seen.departed), *seen.ending]
    if any(any(encounters.counted(spec, pod.namespace, kind)) for kind in gone):
        return tidings.Event.OTHER_GONE
    for namespace, before, after in seen.relabelled:
        was = encounters.counted(spec, pod.namespace, (namespace, before))
        if was != encounters.counted(spec, pod.namespace, (namespace, after)):
            return tidings.Event.OTHER_RELABELLED
    return None


def _keyed(hard: Sequence[pods.SpreadConstraint], node: nodes.Node) -> bool:
    """Whether the node has the keys of all the constraints: others take no part in any count."""
    have = dict(node.labels)
    return all(constraint.topology_key in have for constraint in hard)


def _counts_otherwise(spec: pods.Spec, hard: Sequence[pods.SpreadConstraint], pair: tidings.NodePair) -> bool:
    """Whether the node's part in the counting changed with its labels."""
    before, after = pair
    if before is None or _keyed(hard, before) != _keyed(hard, after):
        return True
    if not _keyed(hard, after):
        return False
    had, has = dict(before.labels), dict(after.labels)
    moved = any(had[constraint.topology_key] != has[constraint.topology_key] for constraint in hard)
    return moved or matches(spec, before) != matches(spec, after)


def _ways(news: tidings.News, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    if news.ways:
        return tidings.Event.WAYS
    if news.removed:
        return tidings.Event.NODE_GONE
    return _partner_left(news.company, pod, room) or _candidates(news, pod, None)


def _partner_left(seen: encounters.Encounters, pod: pods.Pod, room: Room | None) -> tidings.Event | None:
    # Pods that come can only limit ways further. Had a group or a Service changed meanwhile, that would be news itself.
    if seen.many:
        return tidings.Event.OTHER_GONE
    if not seen.departed and not seen.relabelled:
        return None
    leaves = _anybody if room is None else room.leaving(pod)
    if any(leaves(kind, None) for kind, _ in seen.departed):
        return tidings.Event.OTHER_GONE
    if any(leaves((namespace, before), (namespace, after)) for namespace, before, after in seen.relabelled):
        return tidings.Event.OTHER_RELABELLED
    return None


def _anybody(_before: encounters.Kind, _after: encounters.Kind | None) -> bool:
    return True


def _candidates(news: tidings.News, _pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    # Which label makes a node a candidate is not at hand.
    return (
        tidings.Event.NODE_ADDED if news.added else tidings.Event.NODE_LABELS if news.labels else _unconditional(news)
    )


def _policy(news: tidings.News, _pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    # What a rule asks of nodes may be anything that is told of them, but not which pods are there.
    return _earliest(
        (news.rules, tidings.Event.RULES),
        (news.added, tidings.Event.NODE_ADDED),
        (news.labels, tidings.Event.NODE_LABELS),
        (news.ways, tidings.Event.WAYS),
        (news.taints, tidings.Event.NODE_TAINTS),
        (news.allocatable, tidings.Event.NODE_ALLOCATABLE),
        (news.features, tidings.Event.NODE_FEATURES),
        (news.addresses, tidings.Event.NODE_ADDRESSES),
    )


def _unsupported(_news: tidings.News, _pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    # The pod as a whole is refused, whatever the cluster looks like: only its own update can help.
    return None


def _any_change(news: tidings.News, _pod: pods.Pod, _room: Room | None) -> tidings.Event | None:
    return _earliest(
        (news.added, tidings.Event.NODE_ADDED),
        (news.freed, tidings.Event.OTHER_GONE),
        (news.allocatable, tidings.Event.NODE_ALLOCATABLE),
        (news.labels, tidings.Event.NODE_LABELS),
        (news.taints, tidings.Event.NODE_TAINTS),
        (news.features, tidings.Event.NODE_FEATURES),
        (news.shrunk, tidings.Event.OTHER_SCALED_DOWN),
    )


Hint = Callable[[tidings.News, pods.Pod, Room | None], tidings.Event | None]

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
    names.BUDGET: _budget,
    names.POOL: _candidates,
    names.GRAPH_PATH: _ways,
    names.GRAPH_POLICY: _policy,
    names.UNSUPPORTED: _unsupported,
}

COMPANY = frozenset(
    {names.INTER_POD_AFFINITY, names.POD_TOPOLOGY_SPREAD, names.BUDGET, names.GRAPH_PATH, names.GRAPH_POLICY}
)
"""Plugins that look at more than the node and the pod: at other pods, at what is kept for them, at ways, at rules."""
BY_KIND = frozenset(_HINTS)
"""Plugins whose refusal depends on nothing of the pod but its spec, its namespace and its labels."""
BY_SPEC = BY_KIND - COMPANY
"""Plugins whose refusal depends on nothing of the pod but its spec."""
BY_HOLDER = BY_SPEC | {names.BUDGET}
"""Plugins whose refusal depends on nothing of the pod but its spec and whom it belongs to (`budgets.holders`)."""

_NEVER: frozenset[tidings.Event] = frozenset()
_OWN: dict[str, frozenset[tidings.Event]] = {
    NO_NODES: _NEVER,
    names.NODE_UNSCHEDULABLE: frozenset({tidings.Event.POD_TOLERATES}),
    names.NODE_NAME: _NEVER,
    names.TAINT_TOLERATION: frozenset({tidings.Event.POD_TOLERATES}),
    names.NODE_AFFINITY: _NEVER,
    names.NODE_PORTS: _NEVER,
    names.NODE_RESOURCES_FIT: frozenset({tidings.Event.POD_SCALED_DOWN}),
    names.NODE_DECLARED_FEATURES: _NEVER,
    names.GPU_DEVICES: _NEVER,
    names.BUDGET: frozenset({tidings.Event.POD_RELABELLED, tidings.Event.POD_SCALED_DOWN}),
    names.INTER_POD_AFFINITY: frozenset({tidings.Event.POD_RELABELLED, tidings.Event.POD_UPDATED}),
    names.GRAPH_POLICY: frozenset(
        {tidings.Event.POD_RELABELLED, tidings.Event.POD_SCALED_DOWN, tidings.Event.POD_TOLERATES}
    ),
    names.POD_TOPOLOGY_SPREAD: frozenset({tidings.Event.POD_RELABELLED, tidings.Event.POD_TOLERATES}),
}
