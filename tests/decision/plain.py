"""The decision written the obvious way: for every node, for every check, a loop.

It knows nothing of columns, classes or indices: it reads the vertices and edges of a graph and counts everything again
for every question. The engine must give the same answers (`test_against_plain`), which is what makes this worth
keeping plain. Arithmetic is Go's: 64-bit integers whose division truncates, and doubles where kube-scheduler has them.

Comes in: what `store.content()` gives, a pod, a profile. Goes out: the same values that the engine hands out.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping

from graphsched.base.values import keys, labels, nodes, pods, relations, status
from graphsched.decision import profile, trace
from graphsched.graph import delta

MIB = 1 << 20
ANY_IP = "0.0.0.0"  # noqa: S104  compared, never bound
U, UAU = status.Code.UNSCHEDULABLE, status.Code.UNRESOLVABLE
Refusal = tuple[status.Code, tuple[str, ...]]


@dataclasses.dataclass
class Machine:
    """A node and the pods that count on it, each with the devices it holds there."""

    node: nodes.Node
    pods: list[tuple[pods.Pod, tuple[int, ...]]]

    def allocatable(self, resource: str) -> int:
        """How much it offers."""
        return dict(self.node.allocatable).get(resource, 0)

    def requested(self, resource: str) -> int:
        """How much its pods hold."""
        return sum(dict(pod.held.amounts).get(resource, 0) for pod, _ in self.pods)

    def label(self, key: str) -> str | None:
        """The value of its label; None without one."""
        return dict(self.node.labels).get(key)

    def free_devices(self) -> list[int]:
        """Thousandths left on each of its shareable GPUs."""
        free = [1000] * self.node.gpus
        for pod, devices in self.pods:
            for device in devices:
                if pod.spec.gpu is not None and device < len(free):
                    free[device] -= pod.spec.gpu.milli
        return free


class Cluster:
    """Nodes with their pods, pods waiting for room nominated to them, and the labels of namespaces."""

    def __init__(
        self,
        vertices: Mapping[keys.VertexKey, delta.Vertex],
        edges: Mapping[keys.EdgeID, relations.Edge],
    ) -> None:
        self.machines = {each.name: Machine(each, []) for each in vertices.values() if isinstance(each, nodes.Node)}
        self.namespaces = {each.name: each.labels for each in vertices.values() if isinstance(each, nodes.Namespace)}
        self.nominated: list[pods.Pod] = []
        promises = {edge.source: (edge, value) for edge, value in edges.items() if isinstance(value, relations.Runs)}
        for key, pod in vertices.items():
            if not isinstance(pod, pods.Pod):
                continue
            where, devices = pod.node, pod.devices
            if not where and key in promises:
                edge, promise = promises[key]
                if promise.uid == pod.uid:
                    where, devices = keys.name_of(edge.target), promise.devices
            if where in self.machines:
                self.machines[where].pods.append((pod, devices))
            if not where and pod.nominated:
                self.nominated.append(pod)

    def crowded(self, machine: Machine, pod: pods.Pod) -> Machine:
        """The node with the pods nominated to it that matter as much as the pod, counted as if they ran there."""
        full = Machine(machine.node, list(machine.pods))
        for other in self.nominated:
            if other.nominated == machine.node.name and other.priority >= pod.priority and other.key != pod.key:
                full.pods.append((other, choose_devices(full, other.spec.gpu)))
        return full


# ── what the pod asks for as a whole ───────────────────────────────────────────────────────────────────────────────


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


# ── filters, in kube-scheduler's order ─────────────────────────────────────────────────────────────────────────────


def refusal(cluster: Cluster, pod: pods.Pod, machine: Machine, settings: profile.Profile) -> status.Status | None:
    """The refusal of the first plugin that does not want the pod on the node."""
    only = pinned(pod.spec, settings)
    if only is not None and machine.node.name not in {*only, pod.nominated}:
        return status.Status(UAU, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
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


def choose_devices(machine: Machine, gpu: pods.GpuDemand | None) -> tuple[int, ...]:
    """The devices a pod gets: those with the least left that is enough, in order of their index among equals."""
    if gpu is None:
        return ()
    fitting = [(left, device) for device, left in enumerate(machine.free_devices()) if left >= gpu.milli]
    return tuple(sorted(device for _, device in sorted(fitting)[: gpu.count]))


# ── scores ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def divided(numerator: int, denominator: int) -> int:
    """Go's integer division: it truncates towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def scores(
    cluster: Cluster, pod: pods.Pod, passed: list[Machine], settings: profile.Profile
) -> dict[str, dict[str, int]]:
    """Plugin → node → weighted score, for the nodes that passed and the plugins that do not skip."""
    spec = pod.spec
    preferred = (*spec.preferred, *settings.added_preferred)
    by_plugin: dict[str, dict[str, int]] = {}
    by_plugin["TaintToleration"] = normalised(
        {each.node.name: untolerated(spec, each.node) for each in passed}, reverse=True
    )
    if preferred:
        by_plugin["NodeAffinity"] = normalised(
            {each.node.name: preference(preferred, each) for each in passed}, reverse=False
        )
    by_plugin["NodeResourcesFit"] = {each.node.name: least_allocated(spec, each, settings) for each in passed}
    if any(dict(spec.demand.amounts).get(name, 0) for name in settings.balance):
        by_plugin["NodeResourcesBalancedAllocation"] = {
            each.node.name: balanced_allocation(spec, each, settings) for each in passed
        }
    by_plugin["ImageLocality"] = {each.node.name: image_locality(cluster, spec, each) for each in passed}
    return {
        plugin: {name: value * settings.weights[plugin] for name, value in found.items()}
        for plugin, found in by_plugin.items()
        if settings.weights.get(plugin, 0)
    }


