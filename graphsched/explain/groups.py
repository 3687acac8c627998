"""Nodes sorted by what is in the way, in words a person would use.

An evaluation has one refusing plugin and its fixed reasons for each node; those texts are made for machines ("node(s)
had untolerated taint(s)"). Here every refused node gets a label that also names the taint, the resource or the port,
read from the view the evaluation was made on. `why` puts the groups into a sentence, the HTML report draws them.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import nodes, pods, status
from graphsched.decision import names, profile, trace
from graphsched.decision.constraints import granted
from graphsched.explain import company, rulings, wording
from graphsched.graph import view

INSUFFICIENT = "Insufficient "
TOO_MANY_PODS = "Too many pods"
_ROOM = frozenset({names.NODE_PORTS, names.NODE_RESOURCES_FIT, names.GPU_DEVICES, names.HEADROOM, names.BUDGET})


class Group(msgspec.Struct, frozen=True, gc=False):
    """Nodes with the same thing in the way.

    Attributes:
        label: What is in the way, as in `3 tainted (maintenance)`.
        plugin: Who refused them; empty for nodes outside the names that the pod's affinity lists.
        nodes: Their names, sorted.
        room: Whether they would do if only there were more room: their load is in the way, not what they are.
    """

    label: str
    plugin: str
    nodes: tuple[str, ...]
    room: bool = False

    def __str__(self) -> str:
        return f"{len(self.nodes):,} {self.label}"


def refused(
    graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, settings: profile.Profile
) -> tuple[Group, ...]:
    """The refused nodes in groups, largest first, then by label; empty when the pod was refused as a whole."""
    if evaluation.prefilter is not None:
        return ()
    found: dict[tuple[str, str, bool], list[str]] = {}
    others = company.Company(graph, pod, settings)
    for name, verdict in evaluation.verdicts.items():
        if not verdict.status.ok:
            room = verdict.status.by in _ROOM and verdict.status.code is status.Code.UNSCHEDULABLE
            key = label(graph, pod, name, verdict.status, others), verdict.status.by, room
            found.setdefault(key, []).append(name)
    made = (Group(text, plugin, tuple(sorted(members)), room) for (text, plugin, room), members in found.items())
    return tuple(sorted(made, key=lambda group: (-len(group.nodes), group.label)))


def label(graph: view.View, pod: pods.Pod, name: str, refusal: status.Status, others: company.Company) -> str:
    """What is in the way on this node; `others` keeps what was looked up for other nodes of the same view."""
    node = graph.node(name)
    if node is None:
        return "unknown"
    match refusal.by:
        case names.NODE_UNSCHEDULABLE:
            return "cordoned"
        case names.NODE_NAME:
            return f"other than {pod.spec.node_name}, the node it asks for"
        case names.TAINT_TOLERATION:
            return f"tainted ({_taint(node, pod)})"
        case names.NODE_AFFINITY | "":
            return _mismatch(node, pod, refusal)
        case names.NODE_PORTS:
            return f"with {wording.either([str(port.port) for port in pod.spec.ports])} taken (host port)"
        case names.NODE_RESOURCES_FIT:
            return _full(node, pod, refusal)
        case names.GPU_DEVICES:
            return _devices(node, pod, refusal)
        case names.INTER_POD_AFFINITY:
            return others.affinity(node, refusal.reasons)
        case names.POD_TOPOLOGY_SPREAD:
            return others.spread(node)
        case names.NODE_DECLARED_FEATURES:
            missing = sorted(set(pod.spec.features) - set(node.features))
            return f"without {wording.both(missing)} (feature)"
        case names.POOL:
            return refusal.reasons[0].removeprefix("node(s) were ")
        case names.GRAPH_PATH:
            reason = refusal.reasons[0].removeprefix("node(s) were ")
            return reason.replace("node(s) had ", "with ")
        case names.GRAPH_POLICY:
            return rulings.obstacle(graph, refusal.reasons)
        case names.HEADROOM:
            return f"full up to the headroom ({', '.join(_full_of(refusal))})"
        case names.BUDGET:
            hard = refusal.code is status.Code.UNRESOLVABLE
            return f"{'too small' if hard else 'full'} {limit(refusal)} ({', '.join(_full_of(refusal))})"
    return ", ".join(refusal.reasons)


def limit(refusal: status.Status) -> str:
    """What of a node's budget a refusal speaks of, in its own words where it is one thing."""
    found = [
        text
        for text in (granted.UNDER_CEILING, granted.BESIDE_RESERVED)
        if any(reason.endswith(text) for reason in refusal.reasons)
    ]
    return found[0] if len(found) == 1 else "within what the operator grants"


