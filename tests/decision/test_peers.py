"""To exchange data has no direction: who is named is drawn to who names it, and what is said twice counts once."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from graphsched.base.values import groups, keys, labels, nodes, pods, relations, selections
from graphsched.decision import cycle, names, profile
from graphsched.graph import callers, delta, partners, store
from tests import builders
from tests.decision import test_ways as ways

WEIGHT = profile.GRAPH_WEIGHTS[names.GRAPH_PEERS]
CACHE = labels.selector((labels.Requirement("app", labels.Operator.IN, ("cache",)),))
SERVICE = selections.Selection(selections.SERVICE, "default", "cache", CACHE)


def linked(*builds: builders.PodBuilder) -> store.Store:
    """Two zones with a link between, and what runs there."""
    graph = ways.world(*builds)
    graph.apply(ways.link(ways.zone("a"), ways.zone("b"), relations.Link(4.0)))
    return graph


def cache(name: str = "c") -> builders.PodBuilder:
    """A pod of the Service `cache` that says nothing of peers."""
    return builders.make_pod(name).label("app", "cache")


def test_a_pod_that_others_name_is_drawn_to_them() -> None:
    """As near as they would be to it, though it says nothing itself."""
    graph = linked(ways.noted("web", peers="app=cache").node("b2"))

    assert ways.scored(graph, cache().build(), names.GRAPH_PEERS) == {
        "a1": 0,
        "a2": 0,
        "b1": 50 * WEIGHT,
        "b2": 100 * WEIGHT,
    }
    assert cycle.Decider().decide(graph.view(), cache().build()).node == "b2"


def test_a_service_that_others_name_is_found_when_it_comes_and_lost_when_it_goes() -> None:
    """Who is meant follows from what the Service selects now."""
    graph = linked(ways.noted("web", peers="cache").node("b2"))
    assert ways.scored(graph, cache().build(), names.GRAPH_PEERS) == {}

    graph.apply(delta.Patch(vertices={SERVICE.key: SERVICE}))
    assert ways.scored(graph, cache().build(), names.GRAPH_PEERS)["b2"] == 100 * WEIGHT

    graph.apply(delta.Patch(removed={SERVICE.key}))
    assert ways.scored(graph, cache().build(), names.GRAPH_PEERS) == {}


def test_whoever_nobody_names_is_not_drawn() -> None:
    """Another label, another namespace, or a caller that runs nowhere: totals are those of before."""
    for other in (
        builders.make_pod("other").label("app", "db"),
        builders.make_pod("other", "elsewhere").label("app", "cache"),
    ):
        graph = linked(ways.noted("web", peers="app=cache").node("b2"))
        assert ways.scored(graph, other.build(), names.GRAPH_PEERS) == {}

    graph = linked(ways.noted("web", peers="app=cache"))
    assert not graph.view().callers
    assert ways.scored(graph, cache().build(), names.GRAPH_PEERS) == {}


def test_what_others_demand_of_the_way_refuses_nobody_who_did_not_ask() -> None:
    """A limit binds who states it: the pod that is named is drawn, and may still run anywhere."""
    graph = linked(ways.noted("web", peers="app=cache;maxLatencyMs=1", max_latency_ms="1").node("b2"))

    assert ways.refused(graph, cache().build()) == {}
    assert cycle.Decider().decide(graph.view(), cache().build()).node == "b2"


def test_where_both_say_it_the_greater_rate_counts_and_counts_once() -> None:
    """A partner in the other zone at rate 3 is outweighed by 2 + 2 from both sides only if those were added up."""
    others = builders.make_pod("db").label("app", "db").node("a1")
    web = ways.noted("web", peers="app=cache;rate=2").label("app", "web").node("b2")
    graph = linked(others, web)
    pod = ways.noted("c", peers="app=web;rate=2,app=db;rate=3").label("app", "cache").build()
    view = graph.view()
    drawing = partners.drawing(view.groups, view.callers, view.selections, pod.spec, pod.namespace, pod.labels)

    assert [2.0, 3.0] == [each.rate for each in drawing if view.crowd.counts(each.matcher).any()]
    assert cycle.Decider().decide(view, pod).node == "a1"
    assert graph.audit() == []

    graph.apply(delta.Patch(vertices={web.build().key: ways.noted("web", peers="app=cache;rate=9").node("b2").build()}))
    assert cycle.Decider().decide(graph.view(), pod).node == "b2"


def test_a_group_whose_workloads_call_each_other_counts_their_call_once() -> None:
    """By the greater of both rates; and an annotation that says the same adds nothing."""
    calls = (groups.Dependency("db", 2.0), groups.Dependency("web", 5.0))
    shop = groups.Group(
        "default", "shop", (groups.Workload("web", None, calls[:1]), groups.Workload("db", None, calls[1:]))
    )
    graph = linked(ways.member("one", "db").node("b2"))
    graph.apply(delta.Patch(vertices={shop.key: shop}))
    peers = f"{partners.WORKLOAD_LABEL}=db;rate=4"
    pod = ways.noted("two", peers=peers).label(partners.GROUP_LABEL, "shop").label(partners.WORKLOAD_LABEL, "web")
    view, built = graph.view(), pod.build()
    told = built.spec, built.namespace, built.labels
    drawing = partners.drawing(view.groups, view.callers, view.selections, *told)

    assert [5.0] == [each.rate for each in drawing if view.crowd.counts(each.matcher).any()]


# ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────────────

APPS, TIERS, NAMESPACES = ("web", "db"), ("x", "y"), ("default", "other")
rates = st.sampled_from((1.0, 2.0, 5.0))
selectors = st.builds(
    lambda app, tier: labels.selector(
        labels.Requirement(key, labels.Operator.IN, (value,)) for key, value in (("app", app), ("tier", tier)) if value
    ),
    st.sampled_from(APPS),
    st.sampled_from(("", *TIERS)),
)
peers = st.builds(pods.Peer, st.sampled_from(NAMESPACES), selector=selectors, rate=rates) | st.builds(
    pods.Peer, st.sampled_from(NAMESPACES), st.sampled_from(("s", "t")), rate=rates
)
demands = st.none() | st.lists(peers, max_size=3).map(lambda found: pods.GraphDemand(peers=tuple(found)))
services = st.builds(
    selections.Selection,
    st.just(selections.SERVICE),
    st.sampled_from(NAMESPACES),
    st.sampled_from(("s", "t")),
    st.none() | selectors,
)
some_pods = st.builds(
    lambda namespace, name, app, tier, node, wanted: pods.Pod(
        keys.pod_key(namespace, name),
        uid="u",
        labels=(("app", app), ("tier", tier)),
        node=node,
        spec=pods.Spec(graph=wanted),
    ),
    st.sampled_from(NAMESPACES),
    st.sampled_from(("p", "q", "r")),
    st.sampled_from(APPS),
    st.sampled_from(TIERS),
    st.sampled_from(("", "n1", "n2", "gone")),
    demands,
)


def meant(graph: store.Store, peer: pods.Peer | callers.Call, pod: pods.Pod) -> bool:
    """Whether the peer is about the pod, told the plain way."""
    if peer.namespace != pod.namespace:
        return False
    chosen = peer.selector
    if chosen is None:
        service = graph.vertex(keys.selection_key(selections.SERVICE, peer.namespace, peer.service))
        chosen = service.selector if isinstance(service, selections.Selection) else None
        if chosen is not None and not chosen.requirements:
            chosen = None
    return chosen is not None and chosen.matches(pod.labels)


def wants(pod: pods.Pod) -> tuple[pods.Peer, ...]:
    """Whom the pod names."""
    return () if pod.spec.graph is None else pod.spec.graph.peers


@hypothesis.given(
    st.lists(st.lists(some_pods | services | some_pods.map(lambda pod: pod.key), max_size=4), max_size=6), some_pods
)
def test_each_placed_pod_draws_by_the_greatest_rate_that_anybody_says(
    story: list[list[pods.Pod | selections.Selection | keys.VertexKey]], newcomer: pods.Pod
) -> None:
    """Whatever came and went: the counts of the partners are those of a loop over the pods, and none counts twice."""
    graph = store.Store()
    graph.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name) for name in ("n1", "n2")}))
    newcomer = pods.Pod(keys.pod_key(newcomer.namespace, "new"), spec=newcomer.spec, labels=newcomer.labels)
    for step in story:
        patch = delta.Patch()
        for each in step:
            if isinstance(each, str):
                patch.remove(each)
            else:
                patch.set_vertex(each)
        assert isinstance(graph.apply(patch), delta.Applied)
        assert graph.audit() == []
        view = graph.view()
        drawing = partners.drawing(
            view.groups, view.callers, view.selections, newcomer.spec, newcomer.namespace, newcomer.labels
        )
        found: dict[str, dict[float, int]] = {"n1": {}, "n2": {}}
        for partner in drawing:
            counts = view.crowd.counts(partner.matcher)
            for name, by_rate in found.items():
                number = int(counts[view.columns.rows[name]])
                if number:
                    by_rate[partner.rate] = by_rate.get(partner.rate, 0) + number
        due: dict[str, dict[float, int]] = {"n1": {}, "n2": {}}
        for pod in graph.all_pods():
            said = [peer.rate for peer in wants(newcomer) if meant(graph, peer, pod)]
            said += [peer.rate for peer in wants(pod) if meant(graph, peer, newcomer)]
            if said and pod.node in due:
                due[pod.node][max(said)] = due[pod.node].get(max(said), 0) + 1
        assert found == due
