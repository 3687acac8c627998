"""Affinity between pods, row by row: who may go where, and what it scores.

The cluster of every row: n1 and n2 in zone a, n3 in zone b, n4 without a zone.
"""

from __future__ import annotations

import pytest

from graphsched.base.values import nodes
from tests.builders import ZONE, PodBuilder, make_namespace, make_node, make_pod, need, selecting
from tests.decision import tables
from tests.decision.tables import UAU, Config, Thing, U

NODES: list[Thing] = [
    make_node("n1").zone("a"),
    make_node("n2").zone("a"),
    make_node("n3").zone("b"),
    make_node("n4"),
]
OK: tuple[str, ...] = ()
LONELY = (UAU, "InterPodAffinity", "node(s) didn't match pod affinity rules")
AVOIDED = (U, "InterPodAffinity", "node(s) didn't match pod anti-affinity rules")
CLOSED = (U, "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules")

POD = make_pod("new")
WEB = POD.label("app", "web")
DB = make_pod("db").label("app", "db")
CACHE = make_pod("cache").label("app", "cache")
TEAM = make_pod("db", "team").label("app", "db")
ON_DB, ON_WEB, ON_CACHE = selecting(app="db"), selecting(app="web"), selecting(app="cache")
HOST = "kubernetes.io/hostname"

