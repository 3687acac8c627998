"""Filters the obvious way: one function a plugin, one node at a time.

Comes in: a pod, a node, a profile. Goes out: the refusal of the first plugin that does not want the pod there.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphsched.base.values import labels, nodes, pods, status
from graphsched.decision import profile
from tests.decision.plain_cluster import Cluster, Machine

ANY_IP = "0.0.0.0"  # noqa: S104  compared, never bound
U, UAU = status.Code.UNSCHEDULABLE, status.Code.UNRESOLVABLE
Refusal = tuple[status.Code, tuple[str, ...]]


def before_nodes(pod: pods.Pod, settings: profile.Profile) -> status.Status | None:
    """The refusal that needs no look at any node."""
    missing = list(pod.spec.claims)
    if pod.spec.pod_affinity or pod.spec.preferred_pod_affinity:
        missing.append("pod affinity")
    if pod.spec.pod_anti_affinity or pod.spec.preferred_pod_anti_affinity:
        missing.append("pod anti-affinity")
    if pod.spec.spread:
        missing.append("topology spread constraints")
    if missing:
        words = tuple(f"graph-scheduler does not support {what} yet" for what in sorted(missing))
        return status.Status(UAU, words, "GraphUnsupported")
    if pinned(pod.spec, settings) == set():
        return status.Status(UAU, ("pod affinity terms conflict",), "NodeAffinity")
    return None


def pinned(spec: pods.Spec, settings: profile.Profile) -> set[str] | None:
    """The only node names that required affinity allows; None where some term names none."""
    if not spec.affinity or "NodeAffinity" in settings.disabled:
        return None
    allowed: set[str] = set()
    for term in spec.affinity:
        names: set[str] | None = None
        for field in term.fields:
            if field.operator is labels.Operator.IN:
                names = set(field.values) if names is None else names & set(field.values)
        if names is None:
            return None
        allowed |= names
    return allowed


def refusal(cluster: Cluster, pod: pods.Pod, machine: Machine, settings: profile.Profile) -> status.Status | None:
    """The refusal of the first plugin that does not want the pod on the node."""
    only = pinned(pod.spec, settings)
    if only is not None and machine.node.name not in {*only, pod.nominated}:
        # The nominated node is looked at first, and what refuses it is named here as well.
        first = cluster.machines.get(pod.nominated)
        also = refusal(cluster, pod, first, settings) if first is not None else None
        plugins = sorted({"NodeAffinity"} | ({also.by} if also is not None else set()))
        return status.Status(UAU, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]",))
    crowded = cluster.crowded(machine, pod)
    answers = {
        "NodeUnschedulable": node_unschedulable(pod, machine),
        "NodeName": node_name(pod, machine),
        "TaintToleration": taints(pod, machine),
        "NodeAffinity": node_affinity(pod, machine, settings),
        "NodePorts": node_ports(pod, crowded),
        "NodeResourcesFit": resources_fit(pod, crowded, settings),
        "InterPodAffinity": existing_anti_affinity(cluster, pod, machine),
        "NodeDeclaredFeatures": declared_features(pod, machine),
        "GraphDevices": devices_fit(pod, crowded),
    }
    for plugin, answer in answers.items():
        if answer is not None and plugin not in settings.disabled:
            code, reasons = answer
            return status.Status(code, tuple(sorted(reasons)), plugin)
    return None


def tolerated(tolerations: Iterable[pods.Toleration], taint: nodes.Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    for each in tolerations:
        if each.effect and each.effect != taint.effect:
            continue
        if each.key and each.key != taint.key:
            continue
        if each.operator == "Exists" or (each.operator == "Equal" and each.value == taint.value):
            return True
    return False


def node_unschedulable(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """Cordoned, and the pod does not tolerate it."""
    cordon = nodes.Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if machine.node.unschedulable and not tolerated(pod.spec.tolerations, cordon):
        return UAU, ("node(s) were unschedulable",)
    return None


def node_name(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """Another node was asked for by name."""
    if pod.spec.node_name and pod.spec.node_name != machine.node.name:
        return UAU, ("node(s) didn't match the requested node name",)
    return None


def taints(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """A taint that keeps pods away is not tolerated."""
    for taint in machine.node.taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerated(pod.spec.tolerations, taint):
            return UAU, ("node(s) had untolerated taint(s)",)
    return None


def node_affinity(pod: pods.Pod, machine: Machine, settings: profile.Profile) -> Refusal | None:
    """The profile's affinity, then selector and affinity of the pod."""
    added = settings.added_affinity
    if added is not None and not any(term_holds(term, machine) for term in added):
        return UAU, ("node(s) didn't match scheduler-enforced node affinity",)
    wrong = any(machine.label(key) != value for key, value in pod.spec.selector)
    terms = pod.spec.affinity
    if wrong or (terms is not None and not any(term_holds(term, machine) for term in terms)):
        return UAU, ("node(s) didn't match Pod's node affinity/selector",)
    return None


