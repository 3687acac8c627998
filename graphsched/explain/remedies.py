"""The smallest change that would help a pending pod.

A refused pod, its evaluation and the view come in; changes go out, each shown to be enough by the checks themselves: a
node's demands on the pod are relaxed one refusal after the other until every check passes there, and what had to be
relaxed is the change. Asking for less and finding more free come to the same, so one search answers both.

Invariants: a change that is told would have been enough on this view; work is bounded by `NODES_MAX` nodes and
`ROUNDS_MAX` refusals each, whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from graphsched.base.values import keys, nodes, pods, status
from graphsched.decision import classes, names, profile, trace
from graphsched.decision.constraints import neighbours, sharing, walk
from graphsched.explain import company, groups, wording
from graphsched.graph import budgets, columns, occupancy, view

NODES_MAX = 48
"""Nodes tried, those that look cheapest first."""
ROUNDS_MAX = 6
EVICTIONS_MAX = 32
"""Pods of the node that are tried as the one in the way."""

_CORDON = pods.Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")
# What a relaxation costs, so that the cheapest is told first: room is a matter of waiting or of one number in the
# manifest, opening a node is an operator's decision, another selector may be another purpose altogether.
_COST_ROOM, _COST_PORT, _COST_SKEW, _COST_CORDON, _COST_TAINT, _COST_SELECTOR = 1.0, 4.0, 5.0, 6.0, 8.0, 20.0
_COST_POOL = 10.0
_COST_SMALLER = 3.0
"""Beside room, for each resource of which the node has too little altogether: no pod that leaves it will help."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """What would be enough on one node.

    Attributes:
        node: Name of the node.
        steps: What has to change, in words, e.g. `500m CPU`, `tolerating dedicated=gpu:NoSchedule`.
        cost: How much is asked for; smaller is better.
        room: Whether only room is missing there.
        instead_of: `namespace/name` of a pod of lower priority without which the pod would fit; empty for none.
        priority: Priority of that pod.
    """

    node: str
    steps: tuple[str, ...]
    cost: float
    room: bool
    instead_of: str = ""
    priority: int = 0

    def __str__(self) -> str:
        text = f"{wording.both(self.steps)} on {self.node}"
        if self.instead_of:
            text += f" (without {self.instead_of}, priority {self.priority}, it fits)"
        return text


class _Relaxed(msgspec.Struct, frozen=True, gc=False):
    """The pod with one demand less; `settings` where it is the profile that asks for less."""

    pod: pods.Pod
    step: str
    cost: float
    room: bool = True
    settings: profile.Profile | None = None


def smallest(
    graph: view.View,
    pod: pods.Pod,
    evaluation: trace.Evaluation,
    settings: profile.Profile,
) -> tuple[Change, ...]:
    """The cheapest change that only asks for room, and the cheapest of any sort if that is cheaper or the only one.

    Empty when nothing short of another pod would help.
    """
    if evaluation.prefilter is not None or evaluation.best:
        return ()
    crowded = _with_nominated(graph, pod)
    subject = msgspec.structs.replace(pod, node="")
    free = {resource: granted_column(graph, subject, resource) for resource, _ in pod.spec.demand.amounts}
    candidates = sorted(
        (_estimate(graph, subject, name, verdict.status, free), name) for name, verdict in evaluation.verdicts.items()
    )
    changes = [
        change
        for estimate, name in candidates[:NODES_MAX]
        if estimate < np.inf and (change := _relax(crowded, subject, name, settings)) is not None
    ]
    if not changes:
        return ()
    best = min(changes, key=_order)
    rooms = [change for change in changes if change.room]
    chosen = [best] if best.room or not rooms else [best, min(rooms, key=_order)]
    return tuple(_with_culprit(graph, crowded, subject, change, settings) for change in chosen)


def _order(change: Change) -> tuple[float, str]:
    return change.cost, change.node


def refusal(graph: view.View, pod: pods.Pod, name: str, settings: profile.Profile) -> status.Status:
    """The first refusal of one node; SUCCESS when every check passes there."""
    row = np.array([graph.columns.rows[name]], np.intp)
    subject = classes.whole_subject(graph, pod, settings)
    for each in walk.IN_ORDER:
        if each.plugin in settings.disabled or not each.applies(subject):
            continue
        found = [one for one in each.refusals(graph, subject, row) if one.mask[0]]
        if found:
            hard = any(bool(np.all(one.unresolvable)) for one in found)
            code = status.Code.UNRESOLVABLE if hard else status.Code.UNSCHEDULABLE
            return status.Status(code, tuple(sorted(one.reason for one in found)), each.plugin)
    return status.SUCCESS


def _relax(graph: view.View, pod: pods.Pod, name: str, settings: profile.Profile) -> Change | None:
    """Relax the pod's demands until the node takes it; None where that can not be done."""
    node = graph.node(name)
    if node is None:
        return None
    steps: list[_Relaxed] = []
    for _ in range(ROUNDS_MAX):
        refused = refusal(graph, pod, name, settings)
        if refused.ok:
            return Change(
                node=name,
                steps=tuple(step.step for step in steps),
                cost=sum(step.cost for step in steps),
                room=all(step.room for step in steps),
            )
        relax = _RELAXATIONS.get(refused.by)
        step = relax(graph, pod, node, refused, settings) if relax is not None else None
        if step is None:
            return None
        steps.append(step)
        pod = step.pod
        settings = step.settings or settings
    return None


