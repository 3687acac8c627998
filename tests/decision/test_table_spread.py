"""Topology spread, row by row: which node would be too far ahead, and what is scored.

The cluster of every row: n1 and n2 in zone a, n3 in zone b, n4 without a zone.
"""

from __future__ import annotations

import pytest

from tests.builders import ZONE, PodBuilder, make_node, make_pod, need, selecting
from tests.decision import tables
from tests.decision.tables import UAU, Thing, U

NODES: list[Thing] = [
    make_node("n1").zone("a"),
    make_node("n2").zone("a"),
    make_node("n3").zone("b"),
    make_node("n4"),
]
N1, N2, N3, N4 = NODES
OK: tuple[str, ...] = ()
AHEAD = (U, "PodTopologySpread", "node(s) didn't match pod topology spread constraints")
UNLABELLED = (UAU, "PodTopologySpread", f"{AHEAD[2]} (missing required label)")
WEB = make_pod("new").label("app", "web")
ON_WEB = selecting(app="web")
HOST = "kubernetes.io/hostname"
SPREAD = WEB.spread(ZONE, ON_WEB)


def web(name: str, node: str, namespace: str = "default") -> PodBuilder:
    """One like the newcomer that runs."""
    return make_pod(name, namespace).label("app", "web").node(node)


