"""What concerns the pod as a whole: gates, nominations, neighbours, what is not supported, the text of a failure."""

from __future__ import annotations

import pytest

from graphsched.base.values import nodes, status
from graphsched.decision import cycle, trace
from graphsched.explain import refusals
from tests.builders import ZONE, NodeBuilder, PodBuilder, make_node, make_pod, need, selecting
from tests.decision import tables
from tests.decision.tables import UAU, Config, Thing, U

POD = make_pod("web")
N1 = make_node("n1")
FULL = (U, "NodeResourcesFit", "Insufficient cpu")
OK: tuple[str, ...] = ()

# ── scheduling gates ───────────────────────────────────────────────────────────────────────────────────────────────

GATES: dict[str, tuple[PodBuilder, str]] = {
    "one gate": (POD.gate("example.com/a"), "waiting for scheduling gates: [example.com/a]"),
    "two gates in their order": (POD.gate("b").gate("a"), "waiting for scheduling gates: [b a]"),
    "a gate on a pod that fits nowhere": (POD.gate("a").cpu("99"), "waiting for scheduling gates: [a]"),
}


@pytest.mark.parametrize("name", GATES)
def test_table_of_gates(name: str) -> None:
    """SchedulingGates holds the pod back before any node is looked at."""
    pod, reason = GATES[name]
    expected = {
        "pod": "default/web",
        "outcome": "gated",
        "gated": {"status": UAU, "plugin": "SchedulingGates", "reasons": [reason]},
    }
    assert expected == tables.result(pod, [N1])


def test_a_pod_without_gates_is_tried() -> None:
    """The list may be there and empty."""
    assert "scheduled" == tables.result(POD.set("spec.schedulingGates", []), [N1])["outcome"]


# ── room nominated to others ───────────────────────────────────────────────────────────────────────────────────────

BOSS = make_pod("boss").cpu("3").priority(5).nominated("n1")
MINE = POD.cpu("2")

NOMINATED: dict[str, tuple[PodBuilder, list[Thing], tuple[str, ...]]] = {
    "a more important pod": (MINE.priority(4), [N1, BOSS], FULL),
    "an equally important pod": (MINE.priority(5), [N1, BOSS], FULL),
    "a less important pod": (MINE.priority(6), [N1, BOSS], OK),
    "both fit": (MINE.cpu("1"), [N1, BOSS], OK),
    "another node": (MINE, [N1, BOSS.nominated("n2")], OK),
    "the pod's own nomination": (MINE.nominated("n1"), [N1], OK),
    "the pod itself, as it waits": (MINE.nominated("n1"), [N1, MINE.cpu("3").nominated("n1")], OK),
    "a nominated pod that has been bound since": (MINE, [N1, BOSS.node("n2")], OK),
    "a nominated pod's host port": (
        POD.host_port(80),
        [N1, make_pod("boss").host_port(80).nominated("n1")],
        (U, "NodePorts", "node(s) didn't have free ports for the requested pod ports"),
    ),
    "a nominated pod's place": (
        POD,
        [N1.pods(1), make_pod("boss").nominated("n1")],
        (U, "NodeResourcesFit", "Too many pods"),
    ),
    # 4000m would do for the pod alone: evicting helps, so U and not UAU.
    "all of the node's room": (POD.cpu("4"), [N1, BOSS], FULL),
    "a nominated pod of another scheduler counts for nothing": (MINE, [N1, BOSS.scheduler("other")], OK),
}


@pytest.mark.parametrize("name", NOMINATED)
def test_table_of_nominations(name: str) -> None:
    """Filters also run with the nominated pods that matter as much counted in."""
    pod, cluster, expected = NOMINATED[name]
    assert expected == tables.ask_lines(pod, cluster)["n1"].refusal
    if not any("other" == thing.manifest()["spec"].get("schedulerName") for thing in cluster[1:]):
        assert expected == tables.ask_engine(pod, cluster)["n1"].refusal


