"""Each plugin's refusal is reconsidered on the events of kube-scheduler's table, and on no others."""

from collections.abc import Callable, Sequence

import pytest

from graphsched.app import encounters, hints, tidings
from graphsched.base.values import nodes, pods
from tests import builders

Event = tidings.Event
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
    "PodTopologySpread",
    "GraphDevices",
    "GraphBudget",
    "GraphUnsupported",
    hints.NO_NODES,
    "SomethingNew",
)


def changed(before: builders.NodeBuilder | None, after: builders.NodeBuilder) -> tidings.News:
    """News of one node."""
    news = tidings.News()
    news.node(None if before is None else before.build(), after.build())
    return news


def moved(before: builders.PodBuilder, after: builders.PodBuilder | None, *, assumed: str = "") -> tidings.News:
    """News of one pod."""
    news = tidings.News()
    news.pod(before.build(), None if after is None else after.build(), assumed=assumed)
    return news


class Room:
    """These nodes have room for everybody, others for nobody."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __call__(self, names: Sequence[str], spec: pods.Spec) -> bool:
        """Whether they are the nodes that have room."""
        return bool(self._names) and tuple(names) == self._names

    def granted(self, names: Sequence[str], pod: pods.Pod) -> bool:
        """The same."""
        return self(names, pod.spec)

    def leaving(self, pod: pods.Pod) -> hints.Leaving:
        """Nobody is a partner of anybody."""
        return lambda _before, _after: False


nowhere = Room()


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
    pytest.param("InterPodAffinity", POD, changed(NODE, NODE.zone("a")), Event.NODE_LABELS, id="pod affinity: labels"),
    pytest.param("InterPodAffinity", POD, changed(None, NODE), Event.NODE_ADDED, id="pod affinity: a node"),
    pytest.param("InterPodAffinity", POD, changed(NODE, NODE.cpu("9")), None, id="pod affinity: allocatable"),
    pytest.param("InterPodAffinity", POD, GONE, None, id="pod affinity: somebody else left"),
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
    plugin: str, pod: builders.PodBuilder, news: tidings.News, event: tidings.Event | None
) -> None:
    """One row of the table."""
    built = pod.build()
    if plugin == "NodeName":
        built = _asking_for(built)

    assert event == hints.hint((plugin,), news, built, None)


def _asking_for(pod: pods.Pod) -> pods.Pod:
    """A pending pod that names its node, which the API server makes a bound one."""
    return pods.Pod(pod.key, spec=pods.Spec(node_name=pod.node))


# ── company ────────────────────────────────────────────────────────────────────────────────────────────────────────

ZONE = builders.ZONE
WEB = POD.label("app", "web")
DB = builders.make_pod("db").label("app", "db")
ON_DB, ON_WEB = builders.selecting(app="db"), builders.selecting(app="web")
NEAR, AWAY, SPREAD = WEB.near(ZONE, ON_DB), WEB.away_from(ZONE, ON_DB), WEB.spread(ZONE, ON_WEB)
OLD_WEB = builders.make_pod("old").label("app", "web")
IN_ZONE = NODE.zone("a")

COMPANY = [
    ("the friend came", NEAR, moved(DB, DB.node("n1")), Event.OTHER_ADDED),
    ("the friend is not placed", NEAR, moved(DB, DB.label("x", "y")), None),
    ("a friend of two terms, of which it meets one", NEAR.near(ZONE, ON_WEB), moved(DB, DB.node("n1")), None),
    ("somebody else came", NEAR, moved(OLD_WEB, OLD_WEB.node("n1")), None),
    (
        "a friend in a namespace that is chosen by label",
        WEB.near(ZONE, ON_DB, namespaceSelector={"matchLabels": {"a": "b"}}),
        moved(builders.make_pod("db", "team"), builders.make_pod("db", "team").label("app", "db").node("n1")),
        Event.OTHER_ADDED,
    ),
    (
        "a friend in another namespace",
        NEAR,
        moved(builders.make_pod("db", "team"), builders.make_pod("db", "team").label("app", "db").node("n1")),
        None,
    ),
    (
        "somebody became a friend",
        NEAR,
        moved(OLD_WEB.node("n1"), OLD_WEB.label("app", "db").node("n1")),
        Event.OTHER_RELABELLED,
    ),
    ("another label of a friend", NEAR, moved(DB.node("n1"), DB.label("x", "y").node("n1")), None),
    ("the foe left", AWAY, moved(DB.node("n1"), None), Event.OTHER_GONE),
    ("the foe was replaced", AWAY, moved(DB.node("n1"), DB.uid("other")), Event.OTHER_GONE),
    ("the foe is a foe no more", AWAY, moved(DB.node("n1"), DB.label("app", "x").node("n1")), Event.OTHER_RELABELLED),
    ("somebody became a foe", AWAY, moved(OLD_WEB.node("n1"), DB.set("metadata.name", "old").node("n1")), None),
    ("somebody else left", AWAY, moved(OLD_WEB.node("n1"), None), None),
    ("who kept it away left", WEB, moved(DB.away_from(ZONE, ON_WEB).node("n1"), None), Event.OTHER_GONE),
    ("who keeps others away left", WEB, moved(DB.away_from(ZONE, ON_DB).node("n1"), None), None),
    ("the last of its own kind left", WEB.near(ZONE, ON_WEB), moved(OLD_WEB.node("n1"), None), Event.OTHER_GONE),
]


@pytest.mark.parametrize(("name", "pod", "news", "event"), COMPANY, ids=[row[0] for row in COMPANY])
def test_company_is_reconsidered_on(
    name: str, pod: builders.PodBuilder, news: tidings.News, event: tidings.Event | None
) -> None:
    """A pod that comes, goes or changes its labels wakes those whose terms, or whose keeper's terms, it flips."""
    assert event == hints.hint(("InterPodAffinity",), news, pod.build(), None), name