HARD: dict[str, tuple[PodBuilder, list[Thing], list[tuple[str, ...]]]] = {
    "an empty cluster": (SPREAD, NODES, [OK, OK, OK, UNLABELLED]),
    "a zone is one ahead": (SPREAD, [*NODES, web("a", "n1")], [AHEAD, AHEAD, OK, UNLABELLED]),
    "both zones level": (SPREAD, [*NODES, web("a", "n1"), web("b", "n3")], [OK, OK, OK, UNLABELLED]),
    "a skew of 2": (WEB.spread(ZONE, ON_WEB, max_skew=2), [*NODES, web("a", "n1")], [OK, OK, OK, UNLABELLED]),
    "by node": (WEB.spread(HOST, ON_WEB), [*NODES, web("a", "n1")], [AHEAD, OK, OK, OK]),
    "one that does not count itself may join the one ahead": (
        make_pod("new").spread(ZONE, ON_WEB),
        [*NODES, web("a", "n1")],
        [OK, OK, OK, UNLABELLED],
    ),
    "pods of another namespace": (SPREAD, [*NODES, web("a", "n1", "team")], [OK, OK, OK, UNLABELLED]),
    "terminating pods": (SPREAD, [*NODES, web("a", "n1").deleting()], [OK, OK, OK, UNLABELLED]),
    "an empty selector counts nobody but the newcomer": (
        WEB.spread(ZONE, {}),
        [*NODES, web("a", "n1"), web("b", "n1")],
        [OK, OK, OK, UNLABELLED],
    ),
    "no selector counts nobody": (
        WEB.spread(ZONE, None),
        [*NODES, web("a", "n1"), web("b", "n1")],
        [OK, OK, OK, UNLABELLED],
    ),
    "pods outside every domain": (SPREAD, [*NODES, web("a", "n4"), web("b", "n4")], [OK, OK, OK, UNLABELLED]),
    "fewer domains than wanted: the least is 0": (
        WEB.spread(ZONE, ON_WEB, minDomains=3),
        [*NODES, web("a", "n1"), web("b", "n3")],
        [AHEAD, AHEAD, AHEAD, UNLABELLED],
    ),
    "as many domains as wanted": (
        WEB.spread(ZONE, ON_WEB, minDomains=2),
        [*NODES, web("a", "n1"), web("b", "n3")],
        [OK, OK, OK, UNLABELLED],
    ),
    "nodes its affinity excludes do not count": (
        SPREAD.require_nodes(need(ZONE, "In", "a")),
        [*NODES[:3], web("a", "n1")],
        [OK, OK, (UAU, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector")],
    ),
    "unless the constraint ignores it": (
        WEB.spread(ZONE, ON_WEB, nodeAffinityPolicy="Ignore").require_nodes(need(ZONE, "In", "a")),
        [*NODES[:3], web("a", "n1")],
        [AHEAD, AHEAD, (UAU, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector")],
    ),
    "tainted nodes count": (
        SPREAD,
        [N1, N2, make_node("n3").zone("b").taint("k"), web("a", "n1")],
        [AHEAD, AHEAD, (UAU, "TaintToleration", "node(s) had untolerated taint(s)")],
    ),
    "unless the constraint honours taints": (
        WEB.spread(ZONE, ON_WEB, nodeTaintsPolicy="Honor"),
        [N1, N2, make_node("n3").zone("b").taint("k"), web("a", "n1")],
        [OK, OK, (UAU, "TaintToleration", "node(s) had untolerated taint(s)")],
    ),
    "a node without one key counts for no constraint": (
        SPREAD.spread("rack", ON_WEB),
        [make_node("n1").zone("a").label("rack", "r"), make_node("n2").zone("b"), web("a", "n1")],
        [OK, UNLABELLED],
    ),
    "the first constraint that is broken is told": (
        SPREAD.spread("rack", ON_WEB),
        [
            make_node("n1").zone("a").label("rack", "r"),
            make_node("n2").zone("a"),
            make_node("n3").zone("b").label("rack", "s"),
            web("a", "n1"),
        ],
        [AHEAD, AHEAD, OK],
    ),
    "matchLabelKeys tell revisions apart": (
        WEB.label("rev", "2").spread(ZONE, ON_WEB, matchLabelKeys=["rev"]),
        [*NODES, web("a", "n1").label("rev", "1")],
        [OK, OK, OK, UNLABELLED],
    ),
    "of the same revision": (
        WEB.label("rev", "2").spread(ZONE, ON_WEB, matchLabelKeys=["rev"]),
        [*NODES, web("a", "n1").label("rev", "2")],
        [AHEAD, AHEAD, OK, UNLABELLED],
    ),
    "a soft constraint refuses nothing": (WEB.spread(ZONE, ON_WEB, hard=False), [*NODES, web("a", "n1")], [OK] * 4),
}


@pytest.mark.parametrize("name", HARD)
def test_table_of_hard_constraints(name: str) -> None:
    """Where the newcomer may go."""
    pod, cluster, expected = HARD[name]
    assert expected == [seen.refusal for seen in tables.ask(pod, cluster).values()]


def test_a_nominated_pod_counts_on_its_node_alone() -> None:
    """Even where it is terminating or the selector is empty, which those who run do not."""
    boss = make_pod("boss").label("app", "web").priority(9).nominated("n1")
    for pod in (SPREAD, WEB.spread(ZONE, {})):
        seen = tables.ask_engine(pod, [*NODES, boss])
        assert [AHEAD, OK, OK, UNLABELLED] == [each.refusal for each in seen.values()]


def soft(key: str = ZONE, max_skew: int = 1, **more: object) -> PodBuilder:
    """The newcomer with one soft constraint."""
    return WEB.spread(key, ON_WEB, max_skew=max_skew, hard=False, **more)


SOFT: dict[str, tuple[PodBuilder, list[Thing], list[int | None]]] = {
    # score times the weight of 2; a node without the key scores 0
    "nobody there: all are the emptiest": (soft(), NODES, [200, 200, 200, 0]),
    # zones a, b: 1 · ln 4 → 1, 0 → 100 · (1 + 0 - 1) / 1
    "one in zone a": (soft(), [*NODES, web("a", "n1")], [0, 0, 200, 0]),
    # 3 · ln 4 = 4.16 → 4, 1 · ln 4 → 1: 100 · (4 + 1 - s) / 4
    "three against one": (
        soft(),
        [*NODES, web("a", "n1"), web("b", "n1"), web("c", "n2"), web("d", "n3")],
        [50, 50, 200, 0],
    ),
    # a skew of 3 adds 2 to both: 3 and 2
    "a wider skew matters less": (soft(max_skew=3), [*NODES, web("a", "n1")], [132, 132, 200, 0]),
    # four nodes: 1 · ln 6 = 1.79 → 2
    "by node, which counts its own": (soft(HOST), [*NODES, web("a", "n1")], [0, 200, 200, 200]),
    "terminating pods": (soft(), [*NODES, web("a", "n1").deleting()], [200, 200, 200, 0]),
    "pods of another namespace": (soft(), [*NODES, web("a", "n1", "team")], [200, 200, 200, 0]),
    "an empty selector": (WEB.spread(ZONE, {}, hard=False), [*NODES, web("a", "n1")], [200, 200, 200, 0]),
    # a full node of zone a counts with its pods, though it is not scored itself
    "pods on nodes that are not scored": (
        soft(),
        [make_node("n1").zone("a").pods(1), *NODES[1:], web("a", "n1")],
        [None, 0, 200, 0],
    ),
    "pods on nodes that its affinity excludes do not count": (
        soft().require_nodes(need("disk")),
        [
            make_node("n1").zone("a"),
            make_node("n2").zone("a").label("disk", "x"),
            make_node("n3").zone("b").label("disk", "x"),
            web("a", "n1"),
        ],
        [None, 200, 200],
    ),
    "unless the constraint ignores it": (
        soft(nodeAffinityPolicy="Ignore").require_nodes(need("disk")),
        [
            make_node("n1").zone("a"),
            make_node("n2").zone("a").label("disk", "x"),
            make_node("n3").zone("b").label("disk", "x"),
            web("a", "n1"),
        ],
        [None, 0, 200],
    ),
    # zone: 1 · ln 4 = 1.39; node: 1 · ln 5 = 1.61 (three nodes have both keys): n1 3, n2 1, n3 0
    "two constraints add up": (
        soft().spread(HOST, ON_WEB, hard=False),
        [*NODES, web("a", "n1")],
        [0, 132, 200, 0],
    ),
    "a hard constraint scores nothing": (SPREAD, NODES, [None, None, None, None]),
}


@pytest.mark.parametrize("name", SOFT)
def test_table_of_soft_constraints(name: str) -> None:
    """What an emptier domain is worth."""
    pod, cluster, expected = SOFT[name]
    seen = tables.ask(pod, cluster)
    assert expected == [each.scores.get("PodTopologySpread") for each in seen.values()]
