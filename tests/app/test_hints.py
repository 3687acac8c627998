"""Each plugin's refusal is reconsidered on the events of kube-scheduler's table, and on no others."""

from collections.abc import Callable, Sequence

import pytest

from graphsched.app import hints
from graphsched.base.values import nodes, pods
from tests import builders

Event = hints.Event
NODE = builders.make_node("n1")
POD = builders.make_pod("web").cpu("2")
PLUGINS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeDeclaredFeatures",
    "InterPodAffinity",
    "GraphDevices",
    "GraphUnsupported",
    hints.NO_NODES,
    "SomethingNew",
)


def changed(before: builders.NodeBuilder | None, after: builders.NodeBuilder) -> hints.News:
    """News of one node."""
    news = hints.News()
    news.node(None if before is None else before.build(), after.build())
    return news


def moved(before: builders.PodBuilder, after: builders.PodBuilder | None, *, assumed: str = "") -> hints.News:
    """News of one pod."""
    news = hints.News()
    news.pod(before.build(), None if after is None else after.build(), assumed=assumed)
    return news


def nowhere(_nodes: Sequence[str], _spec: pods.Spec) -> bool:
    """No node has room."""
    return False


GONE = moved(builders.make_pod("old").node("n1").host_port(80), None)

TABLE = [
    pytest.param("NodeResourcesFit", POD, changed(None, NODE), Event.NODE_ADDED, id="fit: a node it fits on, empty"),
    pytest.param("NodeResourcesFit", POD, changed(None, NODE.cpu("1")), None, id="fit: a node too small even empty"),
    pytest.param("NodeResourcesFit", POD, changed(None, NODE.pods(0)), None, id="fit: a node for no pods"),
    pytest.param(
        "NodeResourcesFit", POD, changed(NODE.cpu("3"), NODE), Event.NODE_ALLOCATABLE, id="fit: a resource grew"
    ),
    pytest.param("NodeResourcesFit", POD, changed(NODE, NODE.cpu("3")), None, id="fit: it shrank"),
    pytest.param("NodeResourcesFit", POD, changed(NODE, NODE.memory("64Gi")), None, id="fit: another resource grew"),
    pytest.param(
        "NodeResourcesFit", POD, changed(NODE, NODE.pods(120)), Event.NODE_ALLOCATABLE, id="fit: more pods allowed"
    ),
    pytest.param("NodeResourcesFit", POD, changed(NODE, NODE.label("a", "b")), None, id="fit: a label"),
    pytest.param("NodeResourcesFit", POD, changed(NODE.taint("t"), NODE), Event.NODE_TAINTS, id="fit: a taint lifted"),
    pytest.param("NodeResourcesFit", POD, GONE, Event.OTHER_GONE, id="fit: a pod left"),
    pytest.param(
        "NodeResourcesFit",
        POD,
        moved(builders.make_pod("old").nominated("n1"), None),
        Event.OTHER_GONE,
        id="fit: a nominated pod left",
    ),
    pytest.param("NodeResourcesFit", POD, moved(builders.make_pod("old"), None), None, id="fit: a waiting pod left"),
    pytest.param(
        "NodeResourcesFit",
        POD,
        moved(builders.make_pod("old").node("n1").cpu("2"), builders.make_pod("old").node("n1").cpu("1")),
        Event.OTHER_SCALED_DOWN,
        id="fit: another pod holds less of it",
    ),
    pytest.param(
        "NodeResourcesFit",
        POD,
        moved(builders.make_pod("old").node("n1").memory("2Gi"), builders.make_pod("old").node("n1").memory("1Gi")),
        None,
        id="fit: another pod holds less of something else",
    ),
    pytest.param("NodeAffinity", POD.node_selector("a", "b"), changed(None, NODE), None, id="affinity: no match"),
    pytest.param(
        "NodeAffinity",
        POD.node_selector("a", "b"),
        changed(None, NODE.label("a", "b")),
        Event.NODE_ADDED,
        id="affinity: a matching node",
    ),
    pytest.param(
        "NodeAffinity",
        POD.require_nodes(builders.need("a", "In", "b")),
        changed(NODE, NODE.label("a", "b")),
        Event.NODE_LABELS,
        id="affinity: a node came to match",
    ),
    pytest.param(
        "NodeAffinity",
        POD.node_selector("a", "b"),
        changed(NODE.label("a", "b"), NODE.label("a", "b").label("c", "d")),
        None,
        id="affinity: a node matched before",
    ),
    pytest.param(
        "NodeAffinity", POD.node_selector("a", "b"), changed(NODE.taint("t"), NODE), Event.NODE_TAINTS, id="affinity"
    ),
    pytest.param("NodeAffinity", POD.node_selector("a", "b"), GONE, None, id="affinity: a pod left"),
    pytest.param("TaintToleration", POD, changed(None, NODE), Event.NODE_ADDED, id="taints: a clean node"),
    pytest.param("TaintToleration", POD, changed(None, NODE.taint("t")), None, id="taints: a tainted node"),
    pytest.param(
        "TaintToleration", POD.tolerate("t"), changed(None, NODE.taint("t")), Event.NODE_ADDED, id="taints: tolerated"
    ),
    pytest.param(
        "TaintToleration",
        POD,
        changed(None, NODE.taint("t", effect="PreferNoSchedule")),
        Event.NODE_ADDED,
        id="taints: only a preference",
    ),
    pytest.param("TaintToleration", POD, changed(NODE.taint("t"), NODE), Event.NODE_TAINTS, id="taints: lifted"),
    pytest.param(
        "TaintToleration", POD, changed(NODE.taint("t"), NODE.taint("u")), None, id="taints: replaced by another"
    ),
    pytest.param("TaintToleration", POD, changed(NODE, NODE.cpu("9")), None, id="taints: allocatable"),
    pytest.param("TaintToleration", POD, GONE, None, id="taints: a pod left"),
    pytest.param("NodeUnschedulable", POD, changed(NODE.cordoned(), NODE), Event.NODE_TAINTS, id="cordon: lifted"),
    pytest.param("NodeUnschedulable", POD, changed(NODE, NODE.cordoned()), None, id="cordon: set"),
    pytest.param("NodeUnschedulable", POD, changed(None, NODE.cordoned()), None, id="cordon: a cordoned node"),
    pytest.param("NodeUnschedulable", POD, changed(None, NODE), Event.NODE_ADDED, id="cordon: a node"),
    pytest.param(
        "NodeUnschedulable",
        POD.tolerate("node.kubernetes.io/unschedulable"),
        changed(None, NODE.cordoned()),
        Event.NODE_ADDED,
        id="cordon: tolerated",
    ),
    pytest.param("NodeName", POD.node("n1"), changed(None, NODE), Event.NODE_ADDED, id="name: this node"),
    pytest.param("NodeName", POD.node("n2"), changed(None, NODE), None, id="name: another node"),
    pytest.param("NodePorts", POD.host_port(80), changed(None, NODE), Event.NODE_ADDED, id="ports: a node"),
    pytest.param("NodePorts", POD.host_port(80), GONE, Event.OTHER_GONE, id="ports: the port is free"),
    pytest.param("NodePorts", POD.host_port(81), GONE, None, id="ports: another port is free"),
    pytest.param("NodePorts", POD.host_port(80), changed(NODE, NODE.cpu("9")), None, id="ports: allocatable"),
    pytest.param("NodeDeclaredFeatures", POD, changed(NODE, NODE.feature("f")), Event.NODE_FEATURES, id="features"),
    pytest.param(
        "InterPodAffinity",
        POD,
        moved(builders.make_pod("old").node("n1").away_from("zone", builders.selecting(a="b")), None),
        Event.OTHER_GONE,
        id="pod affinity: who kept it away left",
    ),
    pytest.param("InterPodAffinity", POD, GONE, None, id="pod affinity: somebody else left"),
    pytest.param("InterPodAffinity", POD, changed(NODE, NODE.zone("a")), Event.NODE_LABELS, id="pod affinity: labels"),
    pytest.param("GraphDevices", POD.gpu(2), changed(None, NODE.gpus(1)), None, id="devices: too few"),
    pytest.param("GraphDevices", POD.gpu(2), changed(None, NODE.gpus(2)), Event.NODE_ADDED, id="devices: a node"),
    pytest.param(
        "GraphDevices", POD.gpu(2), changed(NODE.gpus(1), NODE.gpus(2)), Event.NODE_ALLOCATABLE, id="devices: one more"
    ),
    pytest.param("GraphDevices", POD.gpu(1, 500, "V100"), changed(None, NODE.gpus(1, "T4")), None, id="devices: model"),
    pytest.param("GraphDevices", POD.gpu(1), GONE, Event.OTHER_GONE, id="devices: a pod left"),
    pytest.param("GraphUnsupported", POD, changed(None, NODE), None, id="not supported whatever comes"),
    pytest.param("GraphUnsupported", POD, GONE, None, id="not supported whatever goes"),
    pytest.param(hints.NO_NODES, POD, changed(None, NODE), Event.NODE_ADDED, id="no nodes: the first one"),
    pytest.param(hints.NO_NODES, POD, GONE, None, id="no nodes: a pod left"),
    pytest.param("SomethingNew", POD, GONE, Event.OTHER_GONE, id="unknown plugin: a pod left"),
    pytest.param("SomethingNew", POD, changed(NODE, NODE.label("a", "b")), Event.NODE_LABELS, id="unknown: labels"),
]