def normalised(raw: dict[str, int], *, reverse: bool) -> dict[str, int]:
    """Scaled so that the greatest becomes 100, or 0 when reversed."""
    greatest = max(raw.values(), default=0)
    if greatest == 0:
        return dict.fromkeys(raw, 100 if reverse else 0)
    scaled = {name: divided(100 * value, greatest) for name, value in raw.items()}
    return {name: 100 - value for name, value in scaled.items()} if reverse else scaled


def untolerated(spec: pods.Spec, node: nodes.Node) -> int:
    """PreferNoSchedule taints that no toleration for that effect, or for any, covers."""
    fitting = [each for each in spec.tolerations if each.effect in {"", "PreferNoSchedule"}]
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(fitting, taint) for taint in node.taints)


def preference(preferred: Iterable[pods.PreferredNodeTerm], machine: Machine) -> int:
    """Sum of the weights of the terms that hold."""
    return sum(each.weight for each in preferred if term_holds(each.term, machine))


def native(name: str) -> bool:
    """Whether a resource is scored also for pods that do not request it."""
    return name in {"cpu", "memory", "ephemeral-storage"}


def least_allocated(spec: pods.Spec, machine: Machine, settings: profile.Profile) -> int:
    """Weighted mean of the shares left, in per cent."""
    total = weights = 0
    for name, weight in settings.allocation:
        if name == "cpu":
            added, held = spec.demand.scored_cpu, sum(pod.held.scored_cpu for pod, _ in machine.pods)
        elif name == "memory":
            added, held = spec.demand.scored_memory, sum(pod.held.scored_memory for pod, _ in machine.pods)
        else:
            added, held = dict(spec.demand.amounts).get(name, 0), machine.requested(name)
        offered = machine.allocatable(name)
        if offered == 0 or (added == 0 and not native(name)):
            continue
        used = held + added
        total += (0 if used > offered else divided((offered - used) * 100, offered)) * weight
        weights += weight
    return divided(total, weights) if weights else 0


