"""Small random clusters, pods and patches, rich in the cases that decide: few names, few values, many collisions."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from graphsched.base.values import keys, labels, nodes, pods, relations
from graphsched.decision import profile
from graphsched.graph import delta, store
from tests import choices
from tests.decision import plain_filters

NODE_NAMES = ("n0", "n1", "n2", "n3", "n4")
POD_NAMES = tuple(f"p{number}" for number in range(8))
NAMESPACES = ("default", "team")
FPGA = "example.com/fpga"
MIB = 1 << 20
T = typing.TypeVar("T")

# ── parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_LABEL_KEYS = ("zone", "disk")
_LABEL_VALUES = ("-7", "5", "a", "b", "x1")

label_sets = choices.labelled(_LABEL_KEYS, _LABEL_VALUES)
_ZONED = ((("zone", "a"),), (("zone", "b"),), (("disk", "5"), ("zone", "a")))
zoned = st.sampled_from(_ZONED)
hosted = choices.every(
    lambda base, name: labels.from_mapping({**dict(base), "kubernetes.io/hostname": name}), _ZONED, NODE_NAMES
)
pod_label_sets = choices.labelled(("app", "tier"), ("x", "y"))
_TAINT_KEYS = ("gpu", "node.kubernetes.io/unschedulable")
taints = choices.every(
    nodes.Taint, _TAINT_KEYS, ("", "a"), ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
)
tolerations = choices.every(
    pods.Toleration,
    ("", "gpu", "node.kubernetes.io/unschedulable"),
    ("Equal", "Equal", "Exists", "Lt"),
    ("", "a"),
    ("", "NoSchedule", "PreferNoSchedule"),
)
requirements = st.one_of(
    choices.every(
        labels.Requirement,
        _LABEL_KEYS,
        (labels.Operator.IN, labels.Operator.NOT_IN),
        [values for values in choices.up_to(3, _LABEL_VALUES) if values],
    ),
    choices.every(labels.Requirement, _LABEL_KEYS, (labels.Operator.EXISTS, labels.Operator.DOES_NOT_EXIST)),
    choices.every(labels.Requirement, _LABEL_KEYS, (labels.Operator.GT, labels.Operator.LT), (("5",), ("-8",), ("6",))),
)
fields = choices.every(
    lambda operator, name: labels.Requirement("metadata.name", operator, (name,)),
    (labels.Operator.IN, labels.Operator.IN, labels.Operator.NOT_IN),
    (*NODE_NAMES, "gone"),
)
node_terms = st.builds(
    pods.NodeTerm,
    st.lists(requirements, max_size=2).map(tuple),
    st.lists(fields, max_size=2).map(tuple),
    st.sampled_from((True, True, True, False)),
)
pinning_terms = st.builds(
    pods.NodeTerm,
    st.lists(requirements, max_size=1).map(tuple),
    st.lists(fields, min_size=1, max_size=2).map(tuple),
)
_valid_terms = node_terms.map(lambda term: msgspec.structs.replace(term, valid=True))
preferences = st.lists(
    st.builds(pods.PreferredNodeTerm, st.sampled_from((0, 1, 7, 100)), _valid_terms), max_size=3
).map(tuple)
_PORTS = [
    pods.HostPort(*chosen)
    for chosen in itertools.product(("TCP", "UDP"), (plain_filters.ANY_IP, "10.0.0.1", "10.0.0.2"), (80, 81))
]
host_ports = choices.every(lambda *chosen: tuple(dict.fromkeys(filter(None, chosen))), (None, *_PORTS), (None, *_PORTS))


def _amounts(options: dict[str, Sequence[int]]) -> list[tuple[tuple[str, int], ...]]:
    """All amounts of these resources, each one absent half of the time and in few of the values."""
    found = itertools.product(*[[None, *values] for values in options.values()])
    return [
        tuple((name, value) for name, value in zip(options, chosen, strict=True) if value is not None)
        for chosen in found
    ]


def _together(*parts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(itertools.chain(*parts)))


allocatable = st.builds(
    _together,
    st.sampled_from(
        _amounts(
            {
                "cpu": (0, 3, 1000, 4000),
                "memory": (0, 7, 1000 * MIB, 3000 * MIB),
                "ephemeral-storage": (0, 10, 100),
            }
        )
    ),
    st.sampled_from(
        _amounts(
            {"pods": range(5), FPGA: (0, 1, 3), "hugepages-2Mi": (0, 4 * MIB), "scheduling.kubernetes.io/foo": (0, 2)}
        )
    ),
)
USUAL = ("cpu", 4000), ("memory", 3000 * MIB), ("pods", 10)
usual = st.just(USUAL)
requested = choices.every(
    _together,
    _amounts({"cpu": (1, 2, 333, 1000), "memory": (1, 3, 333 * MIB, 1000 * MIB), "ephemeral-storage": (1, 10)}),
    _amounts({FPGA: (1, 2), "hugepages-2Mi": (2 * MIB,), "scheduling.kubernetes.io/foo": (1,)}),
)
_small = st.sampled_from(((), (("cpu", 1),), (("cpu", 333), ("memory", 333 * MIB)), (("memory", 3),)))
demands = st.builds(
    lambda amounts, shown: pods.Demand(amounts, *shown),
    _small | _small | requested,
    choices.every(lambda *shown: shown, (0, 100, 333, 1000), (0, 3, 200 * MIB, 1000 * MIB)),
)
images = choices.every(
    nodes.Image,
    [(name,) for name in ("app:1", "app:2", "base:latest")] * 3
    + list(itertools.product(("app:1", "app:2", "base:latest"), repeat=2)),
    (0, 10 * MIB, 23 * MIB + 1, 333 * MIB, 1200 * MIB, 5000 * MIB),
)
gpu_demands = choices.every(pods.GpuDemand, (1, 2), (250, 600, 1000), ((), ("T4",), ("A100", "T4")))
_SELECTORS = [
    *[None] * 4,
    *[labels.Selector()] * 4,
    *[
        labels.selector([labels.Requirement(key, labels.Operator.IN, (value,))])
        for key, value in itertools.product(("app", "tier"), ("x", "y"))
    ]
    * 2,
]
selectors = st.sampled_from(_SELECTORS)
_NAMESPACE_SELECTORS = (
    None,
    labels.Selector(),
    labels.selector([labels.Requirement("team", labels.Operator.IN, ("blue",))]),
    labels.selector([labels.Requirement("team", labels.Operator.DOES_NOT_EXIST)]),
)
namespace_selectors = st.sampled_from(_NAMESPACE_SELECTORS)
_TOPOLOGIES = ("zone", "zone", "disk")
_SOME_NAMESPACES: tuple[tuple[str, ...], ...] = ((), ("default",), ("default", "team"))
pod_terms = choices.every(pods.PodTerm, _TOPOLOGIES, _SELECTORS, _SOME_NAMESPACES, _NAMESPACE_SELECTORS)
pod_wishes = choices.every(
    lambda weight, *term: pods.PreferredPodTerm(weight, pods.PodTerm(*term)),
    (1, 7, 100),
    _TOPOLOGIES,
    _SELECTORS,
    _SOME_NAMESPACES,
    _NAMESPACE_SELECTORS,
)
constraints = st.builds(
    lambda count, counted: pods.SpreadConstraint(*count, *counted),
    choices.every(
        lambda *chosen: chosen, (1, 2), ("zone", "zone", "disk", "kubernetes.io/hostname"), (False, True), _SELECTORS
    ),
    choices.every(lambda *chosen: chosen, (1, 1, 1, 2, 3), (False, True), (False, True)),
)


def few(parts: st.SearchStrategy[T], most: int) -> st.SearchStrategy[tuple[T, ...]]:
    """None of them most of the time, else up to so many."""
    return st.just(()) | st.just(()) | st.lists(parts, max_size=most).map(tuple)


MANY_NAMES = tuple(f"m{number:02}" for number in range(12))
"""Enough nodes for one changed row to be brought up to date by itself."""

# ── wholes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

node_values = st.builds(
    nodes.Node,
    st.sampled_from(NODE_NAMES),
    labels=label_sets | zoned | hosted,
    taints=st.just(()) | st.lists(taints, max_size=2).map(tuple),
    unschedulable=st.sampled_from((*(False,) * 7, True)),
    allocatable=usual | usual | allocatable,
    images=st.lists(images, max_size=2).map(tuple),
    features=st.lists(st.sampled_from(("F1", "F2")), max_size=2, unique=True).map(lambda names: tuple(sorted(names))),
    gpu_model=st.sampled_from(("", "T4", "A100")),
    gpus=st.integers(0, 2),
)


def _spec(
    *, owner: bool, required: st.SearchStrategy[tuple[pods.NodeTerm, ...] | None]
) -> st.SearchStrategy[pods.Spec]:
    return st.builds(
        pods.Spec,
        demand=demands,
        node_name=st.just("") if owner else st.sampled_from((*("",) * 15, "n1", "gone")),
        selector=st.sampled_from(((), (), (), (("zone", "a"),))) | label_sets,
        affinity=required,
        preferred=preferences,
        tolerations=st.just((pods.Toleration(operator="Exists"),)) | st.lists(tolerations, max_size=2).map(tuple),
        ports=st.just(()) | host_ports,
        images=st.lists(st.sampled_from(("app:1", "app:2", "base:latest", "none:1")), max_size=3).map(tuple),
        image_volumes=st.just(()) | st.just(("app:2",)),
        image_containers=st.integers(1, 3),
        pod_affinity=few(pod_terms, 2),
        pod_anti_affinity=st.lists(pod_terms, max_size=1).map(tuple) if owner else few(pod_terms, 2),
        preferred_pod_affinity=few(pod_wishes, 2),
        preferred_pod_anti_affinity=few(pod_wishes, 2),
        spread=st.just(()) if owner else few(constraints, 3),
        gpu=st.none() | st.none() | gpu_demands,
        features=st.sampled_from(((), (), (), (), ("F1",))),
    )


_required = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.none(),
    st.lists(node_terms, max_size=2).map(tuple),
    st.lists(pinning_terms, min_size=1, max_size=3).map(tuple),
)
specs = _spec(owner=False, required=_required)
mild_specs = st.builds(
    pods.Spec,
    demand=demands,
    preferred=preferences,
    tolerations=st.just((pods.Toleration(operator="Exists", effect="NoSchedule"),)),
    images=st.just(("app:1",)),
    image_containers=st.just(1),
    pod_affinity=few(pod_terms, 1),
    pod_anti_affinity=few(pod_terms, 1),
    preferred_pod_affinity=few(pod_wishes, 2),
    preferred_pod_anti_affinity=few(pod_wishes, 1),
    spread=few(constraints, 2),
)
owner_specs = _spec(owner=True, required=st.none())


@st.composite
def pod_values(draw: st.DrawFn) -> pods.Pod:
    """Any pod of the cluster: bound, promised later, waiting, or nominated."""
    spec = draw(owner_specs)
    held = draw(st.just(spec.demand) | demands)
    devices: tuple[int, ...] = ()
    node = draw(st.sampled_from(("", *NODE_NAMES, *NODE_NAMES, "gone")))
    if node and spec.gpu is not None:
        devices = draw(st.sampled_from(((0,), (1,), (0, 1), (3,))))
    return pods.Pod(
        keys.pod_key(draw(st.sampled_from(NAMESPACES)), draw(st.sampled_from(POD_NAMES))),
        uid=draw(st.sampled_from(("u1", "u2"))),
        spec=spec,
        held=held,
        labels=draw(pod_label_sets),
        node=node,
        nominated=draw(st.sampled_from(("", *NODE_NAMES, "gone"))),
        priority=draw(st.integers(0, 2)),
        deleting=draw(st.sampled_from((False, False, False, True))),
        devices=devices,
    )


@st.composite
def newcomers(draw: st.DrawFn) -> pods.Pod:
    """A pod to be placed; it need not be in the graph."""
    return pods.Pod(
        keys.pod_key(draw(st.sampled_from(NAMESPACES)), draw(st.sampled_from((*POD_NAMES, "new")))),
        uid="u1",
        spec=draw(specs | mild_specs | mild_specs),
        labels=draw(pod_label_sets),
        nominated=draw(st.sampled_from(("", "", *NODE_NAMES, "gone"))),
        priority=draw(st.integers(0, 2)),
    )


namespaces = st.builds(
    nodes.Namespace, st.sampled_from(NAMESPACES), st.sampled_from(((), (("team", "blue"),), (("team", "red"),)))
)


@st.composite
def patches(draw: st.DrawFn) -> delta.Patch:
    """Any change: nodes and pods that come, change and go, promises made and taken back, all mixed."""
    patch = delta.Patch()
    node_keys = st.sampled_from(NODE_NAMES).map(keys.node_key)
    pod_keys = st.builds(keys.pod_key, st.sampled_from(NAMESPACES), st.sampled_from(POD_NAMES))
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.sampled_from(("node", "node", "pod", "pod", "pod", "gone node", "gone pod", "promise", "space"))):
            case "node":
                patch.set_vertex(draw(node_values))
            case "pod":
                patch.set_vertex(draw(pod_values()))
            case "gone node":
                patch.remove(draw(node_keys))
            case "gone pod":
                patch.remove(draw(pod_keys))
            case "promise":
                edge = keys.EdgeID(draw(pod_keys), draw(node_keys), keys.EdgeKind.RUNS)
                if draw(st.booleans()):
                    patch.set_edge(edge, relations.Runs(draw(st.sampled_from(("u1", "u2"))), draw(st.just(()))))
                else:
                    patch.cut_edge(edge)
            case "space":
                patch.set_vertex(draw(namespaces))
    return patch


@st.composite
def stores(draw: st.DrawFn) -> store.Store:
    """A store with a cluster that grew by one patch or two, so that rows may have been recycled."""
    built = store.Store()
    first = delta.Patch()
    for node in draw(st.lists(node_values, min_size=draw(st.sampled_from((0, 3, 3))), max_size=7)):
        first.set_vertex(node)
    for pod in draw(st.lists(pod_values(), max_size=8)):
        first.set_vertex(pod)
    built.apply(first)
    for patch in draw(st.lists(patches(), max_size=2)):
        built.apply(patch)
    return built


# ── calm ones, where most nodes pass and one thing changes at a time ───────────────────────────────────────────────

calm_specs = st.builds(
    pods.Spec,
    demand=demands,
    preferred=preferences,
    tolerations=st.just((pods.Toleration(operator="Exists", effect="NoSchedule"),)),
    images=st.just(("app:1", "base:latest")),
    image_containers=st.just(1),
    ports=st.just(()) | host_ports,
    gpu=st.none() | st.none() | gpu_demands,
)
calm_newcomers = st.builds(
    pods.Pod,
    st.just(keys.pod_key("default", "new")),
    uid=st.just("u1"),
    spec=calm_specs,
    labels=pod_label_sets,
    priority=st.integers(0, 2),
)
calm_nodes = st.builds(
    nodes.Node,
    st.sampled_from(MANY_NAMES),
    labels=label_sets,
    taints=st.lists(choices.every(nodes.Taint, _TAINT_KEYS, ("",), ("PreferNoSchedule",)), max_size=2).map(tuple),
    unschedulable=st.sampled_from((False, False, False, True)),
    allocatable=usual | usual | allocatable,
    images=st.just(()) | st.lists(images, max_size=1).map(tuple),
    gpus=st.integers(0, 2),
)


@st.composite
def calm_pods(draw: st.DrawFn) -> pods.Pod:
    """A pod that runs, or that waits for room on a node."""
    spec = draw(calm_specs)
    waits = draw(st.sampled_from((False, False, True)))
    name = draw(st.sampled_from(MANY_NAMES))
    return pods.Pod(
        keys.pod_key("default", draw(st.sampled_from(POD_NAMES))),
        uid="u1",
        spec=spec,
        held=spec.demand,
        node="" if waits else name,
        nominated=name if waits else "",
        priority=draw(st.integers(0, 2)),
        devices=(0,) if spec.gpu is not None and not waits else (),
    )


@st.composite
def calm_stores(draw: st.DrawFn) -> store.Store:
    """A store with all of the many nodes."""
    built = store.Store()
    first = delta.Patch()
    for name in MANY_NAMES:
        first.set_vertex(nodes.Node(name, allocatable=draw(usual)))
    for node in draw(st.lists(calm_nodes, max_size=6)):
        first.set_vertex(node)
    for pod in draw(st.lists(calm_pods(), max_size=4)):
        first.set_vertex(pod)
    built.apply(first)
    return built


def _one(kind: str, node: nodes.Node, pod: pods.Pod) -> delta.Patch:
    match kind:
        case "node":
            return delta.Patch().set_vertex(node)
        case "gone node":
            return delta.Patch().remove(node.key)
        case "gone pod":
            return delta.Patch().remove(pod.key)
        case "promise":
            edge = keys.EdgeID(pod.key, node.key, keys.EdgeKind.RUNS)
            return delta.Patch().set_edge(edge, relations.Runs("u1"))
    return delta.Patch().set_vertex(pod)


single_changes = st.builds(
    _one,
    st.sampled_from(("node", "node", "gone node", "pod", "pod", "pod", "gone pod", "promise")),
    calm_nodes,
    calm_pods(),
)

pools = st.sampled_from((None, None, None, ("zone", "a"), ("disk", "5")))
headrooms = st.sampled_from((0, 0, 0, 1, 10, 33, 50))

profiles = st.builds(
    profile.Profile,
    disabled=st.sampled_from(
        ((), (), (), ("InterPodAffinity",), ("NodeAffinity",), ("PodTopologySpread",)),
    ).map(frozenset),
    hard_affinity_weight=st.sampled_from((1, 1, 0, 50)),
    ignore_existing_preferences=st.sampled_from((False, False, True)),
    allocation=st.sampled_from(
        (
            (("cpu", 1), ("memory", 1)),
            (("cpu", 3), ("memory", 1), (FPGA, 5)),
            (("cpu", 7), ("ephemeral-storage", 2), ("hugepages-2Mi", 1)),
        ),
    ),
    balance=st.sampled_from((("cpu", "memory"), ("cpu",), ("cpu", "memory", "ephemeral-storage", FPGA))),
    ignored_resources=st.sampled_from((frozenset(), frozenset(), frozenset({FPGA, "scheduling.kubernetes.io/foo"}))),
    ignored_groups=st.sampled_from(
        (frozenset(), frozenset(), frozenset({"example.com", "scheduling.kubernetes.io", "hugepages-2Mi"}))
    ),
    added_affinity=st.none() | st.none() | st.lists(_valid_terms, min_size=1, max_size=2).map(tuple),
    added_preferred=st.just(()) | preferences,
    pool=pools,
    headroom=headrooms,
)
