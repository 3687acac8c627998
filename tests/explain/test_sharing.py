"""Why a pod is pending because of the pool or the headroom: the words, and that the remedy would be enough."""

import msgspec

from graphsched.decision import cycle, profile
from tests.builders import make_node, make_pod
from tests.explain.worlds import asked, told, world

POOL = profile.Profile(pool=("pool", "ours"))
TENTH = profile.Profile(headroom=10)


def test_the_headroom_is_named_and_what_is_missing_beside_it() -> None:
    """What is free and what may be used of it are two things."""
    graph = world(make_node("n1").cpu("10"), make_pod("a").cpu("7").node("n1"))

    assert [
        (
            "web is pending: not even n1, the only node, has 2.5 CPUs free outside the headroom of 10% "
            "(most: 2 CPUs on n1)."
        ),
        "  1 node: 1 full up to the headroom (cpu)",
        "  Smallest change: 500m CPU outside the headroom on n1.",
        "  Wakes on: a pod leaving a node it may run on or a node joining or growing.",
    ] == told(graph, make_pod("web").cpu("2500m"), settings=TENTH)
    assert cycle.Decider(TENTH).decide(graph.view(), make_pod("web").cpu("2").build()).placed


def test_the_pool_is_named_and_its_label_is_the_remedy() -> None:
    """A node outside would do with the label; the remedy is tried."""
    graph = world(make_node("n1"), make_node("n2").cpu("1"))
    explanation = asked(graph, make_pod("web").cpu("2"), settings=POOL)

    assert [
        "web is pending: every node is outside the pool pool=ours.",
        "  2 nodes: 2 outside the pool pool=ours",
        "  Smallest change: the pool's label pool=ours on n1.",
        "  Wakes on: a node joining the pool.",
    ] == told(graph, make_pod("web").cpu("2"), settings=POOL)
    (change,) = explanation.changes
    graph = world(make_node(change.node).label("pool", "ours"))
    assert cycle.Decider(POOL).decide(graph.view(), make_pod("web").cpu("2").build()).placed


def test_spread_is_told_over_the_nodes_of_the_pool() -> None:
    """The domain outside counts for nobody, so it is not what another domain is ahead of."""
    spread = make_pod("web").label("app", "web").spread("topology.kubernetes.io/zone", {"matchLabels": {"app": "web"}})
    graph = world(
        make_node("p1").zone("a").label("pool", "ours"),
        make_node("p2").zone("b").label("pool", "ours").cordoned(),
        make_node("x1").zone("c"),
        *(make_pod(f"b{number}").label("app", "web").node("p2") for number in range(2)),
        *(make_pod(f"a{number}").label("app", "web").node("p1") for number in range(3)),
    )

    (ahead,) = [each for each in asked(graph, spread, settings=POOL).groups if each.plugin == "PodTopologySpread"]
    assert "zone a, which would be 2 ahead (maxSkew 1)" in ahead.label
    fits = msgspec.structs.replace(POOL, disabled=frozenset({"PodTopologySpread"}))
    assert cycle.Decider(fits).decide(graph.view(), spread.build()).node == "p1"


def test_a_ceiling_is_named_and_what_is_missing_under_it() -> None:
    """What is free and what the operator grants of it are two things; what is told to be enough is."""
    node = make_node("n1").cpu("10").set("metadata.annotations", {"graphsched.io/cpu-quota": "8"})
    graph = world(node, make_pod("a").cpu("6").node("n1"))

    assert [
        (
            "web is pending: not even n1, the only node, has 2.5 CPUs free under the operator's ceiling "
            "(most: 2 CPUs on n1)."
        ),
        "  1 node: 1 full under the operator's ceiling (cpu)",
        "  Smallest change: 500m CPU under the operator's ceiling on n1.",
        (
            "  Wakes on: a pod leaving a node it may run on, a ceiling or a reservation being eased or "
            "a node joining or growing."
        ),
    ] == told(graph, make_pod("web").cpu("2500m"))
    assert cycle.Decider().decide(graph.view(), make_pod("web").cpu("2").build()).placed
    (small,) = asked(world(node), make_pod("web").cpu("9")).groups
    assert small.label == "too small under the operator's ceiling (cpu)"
    assert not small.room


def test_a_reservation_is_named_and_what_is_missing_beside_it() -> None:
    """Beside a ceiling of the same resource, each short resource is told once."""
    notes = {"graphsched.io/reserved": '{"team": {"cpu": "3"}}'}
    graph = world(make_node("n1").cpu("10").set("metadata.annotations", notes), make_pod("a").cpu("6").node("n1"))
    lines = told(graph, make_pod("web").cpu("1500m"))

    assert "  1 node: 1 full beside what is reserved for others (cpu)" in lines
    assert "  Smallest change: 500m CPU beside what is reserved for others on n1." in lines
    both = {**notes, "graphsched.io/cpu-quota": "7"}
    graph = world(make_node("n1").cpu("10").set("metadata.annotations", both), make_pod("a").cpu("6").node("n1"))
    (group,) = asked(graph, make_pod("web").cpu("1500m")).groups
    assert group.label == "full within what the operator grants (cpu)"
