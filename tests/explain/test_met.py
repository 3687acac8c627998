"""What rules require of a way, told of the node that meets it: the way, the rule, and how old its slowest link is."""

from graphsched.base.values import keys, nodes, pods, policies, relations
from graphsched.decision import context as contexts, cycle
from graphsched.explain import telling, why
from graphsched.graph import delta, store

POD = pods.Pod(keys.pod_key("default", "web"), uid="u", scheduler="graph-scheduler")
NOW = 1000.0


def world(path: policies.Path, *, action: policies.Action = policies.Action.REQUIRE) -> store.Store:
    """A cache behind a fast and a slow link, n3 behind no link at all, and a rule."""
    graph = store.Store()
    patch = delta.Patch()
    for name in ("cache", "n1", "n2", "n3"):
        amounts = (("cpu", 0 if name == "cache" else 4000), ("memory", 1 << 33), ("pods", 0 if name == "cache" else 9))
        patch.set_vertex(nodes.Node(name, allocatable=amounts))
    for start, end, latency_ms, at in (("n1", "n2", 1.0, 0.0), ("n2", "cache", 2.0, NOW - 5)):
        edge = keys.EdgeID(keys.node_key(start), keys.node_key(end), keys.EdgeKind.LINK)
        patch.set_edge(edge, relations.Link(latency_ms=latency_ms, bandwidth_mbps=100.0, health=1.0, at=at, by="t"))
    patch.set_vertex(policies.Rule("near", 0, "fast", 7, action=action, path=path))
    graph.apply(patch)
    return graph


def told(graph: store.Store) -> why.Explanation:
    """The explanation of the pod."""
    return why.explain(graph.view(), POD, cycle.Decider(), context=contexts.Context(now=NOW))


def test_the_way_that_a_rule_requires_is_told_with_rule_and_age_of_its_slowest_link() -> None:
    """Of the node that the pod goes to, in the value and in the text."""
    found = told(world(policies.Path(keys.node_key("cache"), latency_ms_max=3.0, bandwidth_mbps_min=50.0)))
    (met,) = found.met

    assert ("near", "fast", 7) == (met.policy, met.rule, met.priority)
    assert ("n1", "n1 ─1 ms─ n2 ─2 ms─ cache", 2, 100.0) == (
        (met.way.node, met.way.path, met.way.hops, met.way.bandwidth_mbps)
    )
    assert ("n2 ─2 ms─ cache", 5.0) == (met.slowest, met.age_s)
    assert (
        "  Required by policy near rule fast (priority 7): to node cache: n1 ─1 ms─ n2 ─2 ms─ cache (2 hops, 3 ms, "
        "100 Mbps); its slowest link is n2 ─2 ms─ cache, measured 5s ago."
    ) in telling.text(found)


def test_a_requirement_that_another_node_does_not_meet_is_not_told_of_it() -> None:
    """Where the pod runs on a node that falls short, nothing is said to be met; where hops alone count, hops are."""
    found = told(world(policies.Path(keys.node_key("cache"), hops_max=1)))
    (met,) = found.met
    assert ("n2", "n2 ─2 ms─ cache") == (found.node, met.way.path)

    graph = world(policies.Path(keys.node_key("cache"), latency_ms_max=0.5))
    bound = pods.Pod(POD.key, uid="u", node="n1", scheduler="graph-scheduler")
    graph.apply(delta.Patch().set_vertex(bound))
    explained = why.explain(graph.view(), bound, cycle.Decider(), context=contexts.Context(now=NOW))
    assert () == explained.met
    assert "not meeting policy near rule fast (priority 7)" in explained.headline


def test_a_link_that_nobody_measured_says_so() -> None:
    """Rather than an age."""
    found = told(world(policies.Path(keys.node_key("n2"), hops_max=1, latency_ms_max=1.0)))

    assert "its slowest link is n1 ─1 ms─ n2, never measured" in telling.text(found)