def test_nominated_pods_do_not_count_in_scores() -> None:
    """They only stand in the way: 4,000m with 1,000m wanted is 75, memory 99; 174/2 = 87."""
    seen = tables.ask(POD.cpu("1"), [N1, BOSS])["n1"]
    assert 87 == seen.scores["NodeResourcesFit"]


def test_the_nominated_node_is_taken_if_it_fits() -> None:
    """Although another one scores more; and only if it fits."""
    cluster: list[Thing] = [N1, make_node("n2"), make_pod("old").node("n2").cpu("2")]

    found = tables.result(MINE.nominated("n2"), cluster)
    assert (["n1"], "n2", True) == (found["best"], found["selected"], found["byNomination"])
    found = tables.result(MINE.cpu("3").nominated("n2"), cluster)
    assert ("n1", False) == (found["selected"], "byNomination" in found)


def test_scores_are_normalised_over_the_nodes_that_others_leave() -> None:
    """Without n1, whose room is another's, n2's weight of 10 is the greatest: 200 instead of 20."""
    cluster: list[Thing] = [
        N1.label("fast", "very"),
        make_node("n2").label("fast", "rather"),
        make_node("n3"),
        BOSS.cpu("4"),
    ]
    pod = MINE.prefer_nodes(100, need("fast", "In", "very")).prefer_nodes(10, need("fast", "In", "rather"))

    answer = tables.ask(pod, cluster)

    assert FULL == answer["n1"].refusal
    assert [200, 0] == [answer[name].scores["NodeAffinity"] for name in ("n2", "n3")]


# ── neighbours ─────────────────────────────────────────────────────────────────────────────────────────────────────

CLOSED = (U, "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules")
WEB = POD.label("app", "web")
OWNER = make_pod("shy").node("n1").away_from(ZONE, selecting(app="web"))
A1, A2, B1, C1 = N1.zone("a"), make_node("n2").zone("a"), make_node("n3").zone("b"), make_node("n4")

