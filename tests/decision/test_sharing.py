"""The pool and the headroom: which nodes they refuse, in which words, and that neither is there unless asked for."""

import pytest

from graphsched.base.values import status
from graphsched.decision import cycle, profile
from graphsched.decision.constraints import sharing
from graphsched.graph import delta
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.explain.worlds import world

POD = make_pod("web").cpu("1")
TEN = make_node("n1").cpu("10").memory("10Gi").pods(10)
U, UAU = status.Code.UNSCHEDULABLE, status.Code.UNRESOLVABLE
ROWS: dict[str, tuple[PodBuilder, NodeBuilder, tuple[PodBuilder, ...], status.Code, tuple[str, ...]]] = {
    "exactly the rest": (POD.cpu("9"), TEN, (), status.Code.SUCCESS, ()),
    "a thousandth more": (POD.cpu("9001m"), TEN, (), UAU, ("Insufficient cpu outside the headroom of 10%",)),
    "more than is left beside others": (
        POD.cpu("5"),
        TEN,
        (make_pod("a").cpu("4500m").node("n1"),),
        U,
        ("Insufficient cpu outside the headroom of 10%",),
    ),
    "what is not requested is not looked at": (
        POD,
        TEN,
        (make_pod("a").memory("10Gi").node("n1"),),
        status.Code.SUCCESS,
        (),
    ),
    "pods are kept free as well": (
        make_pod("web"),
        TEN,
        tuple(make_pod(f"a{number}").node("n1") for number in range(9)),
        U,
        ("Too many pods outside the headroom of 10%",),
    ),
    "a share below one unit is none": (make_pod("web"), make_node("n1").pods(1), (), status.Code.SUCCESS, ()),
    "devices are given to the last": (
        make_pod("web").request("example.com/gpu", "2").limit("example.com/gpu", "2"),
        TEN.resource("example.com/gpu", "2"),
        (),
        status.Code.SUCCESS,
        (),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_headroom_of_a_tenth(row: str) -> None:
    """Of a node of 10 CPUs, 10 GiB and 10 pods nine tenths are given."""
    pod, node, others, code, reasons = ROWS[row]
    evaluation = cycle.Decider(profile.Profile(headroom=10)).evaluate(world(node, *others).view(), pod.build())
    found = evaluation.verdicts["n1"].status

    assert (code, reasons) == (found.code, found.reasons)
    assert found.by == ("GraphHeadroom" if reasons else "")


def test_headroom_is_told_only_where_nothing_else_refuses() -> None:
    """A node that is full anyway is full; the count of the others says what the headroom costs."""
    nodes = [make_node(f"n{number}").cpu("10") for number in range(3)]
    others = [make_pod("a").cpu("10").node("n0"), *(make_pod(f"b{n}").cpu("8500m").node(f"n{n}") for n in (1, 2))]
    decision = cycle.Decider(profile.Profile(headroom=10)).decide(world(*nodes, *others).view(), POD.build())

    assert decision.diagnosis is not None
    assert (("Insufficient cpu", 1), ("Insufficient cpu outside the headroom of 10%", 2)) == decision.diagnosis.reasons
    assert ("GraphHeadroom", "NodeResourcesFit") == decision.diagnosis.plugins


def test_a_class_follows_what_changes_node_by_node() -> None:
    """Half of each node is kept free, so each takes one pod; a node that leaves the pool takes none.

    One row at a time is brought up to date, and the answer is that of a fresh engine.
    """
    names = [f"n{number}" for number in range(12)]
    settings = profile.Profile(headroom=50, pool=("pool", "ours"))
    graph, decider = world(*(make_node(name).cpu("2").label("pool", "ours") for name in names)), cycle.Decider(settings)
    chosen = []
    for number in range(len(names) - 1):
        pod = make_pod(f"p{number}").cpu("1").build()
        decision = decider.decide(graph.view(), pod)
        assert decision.node == cycle.Decider(settings).decide(graph.view(), pod).node
        chosen.append(decision.node)
        graph.apply(delta.Patch().set_vertex(make_pod(f"p{number}").cpu("1").node(decision.node).build()))
        if number == 0:
            graph.apply(delta.Patch().set_vertex(make_node("n11").cpu("2").label("pool", "theirs").build()))

    assert sorted(names[:-1]) == sorted(chosen)
    assert not decider.decide(graph.view(), POD.build()).placed
    assert 1 == decider.classes.statistics.builds


@pytest.mark.parametrize("amount", [0, 1, 99, 100, 101, 10**18, 2**63 - 1])
def test_the_share_is_exact_for_every_amount(amount: int) -> None:
    """Rounded down to whole units, without a detour through floating point."""
    assert amount * 33 // 100 == sharing.kept(amount, 33)


def test_a_node_outside_the_pool_is_told_to_be_outside_whatever_else_refuses_it() -> None:
    """It is no candidate, so that it is full or tainted is no news."""
    graph = world(make_node("a1").cpu("0").taint("x"), make_node("p1").label("pool", "ours"))
    evaluation = cycle.Decider(profile.Profile(pool=("pool", "ours"))).evaluate(graph.view(), POD.build())

    assert status.Status(UAU, ("node(s) were outside the pool pool=ours",), "GraphPool") == (
        evaluation.verdicts["a1"].status
    )
    assert ("p1",) == evaluation.best


def test_a_domain_without_a_node_of_the_pool_does_not_hold_up_spread() -> None:
    """Zone b is empty and will stay so; counted, it would forbid every second pod in zone a."""
    graph = world(
        make_node("p1").zone("a").label("pool", "ours"),
        make_node("x1").zone("b"),
        *(make_pod(f"w{number}").label("app", "web").node("p1") for number in range(3)),
    )
    pod = make_pod("web").label("app", "web").spread("topology.kubernetes.io/zone", {"matchLabels": {"app": "web"}})

    assert cycle.Decider(profile.Profile(pool=("pool", "ours"))).decide(graph.view(), pod.build()).node == "p1"


def test_with_headroom_nearly_full_nodes_are_taken_from_the_fullest() -> None:
    """Others take the emptiest first. What is not nearly full, here what keeps 4 of 10 CPUs, ranks as it does there."""
    taken = (0, 4, 5, 6, 7, 8)
    made = [make_node(f"n{cpus}").cpu("10").memory("100Gi") for cpus in taken]
    there = [make_pod(f"p{cpus}").cpu(str(cpus)).node(f"n{cpus}") for cpus in taken if cpus]
    graph, found = world(*made, *there).view(), list[dict[str, int | None]]()
    for headroom in (0, 10):
        verdicts = cycle.Decider(profile.Profile(headroom=headroom)).evaluate(graph, POD.build()).verdicts
        found.append({name: verdict.scores.get("GraphHeadroom") for name, verdict in verdicts.items()})

    assert dict.fromkeys(found[0], None) == found[0]
    assert {"n0": 100, "n4": 100, "n5": 100, "n6": 34, "n7": 67, "n8": 100} == found[1]


@pytest.mark.parametrize(("emptiest", "expected"), [(0, "n0"), (4, "n4"), (6, "n8")])
def test_the_headroom_turns_the_ranking_round_only_where_all_nodes_are_nearly_full(
    emptiest: int, expected: str
) -> None:
    """While one is not, it is taken."""
    taken = sorted({emptiest, 6, 7, 8})
    made = [make_node(f"n{cpus}").cpu("10").memory("100Gi") for cpus in taken]
    there = [make_pod(f"p{cpus}").cpu(str(cpus)).node(f"n{cpus}") for cpus in taken if cpus]
    decided = cycle.Decider(profile.Profile(headroom=10)).decide(world(*made, *there).view(), POD.build())

    assert expected == decided.node