SPREADING = [
    ("one that counts came", SPREAD, moved(OLD_WEB, OLD_WEB.node("n1")), Event.OTHER_ADDED),
    ("one that counts left", SPREAD, moved(OLD_WEB.node("n1"), None), Event.OTHER_GONE),
    ("one that counts ends", SPREAD, moved(OLD_WEB.node("n1"), OLD_WEB.node("n1").deleting()), Event.OTHER_GONE),
    ("somebody else left", SPREAD, moved(DB.node("n1"), None), None),
    (
        "one of another namespace left",
        SPREAD,
        moved(builders.make_pod("old", "team").label("app", "web").node("n1"), None),
        None,
    ),
    (
        "one counts no more",
        SPREAD,
        moved(OLD_WEB.node("n1"), OLD_WEB.label("app", "x").node("n1")),
        Event.OTHER_RELABELLED,
    ),
    (
        "one counts from now on",
        SPREAD,
        moved(OLD_WEB.label("app", "x").node("n1"), OLD_WEB.node("n1")),
        Event.OTHER_RELABELLED,
    ),
    ("another label", SPREAD, moved(OLD_WEB.node("n1"), OLD_WEB.label("x", "y").node("n1")), None),
    ("a node with the key", SPREAD, changed(None, IN_ZONE), Event.NODE_ADDED),
    ("a node without the key", SPREAD, changed(None, NODE), None),
    ("a node lost the key", SPREAD, changed(IN_ZONE, NODE), Event.NODE_LABELS),
    ("a node moved", SPREAD, changed(IN_ZONE, NODE.zone("b")), Event.NODE_LABELS),
    ("another label of a node", SPREAD, changed(IN_ZONE, IN_ZONE.label("x", "y")), None),
    (
        "a node its affinity now admits",
        SPREAD.node_selector("x", "y"),
        changed(IN_ZONE, IN_ZONE.label("x", "y")),
        Event.NODE_LABELS,
    ),
    ("a taint lifted", SPREAD, changed(IN_ZONE.taint("t"), IN_ZONE), Event.NODE_TAINTS),
    ("a taint lifted elsewhere", SPREAD, changed(NODE.taint("t"), NODE), None),
    ("a resource grew", SPREAD, changed(IN_ZONE, IN_ZONE.cpu("9")), None),
]


@pytest.mark.parametrize(("name", "pod", "news", "event"), SPREADING, ids=[row[0] for row in SPREADING])
def test_spreading_is_reconsidered_on(
    name: str, pod: builders.PodBuilder, news: tidings.News, event: tidings.Event | None
) -> None:
    """What may change a count, the least of them, or who is counted at all."""
    assert event == hints.hint(("PodTopologySpread",), news, pod.build(), None), name


