"""
Decisions go by ways where a pod, its group or a link gives them a reason, and by nothing else of the kind.

Four nodes in two zones, a link between the zones, and what runs where; each test says what one pod then wants.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from graphsched.base.values import groups, keys, labels, nodes, pods, relations, selections, status
from graphsched.decision import context as contexts, cycle, names, profile, ways
from graphsched.decision.constraints import check
from graphsched.decision.scoring import taints
from graphsched.graph import delta, partners, routes, store
from tests import builders

ZONE = "topology.kubernetes.io/zone"


def link(start: keys.VertexKey, end: keys.VertexKey, value: relations.Link) -> delta.Patch:
    """A link in both directions."""
    kind = keys.EdgeKind.LINK
    return delta.Patch(edges={keys.EdgeID(start, end, kind): value, keys.EdgeID(end, start, kind): value})


def zone(name: str) -> keys.VertexKey:
    """The key of a zone."""
    return keys.domain_key(ZONE, name)


def world(*builds: builders.NodeBuilder | builders.PodBuilder) -> store.Store:
    """Nodes a1, a2 in zone a and b1, b2 in zone b, with what else is given."""
    graph = store.Store()
    given = [builders.make_node(f"{each}{number}").zone(each) for each in "ab" for number in (1, 2)]
    patch = delta.Patch()
    for build in (*given, *builds):
        patch.set_vertex(build.build())
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def noted(name: str, **annotations: str) -> builders.PodBuilder:
    """A pod with annotations of ours."""
    texts = {f"graphsched.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return builders.make_pod(name).set("metadata.annotations", texts)


def cache(name: str, node: str) -> builders.PodBuilder:
    """A pod of the Service `cache`, placed."""
    return builders.make_pod(name).label("app", "cache").node(node)


def scored(graph: store.Store, pod: pods.Pod, plugin: str) -> dict[str, int]:
    """Node → what this plugin gives it; none where it skips."""
    found = cycle.Decider().evaluate(graph.view(), pod)
    return {name: each.scores[plugin] for name, each in found.verdicts.items() if plugin in each.scores}


def refused(graph: store.Store, pod: pods.Pod) -> dict[str, status.Status]:
    """Node → who refuses it and why."""
    found = cycle.Decider().evaluate(graph.view(), pod)
    return {name: each.status for name, each in found.verdicts.items() if not each.status.ok}


# ── near ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pod_near_a_zone_goes_there() -> None:
    """100 − hops, times the weight; a node is one hop from its zone, and no way leads to zone a from zone b."""
    graph = world()
    pod = noted("web", near=f"{ZONE}=b").build()
    weight = profile.GRAPH_WEIGHTS[names.GRAPH_DISTANCE]

    assert scored(graph, pod, names.GRAPH_DISTANCE) == dict.fromkeys(("a1", "a2", "b1", "b2"), 99 * weight)

    graph.apply(link(zone("a"), zone("b"), relations.Link(1.0)))

    assert scored(graph, pod, names.GRAPH_DISTANCE) == {
        "a1": 98 * weight,
        "a2": 98 * weight,
        "b1": 99 * weight,
        "b2": 99 * weight,
    }
    assert cycle.Decider().decide(graph.view(), pod).node == "b1"


def test_a_place_that_is_not_there_says_nothing() -> None:
    """The score is left out, rather than the same for all."""
    assert scored(world(), noted("web", near="place/nowhere").build(), names.GRAPH_DISTANCE) == {}


# ── partners ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pod_goes_to_its_partner_and_unknown_is_the_middle() -> None:
    """The partner's own node first, the other zone last; within the zone nobody knows, so it lies between."""
    graph = world(cache("c", "b2"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0)))
    pod = noted("web", peers="app=cache").build()
    weight = profile.GRAPH_WEIGHTS[names.GRAPH_PEERS]

    assert scored(graph, pod, names.GRAPH_PEERS) == {"a1": 0, "a2": 0, "b1": 50 * weight, "b2": 100 * weight}
    assert cycle.Decider().decide(graph.view(), pod).node == "b2"


def test_partners_are_weighed_by_their_rate() -> None:
    """Ten calls a second to one zone draw more than one to the other."""
    graph = world(cache("c", "b2"), builders.make_pod("d").label("app", "db").node("a2"))
    graph.apply(link(keys.node_key("a1"), keys.node_key("b1"), relations.Link(1.0)))
    for start, end, time in (("a1", "a2", 1.0), ("b1", "b2", 1.0)):
        graph.apply(link(keys.node_key(start), keys.node_key(end), relations.Link(time)))

    def best(peers: str) -> str:
        totals = scored(graph, noted("web", peers=peers).build(), names.GRAPH_PEERS)
        return max(sorted(totals), key=lambda name: totals[name])

    assert best("app=cache;rate=10,app=db") == "b2"
    assert best("app=cache,app=db;rate=10") == "a2"


