"""Random values, patches and graphs, small enough that they collide: keys repeat, labels meet, links dangle.

`patches` makes patches that the store takes whatever it holds; `rough_patches` also those it may refuse. Values keep
the promises of `base.values` (sorted labels and amounts, distinct devices) and nothing more.
"""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from graphsched.base.values import groups, keys, labels, nodes, places, pods, policies, relations, selections
from graphsched.graph import delta
from tests import choices

NODE_NAMES = ("n1", "n2", "n3", "gpu-4")
NAMESPACES = ("default", "team-a")
ZONE = "topology.kubernetes.io/zone"
RACK = "topology.kubernetes.io/rack"

texts = st.text(st.characters(codec="utf-8"), max_size=6)
LABEL_VALUES = ("", "a", "b", "c", "7", "ä")
LABEL_KEYS = ("app", "tier", ZONE, RACK, "gpu", "kubernetes.io/hostname")
label_values = st.sampled_from(LABEL_VALUES)
some_labels = st.lists(choices.every(lambda *pair: pair, LABEL_KEYS, LABEL_VALUES), max_size=4).map(
    lambda pairs: labels.from_mapping(dict(pairs))
)
node_names = st.sampled_from(NODE_NAMES)
namespaces = st.sampled_from(NAMESPACES)
pod_keys = choices.every(keys.pod_key, NAMESPACES, ("web", "db", "train-0"))
int64s = st.integers(0, 1 << 54)


def tuples(elements: st.SearchStrategy[object], *, size: int = 2) -> st.SearchStrategy[tuple[object, ...]]:
    """A short tuple of these."""
    return st.lists(elements, max_size=size).map(tuple)


def distinct(elements: st.SearchStrategy[str], *, size: int = 3) -> st.SearchStrategy[tuple[str, ...]]:
    """A short sorted tuple of different ones of these."""
    return st.lists(elements, max_size=size, unique=True).map(sorted).map(tuple)


amounts = st.dictionaries(
    st.sampled_from(("cpu", "memory", "pods", "nvidia.com/gpu")),
    st.integers(1, 1 << 40),
    max_size=3,
).map(lambda mapping: tuple(sorted(mapping.items())))
taints = choices.every(nodes.Taint, ("dedicated", "gpu"), LABEL_VALUES, ("NoSchedule", "PreferNoSchedule", "NoExecute"))
images = st.builds(nodes.Image, distinct(st.sampled_from(("app:1", "db:2", "x:latest"))), int64s)
budgets = st.just(nodes.NO_BUDGET) | st.builds(
    nodes.Budget,
    amounts,
    amounts,
    st.dictionaries(st.sampled_from(("default", "team-a/web")), amounts, max_size=2).map(
        lambda mapping: tuple(sorted(mapping.items()))
    ),
)
some_nodes = st.builds(
    nodes.Node,
    name=node_names,
    uid=texts,
    labels=some_labels,
    taints=tuples(taints),
    unschedulable=st.booleans(),
    allocatable=amounts,
    images=tuples(images),
    features=distinct(texts),
    gpu_model=st.sampled_from(("", "A100")),
    gpus=st.integers(0, 3),
    budget=budgets,
    addresses=tuples(st.sampled_from(("10.0.0.1", "10.0.0.2", "fd00::1"))),
)
some_namespaces = st.builds(nodes.Namespace, namespaces, some_labels)
priority_classes = st.builds(
    nodes.PriorityClass,
    st.sampled_from(("high", "low")),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.booleans(),
    st.booleans(),
)