FILTERED: dict[str, tuple[PodBuilder, list[Thing], list[tuple[str, ...]]]] = {
    "near a pod means in its zone": (POD.near(ZONE, ON_DB), [DB.node("n1")], [OK, OK, LONELY, LONELY]),
    "near a pod on its very node": (POD.near(HOST, ON_DB), [DB.node("n2")], [LONELY, OK, LONELY, LONELY]),
    "nobody is there to be near": (POD.near(ZONE, ON_DB), [], [LONELY] * 4),
    "the first of its kind may go to any zone": (WEB.near(ZONE, ON_WEB), [], [OK, OK, OK, LONELY]),
    "the second may not": (
        WEB.near(ZONE, ON_WEB),
        [WEB.node("n3").set("metadata.name", "w")],
        [LONELY, LONELY, OK, LONELY],
    ),
    "the first of its kind in its namespace": (
        WEB.near(ZONE, ON_WEB),
        [make_pod("w", "team").label("app", "web").node("n3")],
        [OK, OK, OK, LONELY],
    ),
    "a friend outside every zone leaves it the first": (
        WEB.near(ZONE, ON_WEB),
        [WEB.node("n4").set("metadata.name", "w")],
        [OK, OK, OK, LONELY],
    ),
    "it is not the first where only one of its terms means it": (
        WEB.near(ZONE, ON_WEB).near(HOST, ON_DB),
        [],
        [LONELY] * 4,
    ),
    "all terms must mean the same pod": (
        POD.near(ZONE, ON_DB).near(ZONE, ON_CACHE),
        [DB.node("n1"), CACHE.node("n1")],
        [LONELY] * 4,
    ),
    "one pod that all terms mean": (
        POD.near(ZONE, ON_DB).near(ZONE, selecting(tier="x")),
        [DB.label("tier", "x").node("n1")],
        [OK, OK, LONELY, LONELY],
    ),
    "each term by its own key": (
        POD.near(ZONE, ON_DB).near(HOST, ON_DB),
        [DB.node("n1")],
        [OK, LONELY, LONELY, LONELY],
    ),
    "no selector means nobody": (POD.near(ZONE, None), [DB.node("n1")], [LONELY] * 4),
    "an empty selector means everybody of the namespace": (
        POD.near(ZONE, {}),
        [DB.node("n3")],
        [LONELY, LONELY, OK, LONELY],
    ),
    "a pod of another namespace is nobody": (POD.near(ZONE, ON_DB), [TEAM.node("n1")], [LONELY] * 4),
    "unless that namespace is listed": (
        POD.near(ZONE, ON_DB, namespaces=["team"]),
        [TEAM.node("n1")],
        [OK, OK, LONELY, LONELY],
    ),
    "a list replaces the pod's own namespace": (
        POD.near(ZONE, ON_DB, namespaces=["team"]),
        [DB.node("n1")],
        [LONELY] * 4,
    ),
    "an empty namespace selector means all namespaces": (
        POD.near(ZONE, ON_DB, namespaceSelector={}),
        [TEAM.node("n1")],
        [OK, OK, LONELY, LONELY],
    ),
    "a selector of absence means every namespace": (
        POD.near(ZONE, ON_DB, namespaceSelector={"matchExpressions": [need("team", "NotIn", "blue")]}),
        [TEAM.node("n1")],
        [OK, OK, LONELY, LONELY],
    ),
    "a terminating pod is company": (POD.near(ZONE, ON_DB), [DB.node("n1").deleting()], [OK, OK, LONELY, LONELY]),
    "a waiting pod is none": (POD.near(ZONE, ON_DB), [DB], [LONELY] * 4),
    "a pod on an unknown node is none": (POD.near(ZONE, ON_DB), [DB.node("gone")], [LONELY] * 4),
    "away from a pod means out of its zone": (POD.away_from(ZONE, ON_DB), [DB.node("n1")], [AVOIDED, AVOIDED, OK, OK]),
    "terms to avoid count one by one": (
        POD.away_from(ZONE, ON_DB).away_from(HOST, ON_CACHE),
        [DB.node("n3"), CACHE.node("n1")],
        [AVOIDED, OK, AVOIDED, OK],
    ),
    "nobody to avoid": (POD.away_from(ZONE, ON_DB), [TEAM.node("n1")], [OK] * 4),
    "it does not avoid itself": (WEB.away_from(ZONE, ON_WEB), [], [OK] * 4),
    "affinity is told before what is avoided": (
        POD.near(HOST, ON_DB).away_from(ZONE, ON_DB),
        [DB.node("n1")],
        [AVOIDED, LONELY, LONELY, LONELY],
    ),
    "what is avoided is told before who avoids": (
        WEB.away_from(ZONE, ON_DB),
        [DB.away_from(ZONE, ON_WEB).node("n1")],
        [AVOIDED, AVOIDED, OK, OK],
    ),
    "somebody there avoids it": (WEB, [DB.away_from(HOST, ON_WEB).node("n1")], [CLOSED, OK, OK, OK]),
    "a nominated pod is company for none": (
        POD.near(ZONE, ON_DB),
        [DB.nominated("n1").priority(9)],
        [LONELY] * 4,
    ),
    "a nominated pod is avoided on its node alone": (
        POD.away_from(ZONE, ON_DB),
        [DB.nominated("n1").priority(9)],
        [AVOIDED, OK, OK, OK],
    ),
    "what a nominated pod avoids is not asked for by itself": (
        WEB,
        [DB.away_from(ZONE, ON_WEB).nominated("n1").priority(9)],
        [OK] * 4,
    ),
    "but once something else has the filter run": (
        WEB.away_from(ZONE, ON_CACHE),
        [DB.away_from(ZONE, ON_WEB).nominated("n1").priority(9)],
        [CLOSED, OK, OK, OK],
    ),
}


@pytest.mark.parametrize("name", FILTERED)
def test_table_of_required_terms(name: str) -> None:
    """Where the newcomer may go."""
    pod, others, expected = FILTERED[name]
    assert expected == [seen.refusal for seen in tables.ask_engine(pod, [*NODES, *others]).values()]
    if not any("nominatedNodeName" in str(each.manifest()) for each in others):
        assert expected == [seen.refusal for seen in tables.ask_lines(pod, [*NODES, *others]).values()]


@pytest.mark.parametrize(
    ("colour", "expected"),
    [("blue", [OK, OK, LONELY, LONELY]), ("red", [LONELY] * 4)],
)
def test_a_namespace_is_chosen_by_its_labels(colour: str, expected: list[tuple[str, ...]]) -> None:
    """Of the newcomer's terms as well."""
    pod = POD.near(ZONE, ON_DB, namespaceSelector=selecting(team="blue"))
    space: nodes.Namespace = make_namespace("team", team=colour)
    found = tables.evaluation(pod, [*NODES, TEAM.node("n1"), space])
    lonely = [not verdict.status.ok for verdict in found.verdicts.values()]
    assert [bool(each) for each in expected] == lonely