def _replaced(pod: pods.Pod, **fields: object) -> pods.Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def _less(
    graph: view.View, pod: pods.Pod, node: nodes.Node, refused: status.Status, settings: profile.Profile
) -> _Relaxed | None:
    """Request no more of each short resource than is free."""
    if groups.too_many_pods(refused):
        return None
    amounts = dict(pod.spec.demand.amounts)
    offered = dict(node.allocatable)
    cost, missing = 0.0, []
    percent = settings.headroom if refused.by == names.HEADROOM else 0
    for name in groups.short_of(refused):
        if refused.by == names.BUDGET:
            free = max(0, int(granted_column(graph, pod, name)[graph.columns.rows[node.name]]))
        else:
            free = max(0, free_of(graph, node.name, name) - sharing.kept(offered.get(name, 0), percent))
        lacking = amounts[name] - free
        missing.append(wording.amount(name, lacking, up=True))
        cost += _COST_ROOM + lacking / max(offered.get(name, 0), amounts[name])
        cost += _COST_SMALLER * (amounts[name] > offered.get(name, 0))
        amounts[name] = free
    left = tuple((name, amount) for name, amount in sorted(amounts.items()) if amount)
    demand = msgspec.structs.replace(pod.spec.demand, amounts=left)
    beside = " outside the headroom" if percent else f" {groups.limit(refused)}" if refused.by == names.BUDGET else ""
    what = f"{wording.both(missing)}{beside}"
    return _Relaxed(_replaced(pod, demand=demand), what, cost)


def _fewer_devices(
    graph: view.View, pod: pods.Pod, node: nodes.Node, refused: status.Status, _settings: profile.Profile
) -> _Relaxed | None:
    """Want no more of the shareable GPUs than is free."""
    gpu = pod.spec.gpu
    if gpu is None or not node.gpus:
        return None
    if gpu.models and node.gpu_model not in gpu.models:
        wanted = msgspec.structs.replace(gpu, models=())
        text = f"accepting GPU model {node.gpu_model or 'unnamed'}"
        return _Relaxed(_replaced(pod, gpu=wanted), text, _COST_SELECTOR, room=False)
    del refused
    free = graph.devices.free[: node.gpus, graph.columns.rows[node.name]]
    if gpu.milli < occupancy.GPU_MILLI:
        most = int(free.max())
        lacking = gpu.milli - most
        less = pods.GpuDemand(gpu.count, most, gpu.models) if most > 0 else None
        return _Relaxed(_replaced(pod, gpu=less), f"{lacking}/1000 of one GPU", _COST_ROOM + lacking / 1000)
    whole = int(np.count_nonzero(free >= gpu.milli))
    lacking = gpu.count - whole
    less = pods.GpuDemand(whole, gpu.milli, gpu.models) if whole else None
    text = f"{wording.count(lacking, 'GPU')} more" if whole else wording.count(lacking, "GPU")
    cost = _COST_ROOM + lacking / max(node.gpus, gpu.count) + _COST_SMALLER * (gpu.count > node.gpus)
    return _Relaxed(_replaced(pod, gpu=less), text, cost)