def term_holds(term: pods.NodeTerm, machine: Machine) -> bool:
    """Whether all requirements of the term hold; an empty or invalid term never does."""
    if not term.valid or not (term.expressions or term.fields):
        return False
    return all(requirement_holds(each, machine.label(each.key)) for each in term.expressions) and all(
        requirement_holds(each, machine.node.name) for each in term.fields
    )


def requirement_holds(requirement: labels.Requirement, value: str | None) -> bool:
    """Whether a label of this value, None for none, meets the requirement."""
    operator = requirement.operator.value
    if value is None:
        return operator in {"NotIn", "DoesNotExist"}
    if operator == "In":
        return value in requirement.values
    if operator == "NotIn":
        return value not in requirement.values
    if operator in {"Exists", "DoesNotExist"}:
        return operator == "Exists"
    try:
        have, bound = int(value), int(requirement.values[0])
    except ValueError:
        return False
    return have > bound if operator == "Gt" else have < bound


def node_ports(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """A host port the pod wants is taken."""
    for wanted in pod.spec.ports:
        for other, _ in machine.pods:
            for taken in other.spec.ports:
                if (wanted.protocol, wanted.port) != (taken.protocol, taken.port):
                    continue
                if wanted.ip == taken.ip or ANY_IP in {wanted.ip, taken.ip}:
                    return U, ("node(s) didn't have free ports for the requested pod ports",)
    return None


def resources_fit(pod: pods.Pod, machine: Machine, settings: profile.Profile) -> Refusal | None:
    """Too many pods, or too little of something."""
    code, reasons = U, []
    if len(machine.pods) + 1 > machine.allocatable("pods"):
        reasons.append("Too many pods")
    for name, amount in pod.spec.demand.amounts:
        extended = "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
        ignored = name in settings.ignored_resources or name.split("/")[0] in settings.ignored_groups
        if amount == 0 or (extended and ignored):
            continue
        if amount > machine.allocatable(name) - machine.requested(name):
            reasons.append(f"Insufficient {name}")
            if amount > machine.allocatable(name):
                code = UAU
    return (code, tuple(reasons)) if reasons else None


def existing_anti_affinity(cluster: Cluster, pod: pods.Pod, machine: Machine) -> Refusal | None:
    """A pod in one of the node's domains wants no pod like this near it."""
    for other in cluster.machines.values():
        for owner, _ in other.pods:
            for term in owner.spec.pod_anti_affinity:
                domain = other.label(term.topology_key)
                same = domain is not None and machine.label(term.topology_key) == domain
                if same and selects(cluster, term, pod):
                    return U, ("node(s) didn't satisfy existing pods anti-affinity rules",)
    return None


def selects(cluster: Cluster, term: pods.PodTerm, pod: pods.Pod) -> bool:
    """Whether the term is about the pod."""
    near = pod.namespace in term.namespaces
    if not near and term.namespace_selector is not None:
        of_namespace = dict(cluster.namespaces.get(pod.namespace, ()))
        near = all(requirement_holds(each, of_namespace.get(each.key)) for each in term.namespace_selector.requirements)
    if not near or term.selector is None:
        return False
    own = dict(pod.labels)
    return all(requirement_holds(each, own.get(each.key)) for each in term.selector.requirements)


def declared_features(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """The node lacks a feature the pod needs."""
    if all(feature in machine.node.features for feature in pod.spec.features):
        return None
    return UAU, ("node(s) didn't match Pod's required features",)


def devices_fit(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """No GPU of a wanted model, or not enough of them with enough left on each."""
    gpu = pod.spec.gpu
    if gpu is None:
        return None
    free = machine.free_devices()
    if (machine.node.gpu_model not in gpu.models) if gpu.models else not free:
        return UAU, ("node(s) had no GPU of a requested model",)
    if sum(left >= gpu.milli for left in free) >= gpu.count:
        return None
    return UAU if len(free) < gpu.count else U, ("node(s) didn't have enough free GPU devices",)
