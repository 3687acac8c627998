"""The ways a placement was weighed by are told with their links and the age of what is known of them."""

from __future__ import annotations

import typing

import msgspec
import pytest

from graphsched.base.values import keys, places, policies, relations
from graphsched.decision import context as contexts, cycle, ways as lengths
from graphsched.decision.scoring import nearness
from graphsched.explain import telling, why
from graphsched.graph import delta, store
from tests.builders import make_node, make_pod
from tests.explain.worlds import world

WEB = make_pod("web").set("metadata.annotations", {"graphsched.io/peers": "app=store;maxLatencyMs=1"})


def linked(health: float = 1.0) -> store.Store:
    """Nodes web-1 and storage-3 with a switch between; the store runs on storage-3."""
    graph = world(make_node("web-1"), make_node("storage-3"), make_pod("s").label("app", "store").node("storage-3"))
    leaf = places.Place("slurm/leaf-12")
    patch = delta.Patch(vertices={leaf.key: leaf})
    for start, end, time in (("web-1", leaf.key, 0.2), (leaf.key, "storage-3", 0.4)):
        ends = [keys.VertexKey(end) if "/" in end else keys.node_key(end) for end in (start, end)]
        link = relations.Link(time, health=health, at=1000.0)
        patch.edges[keys.EdgeID(ends[0], ends[1], keys.EdgeKind.LINK)] = link
    graph.apply(patch)
    return graph


def test_the_way_to_a_partner_is_drawn_with_its_links_and_their_age() -> None:
    """From the node it runs on."""
    pod = msgspec.structs.replace(WEB.build(), node="web-1")
    graph = linked()
    graph.apply(delta.Patch(vertices={pod.key: pod}))
    found = why.explain(graph.view(), pod, cycle.Decider(), context=contexts.Context(now=1012.0))

    path = "web-1 ─0.2 ms─ leaf-12 ─0.4 ms─ storage-3"
    told = f"  To app=store in default: {path} (2 hops, 0.6 ms, worst link at health 1, measured 12s ago)"
    assert told in telling.lines(found)


def test_a_pod_beside_its_partner_needs_no_way() -> None:
    """The runner-up has none, which is told to who wants to see everything."""
    found = why.explain(linked().view(), WEB.build(), cycle.Decider())

    assert found.node == "storage-3"
    assert "  To app=store in default: on storage-3 itself" in telling.lines(found)


def test_a_limit_that_refuses_says_what_is_beyond_it() -> None:
    """In the words of the reason, and what would wake the pod."""
    graph = linked(health=0.5)
    graph.apply(delta.Patch(vertices={each.key: each for each in (make_node("storage-3").cordoned().build(),)}))
    text = telling.text(why.explain(graph.view(), WEB.build(), cycle.Decider()))

    assert "1 more than 1 ms from app=store in default" in text
    assert "a link getting better or known" in text


def test_a_pod_that_its_limits_keep_pending_is_told_by_which_way_and_how_old_that_is() -> None:
    """For what is too far the way from the nearest node with its worst link; for what is unknown, that it is."""
    graph = linked(health=0.5)
    patch = delta.Patch().set_vertex(make_node("storage-3").cordoned().build()).set_vertex(make_node("lone").build())
    graph.apply(patch)
    found = why.explain(graph.view(), WEB.build(), cycle.Decider(), context=contexts.Context(now=1012.0))
    beyond, unknown = sorted(found.shortfalls, key=lambda each: not each.known)

    path = "web-1 ─0.2 ms─ leaf-12 ─0.4 ms─ storage-3"
    assert ("app=store in default", "latency", 1.0, 1) == (beyond.title, beyond.metric, beyond.bound, beyond.nodes)
    assert (path, 2, 1.2, 0.5, 12.0) == (
        beyond.way.path,
        beyond.way.hops,
        beyond.way.latency_ms,
        beyond.way.health,
        beyond.way.age_s,
    )
    assert ("lone", "storage-3", "") == (unknown.way.node, unknown.goal, unknown.way.path)
    facts = "2 hops, 1.2 ms, worst link at health 0.5, measured 12s ago"
    head = "  1 node not within 1 ms of app=store in default"
    lines = [*telling.lines(found)]
    assert f"{head}; the nearest is {path} ({facts})." in lines
    assert f"{head}: unknown latency, no way from lone to storage-3 is known." in lines