def _tolerating(
    _graph: view.View, pod: pods.Pod, node: nodes.Node, _refused: status.Status, _settings: profile.Profile
) -> _Relaxed | None:
    taint = next(iter(groups.untolerated(node, pod)), None)
    if taint is None:
        return None
    key = f"{taint.key}={taint.value}" if taint.value else taint.key
    toleration = pods.Toleration(key=taint.key, value=taint.value, effect=taint.effect)
    relaxed = _replaced(pod, tolerations=(*pod.spec.tolerations, toleration))
    return _Relaxed(relaxed, f"tolerating {key}:{taint.effect}", _COST_TAINT, room=False)


def _joining(
    graph: view.View, pod: pods.Pod, _node: nodes.Node, _refused: status.Status, settings: profile.Profile
) -> _Relaxed | None:
    """Have the node join the pool. Where pods are spread that changes what is counted, too, so nothing is shown."""
    if settings.pool is None or any(each.hard for each in company.Company(graph, pod, settings).constraints):
        return None
    without = msgspec.structs.replace(settings, pool=None)
    text = f"the pool's label {'='.join(settings.pool)}"
    return _Relaxed(pod, text, _COST_POOL, room=False, settings=without)


def _uncordoned(
    _graph: view.View, pod: pods.Pod, _node: nodes.Node, _refused: status.Status, _settings: profile.Profile
) -> _Relaxed:
    relaxed = _replaced(pod, tolerations=(*pod.spec.tolerations, _CORDON))
    return _Relaxed(relaxed, "lifting the cordon", _COST_CORDON, room=False)


def _anywhere(
    _graph: view.View, pod: pods.Pod, _node: nodes.Node, _refused: status.Status, _settings: profile.Profile
) -> _Relaxed | None:
    if not pod.spec.selector and pod.spec.affinity is None:
        return None
    text = "dropping its node selector" if pod.spec.selector else "dropping its node affinity"
    return _Relaxed(_replaced(pod, selector=(), affinity=None), text, _COST_SELECTOR, room=False)


def _unnamed(
    _graph: view.View, pod: pods.Pod, _node: nodes.Node, _refused: status.Status, _settings: profile.Profile
) -> _Relaxed:
    return _Relaxed(_replaced(pod, node_name=""), "not asking for a node by name", _COST_SELECTOR, room=False)


def _without_ports(
    _graph: view.View, pod: pods.Pod, _node: nodes.Node, _refused: status.Status, _settings: profile.Profile
) -> _Relaxed:
    ports = wording.both([str(port.port) for port in pod.spec.ports])
    return _Relaxed(_replaced(pod, ports=()), f"host port {ports} free", _COST_PORT)


def _wider(
    graph: view.View, pod: pods.Pod, node: nodes.Node, _refused: status.Status, settings: profile.Profile
) -> _Relaxed | None:
    """Accept as much skew as there would be, or drop the constraint by whose key the node has no domain."""
    others = company.Company(graph, pod, settings)
    missing, ahead = others.unlabelled(node), others.ahead(node)
    if missing:
        left = tuple(each for each in others.constraints if not each.hard or each.topology_key != missing)
        return _spread_by(pod, left, settings, f"not spreading by {missing}", _COST_SELECTOR)
    if ahead is None:
        return None
    wider = msgspec.structs.replace(ahead.constraint, max_skew=ahead.by)
    spread = tuple(wider if each == ahead.constraint else each for each in others.constraints)
    cost = _COST_SKEW + ahead.by - ahead.constraint.max_skew
    return _spread_by(pod, spread, settings, f"maxSkew {ahead.by}", cost)


