"""Small random clusters, pods and patches, rich in the cases that decide: few names, few values, many collisions."""

from __future__ import annotations

import typing

import msgspec
from hypothesis import strategies as st

from graphsched.base.values import keys, labels, nodes, pods, relations
from graphsched.decision import profile
from graphsched.graph import delta, store
from tests.decision import plain_filters

NODE_NAMES = ("n0", "n1", "n2", "n3", "n4")
POD_NAMES = tuple(f"p{number}" for number in range(8))
NAMESPACES = ("default", "team")
FPGA = "example.com/fpga"
MIB = 1 << 20
T = typing.TypeVar("T")

# ── parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_label_keys = st.sampled_from(("zone", "disk"))
_label_values = st.sampled_from(("a", "b", "5", "-7", "x1"))
label_sets = st.dictionaries(_label_keys, _label_values, max_size=2).map(labels.from_mapping)
zoned = st.sampled_from(((("zone", "a"),), (("zone", "b"),), (("disk", "5"), ("zone", "a"))))
hosted = st.builds(
    lambda base, name: labels.from_mapping({**dict(base), "kubernetes.io/hostname": name}),
    zoned,
    st.sampled_from(NODE_NAMES),
)
pod_label_sets = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from("xy"), max_size=2).map(
    labels.from_mapping
)
_effects = st.sampled_from(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))
_taint_keys = st.sampled_from(("gpu", "node.kubernetes.io/unschedulable"))
taints = st.builds(nodes.Taint, _taint_keys, st.sampled_from(("", "a")), _effects)
tolerations = st.builds(
    pods.Toleration,
    st.sampled_from(("", "gpu", "node.kubernetes.io/unschedulable")),
    st.sampled_from(("Equal", "Equal", "Exists", "Lt")),
    st.sampled_from(("", "a")),
    st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
)
requirements = st.one_of(
    st.builds(
        labels.Requirement,
        _label_keys,
        st.sampled_from((labels.Operator.IN, labels.Operator.NOT_IN)),
        st.lists(_label_values, min_size=1, max_size=3, unique=True).map(lambda chosen: tuple(sorted(chosen))),
    ),
    st.builds(
        labels.Requirement, _label_keys, st.sampled_from((labels.Operator.EXISTS, labels.Operator.DOES_NOT_EXIST))
    ),
    st.builds(
        labels.Requirement,
        _label_keys,
        st.sampled_from((labels.Operator.GT, labels.Operator.LT)),
        st.sampled_from((("5",), ("-8",), ("6",))),
    ),
)
fields = st.builds(
    labels.Requirement,
    st.just("metadata.name"),
    st.sampled_from((labels.Operator.IN, labels.Operator.IN, labels.Operator.NOT_IN)),
    st.sampled_from((*NODE_NAMES, "gone")).map(lambda name: (name,)),
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
host_ports = st.lists(
    st.builds(
        pods.HostPort,
        st.sampled_from(("TCP", "UDP")),
        st.sampled_from((plain_filters.ANY_IP, "10.0.0.1", "10.0.0.2")),
        st.sampled_from((80, 81)),
    ),
    max_size=2,
    unique=True,
).map(tuple)


allocatable = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from((0, 3, 1000, 4000)),
        "memory": st.sampled_from((0, 7, 1000 * MIB, 3000 * MIB)),
        "ephemeral-storage": st.sampled_from((0, 10, 100)),
        "pods": st.integers(0, 4),
        FPGA: st.sampled_from((0, 1, 3)),
        "hugepages-2Mi": st.sampled_from((0, 4 * MIB)),
        "scheduling.kubernetes.io/foo": st.sampled_from((0, 2)),
    },
).map(lambda chosen: tuple(sorted(chosen.items())))
usual = st.just((("cpu", 4000), ("memory", 3000 * MIB), ("pods", 10)))
requested = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from((1, 2, 333, 1000)),
        "memory": st.sampled_from((1, 3, 333 * MIB, 1000 * MIB)),
        "ephemeral-storage": st.sampled_from((1, 10)),
        FPGA: st.sampled_from((1, 2)),
        "hugepages-2Mi": st.just(2 * MIB),
        "scheduling.kubernetes.io/foo": st.just(1),
    },
).map(lambda chosen: tuple(sorted(chosen.items())))
_small = st.sampled_from(((), (("cpu", 1),), (("cpu", 333), ("memory", 333 * MIB)), (("memory", 3),)))
demands = st.builds(
    pods.Demand,
    _small | _small | requested,
    st.sampled_from((0, 100, 333, 1000)),
    st.sampled_from((0, 3, 200 * MIB, 1000 * MIB)),
)
images = st.builds(
    nodes.Image,
    st.lists(st.sampled_from(("app:1", "app:2", "base:latest")), min_size=1, max_size=2).map(tuple),
    st.sampled_from((0, 10 * MIB, 23 * MIB + 1, 333 * MIB, 1200 * MIB, 5000 * MIB)),
)
gpu_demands = st.builds(
    pods.GpuDemand,
    st.integers(1, 2),
    st.sampled_from((250, 600, 1000)),
    st.sampled_from(((), ("T4",), ("A100", "T4"))),
)
_some_selectors = st.builds(
    labels.Requirement, st.sampled_from(("app", "tier")), st.just(labels.Operator.IN), st.sampled_from((("x",), ("y",)))
).map(lambda requirement: labels.selector([requirement]))
selectors = st.one_of(st.none(), st.just(labels.Selector()), _some_selectors, _some_selectors)
namespace_selectors = st.sampled_from(
    (
        None,
        labels.Selector(),
        labels.selector([labels.Requirement("team", labels.Operator.IN, ("blue",))]),
        labels.selector([labels.Requirement("team", labels.Operator.DOES_NOT_EXIST)]),
    ),
)
pod_terms = st.builds(
    pods.PodTerm,
    st.sampled_from(("zone", "zone", "disk")),
    selectors,
    st.sampled_from(((), ("default",), ("default", "team"))),
    namespace_selectors,
)

pod_wishes = st.builds(pods.PreferredPodTerm, st.sampled_from((1, 7, 100)), pod_terms)
constraints = st.builds(
    pods.SpreadConstraint,
    max_skew=st.integers(1, 2),
    topology_key=st.sampled_from(("zone", "zone", "disk", "kubernetes.io/hostname")),
    hard=st.booleans(),
    selector=selectors,
    min_domains=st.sampled_from((1, 1, 1, 2, 3)),
    honor_affinity=st.booleans(),
    honor_taints=st.booleans(),
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
    taints=st.lists(st.builds(nodes.Taint, _taint_keys, st.just(""), st.just("PreferNoSchedule")), max_size=2).map(
        tuple
    ),
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