@pytest.mark.parametrize(("node", "event"), [(IN_ZONE, Event.NODE_GONE), (NODE, None)], ids=["in a domain", "in none"])
def test_a_node_that_goes_may_take_the_emptiest_domain_with_it(
    node: builders.NodeBuilder, event: tidings.Event | None
) -> None:
    """Then others are no longer too far ahead."""
    news = tidings.News()
    news.gone(node.build())

    assert news
    assert event == hints.hint(("PodTopologySpread",), news, SPREAD.build(), None)
    assert hints.hint(("NodeResourcesFit",), news, SPREAD.build(), None) is None


def test_an_arrival_is_told_once_however_it_came() -> None:
    """Bound from nothing, after our own decision, under another UID: it came; bound before: it did not."""
    bound = OLD_WEB.node("n1")
    for news in (moved(OLD_WEB, bound), moved(OLD_WEB, bound, assumed="n1"), moved(bound.uid("x"), bound)):
        assert [("default", (("app", "web"),))] == list(news.company.arrived)
    fresh = tidings.News()
    fresh.pod(None, bound.build())
    assert fresh.company.arrived
    assert not moved(bound, bound.label("x", "y")).company.arrived


def test_more_encounters_than_are_looked_at_are_a_yes() -> None:
    """And the notes stay bounded."""
    news, more = tidings.News(), tidings.News()
    for number in range(2 * encounters.KINDS_MAX):
        more.pod(DB.label("n", str(number)).node("n1").build(), None)
    news.merge(more)

    assert encounters.KINDS_MAX + 1 == len(news.company.departed)
    for plugin, pod in (("InterPodAffinity", WEB), ("PodTopologySpread", SPREAD)):
        assert Event.OTHER_GONE == hints.hint((plugin,), news, pod.build(), None)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_nothing_new_wakes_nobody(plugin: str) -> None:
    """Status updates and cordons change no list of the news."""
    news = changed(NODE, NODE)
    news.node(NODE.build(), builders.make_node("n1").cordoned().set("spec.taints", []).build())
    news.pod(builders.make_pod("a").build(), builders.make_pod("a").build())

    assert not news
    assert hints.hint((plugin,), news, POD.build(), None) is None


def test_a_departure_wakes_only_whom_it_makes_room_for() -> None:
    """With the graph at hand, a pod too big for what was freed stays asleep; others wake as ever."""
    pod = POD.host_port(80).build()

    assert hints.hint(("NodeResourcesFit",), GONE, pod, nowhere) is None
    assert Event.OTHER_GONE == hints.hint(("NodePorts",), GONE, pod, nowhere)
    assert Event.OTHER_GONE == hints.hint(("NodeResourcesFit",), GONE, pod, Room("n1"))


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
        ("PodTopologySpread", lambda pod: pod.label("a", "b"), Event.POD_RELABELLED),
        ("PodTopologySpread", lambda pod: pod.tolerate("t"), Event.POD_TOLERATES),
        ("PodTopologySpread", lambda pod: pod.cpu("1"), None),
        ("SomethingNew", lambda pod: pod.tolerate("t"), Event.POD_TOLERATES),
        ("SomethingNew", lambda pod: pod, None),
    ],
)
def test_its_own_update_wakes_a_pod(
    plugin: str, change: Callable[[builders.PodBuilder], builders.PodBuilder], event: tidings.Event | None
) -> None:
    """A smaller request, a new toleration, a new label count for the plugins that read them."""
    assert event == hints.own_hint((plugin,), POD.build(), change(POD).build())


def test_news_stay_bounded() -> None:
    """However long nobody asks, no list gets longer than its bound, and past it every doubt is a yes."""
    news, more = tidings.News(), tidings.News()
    small = nodes.Node("small")
    for number in range(tidings.PAIRS_MAX):
        more.node(None, nodes.Node(f"n{number}"))
    for _ in range(5):
        news.merge(more)
    news.node(None, small)

    assert tidings.PAIRS_MAX + 1 == len(news.added[: tidings.PAIRS_MAX + 1])
    assert Event.NODE_ADDED == hints.hint(("NodeResourcesFit",), news, POD.build(), None)