def _spread_by(
    pod: pods.Pod, spread: tuple[pods.SpreadConstraint, ...], settings: profile.Profile, text: str, cost: float
) -> _Relaxed:
    """Spread the pod by these instead: a change of its own, or of the profile where it has none of its own."""
    if pod.spec.spread:
        return _Relaxed(_replaced(pod, spread=spread), text, cost, room=False)
    # The selectors in them are not read there, so those of this pod may stay.
    defaults = msgspec.structs.replace(settings, default_spread=spread)
    return _Relaxed(pod, f"{text} by default", cost, room=False, settings=defaults)


def _alone(
    _graph: view.View, pod: pods.Pod, _node: nodes.Node, refused: status.Status, _settings: profile.Profile
) -> _Relaxed | None:
    """Do without the company asked for, or put up with the company avoided; others can not be asked to."""
    if neighbours.InterPodAffinity.reason_affinity in refused.reasons:
        relaxed = _replaced(pod, pod_affinity=())
        return _Relaxed(relaxed, "dropping its pod affinity", _COST_SELECTOR, room=False)
    if neighbours.InterPodAffinity.reason_anti_affinity in refused.reasons:
        relaxed = _replaced(pod, pod_anti_affinity=())
        return _Relaxed(relaxed, "dropping its pod anti-affinity", _COST_SELECTOR, room=False)
    return None


_Relaxation = Callable[[view.View, pods.Pod, nodes.Node, status.Status, profile.Profile], _Relaxed | None]
_RELAXATIONS: dict[str, _Relaxation] = {
    names.NODE_RESOURCES_FIT: _less,
    names.GPU_DEVICES: _fewer_devices,
    names.TAINT_TOLERATION: _tolerating,
    names.NODE_UNSCHEDULABLE: _uncordoned,
    names.NODE_AFFINITY: _anywhere,
    names.NODE_NAME: _unnamed,
    names.NODE_PORTS: _without_ports,
    names.POD_TOPOLOGY_SPREAD: _wider,
    names.INTER_POD_AFFINITY: _alone,
    names.HEADROOM: _less,
    names.BUDGET: _less,
    names.POOL: _joining,
}


def free_column(graph: view.View, resource: str, *, headroom: int = 0) -> columns.Int64:
    """What every row offers of a resource less the headroom, in percent, and less what its pods requested; negative
    where over-committed.
    """
    numbers = graph.columns
    offered = numbers.column(numbers.allocatable, resource)
    least = sharing.kept(offered, headroom) if resource in sharing.DIVISIBLE else 0
    return offered - least - numbers.column(numbers.requested, resource)


def granted_column(graph: view.View, pod: pods.Pod, resource: str, *, headroom: int = 0) -> columns.Int64:
    """The same, less what ceilings and reservations leave the pod none of."""
    free = free_column(graph, resource, headroom=headroom)
    if not graph.budgets:
        return free
    numbers, ceiling = graph.columns, graph.budgets.ceilings.get(resource)
    kept = graph.budgets.kept_from(resource, budgets.holders(pod.namespace, pod.labels))
    offered = numbers.column(numbers.allocatable, resource)
    granted = offered if ceiling is None else np.minimum(offered, ceiling)
    least = 0 if kept is None else kept
    return np.minimum(free, granted - least - numbers.column(numbers.requested, resource))


def free_of(graph: view.View, name: str, resource: str) -> int:
    """The same for one node."""
    numbers, row = graph.columns, graph.columns.rows[name]
    return int(numbers.column(numbers.allocatable, resource)[row] - numbers.column(numbers.requested, resource)[row])