plain_requirements = choices.every(
    labels.Requirement,
    LABEL_KEYS,
    (labels.Operator.IN, labels.Operator.NOT_IN),
    choices.up_to(2, sorted(LABEL_VALUES)),
) | choices.every(labels.Requirement, LABEL_KEYS, (labels.Operator.EXISTS, labels.Operator.DOES_NOT_EXIST))
requirements = plain_requirements | choices.every(
    labels.Requirement,
    LABEL_KEYS,
    (labels.Operator.GT, labels.Operator.LT),
    [(str(number),) for number in range(-9, 10)],
)
selectors = st.none() | st.lists(plain_requirements, max_size=2).map(labels.selector)
node_terms = st.builds(pods.NodeTerm, tuples(requirements), tuples(requirements, size=1), st.booleans())
some_namespaces_named = st.sampled_from(choices.up_to(2, NAMESPACES))
terms = st.builds(pods.PodTerm, st.sampled_from((ZONE, RACK)), selectors, some_namespaces_named, selectors)
wishes = st.builds(pods.PreferredPodTerm, st.integers(1, 100), terms)
demands = st.builds(pods.Demand, amounts, st.integers(0, 1 << 40), st.integers(0, 1 << 40))
specs = st.builds(
    pods.Spec,
    demand=demands,
    node_name=st.sampled_from(("", *NODE_NAMES)),
    selector=some_labels,
    affinity=st.none() | tuples(node_terms),
    preferred=tuples(st.builds(pods.PreferredNodeTerm, st.integers(1, 100), node_terms), size=1),
    tolerations=tuples(
        st.builds(
            pods.Toleration,
            texts,
            st.sampled_from(("Equal", "Exists")),
            texts,
            texts,
            st.none() | st.integers(-(1 << 63) + 1, (1 << 63) - 1),
        ),
        size=1,
    ),
    ports=tuples(choices.every(pods.HostPort, ("TCP",), ("10.0.0.1", "::1"), (1, 2, 3))),
    images=tuples(texts),
    image_volumes=tuples(texts, size=1),
    image_containers=st.integers(0, 3),
    pod_affinity=tuples(terms, size=1),
    pod_anti_affinity=tuples(terms, size=1),
    preferred_pod_affinity=tuples(wishes, size=1),
    preferred_pod_anti_affinity=tuples(wishes, size=1),
    spread=tuples(
        st.builds(
            pods.SpreadConstraint,
            st.integers(1, 3),
            st.sampled_from((ZONE, RACK)),
            st.booleans(),
            selectors,
            st.integers(1, 3),
            st.booleans(),
            st.booleans(),
        ),
        size=1,
    ),
    gpu=st.none() | st.builds(pods.GpuDemand, st.integers(1, 2), st.sampled_from((300, 1000)), distinct(texts)),
    features=distinct(texts),
    claims=tuples(texts, size=1),
)
# Most pods of a real cluster share their spec, and a random one takes long to draw.
plain_specs = st.sampled_from((pods.Spec(), pods.Spec(gpu=pods.GpuDemand(1, 500))))
owning_specs = st.builds(
    pods.Spec,
    pod_anti_affinity=tuples(terms, size=1),
    preferred_pod_affinity=tuples(wishes, size=1),
    ports=st.just((pods.HostPort("TCP", "10.0.0.1", 80),)),
)
shared_specs = st.one_of(plain_specs, owning_specs, specs)
devices = st.sampled_from(choices.up_to(2, range(4)))
moments = st.floats(0, 2e9, allow_nan=False)
some_pods = st.builds(
    pods.Pod,
    key=pod_keys,
    uid=st.sampled_from(("", "1", "2")),
    spec=shared_specs,
    held=demands,
    labels=some_labels,
    node=st.sampled_from(("", *NODE_NAMES)),
    nominated=st.sampled_from(("", *NODE_NAMES)),
    scheduler=st.sampled_from(("default-scheduler", "graph-scheduler")),
    priority=st.integers(-(1 << 31), (1 << 31) - 1),
    never_preempts=st.booleans(),
    gates=tuples(texts),
    deleting=st.booleans(),
    devices=devices,
    created=moments,
    started=st.none() | moments,
    owner=st.sampled_from(("", "selection/ReplicaSet/default/a", "selection/StatefulSet/default/b")),
)
some_selections = st.builds(
    selections.Selection,
    st.sampled_from(("Service", "ReplicationController", "ReplicaSet", "StatefulSet")),
    namespaces,
    st.sampled_from(("a", "b")),
    selectors,
)
PLACE_NAMES = ("slurm/leaf-1", "hypernode/s0", f"numa/{NODE_NAMES[0]}/node-0")
some_places = st.builds(
    places.Place,
    st.sampled_from(PLACE_NAMES),
    st.sampled_from(("switch", places.NUMA)),
    st.none() | st.integers(0, 3),
    some_labels,
    amounts,
    amounts,
)
limits = st.none() | st.floats(0, 1e3)
some_groups = st.builds(
    groups.Group,
    namespaces,
    st.sampled_from(("shop", "train")),
    tuples(
        st.builds(
            groups.Workload,
            st.sampled_from(("web", "db")),
            selectors,
            tuples(
                st.builds(
                    groups.Dependency, st.just("db"), st.floats(0.1, 1e3), limits, limits, st.none() | st.integers(0, 9)
                )
            ),
        )
    ),
    st.sampled_from(("", "KahnSort")),
)
matches = st.builds(
    policies.Match,
    selectors,
    distinct(namespaces, size=1),
    st.none() | st.lists(requirements, max_size=1).map(labels.selector),
    tuples(st.just("10.0.0.0/8"), size=1),
    texts,
    texts,
)
paths = st.builds(
    policies.Path,
    st.sampled_from((keys.VertexKey(""), keys.place_key(PLACE_NAMES[0]))),
    st.none() | st.integers(0, 9),
    limits,
    limits,
    st.sampled_from(("", ZONE)),
)
rules = st.builds(
    policies.Rule,
    st.sampled_from(("edge", "gpu")),
    st.integers(0, 2),
    texts,
    st.integers(-9, 9),
    matches,
    st.sampled_from(tuple(policies.Action)),
    st.integers(-100, 100),
    st.none() | paths,
)
vertices = st.one_of(
    some_nodes,
    some_pods,
    some_pods,
    some_namespaces,
    priority_classes,
    some_selections,
    some_places,
    some_places,
    some_groups,
    rules,
)