def test_the_way_that_is_shown_leads_to_the_pod_that_is_too_far() -> None:
    """Of two pods of the partner one is near enough, and is not what is in the way."""
    graph = linked()
    near = make_node("near")
    patch = delta.Patch().set_vertex(near.build()).set_vertex(make_pod("t").label("app", "store").node("near").build())
    for name in ("storage-3", "near"):
        patch.set_vertex(make_node(name).cordoned().build())
    ends = keys.node_key("web-1"), keys.node_key("near")
    patch.set_edge(keys.EdgeID(*ends, keys.EdgeKind.LINK), relations.Link(0.1))
    graph.apply(patch)
    pod = make_pod("web").set("metadata.annotations", {"graphsched.io/peers": "app=store;maxLatencyMs=0.5"})
    (found,) = why.explain(graph.view(), pod.build(), cycle.Decider()).shortfalls

    assert ("storage-3", True) == (found.goal, found.known)


NEAR = "web-1 ─0.2 ms─ leaf-12 ─0.4 ms─ storage-3 (2 hops, 0.6 ms, worst link at health 1, measured 12s ago)"
NO_WAY = "unknown bandwidth, no way from far to node storage-3 is known"


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            {"hops_max": 1},
            f"2 nodes not within 1 hop of node storage-3 (policy p rule near); the nearest is {NEAR}",
        ),
        (
            {"latency_ms_max": 0.5},
            f"1 node not within 0.5 ms of node storage-3 (policy p rule near); the nearest is {NEAR}",
        ),
        (
            {"bandwidth_mbps_min": 10.0},
            "2 nodes without at least 10 Mbps to node storage-3 (policy p rule near): " + NO_WAY,
        ),
    ],
)
def test_a_rule_that_demands_a_way_is_told_with_the_way_that_was_found(limit: dict[str, typing.Any], told: str) -> None:
    """As for limits, with the rule that demands it."""
    graph = linked()
    path = policies.Path(keys.node_key("storage-3"), **limit)
    rule = policies.Rule("p", 0, "near", action=policies.Action.REQUIRE, path=path)
    patch = delta.Patch().set_vertex(make_node("far").build()).set_vertex(make_node("storage-3").cordoned().build())
    patch.set_edge(keys.EdgeID(keys.node_key("far"), keys.node_key("web-1"), keys.EdgeKind.LINK), relations.Link())
    patch.vertices[rule.key] = rule
    graph.apply(patch)
    found = why.explain(graph.view(), make_pod("any").build(), cycle.Decider(), context=contexts.Context(now=1012.0))

    assert told in [str(each) for each in found.shortfalls]


def test_pods_at_more_places_than_are_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a placed pod beside its way, of a pending one beside its limit; and decisions that cut are counted."""
    monkeypatch.setattr(lengths, "ORIGINS_MAX", 1)
    graph = linked()
    patch = delta.Patch().set_vertex(make_node("lone").build())
    for name, node in (("t", "storage-3"), ("u", "lone")):
        patch.set_vertex(make_pod(name).label("app", "store").node(node).build())
    graph.apply(patch)
    cut = "2 of 3 pods were considered, those at the 1 of 2 places with most"
    drawn = make_pod("web").set("metadata.annotations", {"graphsched.io/peers": "app=store"})
    (way, *_) = why.explain(graph.view(), drawn.build(), cycle.Decider()).ways

    assert (f"app=store in default: on storage-3 itself; {cut}", 3, 2, 2) == (
        str(way),
        way.pods,
        way.places,
        way.considered,
    )
    assert graph.routes.statistics.cuts > 0

    (found,) = why.explain(graph.view(), WEB.build(), cycle.Decider()).shortfalls
    told = "3 nodes not within 1 ms of app=store in default: unknown latency"
    assert str(found).startswith(told)
    assert str(found).endswith(cut)


def test_places_that_a_pod_wants_to_be_near_beyond_those_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the annotation."""
    monkeypatch.setattr(nearness, "TARGETS_MAX", 1)
    pod = make_pod("web").set("metadata.annotations", {"graphsched.io/near": "node/web-1, node/storage-3"})
    (way, *_) = why.explain(linked().view(), pod.build(), cycle.Decider()).ways

    assert str(way) == "web-1: on web-1 itself; the first 1 of 2 places were considered"


def test_a_pod_that_is_named_shows_the_way_to_those_who_name_it() -> None:
    """Though it says nothing itself."""
    graph = linked()
    web = msgspec.structs.replace(WEB.build(), node="web-1")
    graph.apply(delta.Patch().set_vertex(web))
    found = why.explain(graph.view(), make_pod("new").label("app", "store").build(), cycle.Decider())

    told = "    from web-1 to pods that name app=store in default: on web-1 itself"
    assert told in telling.lines(found, verbose=True)
