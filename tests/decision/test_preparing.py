"""What was prepared beforehand is all that a decision asks of the network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphsched.base.values import keys, labels, pods, relations
from graphsched.decision import context as contexts, cycle, names, profile
from graphsched.graph import delta, routes, store as stores
from tests import builders

NODES = 40
IDLE = profile.Profile(
    weights=dict.fromkeys(profile.GRAPH_WEIGHTS, 0) | profile.DEFAULT_WEIGHTS,
    disabled=frozenset({names.GRAPH_PATH}),
)


def chain(*, calls: bool = False) -> stores.Store:
    """Nodes in a row, a partner on the first of them; with `calls` it is the partner that names the others."""
    made = stores.Store()
    patch = delta.Patch()
    for number in range(NODES):
        patch.set_vertex(builders.make_node(f"n{number:02}").cpu("4").build())
    peers = (pods.Peer("default", selector=app("web")),) if calls else ()
    spec = pods.Spec(graph=pods.GraphDemand(peers=peers) if calls else None)
    marks = labels.from_mapping({"app": "db"})
    patch.set_vertex(pods.Pod(keys.pod_key("default", "db"), uid="db", labels=marks, spec=spec, node="n00"))
    for number in range(NODES - 1):
        ends = keys.node_key(f"n{number:02}"), keys.node_key(f"n{number + 1:02}")
        for source, target in (ends, ends[::-1]):
            link = relations.Link(latency_ms=1.0, bandwidth_mbps=100.0 - number, by="t")
            patch.set_edge(keys.EdgeID(source, target, keys.EdgeKind.LINK), link)
    made.apply(patch)
    return made


def app(name: str) -> labels.Selector:
    """Pods of this app."""
    return labels.selector([labels.Requirement("app", labels.Operator.IN, (name,))])


def at_once() -> bool:
    """No time at all."""
    return True


def twice() -> Callable[[], bool]:
    """Time that is up when it is asked for the second time."""
    left = iter([False])
    return lambda: next(left, True)


def web(demand: pods.GraphDemand | None) -> pods.Pod:
    """The pod that is to be placed."""
    marks = labels.from_mapping({"app": "web"})
    return pods.Pod(keys.pod_key("default", "web"), uid="web", labels=marks, spec=pods.Spec(graph=demand))


DEMANDS = {
    "latency": pods.GraphDemand(peers=(pods.Peer("default", selector=app("db"), latency_ms_max=5.0),)),
    "bandwidth": pods.GraphDemand(peers=(pods.Peer("default", selector=app("db")),), bandwidth_mbps_min=90.0),
    "drawn": pods.GraphDemand(peers=(pods.Peer("default", selector=app("db")),)),
    "near": pods.GraphDemand(near=(keys.node_key("n07"),)),
}


@pytest.mark.parametrize("demand", DEMANDS.values(), ids=DEMANDS)
def test_a_decision_after_it_searches_for_nothing(demand: pods.GraphDemand) -> None:
    """It is that of one with all the time there is; without preparation it would know of no way."""
    graph, pod, hurried = chain(), web(demand), contexts.Context(expired=at_once)
    decider = cycle.Decider()
    hasty = decider.decide(graph.view(), pod, hurried)
    rounds = 0
    while not decider.prepare(graph.view(), pod, twice()):
        rounds += 1
    searches = graph.routes.statistics.searches
    prepared = decider.decide(graph.view(), pod, hurried)

    assert rounds > NODES / 10, "it is done piece by piece"
    assert searches == graph.routes.statistics.searches
    assert decider.decide(graph.view(), pod) == prepared
    assert prepared.placed
    assert (hasty.placed, hasty.scores) != (prepared.placed, prepared.scores)


def test_partners_that_name_the_pod_are_prepared_for_as_well() -> None:
    """They draw it although it says nothing itself."""
    graph, decider = chain(calls=True), cycle.Decider()
    assert decider.needs(graph.view(), web(None))
    assert not decider.prepare(graph.view(), web(None), at_once)
    assert decider.prepare(graph.view(), web(None))
    assert "n00" == decider.decide(graph.view(), web(None), contexts.Context(expired=at_once)).node


def test_nothing_is_searched_for_that_no_plugin_of_the_profile_asks() -> None:
    """Limits and scores that are switched off cost nothing."""
    graph = chain()
    for demand in DEMANDS.values():
        assert cycle.Decider(IDLE).prepare(graph.view(), web(demand), at_once)

    assert 0 == graph.routes.statistics.searches
    assert graph.routes.knows(routes.Metric.BANDWIDTH)


def test_a_cluster_in_which_nobody_names_anybody_needs_nothing() -> None:
    """The usual pod is decided on without any of this."""
    assert not cycle.Decider().needs(chain().view(), web(None))
    assert cycle.Decider().prepare(chain().view(), web(None), at_once)