NO_PREFERENCES = tables.plugin_config("InterPodAffinity", ignorePreferredTermsOfExistingPods=True)
HARD_50 = tables.plugin_config("InterPodAffinity", hardPodAffinityWeight=50)
HARD_OFF = tables.plugin_config("InterPodAffinity", hardPodAffinityWeight=0)

SCORED: dict[str, tuple[PodBuilder, list[Thing], Config | None, list[int] | None]] = {
    # pod, others, configuration, score of n1..n4 times the weight of 2; None where the plugin skips
    "drawn to a pod": (POD.prefer_near(10, ZONE, ON_DB), [DB.node("n1")], None, [200, 200, 0, 0]),
    "pushed away: the rest scores": (POD.prefer_away_from(10, ZONE, ON_DB), [DB.node("n1")], None, [0, 0, 200, 200]),
    "below zero and above": (
        POD.prefer_near(30, ZONE, ON_DB).prefer_away_from(10, ZONE, ON_CACHE),
        [DB.node("n1"), CACHE.node("n3")],
        None,
        [200, 200, 0, 50],
    ),
    "two pods draw twice": (
        POD.prefer_near(10, HOST, ON_DB),
        [DB.node("n1"), DB.node("n1").set("metadata.name", "e"), DB.node("n2").set("metadata.name", "f")],
        None,
        [200, 100, 0, 0],
    ),
    "fractions are cut off": (
        POD.prefer_near(1, HOST, ON_DB).prefer_near(2, HOST, ON_CACHE),
        [
            DB.node("n1"),
            CACHE.node("n2"),
            DB.node("n3").set("metadata.name", "e"),
            CACHE.node("n3").set("metadata.name", "f"),
        ],
        None,
        [66, 132, 200, 0],
    ),
    "terms that cancel out score 0 and do not skip": (
        POD.prefer_near(5, ZONE, ON_DB).prefer_away_from(5, ZONE, ON_DB),
        [DB.node("n1")],
        None,
        [0, 0, 0, 0],
    ),
    "nobody meant: skipped": (POD.prefer_near(5, ZONE, ON_DB), [CACHE.node("n1")], None, None),
    "somebody meant outside every zone: skipped": (POD.prefer_near(5, ZONE, ON_DB), [DB.node("n4")], None, None),
    "drawn by somebody there": (WEB, [DB.prefer_near(5, ZONE, ON_WEB).node("n3")], None, [0, 0, 200, 0]),
    "pushed by somebody there": (WEB, [DB.prefer_away_from(5, ZONE, ON_WEB).node("n3")], None, [200, 200, 0, 200]),
    "a required term draws with weight 1": (
        WEB.prefer_near(2, HOST, ON_CACHE),
        [DB.near(ZONE, ON_WEB).node("n3"), CACHE.node("n1")],
        None,
        [200, 0, 100, 0],
    ),
    "or with the weight of the profile": (
        WEB.prefer_near(100, HOST, ON_CACHE),
        [DB.near(ZONE, ON_WEB).node("n3"), CACHE.node("n1")],
        HARD_50,
        [200, 0, 100, 0],
    ),
    "or not at all": (WEB, [DB.near(ZONE, ON_WEB).node("n3")], HARD_OFF, None),
    "preferences of others ignored": (WEB, [DB.prefer_near(5, ZONE, ON_WEB).node("n3")], NO_PREFERENCES, None),
    "unless the pod has some itself": (
        WEB.prefer_near(5, ZONE, ON_CACHE),
        [DB.prefer_near(5, ZONE, ON_WEB).node("n3")],
        NO_PREFERENCES,
        [0, 0, 200, 0],
    ),
    "an owner of another namespace that means its own": (
        WEB,
        [TEAM.prefer_near(5, ZONE, ON_WEB).node("n3")],
        None,
        None,
    ),
}


@pytest.mark.parametrize("name", SCORED)
def test_table_of_preferences(name: str) -> None:
    """What company is worth."""
    pod, others, config, expected = SCORED[name]
    seen = tables.ask(pod, [*NODES, *others], config)
    found = [each.scores.get("InterPodAffinity") for each in seen.values()]
    assert ([None] * 4 if expected is None else expected) == found
