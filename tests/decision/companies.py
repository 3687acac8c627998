"""Random clusters where nothing but other pods decides: few labels, few domains, pods with wishes about each other."""

from __future__ import annotations

from hypothesis import strategies as st

from graphsched.base.values import keys, labels, nodes, pods
from graphsched.graph import delta, store
from tests.decision import clusters

_placed = st.sampled_from(
    (("zone", "a"), ("zone", "b"), ("disk", "a"), ("disk", "b"), ("kubernetes.io/hostname", "n1"))
)
company_nodes = st.builds(
    nodes.Node,
    st.sampled_from(clusters.NODE_NAMES),
    labels=st.one_of(clusters.zoned, clusters.zoned, st.lists(_placed, max_size=3).map(dict).map(labels.from_mapping)),
    taints=st.sampled_from(((), (), (nodes.Taint("gpu", "", "NoSchedule"),))),
    allocatable=clusters.usual,
)
_app = st.sampled_from(((("app", "x"),), (("app", "x"),), (("app", "y"),), ()))
_near_always = st.builds(
    pods.PodTerm,
    st.sampled_from(("zone", "zone", "disk")),
    clusters.selectors,
    st.sampled_from((("default",), ("default",), ("default", "team"), ())),
    clusters.namespace_selectors,
)
_app_x = labels.selector([labels.Requirement("app", labels.Operator.IN, ("x",))])
_uneven = st.builds(
    pods.SpreadConstraint,
    max_skew=st.sampled_from((1, 1, 2)),
    topology_key=st.sampled_from(("zone", "zone", "zone", "disk")),
    hard=st.sampled_from((True, True, False)),
    selector=st.just(_app_x),
    min_domains=st.sampled_from((1, 1, 3)),
    honor_affinity=st.booleans(),
    honor_taints=st.booleans(),
)
company_specs = st.builds(
    pods.Spec,
    selector=st.sampled_from(((), (), (), (), (), (("zone", "a"),))),
    tolerations=st.sampled_from(((), (pods.Toleration(operator="Exists"),))),
    pod_affinity=clusters.few(_near_always, 2),
    pod_anti_affinity=clusters.few(_near_always, 2),
    preferred_pod_affinity=clusters.few(st.builds(pods.PreferredPodTerm, st.sampled_from((1, 7)), _near_always), 2),
    preferred_pod_anti_affinity=clusters.few(
        st.builds(pods.PreferredPodTerm, st.sampled_from((1, 7)), _near_always), 2
    ),
    spread=st.one_of(
        *[st.lists(_uneven, min_size=1, max_size=2).map(tuple)] * 3,
        st.lists(clusters.constraints, max_size=2).map(tuple),
    ),
)


@st.composite
def company_pods(draw: st.DrawFn, names: tuple[str, ...] = clusters.POD_NAMES) -> pods.Pod:
    """A pod that runs, or waits for room nominated to it, and has wishes of its own now and then."""
    waits = draw(st.sampled_from((False, False, False, True)))
    node = draw(st.sampled_from(clusters.NODE_NAMES))
    return pods.Pod(
        keys.pod_key(draw(st.sampled_from(("default", "default", "team"))), draw(st.sampled_from(names))),
        uid="u1",
        spec=draw(st.just(pods.Spec()) | st.just(pods.Spec()) | company_specs),
        labels=draw(_app),
        node="" if waits else node,
        nominated=node if waits else "",
        priority=draw(st.integers(0, 1)),
        deleting=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def company_stores(draw: st.DrawFn) -> store.Store:
    """A store of some nodes and many pods."""
    built = store.Store()
    patch = delta.Patch()
    for name, zone in zip(clusters.NODE_NAMES, "aabba", strict=True):
        # All of them are there and most are in a zone, or little would be counted.
        patch.set_vertex(nodes.Node(name, labels=(("zone", zone),), allocatable=draw(clusters.usual)))
    for part in (
        draw(st.lists(company_nodes, max_size=3)),
        draw(st.tuples(*(company_pods((name,)) for name in clusters.POD_NAMES))),
        draw(st.lists(clusters.namespaces, max_size=2)),
    ):
        for each in part:
            patch.set_vertex(each)
    built.apply(patch)
    return built


company_newcomers = st.builds(
    pods.Pod,
    st.sampled_from(("default", "default", "team")).map(lambda namespace: keys.pod_key(namespace, "new")),
    uid=st.just("u1"),
    spec=company_specs,
    labels=_app,
    priority=st.integers(0, 1),
)
