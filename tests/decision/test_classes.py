"""The class cache: what moves when one row does, and what it costs.

A decider that has decided before is asked again after one change and must say what a new one says; the change is chosen
so that it moves the scores of nodes that did not change themselves.
"""

from __future__ import annotations

import pytest

from graphsched.base.values import keys, nodes, pods
from graphsched.decision import cycle, trace
from graphsched.graph import delta, store
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod, need
from tests.decision import tables

MIB = 1 << 20
NAMES = [f"n{number:02}" for number in range(12)]
POD = make_pod("web").cpu("1").image("app:1")
SOFT = "PreferNoSchedule"


def cluster(**changed: NodeBuilder) -> list[tables.Thing]:
    """Twelve plain nodes, some of them as given."""
    return [changed.get(name, make_node(name)) for name in NAMES]


def soft(name: str, count: int) -> NodeBuilder:
    """A node with so many taints that pods would rather avoid."""
    node = make_node(name)
    for number in range(count):
        node = node.taint(f"k{number}", "", SOFT)
    return node


def change(graph: store.Store, *things: tables.Thing) -> None:
    """Set these."""
    patch = delta.Patch()
    for thing in things:
        patch.set_vertex(thing.build())
    assert isinstance(graph.apply(patch), delta.Applied)


def both(decider: cycle.Decider, graph: store.Store, pod: pods.Pod) -> trace.Decision:
    """The decision of a decider that has a history, which must be that of one that has none."""
    decision = decider.decide(graph.view(), pod)
    assert cycle.Decider().decide(graph.view(), pod) == decision
    verdict = cycle.Decider().evaluate(graph.view(), pod).verdicts[decision.node]
    assert (verdict.total, verdict.scores) == (decision.score, dict(decision.scores))
    return decision