def test_a_service_names_the_partners() -> None:
    """By its selector; one that is not there has no pods."""
    graph = world(cache("c", "b2"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0)))
    selector = labels.selector((labels.Requirement("app", labels.Operator.IN, ("cache",)),))
    pod = noted("web", peers="cache").build()

    assert scored(graph, pod, names.GRAPH_PEERS) == {}

    service = selections.Selection(selections.SERVICE, "default", "cache", selector)
    graph.apply(delta.Patch(vertices={service.key: service}))

    assert scored(graph, pod, names.GRAPH_PEERS)["b2"] == 100 * profile.GRAPH_WEIGHTS[names.GRAPH_PEERS]


def shop(**limits: float) -> groups.Group:
    """A group in which workload `web` calls `db`."""
    calls = groups.Dependency("db", **limits)  # type: ignore[arg-type]
    return groups.Group("default", "shop", (groups.Workload("web", None, (calls,)), groups.Workload("db")))


def member(name: str, workload: str) -> builders.PodBuilder:
    """A pod of that group."""
    pod = builders.make_pod(name).label(partners.GROUP_LABEL, "shop")
    return pod.label(partners.WORKLOAD_LABEL, workload)


@pytest.mark.parametrize(("running", "arriving"), [("db", "web"), ("web", "db")])
def test_a_group_draws_its_workloads_to_each_other(running: str, arriving: str) -> None:
    """In both directions of a call, by the labels that Diktyo gives pods."""
    graph = world(member("one", running).node("b2"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0)))
    pod = member("two", arriving).build()

    assert scored(graph, pod, names.GRAPH_PEERS) == {}

    group = shop()
    graph.apply(delta.Patch(vertices={group.key: group}))

    assert cycle.Decider().decide(graph.view(), pod).node == "b2"

    graph.apply(delta.Patch(removed={group.key}))

    assert scored(graph, pod, names.GRAPH_PEERS) == {}


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_refuses_what_is_beyond_and_what_is_unknown() -> None:
    """And says which of the two."""
    graph = world(cache("c", "b2"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0, 100.0)))
    found = refused(graph, noted("web", peers="app=cache;maxLatencyMs=3").build())

    assert sorted(found) == ["a1", "a2", "b1"]
    assert {each.by for each in found.values()} == {names.GRAPH_PATH}
    assert found["a1"].reasons == ("node(s) were more than 3 ms from app=cache in default",)
    assert found["b1"].reasons == ("node(s) had an unknown latency to app=cache in default",)


def test_the_limit_of_the_pod_holds_for_its_group_too() -> None:
    """`max-latency-ms` speaks of every partner."""
    group = shop()
    graph = world(member("one", "db").node("b2"))
    graph.apply(delta.Patch(vertices={group.key: group}))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0, 100.0)))
    labelled = {partners.GROUP_LABEL: "shop", partners.WORKLOAD_LABEL: "web"}
    pod = noted("two", max_latency_ms="3").set("metadata.labels", labelled).build()

    assert sorted(refused(graph, pod)) == ["a1", "a2", "b1"]


def test_bandwidth_and_cost_are_limits_as_well() -> None:
    """Each in its own words."""
    graph = world(cache("c", "b2"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(None, 100.0, cost=9)))

    narrow = refused(graph, noted("one", peers="app=cache;minBandwidthMbps=200").build())
    dear = refused(graph, noted("two", peers="app=cache;maxNetworkCost=8").build())

    assert narrow["a1"].reasons == ("node(s) had less than 200 Mbps to app=cache in default",)
    assert dear["a1"].reasons == ("node(s) were at a network cost above 8 from app=cache in default",)


def test_a_partner_that_is_not_placed_limits_nothing() -> None:
    """The first of a group has to begin somewhere."""
    assert refused(world(), noted("web", peers="app=cache;maxLatencyMs=3").build()) == {}


def test_a_link_that_decays_moves_the_pod_at_once() -> None:
    """Half the health is twice the time."""
    graph = world(cache("c", "b2"))
    ends = keys.node_key("a1"), keys.node_key("b2")
    graph.apply(link(*ends, relations.Link(2.0)))
    pod = noted("web", peers="app=cache;maxLatencyMs=3").build()

    assert "a1" not in refused(graph, pod)

    graph.apply(link(*ends, relations.Link(2.0, health=0.5)))

    assert refused(graph, pod)["a1"].reasons == ("node(s) were more than 3 ms from app=cache in default",)


