"""What a patch must satisfy before anything of it is applied.

The codec has already checked the bytes of a patch from another process; this checks what the rows say, for every patch.
The answer is one sentence that names the row, or nothing; who can not ask for a better patch sifts out the bad rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from graphsched.base.values import groups, keys, nodes, places, pods, policies, relations, selections
from graphsched.graph import delta, occupancy

Promised = Callable[[keys.VertexKey], keys.EdgeID | None]
"""A pod's key → its `runs` edge in the graph that the patch is for."""

AMOUNT_MAX = 1 << 55
"""Largest amount of one resource on one node or pod: 32 PiB, or 36 trillion cores. A hundred times it, which scores
compute, and the sum over 128 pods still fit 64 bits."""

GPUS_MAX = 1024
"""Most shareable GPUs on one node."""

_KINDS: dict[type, str] = {
    nodes.Node: keys.Kind.NODE.value,
    pods.Pod: keys.Kind.POD.value,
    nodes.Namespace: keys.Kind.NAMESPACE.value,
    nodes.PriorityClass: keys.Kind.PRIORITY_CLASS.value,
    selections.Selection: keys.Kind.SELECTION.value,
    places.Place: keys.Kind.PLACE.value,
    groups.Group: keys.Kind.GROUP.value,
    policies.Rule: keys.Kind.RULE.value,
}
_EDGE_KINDS: dict[type, keys.EdgeKind] = {
    relations.Contains: keys.EdgeKind.CONTAINS,
    relations.Link: keys.EdgeKind.LINK,
    relations.Runs: keys.EdgeKind.RUNS,
}
_VERTEX_KINDS = frozenset(kind.value for kind in keys.Kind)
_PHYSICAL = frozenset({keys.Kind.NODE.value, keys.Kind.DOMAIN.value, keys.Kind.PLACE.value})


def problem(patch: delta.Patch, promised: Promised) -> str | None:
    """What is wrong with the patch, naming the first bad row; None when it may be applied."""
    return next((text for _, text in _problems(patch, promised)), None)


def sift(patch: delta.Patch, promised: Promised) -> tuple[delta.Patch, list[str]]:
    """The patch without its bad rows, at the same place in its stream, and what is wrong with each of them."""
    bad = dict(_problems(patch, promised))
    good = delta.Patch(
        removed=patch.removed - bad.keys(),
        cut=patch.cut - bad.keys(),
        vertices={key: vertex for key, vertex in patch.vertices.items() if key not in bad},
        edges={edge: value for edge, value in patch.edges.items() if edge not in bad},
        stream=patch.stream,
    )
    return good, list(bad.values())


def of_vertex(vertex: delta.Vertex) -> str | None:
    """What is wrong with the vertex whatever else is there, without its name; None when a patch may set it."""
    return _vertex_problem(vertex.key, vertex)


def _problems(patch: delta.Patch, promised: Promised) -> Iterator[tuple[keys.VertexKey | keys.EdgeID, str]]:
    """Each bad row and a sentence that names it."""
    for removed in patch.removed:
        if not is_key(removed):
            yield removed, f'removed "{removed[:80]}" is no key of a vertex'
    for cut in patch.cut:
        if not (is_key(cut.source) and is_key(cut.target)):
            yield cut, f'cut "{cut.source[:80]}" → "{cut.target[:80]}": an end is no key of a vertex'
    for key, vertex in patch.vertices.items():
        found = _vertex_problem(key, vertex)
        if found:
            yield key, f"{key}: {found}"
    runs_of: dict[keys.VertexKey, keys.EdgeID] = {}
    for edge, value in patch.edges.items():
        found = _edge_problem(edge, value)
        if not found and isinstance(value, relations.Runs):
            found = _promise_problem(patch, edge, runs_of, promised)
        if found:
            yield edge, f"edge {edge.source} → {edge.target}: {found}"


def is_key(text: str) -> bool:
    """Whether a vertex may be called so, here and on the wire."""
    kind, _, name = text.partition("/")
    if kind not in _VERTEX_KINDS or not name:
        return False
    if kind == keys.Kind.POD:
        namespace, _, pod = name.partition("/")
        return bool(namespace and pod)
    if kind == keys.Kind.SELECTION:
        return selections.is_key(text)
    if kind == keys.Kind.DOMAIN:
        return name.find("=") > 0
    if kind in {keys.Kind.GROUP, keys.Kind.RULE}:
        owner, _, rest = name.partition("/")
        return bool(owner and rest)
    return True