@pytest.mark.parametrize(("plugin", "pod", "news", "event"), TABLE)
def test_a_refusal_is_reconsidered_on(
    plugin: str, pod: builders.PodBuilder, news: hints.News, event: hints.Event | None
) -> None:
    """One row of the table."""
    built = pod.build()
    if plugin == "NodeName":
        built = _asking_for(built)

    assert event == hints.hint((plugin,), news, built, None)


def _asking_for(pod: pods.Pod) -> pods.Pod:
    """A pending pod that names its node, which the API server makes a bound one."""
    return pods.Pod(pod.key, spec=pods.Spec(node_name=pod.node))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_nothing_new_wakes_nobody(plugin: str) -> None:
    """Status updates and cordons change no list of the news."""
    news = changed(NODE, NODE)
    news.node(NODE.build(), builders.make_node("n1").cordoned().set("spec.taints", []).build())
    news.pod(builders.make_pod("a").build(), builders.make_pod("a").build())
    news.pod(None, builders.make_pod("a").node("n1").build())

    assert not news
    assert hints.hint((plugin,), news, POD.build(), None) is None


def test_a_departure_wakes_only_whom_it_makes_room_for() -> None:
    """With the graph at hand, a pod too big for what was freed stays asleep; others wake as ever."""
    pod = POD.host_port(80).build()

    assert hints.hint(("NodeResourcesFit",), GONE, pod, nowhere) is None
    assert Event.OTHER_GONE == hints.hint(("NodePorts",), GONE, pod, nowhere)
    assert Event.OTHER_GONE == hints.hint(("NodeResourcesFit",), GONE, pod, lambda names, _: names == ("n1",))