NEIGHBOURS: dict[str, tuple[PodBuilder, PodBuilder, list[bool]]] = {
    # pod, owner of the term, whether n1 and n2 (zone a), n3 (zone b) and n4 (no zone) are closed
    "its domain is closed": (WEB, OWNER, [True, True, False, False]),
    "a pod it does not select": (POD.label("app", "db"), OWNER, [False, False, False, False]),
    "a pod of another namespace": (
        make_pod("web", "team").label("app", "web"),
        OWNER,
        [False, False, False, False],
    ),
    "a term about that namespace": (
        make_pod("web", "team").label("app", "web"),
        make_pod("shy").node("n1").away_from(ZONE, selecting(app="web"), namespaces=["team"]),
        [True, True, False, False],
    ),
    "a term about all namespaces": (
        make_pod("web", "team").label("app", "web"),
        make_pod("shy").node("n1").away_from(ZONE, selecting(app="web"), namespaceSelector={}),
        [True, True, False, False],
    ),
    "a term without a selector": (WEB, make_pod("shy").node("n1").away_from(ZONE, None), [False] * 4),
    "an empty selector means every pod of the namespace": (
        POD,
        make_pod("shy").node("n1").away_from(ZONE, {}),
        [True, True, False, False],
    ),
    "an owner outside any domain closes none": (WEB, OWNER.node("n4"), [False] * 4),
    "an owner that waits closes none": (WEB, make_pod("shy").away_from(ZONE, selecting(app="web")), [False] * 4),
    "an owner that is being deleted still does": (WEB, OWNER.deleting(), [True, True, False, False]),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_table_of_neighbours(name: str) -> None:
    """Required anti-affinity of pods that run, against the newcomer."""
    pod, owner, closed = NEIGHBOURS[name]
    answer = tables.ask(pod, [A1, A2, B1, C1, owner])
    assert [CLOSED if each else OK for each in closed] == [seen.refusal for seen in answer.values()]


def test_a_namespace_is_selected_by_its_labels() -> None:
    """The term speaks of namespaces with team=blue; the newcomer's becomes one."""
    term = {"namespaceSelector": {"matchLabels": {"team": "blue"}}}
    owner = make_pod("shy").node("n1").away_from(ZONE, selecting(app="web"), **term)
    pod = make_pod("web", "its").label("app", "web")

    def refused(*labels: tuple[str, str]) -> bool:
        found = tables.evaluation(pod, [A1, owner, nodes.Namespace("its", labels)])
        return not found.best

    assert (True, False) == (refused(("team", "blue")), refused(("team", "red")))


# ── what is not supported ──────────────────────────────────────────────────────────────────────────────────────────

UNSUPPORTED: dict[str, tuple[PodBuilder, list[str]]] = {
    "a claim": (POD.claim("data"), ["persistentVolumeClaim data"]),
    "several": (POD.claim("logs").claim("data"), ["persistentVolumeClaim data", "persistentVolumeClaim logs"]),
    "beside company, which is never looked at": (
        POD.claim("data").near(ZONE, selecting(app="web")).spread(ZONE, None),
        ["persistentVolumeClaim data"],
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_table_of_what_is_not_supported(name: str) -> None:
    """It is refused on every node and never ignored."""
    pod, asked = UNSUPPORTED[name]
    expected = (UAU, "GraphUnsupported", *(f"graph-scheduler does not support {what} yet" for what in asked))
    assert [expected] * 2 == [seen.refusal for seen in tables.ask(pod, [A1, B1]).values()]


# ── attempts that fail ─────────────────────────────────────────────────────────────────────────────────────────────

BROKEN = POD.prefer_nodes(5, need("gen", "Gt", "x"))
FAILURE = 'running PreScore plugin "NodeAffinity": a preferred node affinity term can not be parsed'


def test_a_preference_that_can_not_be_parsed_fails_the_attempt() -> None:
    """As in kube-scheduler, where scoring ends with an error: nothing is bound, and nobody is called unschedulable."""
    cluster: list[Thing] = [N1, make_node("n2")]
    found = tables.evaluation(BROKEN, cluster)

    assert found.diagnosis == trace.Diagnosis(
        nodes=2, prefilter=status.Status(status.Code.ERROR, (FAILURE,), "NodeAffinity")
    )
    assert {"pod": "default/web", "outcome": "error", "error": FAILURE} == tables.result(BROKEN, cluster)


HARMLESS: dict[str, tuple[PodBuilder, list[Thing], Config | None]] = {
    "only one node is left, so nothing is scored": (BROKEN, [N1, make_node("n2").pods(0)], None),
    "it has no weight": (POD.prefer_nodes(0, need("gen", "Gt", "x")), [N1, make_node("n2")], None),
    "the nominated node fits": (BROKEN.nominated("n2"), [N1, make_node("n2")], None),
    "the plugin does not score": (
        BROKEN,
        [N1, make_node("n2")],
        tables.plugins(multiPoint={"disabled": [{"name": "NodeAffinity"}]}),
    ),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_table_of_unparsable_preferences_that_nobody_parses(name: str) -> None:
    """kube-scheduler never comes to look at them."""
    pod, cluster, config = HARMLESS[name]
    assert "scheduled" == tables.result(pod, cluster, config)["outcome"]
    assert tables.evaluation(pod, cluster, config).best


# ── the text of a failure ──────────────────────────────────────────────────────────────────────────────────────────


def many(count: int, node: NodeBuilder, prefix: str) -> list[NodeBuilder]:
    """So many nodes like this one."""
    return [node.set("metadata.name", f"{prefix}{number}") for number in range(count)]


TEXTS: dict[str, tuple[PodBuilder, list[Thing], str]] = {
    "no nodes": (POD, [], "no nodes available to schedule pods"),
    "no nodes comes before anything the pod asks for": (POD.claim("data"), [], "no nodes available to schedule pods"),
    "one reason": (POD.cpu("9"), [N1], "0/1 nodes are available: 1 Insufficient cpu."),
    "a node counts under each of its reasons": (
        POD.cpu("9").memory("99Gi"),
        [*many(2, N1, "n")],
        "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
    ),
    "entries are sorted as texts": (
        POD.cpu("9"),
        [*many(10, N1, "n"), *many(2, N1.taint("k"), "t")],
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s).",
    ),
    "nodes that are cut away are counted": (
        POD.require_nodes(fields=(need("metadata.name", "In", "n1"),)).cpu("9"),
        [N1, make_node("n2"), make_node("n3")],
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
    ),
    "the refusal of the whole pod takes the place of the counts": (
        POD.require_nodes(fields=(need("metadata.name", "In", "a"), need("metadata.name", "In", "b"))),
        [N1, make_node("n2")],
        "0/2 nodes are available: pod affinity terms conflict.",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_table_of_texts(name: str) -> None:
    """What users read in the condition and the event."""
    pod, cluster, expected = TEXTS[name]
    assert expected == tables.result(pod, cluster)["message"]
    diagnosis = tables.evaluation(pod, cluster).diagnosis
    assert diagnosis is not None
    assert expected == refusals.text(diagnosis)


def test_a_diagnosis_names_the_plugins_that_must_change() -> None:
    """Also NodeAffinity where it only narrowed the search, and whether evicting pods may help."""
    pod = POD.cpu("2").require_nodes(fields=(need("metadata.name", "In", "n1"),))
    found = tables.evaluation(pod, [N1, make_node("n2"), make_pod("old").node("n1").cpu("3")])

    assert found.diagnosis is not None
    assert (("NodeAffinity", "NodeResourcesFit"), True) == (found.diagnosis.plugins, found.diagnosis.helpful)


# ── the API server's part ──────────────────────────────────────────────────────────────────────────────────────────

LIMITED = POD.limit("cpu", "3")
DEFAULTED: dict[str, tuple[PodBuilder, list[Thing], tuple[str, ...]]] = {
    "a limit without a request is the request": (
        LIMITED,
        [N1.cpu("2")],
        (UAU, "NodeResourcesFit", "Insufficient cpu"),
    ),
    "a request stays beside its limit": (LIMITED.cpu("1"), [N1.cpu("2")], OK),
    # 0.5m is 1m for each: the API keeps no smaller part
    "a fraction of a milli-CPU is rounded up": (
        POD.request("cpu", "500u").container("b", {"cpu": "500u"}),
        [N1.cpu("1m")],
        (UAU, "NodeResourcesFit", "Insufficient cpu"),
    ),
    "a placed pod's limit counts as well": (POD.cpu("2"), [N1, make_pod("old").node("n1").limit("cpu", "3")], FULL),
    "a port on the host's network is a host port": (
        POD.set("spec.hostNetwork", True).set("spec.containers.0.ports", [{"containerPort": 80}]),
        [N1, make_pod("old").node("n1").host_port(80)],
        (U, "NodePorts", "node(s) didn't have free ports for the requested pod ports"),
    ),
    "pods that have ended are gone": (POD.cpu("2"), [N1, make_pod("old").node("n1").cpu("4").phase("Succeeded")], OK),
    "a node that states its capacity only offers that": (
        POD.cpu("3"),
        [N1.set("status", {"capacity": {"cpu": "2", "memory": "1Gi", "pods": "5"}})],
        (UAU, "NodeResourcesFit", "Insufficient cpu"),
    ),
}


@pytest.mark.parametrize("name", DEFAULTED)
def test_table_of_what_the_api_server_fills_in(name: str) -> None:
    """Through `evaluate` on manifests as they were written."""
    pod, cluster, expected = DEFAULTED[name]
    assert expected == tables.ask_lines(pod, cluster, normalized=False)["n1"].refusal


def test_decide_and_evaluate_break_ties_by_name() -> None:
    """The first of the best, whatever the order in which the nodes came."""
    pod = tables.incoming(POD)
    graph = tables.filled([make_node(name) for name in ("c", "a", "d", "b")])
    decision = cycle.Decider().decide(graph.view(), pod)

    assert ("a", ("b", "c"), 4) == (decision.node, decision.runners_up, decision.feasible)
    assert ("a", "b", "c", "d") == cycle.Decider().evaluate(graph.view(), pod).best
