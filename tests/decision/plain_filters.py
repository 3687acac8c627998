"""Filters the obvious way: one function a plugin, one node at a time.

Comes in: a pod, a node, a profile. Goes out: the refusal of the first plugin that does not want the pod there.
"""

from __future__ import annotations

import fractions
import math

from graphsched.base.values import labels, nodes, pods, status
from graphsched.decision import profile
from tests.decision import plain_company, plain_spread
from tests.decision.plain_cluster import Cluster, Machine
from tests.decision.plain_rules import UAU, Refusal, U, term_holds, tolerated, untolerated, wanted

ANY_IP = "0.0.0.0"  # noqa: S104  compared, never bound


def before_nodes(pod: pods.Pod, settings: profile.Profile) -> status.Status | None:
    """The refusal that needs no look at any node."""
    if pod.spec.claims:
        words = tuple(f"graph-scheduler does not support {what} yet" for what in sorted(pod.spec.claims))
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
    """The refusal of the first plugin that does not want the pod on the node.

    Where room there is nominated to others, the question is asked with them counted in, then without them.
    """
    only = pinned(pod.spec, settings)
    if only is not None and machine.node.name not in {*only, pod.nominated}:
        # The nominated node is looked at first, and what refuses it is named here as well.
        first = cluster.machines.get(pod.nominated)
        also = refusal(cluster, pod, first, settings) if first is not None else None
        plugins = sorted({"NodeAffinity"} | ({also.by} if also is not None else set()))
        return status.Status(UAU, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]",))
    # Decided once, before anybody nominated is counted.
    company = plain_company.matters(cluster, pod)
    crowded = cluster.crowded(machine, pod)
    if crowded.promised:
        answer = _first(cluster.with_machine(crowded), pod, crowded, settings, company=company)
        if answer is not None:
            return answer
    return _first(cluster, pod, machine, settings, company=company)


def _first(
    cluster: Cluster, pod: pods.Pod, machine: Machine, settings: profile.Profile, *, company: bool
) -> status.Status | None:
    answers = {
        "GraphPool": outside_pool(machine, settings),
        "NodeUnschedulable": node_unschedulable(pod, machine),
        "NodeName": node_name(pod, machine),
        "TaintToleration": taints(pod, machine),
        "NodeAffinity": node_affinity(pod, machine, settings),
        "NodePorts": node_ports(pod, machine),
        "NodeResourcesFit": resources_fit(pod, machine, settings),
        "PodTopologySpread": plain_spread.filtered(cluster, pod, machine, settings.pool),
        "InterPodAffinity": plain_company.filtered(cluster, pod, machine) if company else None,
        "NodeDeclaredFeatures": declared_features(pod, machine),
        "GraphDevices": devices_fit(pod, machine),
        "GraphHeadroom": headroom_touched(pod, machine, settings),
    }
    for plugin, answer in answers.items():
        if answer is not None and plugin not in settings.disabled:
            code, reasons = answer
            return status.Status(code, tuple(sorted(reasons)), plugin)
    return None


def outside_pool(machine: Machine, settings: profile.Profile) -> Refusal | None:
    """The node lacks the label of the only pool there is to choose from."""
    if settings.pool is None or machine.label(settings.pool[0]) == settings.pool[1]:
        return None
    return UAU, (f"node(s) were outside the pool {settings.pool[0]}={settings.pool[1]}",)


def headroom_touched(pod: pods.Pod, machine: Machine, settings: profile.Profile) -> Refusal | None:
    """Less would be left than is to stay free."""
    if not settings.headroom:
        return None
    code, reasons, suffix = U, [], f"outside the headroom of {settings.headroom}%"
    for name, amount in (("pods", 1), *pod.spec.demand.amounts):
        if amount == 0 or name not in {"pods", "cpu", "memory", "ephemeral-storage"}:
            continue
        offered = machine.allocatable(name)
        usable = offered - math.floor(fractions.Fraction(offered * settings.headroom, 100))
        held = len(machine.pods) if name == "pods" else machine.requested(name)
        if held + amount > usable:
            reasons.append(f"Too many pods {suffix}" if name == "pods" else f"Insufficient {name} {suffix}")
            if amount > usable:
                code = UAU
    return (code, tuple(reasons)) if reasons else None


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
    return (UAU, ("node(s) had untolerated taint(s)",)) if untolerated(pod.spec.tolerations, machine) else None


def node_affinity(pod: pods.Pod, machine: Machine, settings: profile.Profile) -> Refusal | None:
    """The profile's affinity, then selector and affinity of the pod."""
    added = settings.added_affinity
    if added is not None and not any(term_holds(term, machine) for term in added):
        return UAU, ("node(s) didn't match scheduler-enforced node affinity",)
    if not wanted(pod.spec, machine):
        return UAU, ("node(s) didn't match Pod's node affinity/selector",)
    return None


def node_ports(pod: pods.Pod, machine: Machine) -> Refusal | None:
    """A host port the pod wants is taken."""
    for asked in pod.spec.ports:
        for other, _ in machine.pods:
            for taken in other.spec.ports:
                if (asked.protocol, asked.port) != (taken.protocol, taken.port):
                    continue
                if asked.ip == taken.ip or ANY_IP in {asked.ip, taken.ip}:
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
