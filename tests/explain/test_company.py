"""Other pods in the way: which term or constraint it is, whose, and what would be enough."""

from __future__ import annotations

import pytest

from graphsched.base.values import labels
from graphsched.decision import cycle
from graphsched.explain import causes, wording
from tests.builders import ZONE, NodeBuilder, PodBuilder, make_node, make_pod, selecting
from tests.explain.worlds import asked, told, world

A1, A2, B1, NOWHERE = make_node("a1").zone("a"), make_node("a2").zone("a"), make_node("b1").zone("b"), make_node("x")
WEB = make_pod("web").label("app", "web")
DB = make_pod("db").label("app", "db")
ON_DB, ON_WEB = selecting(app="db"), selecting(app="web")
OLD = make_pod("old").label("app", "web")
HOST = "kubernetes.io/hostname"
WAKES = (
    "  Wakes on: a node being uncordoned, a pod like it coming or leaving elsewhere "
    "or a node joining an emptier domain."
)

ROWS: dict[str, tuple[PodBuilder, list[NodeBuilder | PodBuilder], list[str], list[str]]] = {
    # pod, cluster, labels of the groups, changes
    "a zone is ahead": (
        WEB.spread(ZONE, ON_WEB),
        [A1, B1.cordoned(), OLD.node("a1")],
        ["cordoned", "in zone a, which would be 2 ahead (maxSkew 1)"],
        ["maxSkew 2 on a1"],
    ),
    "hosts that are ahead are one group": (
        WEB.spread(HOST, ON_WEB),
        [A1, A2, B1.cordoned(), OLD.node("a1"), OLD.set("metadata.name", "older").node("a2")],
        ["a host which would be 2 ahead (maxSkew 1)", "cordoned"],
        ["maxSkew 2 on a1"],
    ),
    "a node is in no domain": (
        WEB.spread(ZONE, ON_WEB),
        [NOWHERE],
        [f"without label {ZONE}, by which it is spread"],
        [f"not spreading by {ZONE} on x"],
    ),
    "nobody to be near": (
        WEB.near(ZONE, ON_DB),
        [A1],
        ["not near app=db pods (same zone)"],
        ["dropping its pod affinity on a1"],
    ),
    "two terms that no pod meets": (
        WEB.near(ZONE, ON_DB).near(HOST, selecting(tier="x")),
        [A1, DB.node("a1")],
        ["not near app=db pods and tier=x pods (same zone)"],
        ["dropping its pod affinity on a1"],
    ),
    "affinity by a label that is missing": (
        WEB.near(ZONE, ON_DB),
        [NOWHERE, DB.node("x")],
        [f"without label {ZONE}, by which its affinity goes"],
        ["dropping its pod affinity on x"],
    ),
    "somebody it avoids": (
        WEB.away_from(ZONE, ON_DB),
        [A1, A2, DB.node("a1")],
        ["in zone a, where app=db pods are that it avoids"],
        ["dropping its pod anti-affinity on a1"],
    ),
    "somebody who avoids it": (
        WEB,
        [A1, A2, DB.away_from(ZONE, ON_WEB).node("a1")],
        ["kept by the anti-affinity of default/db (same zone)"],
        [],
    ),
    "several who avoid it": (
        WEB,
        [
            A1,
            DB.away_from(HOST, ON_WEB).node("a1"),
            make_pod("cat").away_from(HOST, ON_WEB).node("a1"),
        ],
        ["kept by the anti-affinity of default/cat and 1 more (same host)"],
        [],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_company_is_in_the_way_is_named(name: str) -> None:
    """The term, the domain, the owner; and the smallest change of the pod that would do, if there is one."""
    pod, cluster, groups, changes = ROWS[name]
    found = asked(world(*cluster), pod)

    assert groups == [group.label for group in found.groups]
    assert changes == [str(change) for change in found.changes]


def test_the_whole_answer_reads_as_sentences() -> None:
    """Headline, evidence, change and wake-ups of a pod that its spread constraint keeps pending."""
    graph = world(A1, A2, B1.cordoned(), OLD.node("a1"))

    assert [
        "web is pending: no node accepts it (2 in zone a, which would be 2 ahead (maxSkew 1) · 1 cordoned).",
        "  3 nodes: 2 in zone a, which would be 2 ahead (maxSkew 1) · 1 cordoned",
        "  Smallest change: maxSkew 2 on a1.",
        WAKES,
    ] == told(graph, WEB.spread(ZONE, ON_WEB))


@pytest.mark.parametrize(
    ("pod", "cause"),
    [
        (WEB.spread(ZONE, ON_WEB), "every suitable domain is too far ahead (topology spread)"),
        (WEB.near(ZONE, ON_DB), "no suitable node has the right company (pod affinity)"),
    ],
)
def test_the_cause_of_many_is_told_without_names(pod: PodBuilder, cause: str) -> None:
    """A report over many pods must not tell them apart by zone."""
    graph = world(A1, B1.cordoned(), make_node("t").taint("k"), NOWHERE.zone("a"), OLD.node("a1"))
    assert cause == causes.of(graph.view(), pod.build(), cycle.Decider())


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (labels.Requirement("a", labels.Operator.IN, ("x",)), "a=x"),
        (labels.Requirement("a", labels.Operator.IN, ("x", "y")), "a in (x,y)"),
        (labels.Requirement("a", labels.Operator.NOT_IN, ("x",)), "a!=x"),
        (labels.Requirement("a", labels.Operator.NOT_IN, ("x", "y")), "a notin (x,y)"),
        (labels.Requirement("a", labels.Operator.EXISTS), "a"),
        (labels.Requirement("a", labels.Operator.DOES_NOT_EXIST), "!a"),
        (labels.Requirement("a", labels.Operator.GT, ("1",)), "a>1"),
        (labels.Requirement("a", labels.Operator.LT, ("1",)), "a<1"),
    ],
)
def test_a_selector_is_written_as_kubectl_does(requirement: labels.Requirement, text: str) -> None:
    """Every operator."""
    assert text == wording.selector(labels.selector([requirement]))
