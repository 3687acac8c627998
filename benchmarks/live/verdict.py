"""
Whether what a scheduler did was right: a fast wrong answer is no result.

Comes in: the undecoded watch events of bound pods, in order, and the final lists. Goes out: sentences, one per fault;
none means that every pod was bound exactly once and no node holds more than it has. Pure.
"""

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

_SHOWN = 5
_UNITS = {
    "": 1,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


class _Metadata(msgspec.Struct):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _Resources(msgspec.Struct):
    requests: dict[str, str] = {}


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[_Container] = []


class Pod(msgspec.Struct):
    """As much of a pod as the verdict needs."""

    metadata: _Metadata
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, str] = {}


class Node(msgspec.Struct):
    """As much of a node as the verdict needs."""

    metadata: _Metadata
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Event(msgspec.Struct):
    type: str
    object: Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """The first time a pod was seen bound."""

    pod: str
    node: str
    seen_s: float


def bindings_of(events: Iterable[tuple[float, bytes]]) -> tuple[list[Binding], list[str]]:
    """
    The first binding of each pod, and the faults in how they came about.

    Args:
        events: seconds and encoded watch event, in the order received, of pods whose `nodeName` is set.
    """
    decoder = msgspec.json.Decoder(_Event)
    first: dict[str, tuple[str, Binding]] = {}
    faults: list[str] = []
    for seen_s, line in events:
        event = decoder.decode(line)
        name, uid, node = event.object.metadata.name, event.object.metadata.uid, event.object.spec.node_name
        if event.type == "BOOKMARK":
            continue
        if event.type == "ERROR":
            faults.append("the watch of the bindings broke, so the history has a gap")
        elif event.type == "DELETED":
            faults.append(f"pod {name} was deleted")
        elif name not in first:
            first[name] = (uid, Binding(pod=name, node=node, seen_s=seen_s))
        elif first[name][0] != uid:
            faults.append(f"pod {name} was replaced by another of the same name")
        elif first[name][1].node != node:
            faults.append(f"pod {name} was bound to {first[name][1].node}, then to {node}")
    return [binding for _, binding in first.values()], faults


def faults_of(*, pods: list[Pod], nodes: list[Node], bindings: list[Binding], expected: int) -> list[str]:
    """What is wrong at the end: pods unbound or elsewhere than their binding said, nodes over-committed or unknown."""
    faults = []
    if len(pods) != expected:
        faults.append(f"{expected} pods were created, {len(pods)} are there")
    unbound = [pod.metadata.name for pod in pods if not pod.spec.node_name]
    if unbound:
        faults.append(f"{len(unbound)} pods are not bound: {_some(unbound)}")
    bound_to = {binding.pod: binding.node for binding in bindings}
    moved = [
        pod.metadata.name
        for pod in pods
        if pod.spec.node_name and bound_to.get(pod.metadata.name) != pod.spec.node_name
    ]
    if moved:
        faults.append(f"{len(moved)} pods are not where their binding was seen: {_some(moved)}")
    return [*faults, *_over_committed(pods, nodes)]


def misplaced(
    *,
    pods: list[Pod],
    nodes: list[Node],
    bindings: Sequence[Binding],
    zone_label: str,
    together: bool,
    max_skew: int,
) -> list[str]:
    """What is wrong with the zones that pods are in: not all in one, or less even than they had to be."""
    zone_of = {node.metadata.name: node.metadata.labels.get(zone_label, "") for node in nodes}
    faults = []
    zones = sorted({zone_of.get(pod.spec.node_name, "") for pod in pods if pod.spec.node_name})
    if together and len(zones) > 1:
        faults.append(f"pods that must be in one zone are in {', '.join(zones)}")
    if max_skew:
        counts = collections.Counter(dict.fromkeys(zone_of.values(), 0))
        counts.update(zone_of.get(binding.node, "") for binding in bindings)
        skew = max(counts.values()) - min(counts.values())
        if skew > max_skew:
            faults.append(f"zones differ by {skew} pods, at most {max_skew} are allowed")
    return faults


def _over_committed(pods: list[Pod], nodes: list[Node]) -> list[str]:
    allocatable = {node.metadata.name: _amounts(node.status.allocatable) for node in nodes}
    used: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for pod in pods:
        if pod.spec.node_name:
            used[pod.spec.node_name]["pods"] += 1000
            for container in pod.spec.containers:
                used[pod.spec.node_name].update(_amounts(container.resources.requests))
    faults = [f"pods are bound to {name}, which is no node" for name in sorted(used.keys() - allocatable.keys())]
    for name, has in allocatable.items():
        faults += [
            f"node {name} has {has.get(resource, 0) / 1000:g} {resource}, its pods request {amount / 1000:g}"
            for resource, amount in used[name].items()
            if amount > has.get(resource, 0)
        ]
    return faults


def _amounts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Quantities in thousandths, which no request of these workloads is finer than."""
    return {resource: _thousandths(text) for resource, text in quantities.items()}


def _thousandths(text: str) -> int:
    match = re.fullmatch(r"(\d+)(m|[KMGT]i|[kMGT])?", text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity that these workloads use")
    number, unit = int(match[1]), match[2] or ""
    return number if unit == "m" else number * _UNITS[unit] * 1000


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
