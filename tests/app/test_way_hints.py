"""Who was refused for its ways wakes when ways change or a partner leaves, and not when a pod comes."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from graphsched.app import hints, rooms, tidings
from graphsched.base.values import groups, keys, labels, nodes, pods, relations, selections
from graphsched.decision import cycle, names, profile
from graphsched.graph import delta, partners, store
from tests.builders import make_node, make_pod

Event = tidings.Event


def came() -> tidings.News:
    """A pod was bound."""
    news = tidings.News()
    news.pod(None, make_pod("other").node("n1").build())
    return news


def left() -> tidings.News:
    """A pod went."""
    news = tidings.News()
    news.pod(make_pod("other").node("n1").build(), None)
    return news


@pytest.mark.parametrize(
    ("news", "event"),
    [
        pytest.param(tidings.News(ways=True), Event.WAYS, id="a link changed"),
        pytest.param(tidings.News(removed=[make_node("n").build()]), Event.NODE_GONE, id="a node went"),
        pytest.param(tidings.News(added=[(None, make_node("n").build())]), Event.NODE_ADDED, id="a node came"),
        pytest.param(came(), None, id="a pod came"),
        pytest.param(left(), Event.OTHER_GONE, id="a pod went"),
    ],
)
def test_a_pod_refused_for_its_ways_wakes_on(news: tidings.News, event: tidings.Event | None) -> None:
    """Links, places and nodes; pods that come could only limit it further."""
    assert hints.hint([names.GRAPH_PATH], news, make_pod("web").build(), None) is event


def test_a_change_of_ways_is_news_for_nobody_else() -> None:
    """Others do not look at ways."""
    news = tidings.News(ways=True)

    assert news
    assert not news.beyond_company
    assert hints.hint([names.NODE_RESOURCES_FIT], news, make_pod("web").build(), None) is None


# ── which pods ──────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = ("n1", "n2", "n3")
APPS = ("x", "y", "z")


def app(name: str) -> labels.Selector:
    """Pods of this app."""
    return labels.selector((labels.Requirement("app", labels.Operator.IN, (name,)),))


def placed(number: int, kind: str, node: str) -> pods.Pod:
    """A pod that runs."""
    return pods.Pod(keys.pod_key("default", f"p{number}"), uid=f"u{number}", labels=(("app", kind),), node=node)


def waiting(*peers: pods.Peer) -> pods.Pod:
    """The pod that waits, a member of workload `front` of the group."""
    marks = {"app": "w", partners.GROUP_LABEL: "g", partners.WORKLOAD_LABEL: "front"}
    spec = pods.Spec(graph=pods.GraphDemand(peers=peers))
    return pods.Pod(keys.pod_key("default", "waits"), uid="w", labels=labels.from_mapping(marks), spec=spec)


def told(graph: store.Store, patch: delta.Patch) -> tidings.News:
    """What `intake` would tell of a patch, which is applied."""
    news = tidings.News(ways=bool(patch.edges or patch.cut))
    for key in sorted(patch.removed):
        before = graph.vertex(key)
        if isinstance(before, pods.Pod):
            news.pod(before, None)
        elif isinstance(before, nodes.Node):
            news.gone(before)
        elif before is not None:
            news.ways = True
    for key, after in patch.vertices.items():
        before = graph.vertex(key)
        if isinstance(after, pods.Pod):
            news.pod(before if isinstance(before, pods.Pod) else None, after)
        elif isinstance(after, nodes.Node):
            news.node(before if isinstance(before, nodes.Node) else None, after)
        elif before != after:
            news.ways = True
    assert isinstance(graph.apply(patch), delta.Applied)
    return news


def service(kind: str) -> selections.Selection:
    """The Service `s`."""
    return selections.Selection(selections.SERVICE, "default", "s", app(kind))


def group(kind: str) -> groups.Group:
    """The group, whose `front` calls the pods of an app."""
    calls = groups.Dependency("back", latency_ms_max=1.0)
    return groups.Group("default", "g", (groups.Workload("front", None, (calls,)), groups.Workload("back", app(kind))))


def links(start: str, end: str, time: float) -> dict[keys.EdgeID, relations.Link]:
    """Both directions between two nodes."""
    ends = keys.node_key(start), keys.node_key(end)
    kind = keys.EdgeKind.LINK
    return {keys.EdgeID(*ends, kind): relations.Link(time), keys.EdgeID(*ends[::-1], kind): relations.Link(time)}


limits = st.sampled_from((None, 1.0, 3.0))
some_peers = st.lists(
    st.builds(pods.Peer, st.just("default"), selector=st.sampled_from(APPS).map(app), latency_ms_max=limits)
    | st.builds(pods.Peer, st.just("default"), st.just("s"), latency_ms_max=limits),
    max_size=2,
)
some_placed = st.builds(placed, st.integers(0, 3), st.sampled_from(APPS), st.sampled_from(NAMES))
pairs = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1])
some_links = st.builds(lambda pair, time: links(pair[0], pair[1], time), pairs, st.sampled_from((0.5, 2.0, 9.0)))
changes = (
    some_placed.map(lambda pod: delta.Patch(removed={pod.key}))
    | some_placed.map(lambda pod: delta.Patch(vertices={pod.key: pod}))
    | some_links.map(lambda found: delta.Patch(edges=dict(found)))
    | some_links.map(lambda found: delta.Patch(cut=set(found)))
    | st.sampled_from(NAMES).map(lambda name: delta.Patch(removed={keys.node_key(name)}))
    | st.sampled_from(APPS).map(lambda kind: delta.Patch(vertices={service(kind).key: service(kind)}))
    | st.sampled_from(APPS).map(lambda kind: delta.Patch(vertices={group(kind).key: group(kind)}))
    | st.just(delta.Patch(removed={group("x").key}))
)


@hypothesis.given(
    some_peers,
    st.lists(some_placed, max_size=3),
    st.lists(some_links, max_size=2),
    st.none() | st.sampled_from(APPS),
    st.none() | st.sampled_from(APPS),
    st.lists(changes, min_size=1, max_size=3),
)
def test_no_change_that_lets_a_pod_be_placed_leaves_it_asleep(
    peers: list[pods.Peer],
    there: list[pods.Pod],
    known: list[dict[keys.EdgeID, relations.Link]],
    selected: str | None,
    called: str | None,
    story: list[delta.Patch],
) -> None:
    """Whatever happened between the refusal and the question: where the pod would be placed now, it is woken."""
    graph, decider = store.Store(), cycle.Decider()
    first = delta.Patch(vertices={keys.node_key(name): make_node(name).build() for name in NAMES})
    # Two partners at an unknown distance from each other: unless a link joins them, no node is near enough to both.
    for pod in (placed(0, "x", "n1"), placed(1, "x", "n2"), *there):
        first.vertices[pod.key] = pod
    for each in known:
        first.edges.update(each)
    for made in (*([service(selected)] if selected else ()), *([group(called)] if called else ())):
        first.vertices[made.key] = made
    graph.apply(first)
    pod = waiting(pods.Peer("default", selector=app("x"), latency_ms_max=1.0), *peers)
    refused = decider.decide(graph.view(), pod)
    if refused.diagnosis is None:
        return

    news = tidings.News()
    for patch in story:
        news.merge(told(graph, patch))
    event = hints.hint(refused.diagnosis.plugins, news, pod, rooms.Rooms(graph, profile.Profile()))

    if decider.decide(graph.view(), pod).placed:
        assert event is not None


def leaving(pod: pods.Pod, *others: pods.Pod, after: pods.Pod | None = None) -> tidings.Event | None:
    """What it makes of the first of the others going, or changing."""
    graph = store.Store()
    patch = delta.Patch(vertices={keys.node_key(name): make_node(name).build() for name in NAMES})
    for other in others:
        patch.vertices[other.key] = other
    graph.apply(patch)
    gone = delta.Patch(removed={others[0].key}) if after is None else delta.Patch(vertices={after.key: after})
    news = told(graph, gone)
    return hints.hint([names.GRAPH_PATH], news, pod, rooms.Rooms(graph, profile.Profile()))


def test_only_a_partner_that_leaves_wakes() -> None:
    """Others were in nobody's way, nor was a partner to which the way is not limited."""
    limited = waiting(pods.Peer("default", selector=app("x"), latency_ms_max=1.0), pods.Peer("default", "", app("y")))
    x, y, z = placed(0, "x", "n1"), placed(1, "y", "n1"), placed(2, "z", "n1")

    assert leaving(limited, x) is Event.OTHER_GONE
    assert leaving(limited, y) is None
    assert leaving(limited, z) is None
    assert leaving(limited, x, after=placed(0, "z", "n1")) is Event.OTHER_RELABELLED
    assert leaving(limited, z, after=placed(2, "x", "n1")) is None


def test_a_pod_that_goes_from_one_partner_to_another_wakes() -> None:
    """It may be near enough for what the other is to the pod that waits."""
    near = pods.Peer("default", selector=app("x"), latency_ms_max=1.0)
    far = pods.Peer("default", selector=app("y"), latency_ms_max=9.0)

    assert leaving(waiting(near, far), placed(0, "x", "n1"), after=placed(0, "y", "n1")) is Event.OTHER_RELABELLED