def test_time_that_is_up_leaves_a_limit_unknown_and_the_search_goes_on_next_time() -> None:
    """A decision does not wait for a search, and the next one finds it further."""
    graph = world(cache("c", "b2"))
    for start, end in (("b2", "b1"), ("b1", "a1"), ("a1", "a2")):
        graph.apply(link(keys.node_key(start), keys.node_key(end), relations.Link(1.0)))
    pod = noted("web", peers="app=cache;maxLatencyMs=9").build()
    hurried = contexts.Context(expired=itertools.cycle((False, True)).__next__)
    decider = cycle.Decider()

    first = decider.decide(graph.view(), pod, hurried)
    tries = 0
    while not decider.decide(graph.view(), pod, hurried).placed:
        tries += 1
        assert tries < 10

    assert not first.placed


# ── links in health ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_whose_links_are_all_sick_is_avoided_by_every_pod() -> None:
    """Before its kubelet falls silent; one link in health is enough to be like all others."""
    graph = world()
    pod = builders.make_pod("any").build()
    sick, well = relations.Link(1.0, health=0.1), relations.Link(1.0)
    graph.apply(link(keys.node_key("a1"), zone("a"), sick))

    assert scored(graph, pod, names.GRAPH_HEALTH)["a1"] == 0
    assert cycle.Decider().decide(graph.view(), pod).node == "a2"

    graph.apply(link(keys.node_key("a1"), keys.node_key("b1"), well))

    assert scored(graph, pod, names.GRAPH_HEALTH) == {}


# ── opt-in ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_reason_totals_are_those_of_before() -> None:
    """Links in health, groups and other pods' annotations change nothing for a pod that has none of them."""
    bare, full = world(), world(noted("other", peers="app=cache;maxLatencyMs=1").node("b1"))
    busy = world(builders.make_pod("other").node("b1"))
    group = shop()
    full.apply(delta.Patch(vertices={group.key: group}))
    full.apply(link(zone("a"), zone("b"), relations.Link(1.0)))
    pod = builders.make_pod("any").cpu("1").build()

    assert cycle.Decider().evaluate(full.view(), pod).verdicts == cycle.Decider().evaluate(busy.view(), pod).verdicts
    assert set(cycle.Decider().evaluate(bare.view(), pod).verdicts["a1"].scores) <= profile.DEFAULT_WEIGHTS.keys()


def test_an_annotation_that_can_not_be_read_refuses_the_pod_and_says_why() -> None:
    """It is not ignored, and no node is asked."""
    decided = cycle.Decider().decide(world().view(), noted("web", near="rack-7").build())

    assert decided.diagnosis is not None
    assert decided.diagnosis.prefilter is not None
    assert decided.diagnosis.prefilter.reasons[0].startswith("annotation graphsched.io/near: ")


# ── taints ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("effect", "operator", "least", "most"),
    [
        ("NoSchedule", "Equal", 800, 1000),
        ("NoExecute", "Exists", 450, 650),
        ("PreferNoSchedule", "Equal", 100, 250),
    ],
)
@pytest.mark.parametrize("seconds", [None, 60])
def test_the_weight_of_a_tolerated_taint_is_in_its_range(
    effect: str, operator: str, least: int, most: int, seconds: int | None
) -> None:
    """Whether or not the toleration ends."""
    taint = nodes.Taint("k", "v" if operator == "Equal" else "", effect)
    toleration = pods.Toleration("k", operator, taint.value, effect, seconds)

    assert least <= taints.node_weight((taint,), (toleration,)) <= most


def test_the_best_toleration_and_the_worst_taint_count() -> None:
    """A node is as bad as its worst taint, and a taint as bad as the best toleration for it makes it."""
    hard, soft = nodes.Taint("k", "v", "NoSchedule"), nodes.Taint("l", "v", "PreferNoSchedule")
    equal, anything = pods.Toleration("k", "Equal", "v"), pods.Toleration("", "Exists")

    assert taints.node_weight((hard,), (equal,)) == 850
    assert taints.node_weight((hard,), (equal, anything)) == 255
    assert taints.node_weight((hard, soft), (equal, anything)) == 255
    assert taints.node_weight((soft,), (anything,)) == taints.LEAST
    assert taints.node_weight((), ()) == taints.LEAST
    assert taints.node_weight((hard, soft), (equal,)) == 0