def _estimate(
    graph: view.View,
    pod: pods.Pod,
    name: str,
    refused: status.Status,
    free: Mapping[str, columns.Int64],
) -> float:
    """A guess at the cost on this node from its first refusal alone; infinite where nothing can be relaxed."""
    match refused.by:
        case names.NODE_RESOURCES_FIT | names.HEADROOM | names.BUDGET:
            if groups.too_many_pods(refused):
                return np.inf
            row, wanted, node = graph.columns.rows[name], dict(pod.spec.demand.amounts), graph.node(name)
            offered = {} if node is None else dict(node.allocatable)
            room = sum(
                _COST_ROOM
                + (1 - max(0, int(free[resource][row])) / wanted[resource])
                + _COST_SMALLER * (wanted[resource] > offered.get(resource, 0))
                for resource in groups.short_of(refused)
            )
            return room + _devices_cost(graph, pod, name)
        case names.GPU_DEVICES:
            return _devices_cost(graph, pod, name)
        case names.NODE_PORTS:
            return _COST_PORT
        case names.NODE_UNSCHEDULABLE:
            return _COST_CORDON
        case names.TAINT_TOLERATION:
            return _COST_TAINT
        case names.POD_TOPOLOGY_SPREAD:
            return _COST_SKEW
        case names.POOL:
            return _COST_POOL
        case names.NODE_AFFINITY | names.NODE_NAME | names.INTER_POD_AFFINITY:
            return _COST_SELECTOR
    return np.inf


def _devices_cost(graph: view.View, pod: pods.Pod, name: str) -> float:
    """What the shareable GPUs alone would cost on this node; nothing where they fit."""
    node, gpu = graph.node(name), pod.spec.gpu
    if node is None or gpu is None:
        return 0.0
    if not node.gpus:
        return np.inf
    if gpu.models and node.gpu_model not in gpu.models:
        return _COST_SELECTOR
    free = graph.devices.free[: node.gpus, graph.columns.rows[name]]
    if gpu.milli < occupancy.GPU_MILLI:
        lacking = float(gpu.milli - free.max()) / 1000
    else:
        lacking = float(gpu.count - np.count_nonzero(free >= gpu.milli)) / gpu.count
    smaller = _COST_SMALLER * (gpu.count > node.gpus)
    return _COST_ROOM + lacking + smaller if lacking > 0 else 0.0


def _with_culprit(
    graph: view.View,
    crowded: view.View,
    pod: pods.Pod,
    change: Change,
    settings: profile.Profile,
) -> Change:
    """Name the least important single pod without which the pod would fit on that node, if there is one."""
    if not change.room:
        return change
    there = [
        placement.pod for placement in graph.on_node(change.node).values() if placement.pod.priority < pod.priority
    ]
    there.sort(key=lambda other: (other.priority, other.held.amounts, other.key))
    for other in there[:EVICTIONS_MAX]:
        if refusal(_without(graph, crowded, pod, other.key), pod, change.node, settings).ok:
            return msgspec.structs.replace(change, instead_of=other.full_name, priority=other.priority)
    return change


def _without(graph: view.View, crowded: view.View, pod: pods.Pod, key: keys.VertexKey) -> view.View:
    added = [] if crowded is graph else list(_nominated(graph, pod))
    return graph.with_changes(removed=[key], added=added)


def _with_nominated(graph: view.View, pod: pods.Pod) -> view.View:
    """The view that the decision was made on: room nominated to pods at least as important is taken."""
    waiting = list(_nominated(graph, pod))
    return graph.with_changes(added=waiting) if waiting else graph


def _nominated(graph: view.View, pod: pods.Pod) -> Iterable[tuple[pods.Pod, str]]:
    return (
        (other, name)
        for name, others in graph.nominated.items()
        for key, other in others.items()
        if key != pod.key and other.priority >= pod.priority
    )
