"""Ceilings and reservations hold back our own pods, with reasons, and cost nothing where there are none."""

import pytest

from graphsched.base.values import pods, status
from graphsched.decision import cycle, names, profile
from graphsched.graph import delta, store
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

WEB = make_pod("web", "b").cpu("1").build()


def noted(name: str = "n1", **notes: str) -> NodeBuilder:
    """A node of 4 CPUs with annotations of ours, `_` standing for `-`."""
    keyed = {f"graphsched.io/{key.replace('_', '-')}": notes[key] for key in notes}
    return make_node(name).set("metadata.annotations", keyed)


def graph_of(*nodes: NodeBuilder, there: tuple[PodBuilder, ...] = ()) -> store.Store:
    """A graph of these nodes and pods."""
    graph, patch = store.Store(), delta.Patch()
    for node in nodes:
        patch.set_vertex(node.build())
    for pod in there:
        patch.set_vertex(pod.build())
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def verdict(graph: store.Store, pod: pods.Pod, name: str = "n1") -> status.Status:
    """What is said of the node, by all three ways of asking, which agree."""
    decider = cycle.Decider()
    found = decider.evaluate(graph.view(), pod).verdicts[name].status
    assert decider.admits(graph.view(), pod, name).ok == found.ok
    if len(graph.columns.rows) == 1:
        assert decider.decide(graph.view(), pod).placed == found.ok
    return found


def refused(reason: str, code: status.Code = status.Code.UNSCHEDULABLE) -> status.Status:
    """The refusal with this reason."""
    return status.Status(code, (reason,), names.BUDGET)


def test_pods_of_everybody_count_towards_a_ceiling() -> None:
    """The last pod that fits under it is placed, the next one refused; evicting others would help."""
    there = (make_pod("a").cpu("1").node("n1"), make_pod("b").cpu("500m").node("n1"))
    exact = graph_of(noted(cpu_quota="2500m"), there=there)
    short = graph_of(noted(cpu_quota="2499m"), there=there)

    assert verdict(exact, WEB).ok
    assert verdict(short, WEB) == refused("Insufficient cpu under the operator's ceiling")


def test_a_request_above_the_ceiling_is_beyond_help() -> None:
    """Whoever is evicted."""
    graph = graph_of(noted(memory_limit_mb="1024"))
    pod = make_pod("big").memory("1025Mi").build()

    expected = refused("Insufficient memory under the operator's ceiling", status.Code.UNRESOLVABLE)
    assert verdict(graph, pod) == expected
    assert verdict(graph, make_pod("fits").memory("1Gi").build()).ok


def test_a_pod_that_asks_for_none_of_it_is_not_held_back() -> None:
    """As with every resource."""
    graph = graph_of(noted(cpu_quota="1"), there=(make_pod("a").cpu("3").node("n1"),))

    assert verdict(graph, make_pod("idle").memory("1Gi").build()).ok


def test_what_is_reserved_stays_free_for_its_holder() -> None:
    """3 of 4 CPUs are: a stranger gets one, the holder all."""
    graph = graph_of(noted(reserved='{"a": {"cpu": "3"}}'))
    reason = "Insufficient cpu beside what is reserved for others"

    assert verdict(graph, WEB).ok
    assert verdict(graph, make_pod("more", "b").cpu("1001m").build()) == refused(reason)
    assert verdict(graph, make_pod("own", "a").cpu("4").build()).ok


def test_a_reservation_that_its_holder_uses_is_not_kept_twice() -> None:
    """Two of the three reserved are in use: one more is kept, one is left for others."""
    own = make_pod("own", "a").cpu("2").node("n1")
    graph = graph_of(noted(reserved='{"a": {"cpu": "3"}}'), there=(own,))

    assert verdict(graph, WEB).ok
    assert not verdict(graph, make_pod("more", "b").cpu("1001m").build()).ok


def test_a_workload_is_a_holder() -> None:
    """Its namespace is not."""
    graph = graph_of(noted(reserved='{"a/db": {"cpu": "4"}}'))

    assert verdict(graph, make_pod("db-0", "a").cpu("1").label("app", "db").build()).ok
    assert not verdict(graph, make_pod("web", "a").cpu("1").label("app", "web").build()).ok
    assert not verdict(graph, make_pod("db-0", "b").cpu("1").label("app", "db").build()).ok


def test_places_for_pods_can_be_reserved() -> None:
    """By number."""
    graph = graph_of(noted(reserved='{"a": {"pods": 2}}').pods(2))

    assert verdict(graph, WEB) == refused("Too many pods beside what is reserved for others")
    assert verdict(graph, make_pod("own", "a").build()).ok


def test_ceiling_and_reservation_count_together() -> None:
    """What is kept is kept of what may be used."""
    graph = graph_of(noted(cpu_quota="3", reserved='{"a": {"cpu": "2"}}'))

    assert verdict(graph, WEB).ok
    assert not verdict(graph, make_pod("more", "b").cpu("1500m").build()).ok


def test_operations_are_a_resource_like_any_other() -> None:
    """Only where a node says how many it can do."""
    graph = graph_of(noted("n1", iops="1000"), make_node("n2"), there=(make_pod("a").node("n1"),))
    pod = make_pod("db").set("metadata.annotations", {"graphsched.io/iops": "600"})
    placed = pod.node("n1").uid("other").set("metadata.name", "db-0")

    assert verdict(graph, pod.build()).ok
    assert verdict(graph, pod.build(), "n2").reasons == ("Insufficient graphsched.io/iops",)
    full = graph_of(noted("n1", iops="1000"), there=(placed,))
    assert verdict(full, pod.build()).by == names.NODE_RESOURCES_FIT


def test_the_choice_keeps_to_what_is_granted() -> None:
    """The emptier node is passed over; with the filter off it is not."""
    nodes = (noted("n1", cpu_quota="500m"), make_node("n2"))
    graph = graph_of(*nodes, there=(make_pod("a").cpu("2").node("n2"),))

    assert cycle.Decider().decide(graph.view(), WEB).node == "n2"
    off = profile.Profile(disabled=frozenset({names.BUDGET}))
    assert cycle.Decider(off).decide(graph.view(), WEB).node == "n1"


@pytest.mark.parametrize("quota", ["0", "1", "3500m"])
def test_a_refusal_and_its_reason_agree(quota: str) -> None:
    """On nodes with and without a budget at once."""
    graph = graph_of(noted("n1", cpu_quota=quota), make_node("n2"), there=(make_pod("a").cpu("3").node("n1"),))
    decision = cycle.Decider().decide(graph.view(), WEB)

    assert decision.node == "n2"
    assert verdict(graph, WEB, "n2").ok