node_keys = node_names.map(keys.node_key)
DOMAIN_KEYS = keys.domain_key(ZONE, "a"), keys.domain_key(ZONE, "b"), keys.domain_key(RACK, "a:b")
vertex_keys = st.one_of(
    node_keys,
    pod_keys,
    namespaces.map(keys.namespace_key),
    st.sampled_from(("high", "low")).map(lambda name: keys.vertex_key(keys.Kind.PRIORITY_CLASS, name)),
    namespaces.map(lambda namespace: keys.selection_key("Service", namespace, "a")),
    st.sampled_from(PLACE_NAMES).map(keys.place_key),
    namespaces.map(lambda namespace: keys.group_key(namespace, "shop")),
    st.integers(0, 2).map(lambda number: keys.rule_key("edge", number)),
)
PHYSICAL = [*map(keys.node_key, NODE_NAMES), *DOMAIN_KEYS, *map(keys.place_key, PLACE_NAMES)]
link_ids = choices.every(keys.EdgeID, PHYSICAL, PHYSICAL, (keys.EdgeKind.LINK,))
contains_ids = choices.every(
    lambda pair: keys.EdgeID(pair[0], pair[1], keys.EdgeKind.CONTAINS), itertools.permutations(PHYSICAL, 2)
)
runs_ids = st.builds(keys.EdgeID, pod_keys, node_keys, st.just(keys.EdgeKind.RUNS))
# Mostly one and the same, so that graphs agree on some edges.
links = st.just(relations.Link(0.2, 1e5)) | st.builds(
    relations.Link,
    st.none() | st.floats(0, 1e3),
    st.none() | st.floats(0, 1e6),
    st.floats(0.01, 1),
    st.just(0.0) | moments,
    st.sampled_from(("", "networklink/a-b")),
    st.none() | st.integers(0, 1 << 31),
)
containments = st.builds(relations.Contains, st.sampled_from(("", "slurm")))
runs = st.builds(relations.Runs, st.sampled_from(("1", "2")), devices)
streams = st.builds(
    delta.Stream,
    texts,
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
)


def _patch(
    removed: set[keys.VertexKey],
    cut: set[keys.EdgeID],
    set_vertices: list[delta.Vertex],
    set_links: dict[keys.EdgeID, relations.Edge],
    contained: dict[keys.EdgeID, relations.Edge],
    promises: dict[keys.EdgeID, relations.Edge],
) -> delta.Patch:
    edges = {**set_links, **contained, **promises}
    return delta.Patch(removed, cut, {vertex.key: vertex for vertex in set_vertices}, edges)


rough_patches = st.builds(
    _patch,
    st.sets(vertex_keys, max_size=2),
    st.sets(link_ids | contains_ids | runs_ids, max_size=2),
    st.lists(vertices, max_size=5),
    st.dictionaries(link_ids, links, max_size=2),
    st.dictionaries(contains_ids, containments, max_size=2),
    st.dictionaries(runs_ids, runs, max_size=2),
)
"""Any patch. The store refuses it when a pod would be promised to two nodes."""


def _keep_first_promises(patch: delta.Patch) -> delta.Patch:
    """One promise a pod, and none that another patch's promise could stand against: the others are cut."""
    kept: dict[keys.VertexKey, keys.EdgeID] = {}
    for edge in [edge for edge in patch.edges if edge.kind is keys.EdgeKind.RUNS]:
        if kept.setdefault(edge.source, edge) != edge:
            del patch.edges[edge]
    for pod in kept:
        for name in NODE_NAMES:
            patch.cut.add(keys.EdgeID(pod, keys.node_key(name), keys.EdgeKind.RUNS))
    return patch


patches = rough_patches.map(_keep_first_promises)
"""Patches that the store takes, whatever it holds."""

histories = st.lists(patches, max_size=6)
"""What a store has seen before."""
