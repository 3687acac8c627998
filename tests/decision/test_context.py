"""What a decision is told beside the graph: costs make nodes look worse, refuse none, and leave the rest as it was."""

import hypothesis
import hypothesis.strategies as st

from graphsched.base.values import keys, pods
from graphsched.decision import context, cycle, profile
from graphsched.graph import store
from tests.builders import make_node, make_pod
from tests.decision import clusters
from tests.explain.worlds import world

POD = make_pod("web").cpu("1").build()
NODES = [make_node(f"n{number}").cpu(str(9 - number)) for number in range(4)]


def test_a_cost_moves_the_choice_and_is_told() -> None:
    """The best node looks worse; the score is the total less the cost, part by part."""
    graph, decider = world(*NODES), cycle.Decider()
    plain = decider.decide(graph.view(), POD)
    decision = decider.decide(graph.view(), POD, context.Context({"n0": 50, "gone": 9}))

    assert ("n0", "n1") == (plain.node, decision.node)
    assert (("n0", 50),) == decision.avoided
    assert decision.score == sum(score for _, score in decision.scores)
    assert decision.score <= plain.score

    dearest = context.Context({f"n{number}": 500 - number for number in range(4)})
    everywhere = decider.decide(graph.view(), POD, dearest)
    assert everywhere.score == sum(score for _, score in everywhere.scores) < 0
    assert ("GraphRejections", -500 + int(everywhere.node[1])) in everywhere.scores
    assert (("n0", 500), ("n1", 499), ("n2", 498)) == everywhere.avoided


def test_the_only_node_is_taken_whatever_it_costs() -> None:
    """A cost is no refusal."""
    graph = world(NODES[0])

    assert "n0" == cycle.Decider().decide(graph.view(), POD, context.Context({"n0": 10_000})).node


@hypothesis.given(
    clusters.stores(),
    clusters.newcomers(),
    clusters.profiles,
    st.dictionaries(st.sampled_from(clusters.NODE_NAMES), st.integers(1, 400), max_size=3),
)
def test_decide_and_evaluate_agree_on_costs(
    built: store.Store, pod: pods.Pod, settings: profile.Profile, costs: dict[str, int]
) -> None:
    """The choice is the best of all totals; a node's total is the plain one less its cost, and no verdict differs."""
    decider, told = cycle.Decider(settings), context.Context(costs)
    plain = decider.evaluate(built.view(), pod)
    evaluation = decider.evaluate(built.view(), pod, told)
    decision = decider.decide(built.view(), pod, told)

    for name, verdict in evaluation.verdicts.items():
        assert plain.verdicts[name].status == verdict.status
        if verdict.status.ok:
            assert plain.verdicts[name].total - costs.get(name, 0) == verdict.total
    if decision.placed and decision.node != pod.nominated:
        assert decision.node == min(evaluation.best)
        assert decision.feasible == 1 or decision.score == evaluation.verdicts[decision.node].total
    assert decision.placed == bool(evaluation.best)
    assert set(dict(decision.avoided)) <= {name for name, verdict in plain.verdicts.items() if verdict.status.ok}


@hypothesis.given(clusters.stores(), clusters.newcomers(), clusters.profiles)
def test_one_node_alone_is_judged_as_among_all(built: store.Store, pod: pods.Pod, settings: profile.Profile) -> None:
    """`admits` is `evaluate` for one node: the same verdict, plugin and reasons."""
    decider = cycle.Decider(settings)
    evaluation = decider.evaluate(built.view(), pod)
    for name, verdict in evaluation.verdicts.items():
        alone = decider.admits(built.view(), pod, name)
        if verdict.status.by:
            assert verdict.status == alone
        else:
            assert verdict.status.ok == alone.ok
    assert not decider.admits(built.view(), pod, "nowhere").ok


def test_a_node_is_judged_without_the_pod_itself() -> None:
    """Where the pod counts already by our own promise, it is taken off first."""
    graph = world(make_node("n1").cpu("1"), make_pod("web").cpu("1").node("n1"))
    beneath = graph.view().with_changes(removed=[keys.pod_key("default", "web")])

    assert not cycle.Decider().admits(graph.view(), POD, "n1").ok
    assert cycle.Decider().admits(beneath, POD, "n1").ok