@pytest.mark.parametrize(
    ("before", "after", "assumed", "freed"),
    [
        pytest.param(POD.node("n1"), None, "", ["n1"], id="a bound pod is gone"),
        pytest.param(POD, None, "n2", ["n2"], id="an assumed pod is gone"),
        pytest.param(POD, POD.node("n2"), "n2", [], id="an assumed pod is bound there"),
        pytest.param(POD, POD.node("n3"), "n2", ["n2"], id="an assumed pod is bound elsewhere"),
        pytest.param(POD, POD.node("n3"), "", [], id="a waiting pod is bound"),
        pytest.param(POD.node("n1"), POD.uid("other"), "", ["n1"], id="replaced under its name"),
        pytest.param(POD.nominated("n1"), POD, "", ["n1"], id="it lost its nomination"),
        pytest.param(POD.nominated("n1"), POD.node("n1"), "", [], id="it got the node it was nominated to"),
    ],
)
def test_a_pod_frees_the_node_it_counted_on(
    before: builders.PodBuilder, after: builders.PodBuilder | None, assumed: str, freed: list[str]
) -> None:
    """Bound, assumed and nominated pods count; only leaving frees."""
    assert freed == list(moved(before, after, assumed=assumed).freed)


@pytest.mark.parametrize(
    ("plugin", "change", "event"),
    [
        ("NodeResourcesFit", lambda pod: pod.cpu("1"), Event.POD_SCALED_DOWN),
        ("NodeResourcesFit", lambda pod: pod.cpu("3"), None),
        ("NodeResourcesFit", lambda pod: pod.label("a", "b"), None),
        ("TaintToleration", lambda pod: pod.tolerate("t"), Event.POD_TOLERATES),
        ("NodeUnschedulable", lambda pod: pod.tolerate("t"), Event.POD_TOLERATES),
        ("NodeAffinity", lambda pod: pod.tolerate("t"), None),
        ("InterPodAffinity", lambda pod: pod.label("a", "b"), Event.POD_RELABELLED),
        ("SomethingNew", lambda pod: pod.tolerate("t"), Event.POD_TOLERATES),
        ("SomethingNew", lambda pod: pod, None),
    ],
)
def test_its_own_update_wakes_a_pod(
    plugin: str, change: Callable[[builders.PodBuilder], builders.PodBuilder], event: hints.Event | None
) -> None:
    """A smaller request, a new toleration, a new label count for the plugins that read them."""
    assert event == hints.own_hint((plugin,), POD.build(), change(POD).build())


def test_news_stay_bounded() -> None:
    """However long nobody asks, no list gets longer than its bound, and past it every doubt is a yes."""
    news, more = hints.News(), hints.News()
    small = nodes.Node("small")
    for number in range(hints.PAIRS_MAX):
        more.node(None, nodes.Node(f"n{number}"))
    for _ in range(5):
        news.merge(more)
    news.node(None, small)

    assert hints.PAIRS_MAX + 1 == len(news.added[: hints.PAIRS_MAX + 1])
    assert Event.NODE_ADDED == hints.hint(("NodeResourcesFit",), news, POD.build(), None)
