"""A pod that the profile's hard default constraints keep out: they are named, and what is told is enough."""

from __future__ import annotations

import msgspec
import pytest

from graphsched.base.values import labels, pods, selections
from graphsched.decision import cycle, profile
from graphsched.explain import remedies
from graphsched.graph import delta, store
from tests.builders import ZONE, NodeBuilder, PodBuilder, make_node, make_pod, selecting
from tests.explain.worlds import asked, world

HARD = pods.SpreadConstraint(max_skew=1, topology_key=ZONE, hard=True, selector=None)
SETTINGS = profile.Profile(default_spread=(HARD,))
A1, B1 = make_node("a1").zone("a"), make_node("b1").zone("b").cordoned()
WEB = make_pod("web").label("app", "web")
OLD = make_pod("old").label("app", "web").node("a1")


def served(*builds: NodeBuilder | PodBuilder) -> store.Store:
    """A cluster with a Service that selects the pods of `web`."""
    graph = world(*builds)
    only = labels.selector([labels.Requirement("app", labels.Operator.IN, ("web",))])
    graph.apply(delta.Patch().set_vertex(selections.Selection(selections.SERVICE, "default", "web", only)))
    return graph


@pytest.mark.parametrize(
    ("cluster", "label", "change"),
    [
        ([A1, B1], "in zone a, which would be 2 ahead (maxSkew 1 by default)", "maxSkew 2 by default on a1"),
        (
            [make_node("a1")],
            f"without label {ZONE}, by which it is spread by default",
            f"not spreading by {ZONE} by default on a1",
        ),
    ],
)
def test_the_constraint_of_the_profile_is_named_with_the_change_that_would_do(
    cluster: list[NodeBuilder], label: str, change: str
) -> None:
    """As one of the pod's own is, and it is said that it is not its own."""
    found = asked(served(*cluster, OLD), WEB, settings=SETTINGS)

    assert label in [group.label for group in found.groups]
    assert change in [str(each) for each in found.changes]


def test_more_room_alone_is_not_told_as_enough_where_the_default_refuses_as_well() -> None:
    """Both are told; the engine takes the pod with both, and does not with one of them."""
    graph = served(A1.cpu("4"), B1.cpu("1"), OLD.cpu("3"))
    found = asked(graph, WEB.cpu("2"), settings=SETTINGS)
    wider = msgspec.structs.replace(SETTINGS, default_spread=(msgspec.structs.replace(HARD, max_skew=2),))

    assert ["1 CPU and maxSkew 2 by default on a1"] == [str(change) for change in found.changes]
    taken = {
        (cpu, settings.default_spread): cycle.Decider(settings)
        .evaluate(graph.view(), WEB.cpu(cpu).build())
        .verdicts["a1"]
        .status.ok
        for cpu in ("1", "2")
        for settings in (SETTINGS, wider)
    }
    assert [("1", wider.default_spread)] == [change for change, ok in taken.items() if ok]


def test_the_pod_named_as_in_the_way_is_one_that_the_default_counts() -> None:
    """Without it there is room, and its zone is no longer ahead."""
    stranger = make_pod("stranger").cpu("3").node("b1")
    pod = WEB.cpu("2").priority(5)
    graph = served(A1.cpu("4"), make_node("b1").zone("b").cpu("4"), OLD.cpu("3"), stranger)
    (change,) = asked(graph, pod, settings=SETTINGS).changes

    assert ("b1", "default/stranger") == (change.node, change.instead_of)
    graph.apply(delta.Patch().remove(stranger.build().key))
    assert cycle.Decider(SETTINGS).evaluate(graph.view(), pod.build()).verdicts["b1"].status.ok


def test_one_nodes_refusal_is_the_evaluations_with_hard_defaults() -> None:
    """Looking at a single node and at all of them say the same."""
    graph = served(A1, B1, make_node("a2").zone("a"), make_node("x"), OLD)
    pod = WEB.build()
    evaluation = cycle.Decider(SETTINGS).evaluate(graph.view(), pod)

    assert {name: verdict.status for name, verdict in evaluation.verdicts.items()} == {
        name: remedies.refusal(graph.view(), pod, name, SETTINGS) for name in evaluation.verdicts
    }


def test_joining_the_pool_is_not_told_as_enough_where_pods_are_spread_by_default() -> None:
    """What counts changes with the pool, so that nothing is shown by looking at one node."""
    pooled = msgspec.structs.replace(SETTINGS, pool=("pool", "mine"))
    graph = served(A1, OLD)

    assert [] == [str(each) for each in asked(graph, WEB, settings=pooled).changes]
    alone = msgspec.structs.replace(pooled, default_spread=None)
    assert ["the pool's label pool=mine on a1"] == [str(each) for each in asked(graph, WEB, settings=alone).changes]


def test_dropping_its_only_constraint_leaves_the_pod_to_the_defaults() -> None:
    """Which are told along with it where they refuse the node, too."""
    pod = WEB.spread("rack", selecting(app="web"))
    found = asked(served(A1, B1, OLD), pod, settings=SETTINGS)

    assert "not spreading by rack and maxSkew 2 by default on a1" in [str(each) for each in found.changes]