def balanced_allocation(spec: pods.Spec, machine: Machine, settings: profile.Profile) -> int:
    """How much more evenly the resources are used with the pod than without: 75 where nothing changes."""
    before, after, offered = [], [], []
    for name in settings.balance:
        added = dict(spec.demand.amounts).get(name, 0)
        if machine.allocatable(name) == 0 or (added == 0 and not native(name)):
            continue
        before.append(machine.requested(name))
        after.append(machine.requested(name) + added)
        offered.append(machine.allocatable(name))
    return 50 + divided(50 + evenness(after, offered) - evenness(before, offered), 2)


def evenness(used: list[int], offered: list[int]) -> int:
    """100 less the standard deviation of the used shares, in per cent."""
    shares = [min(have / most, 1.0) for have, most in zip(used, offered, strict=True)]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * 100.0)


def image_locality(cluster: Cluster, spec: pods.Spec, machine: Machine) -> int:
    """Bytes of the pod's images the node holds, each scaled by how many nodes hold it."""
    total = 0
    for name in (*spec.images, *spec.image_volumes):
        holders = [each for each in cluster.machines.values() if name in dict(images_of(each.node))]
        if machine in holders:
            size = dict(images_of(holders[0].node))[name]
            total += int(float(size) * (float(len(holders)) / float(len(cluster.machines))))
    least, most = 23 * MIB, 1000 * MIB * spec.image_containers
    if most <= least:
        return 0
    return divided(100 * (min(max(total, least), most) - least), most - least)


def images_of(node: nodes.Node) -> Iterator[tuple[str, int]]:
    """Every name on the node with its size; the first size counts where a name is listed twice, so it comes last."""
    for image in reversed(node.images):
        for name in image.names:
            yield name, image.size


# ── the whole ──────────────────────────────────────────────────────────────────────────────────────────────────────


def evaluate(cluster: Cluster, pod: pods.Pod, settings: profile.Profile) -> dict[str, trace.Verdict]:
    """Node name → verdict, for every node."""
    refused = before_nodes(pod, settings)
    if refused is not None:
        return {name: trace.Verdict(refused) for name in sorted(cluster.machines)}
    verdicts: dict[str, trace.Verdict] = {}
    passed = []
    for name, machine in sorted(cluster.machines.items()):
        answer = refusal(cluster, pod, machine, settings)
        if answer is not None:
            verdicts[name] = trace.Verdict(answer)
        else:
            verdicts[name] = trace.Verdict(status.SUCCESS)
            passed.append(machine)
    by_plugin = scores(cluster, pod, passed, settings)
    for machine in passed:
        name = machine.node.name
        found = {plugin: values[name] for plugin, values in by_plugin.items()}
        verdicts[name] = trace.Verdict(status.SUCCESS, found, sum(found.values()))
    return verdicts


def ranking(verdicts: Mapping[str, trace.Verdict]) -> list[str]:
    """The nodes that passed: greatest total first, then by name."""
    return sorted(
        (name for name, verdict in verdicts.items() if verdict.status.ok),
        key=lambda name: (-verdicts[name].total, name),
    )


def diagnosis(
    cluster: Cluster, pod: pods.Pod, verdicts: Mapping[str, trace.Verdict], settings: profile.Profile
) -> trace.Diagnosis:
    """Why no node was left, from the verdicts."""
    if not cluster.machines:
        return trace.Diagnosis(nodes=0)
    refused = before_nodes(pod, settings)
    if refused is not None:
        return trace.Diagnosis(len(verdicts), plugins=(refused.by,), prefilter=refused)
    counts = collections.Counter(reason for verdict in verdicts.values() for reason in verdict.status.reasons)
    plugins = {verdict.status.by for verdict in verdicts.values()} - {""}
    if pinned(pod.spec, settings):
        plugins.add("NodeAffinity")
    return trace.Diagnosis(
        nodes=len(verdicts),
        reasons=tuple(sorted(counts.items(), key=lambda entry: f"{entry[1]} {entry[0]}")),
        plugins=tuple(sorted(plugins)),
        helpful=any(verdict.status.code is U for verdict in verdicts.values()),
    )