def untolerated(node: nodes.Node, pod: pods.Pod) -> tuple[nodes.Taint, ...]:
    """The taints that keep the pod away, in order."""
    return tuple(
        taint
        for taint in node.taints
        if taint.effect != "PreferNoSchedule" and not any(each.tolerates(taint) for each in pod.spec.tolerations)
    )


def short_of(refusal: status.Status) -> tuple[str, ...]:
    """The resources that a refusal for want of room names, be it outside the headroom or of what is granted, sorted."""
    short = (reason.removeprefix(INSUFFICIENT) for reason in refusal.reasons if reason.startswith(INSUFFICIENT))
    # A ceiling and a reservation may be in the way of the same one.
    return tuple(dict.fromkeys(text.partition(" ")[0] for text in short))


def too_many_pods(refusal: status.Status) -> bool:
    """Whether it is the number of pods that is in the way, be it beside other things."""
    return any(reason.startswith(TOO_MANY_PODS) for reason in refusal.reasons)


def _full_of(refusal: status.Status) -> list[str]:
    return [*short_of(refusal), *(["pods"] if too_many_pods(refusal) else [])]


def _taint(node: nodes.Node, pod: pods.Pod) -> str:
    taint = next(iter(untolerated(node, pod)), None)
    if taint is None:
        return "not tolerated"
    return f"{taint.key}={taint.value}" if taint.value else taint.key


def _mismatch(node: nodes.Node, pod: pods.Pod, refusal: status.Status) -> str:
    if "scheduler-enforced" in "".join(refusal.reasons):
        return "outside the affinity this scheduler is set to"
    if not refusal.by:
        return "not named by its node affinity"
    have = dict(node.labels)
    missing = [f"{key}={value}" for key, value in pod.spec.selector if have.get(key) != value]
    return f"without {wording.both(missing)}" if missing else "outside its node affinity"


def _full(node: nodes.Node, pod: pods.Pod, refusal: status.Status) -> str:
    offered, wanted = dict(node.allocatable), dict(pod.spec.demand.amounts)
    short = short_of(refusal)
    if refusal.code is status.Code.UNRESOLVABLE:
        small = [name for name in short if wanted.get(name, 0) > offered.get(name, 0)]
        absent = [name for name in small if not offered.get(name)]
        return f"without {wording.both(absent)}" if absent else f"too small ({', '.join(small)})"
    return f"full ({', '.join(_full_of(refusal))})"


def _devices(node: nodes.Node, pod: pods.Pod, refusal: status.Status) -> str:
    gpu = pod.spec.gpu
    if not node.gpus or gpu is None:
        return "without GPU"
    if gpu.models and node.gpu_model not in gpu.models:
        return f"with another GPU than {wording.either(gpu.models)}"
    if refusal.code is status.Code.UNRESOLVABLE:
        return f"with fewer than {wording.count(gpu.count, 'GPU')}"
    return "full (GPU)"


def summary(groups: tuple[Group, ...], *, at_most: int = 6) -> str:
    """`2 full (cpu) · 1 cordoned`, the largest groups first, the rest counted."""
    shown = [str(group) for group in groups[:at_most]]
    rest = groups[at_most:]
    if rest:
        number = sum(len(group.nodes) for group in rest)
        shown.append(f"{number:,} for {wording.count(len(rest), 'other reason')}")
    return " · ".join(shown)