def test_the_weight_scores_only_where_a_profile_asks_for_it() -> None:
    """100 · (1 − weight), over the distinct sets of taints."""
    graph = world(builders.make_node("t").zone("c").taint("k", "v", "NoSchedule"))
    pod = builders.make_pod("any").tolerate("k", "v", "NoSchedule").build()
    asked = profile.Profile(weights={**profile.DEFAULT_WEIGHTS, names.GRAPH_TAINTS: 1})
    found = cycle.Decider(asked).evaluate(graph.view(), pod).verdicts

    assert scored(graph, pod, names.GRAPH_TAINTS) == {}
    assert (found["t"].scores[names.GRAPH_TAINTS], found["a1"].scores[names.GRAPH_TAINTS]) == (15, 95)


# ── the vectors ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("metric", [routes.Metric.LATENCY, routes.Metric.BANDWIDTH, routes.Metric.HOPS])
@pytest.mark.parametrize("seed", range(8))
def test_mean_and_worst_are_those_of_a_loop_over_the_pods(metric: routes.Metric, seed: int) -> None:
    """Whatever shares an origin, and wherever the pods are."""
    random = np.random.default_rng(seed)
    placed = [cache(f"c{number}", str(random.choice(["a1", "a2", "b1", "b2", "lone"]))) for number in range(4)]
    graph = world(builders.make_node("lone"), *placed)
    vertices = [*map(keys.node_key, ("a1", "b2", "lone")), zone("a"), zone("b")]
    for _ in range(4):
        start, end = random.choice(len(vertices), 2, replace=False)
        value = relations.Link(float(random.integers(1, 9)), float(random.integers(1, 9)))
        graph.apply(link(vertices[start], vertices[end], value))
    view = graph.view()
    partner = partners.limiting(
        view.groups, view.selections, noted("web", peers="app=cache").build().spec, "default", ()
    )[0]
    found = ways.to(view, check.Subject(pods.Spec()), partner, metric)
    assert found is not None
    widest = metric is routes.Metric.BANDWIDTH
    vector: dict[str, Callable[[keys.VertexKey], np.ndarray[typing.Any, typing.Any]]] = {
        "hops": view.routes.hops,
        "latency": view.routes.latency,
        "bandwidth": view.routes.bottleneck,
    }
    for name, row in view.columns.rows.items():
        each: list[float] = []
        for pod in placed:
            goal = keys.node_key(pod.build().node)
            told = float(vector[metric.value](goal)[row])
            each.append(np.nan if told < 0 else told)
        known = [told for told in each if np.isfinite(told)]
        mean = float(np.mean(known)) if known else np.inf if widest and np.inf in each else np.nan
        assert found.mean[row] == pytest.approx(mean, nan_ok=True), name
        worst = float(np.min(each)) if widest else float(np.max(each))
        assert found.worst[row] == pytest.approx(worst, nan_ok=True), name


@pytest.mark.parametrize("metric", [routes.Metric.LATENCY, routes.Metric.BANDWIDTH, routes.Metric.HOPS])
def test_pods_that_share_an_origin_are_where_they_are_to_themselves(metric: routes.Metric) -> None:
    """To each other they are as far as is known: two hops through the zone, and no time or width that is stated."""
    graph = world(cache("c", "a1"), cache("d", "a2"))
    view = graph.view()
    spec = noted("web", peers="app=cache").build().spec
    partner = partners.limiting(view.groups, view.selections, spec, "default", ())[0]
    found = ways.to(view, check.Subject(pods.Spec()), partner, metric)
    assert found is not None
    row = view.columns.rows["a1"]
    mean, worst = {
        routes.Metric.LATENCY: (0.0, np.nan),
        routes.Metric.BANDWIDTH: (np.inf, np.nan),
        routes.Metric.HOPS: (1.0, 2.0),
    }[metric]

    assert found.mean[row] == pytest.approx(mean)
    assert found.worst[row] == pytest.approx(worst, nan_ok=True)


def test_pods_at_too_many_places_leave_limits_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a score goes by those of the places with most pods."""
    monkeypatch.setattr(ways, "ORIGINS_MAX", 1)
    graph = world(cache("c", "b2"), cache("d", "b2"), cache("e", "lone"), builders.make_node("lone"))
    graph.apply(link(zone("a"), zone("b"), relations.Link(4.0)))
    pod = noted("web", peers="app=cache;maxLatencyMs=9").build()

    assert "unknown" in refused(graph, pod)["a1"].reasons[0]

    free = msgspec.structs.replace(pod.spec, graph=pods.GraphDemand(peers=noted_peers(pod)))
    assert scored(graph, msgspec.structs.replace(pod, spec=free), names.GRAPH_PEERS)["b2"] > 0


def noted_peers(pod: pods.Pod) -> tuple[pods.Peer, ...]:
    """The pod's peers without their limits."""
    assert pod.spec.graph is not None
    return tuple(msgspec.structs.replace(peer, latency_ms_max=None) for peer in pod.spec.graph.peers)