PREFERS = POD.prefer_nodes(10, need("fast", "In", "very")).prefer_nodes(8, need("fast", "In", "rather"))
FAST, FASTER = make_node("n00").label("fast", "rather"), make_node("n01").label("fast", "very")
# What is there, what is asked, what changes, and a plugin's score of the chosen node before and after.
MOVES: dict[str, tuple[list[tables.Thing], PodBuilder, tables.Thing, str, int, int]] = {
    "the node with the greatest preference fills up": (
        # n01 is chosen with 10 of 10; when it is full, n00 is, with 8 of 8
        cluster(n00=FAST, n01=FASTER),
        PREFERS,
        FASTER.pods(0),
        "NodeAffinity",
        200,
        200,
    ),
    "a node with a greater preference comes to pass": (
        # n01 has 8 of 8, then 8 of 10; it is chosen all the same, since n00 would be out of CPU
        cluster(n00=FASTER.set("metadata.name", "n00").pods(0), n01=FAST.set("metadata.name", "n01").cpu("64")),
        PREFERS,
        FASTER.set("metadata.name", "n00").cpu("1"),
        "NodeAffinity",
        200,
        160,
    ),
    "the most avoided node is cordoned": (
        # every other node has one taint, of three at most: 100 - 33; then one of one: 0
        [soft(name, 3 if name == "n11" else 1) for name in NAMES],
        POD,
        soft("n11", 3).set("spec.unschedulable", True),
        "TaintToleration",
        201,
        0,
    ),
    "the first taint to avoid appears": (
        # on n00, which was the first by name among equals: n01 takes its place
        cluster(),
        POD,
        soft("n00", 1),
        "TaintToleration",
        300,
        300,
    ),
    "another node pulls the image": (
        # 6000 * 1/12 = 500: 100*477/977 = 48; 6000 * 2/12 = 1000: 100. The other is too full to be chosen
        cluster(n05=make_node("n05").image(6000 * MIB, "app:1")),
        POD,
        make_node("n11").cpu("1").image(6000 * MIB, "app:1"),
        "ImageLocality",
        48,
        100,
    ),
    "the node that named the image's size goes": (
        # n00 came first with 1200: 1200 * 2/12 = 200: 18; without it n05's 6000 counts: 48
        cluster(
            n00=make_node("n00").cpu("0").image(1200 * MIB, "app:1"), n05=make_node("n05").image(6000 * MIB, "app:1")
        ),
        POD,
        make_node("n00").cpu("0"),
        "ImageLocality",
        18,
        48,
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_one_changed_row_moves_the_scores_of_others(name: str) -> None:
    """Scales, spreads and sizes belong to all nodes at once."""
    before, pod, changed, plugin, first, second = MOVES[name]
    graph, asked, decider = tables.filled(before), tables.incoming(pod), cycle.Decider()

    assert first == dict(both(decider, graph, asked).scores)[plugin]
    change(graph, changed)

    assert second == dict(both(decider, graph, asked).scores)[plugin]


def test_a_node_that_joins_dilutes_an_image() -> None:
    """6000 * 1/12 = 500 MiB is 48; of thirteen nodes it is 461 MiB: 100 * 438/977 = 44."""
    graph, asked = tables.filled(cluster(n05=make_node("n05").image(6000 * MIB, "app:1"))), tables.incoming(POD)
    decider = cycle.Decider()
    assert 48 == dict(both(decider, graph, asked).scores)["ImageLocality"]

    change(graph, make_node("n12"))

    assert 44 == dict(both(decider, graph, asked).scores)["ImageLocality"]


def test_a_recycled_row_is_not_taken_for_the_node_it_held() -> None:
    """The node goes and another one takes its row; the class never saw the row empty."""
    graph, asked = tables.filled(cluster(n00=FASTER.set("metadata.name", "n00"))), tables.incoming(PREFERS)
    decider = cycle.Decider()
    assert "n00" == both(decider, graph, asked).node
    row = graph.columns.rows["n00"]

    patch = delta.Patch().remove(keys.node_key("n00")).set_vertex(make_node("n50").build())
    assert isinstance(graph.apply(patch), delta.Applied)

    assert row == graph.columns.rows["n50"]
    assert "n01" == both(decider, graph, asked).node


def test_a_bind_costs_one_row() -> None:
    """Of the class: built once, then one row at a time."""
    graph, asked, decider = tables.filled(cluster()), tables.incoming(POD), cycle.Decider()
    for number in range(20):
        decision = both(decider, graph, asked)
        change(graph, make_pod(f"p{number}").cpu("1").node(decision.node))

    statistics = decider.classes.statistics
    assert (1, 19, 12 + 19) == (statistics.builds, statistics.hits, statistics.rows)


def test_a_decision_on_an_unchanged_graph_costs_no_row() -> None:
    """Nor does one after a change that touches no node."""
    graph, asked, decider = tables.filled(cluster()), tables.incoming(POD), cycle.Decider()
    decider.decide(graph.view(), asked)
    decider.decide(graph.view(), asked)
    graph.apply(delta.Patch().set_vertex(nodes.Namespace("team")).set_vertex(make_pod("waiting").build()))
    decider.decide(graph.view(), asked)

    assert (1, 2, 12) == (
        decider.classes.statistics.builds,
        decider.classes.statistics.hits,
        decider.classes.statistics.rows,
    )


def test_replicas_share_a_class_and_the_oldest_makes_room() -> None:
    """Pods of one spec are one class, whatever their names; beyond the bound, the one asked for longest ago goes."""
    graph, decider = tables.filled(cluster()), cycle.Decider(classes_max=2)
    first, second = tables.incoming(POD), tables.incoming(make_pod("other").cpu("1").image("app:1"))
    assert first.spec is second.spec
    decider.decide(graph.view(), first)
    decider.decide(graph.view(), second)
    assert (1, 1) == (len(decider.classes), decider.classes.statistics.builds)

    for cpu in ("2", "3"):
        decider.decide(graph.view(), tables.incoming(POD.cpu(cpu)))

    assert (2, 1) == (len(decider.classes), decider.classes.statistics.evictions)
    decider.decide(graph.view(), first)
    assert 4 == decider.classes.statistics.builds