def _vertex_problem(key: keys.VertexKey, vertex: delta.Vertex) -> str | None:
    kind = _KINDS.get(type(vertex))
    if kind is None or keys.kind_of(key) != kind or vertex.key != key:
        return "the key is not that of the vertex"
    if not keys.name_of(key):
        return "the name is empty"
    if kind != keys.Kind.SELECTION and not is_key(key):
        return "the key lacks a part of its name"
    if isinstance(vertex, nodes.Node):
        return _node_problem(vertex)
    if isinstance(vertex, pods.Pod):
        return (
            _demand_problem(vertex.held)
            or _demand_problem(vertex.spec.demand)
            or _gpu_problem(vertex.spec.gpu)
            or _devices_problem(vertex.devices)
            or _owner_problem(vertex.owner)
        )
    if isinstance(vertex, selections.Selection) and not selections.is_key(key):
        return "it is of a kind that selects no pods, or its name is not that of an object in a namespace"
    if isinstance(vertex, places.Place):
        return _amounts_problem(vertex.amounts) or _amounts_problem(vertex.available)
    return None


def _node_problem(node: nodes.Node) -> str | None:
    if not 0 <= node.gpus <= GPUS_MAX:
        return f"gpus {node.gpus} is out of range"
    if not all(0 <= image.size <= AMOUNT_MAX for image in node.images):
        return "the size of an image is out of range"
    granted = node.budget
    return (
        _amounts_problem(node.allocatable)
        or _amounts_problem(granted.capacity)
        or _amounts_problem(granted.ceilings)
        or next(filter(None, (_amounts_problem(amounts) for _, amounts in granted.reserved)), None)
    )


def _demand_problem(demand: pods.Demand) -> str | None:
    scored = ((nodes.CPU, demand.scored_cpu), (nodes.MEMORY, demand.scored_memory))
    return _amounts_problem(demand.amounts) or _amounts_problem(scored)


def _gpu_problem(gpu: pods.GpuDemand | None) -> str | None:
    if gpu is None or (0 <= gpu.count <= GPUS_MAX and 0 < gpu.milli <= occupancy.GPU_MILLI):
        return None
    return f"the demand of {gpu.milli} thousandths of {gpu.count} GPUs is out of range"


def _owner_problem(owner: str) -> str | None:
    if not owner or selections.is_key(owner):
        return None
    return f'the owner "{owner}" is no object that selects pods'


def _devices_problem(devices: tuple[int, ...]) -> str | None:
    """Devices are indices, ascending, each once: a negative one would count on the last device."""
    if not devices or (devices[0] >= 0 and devices[-1] < GPUS_MAX and list(devices) == sorted(set(devices))):
        return None
    return f"devices {list(devices)} are not ascending indices"


def _amounts_problem(amounts: nodes.Amounts) -> str | None:
    for name, amount in amounts:
        if not 0 <= amount <= AMOUNT_MAX:
            return f"amount {amount} of {name} is out of range"
    return None


def _edge_problem(edge: keys.EdgeID, value: relations.Edge) -> str | None:
    if _EDGE_KINDS.get(type(value)) is not edge.kind:
        return f"the attributes are not those of a {edge.kind} edge"
    if not (is_key(edge.source) and is_key(edge.target)):
        return "an end is no key of a vertex"
    if isinstance(value, relations.Link):
        return _link_problem(value)
    if isinstance(value, relations.Contains):
        if not {keys.kind_of(edge.source), keys.kind_of(edge.target)} <= _PHYSICAL or edge.source == edge.target:
            return "a contains edge goes from a place or domain to another one or to a node"
        return None
    if keys.kind_of(edge.source) != keys.Kind.POD or keys.kind_of(edge.target) != keys.Kind.NODE:
        return "a runs edge goes from a pod to a node"
    return _devices_problem(value.devices)


def _link_problem(link: relations.Link) -> str | None:
    for name, amount, what in (
        ("latency_ms", link.latency_ms, "time"),
        ("bandwidth_mbps", link.bandwidth_mbps, "rate"),
    ):
        if amount is not None and not (math.isfinite(amount) and amount >= 0):
            return f"{name} {amount} is not a {what}"
    if link.seen is not None:
        return "what was seen of a link is not for the graph, but for the ledger of link health"
    if not 0 < link.health <= 1:
        return f"health {link.health} is outside (0, 1]"
    if not (math.isfinite(link.at) and link.at >= 0):
        return f"at {link.at} is not a moment"
    if link.cost is not None and not 0 <= link.cost <= relations.COST_MAX:
        return f"cost {link.cost} is out of range"
    return None


def _promise_problem(
    patch: delta.Patch,
    edge: keys.EdgeID,
    runs_of: dict[keys.VertexKey, keys.EdgeID],
    promised: Promised,
) -> str | None:
    """A pod has at most one promise; a second one must come with the cut of the first."""
    other = runs_of.setdefault(edge.source, edge)
    if other != edge:
        return f"the pod is promised to {other.target} in the same patch"
    held = promised(edge.source)
    if held is None or held == edge or held in patch.cut or not patch.removed.isdisjoint(held[:2]):
        return None
    return f"the pod is promised to {held.target} already"
