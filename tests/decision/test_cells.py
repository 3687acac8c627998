"""A Guaranteed pod goes where one NUMA cell holds all of it, where a profile asks for that, and not otherwise."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import places, pods
from graphsched.decision import cycle, names, profile
from graphsched.decision.scoring import cells as scoring
from graphsched.explain import telling, why
from graphsched.graph import delta, store
from tests.builders import make_node, make_pod
from tests.graph.test_cells import cell

ASKED = profile.Profile(weights={**profile.DEFAULT_WEIGHTS, names.GRAPH_CELLS: 100})


def guaranteed(cpu: str = "2", memory: str = "1Gi") -> pods.Pod:
    """A pod that kubelets align."""
    pod = make_pod("web")
    for resource, amount in (("cpu", cpu), ("memory", memory)):
        pod = pod.request(resource, amount).limit(resource, amount)
    return pod.build()


def world(*told: places.Place, nodes: tuple[str, ...] = ("n1", "n2", "n3")) -> store.Store:
    """Nodes of 4 CPUs, and cells of theirs."""
    graph, patch = store.Store(), delta.Patch()
    for name in nodes:
        patch.set_vertex(make_node(name).build())
    for place in told:
        patch.set_vertex(place)
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def points(graph: store.Store, pod: pods.Pod) -> dict[str, int]:
    """Node → what the score gives it, without its weight; none where it skips."""
    verdicts = cycle.Decider(ASKED).evaluate(graph.view(), pod).verdicts
    found = {name: verdict.scores.get(names.GRAPH_CELLS) for name, verdict in verdicts.items()}
    return {name: score // 100 for name, score in found.items() if score is not None}


WIDE = (cell("n1", "a", cpu=1500, memory=8 << 30), cell("n1", "b", cpu=1500, memory=8 << 30))
WHOLE = (cell("n2", "a", cpu=500, memory=8 << 30), cell("n2", "b", cpu=2000, memory=1 << 30))


def test_one_cell_that_holds_all_is_best_and_an_unknown_node_comes_last() -> None:
    """Where two cells would have to share it is half as good; the whole node has room in each case."""
    graph = world(*WIDE, *WHOLE)

    assert {"n1": 50, "n2": 100, "n3": scoring.UNKNOWN} == points(graph, guaranteed())
    assert "n2" == cycle.Decider(ASKED).decide(graph.view(), guaranteed()).node


def test_no_other_cell_has_to_hold_what_another_one_does() -> None:
    """CPU in one cell and memory in the other is no cell that holds all."""
    graph = world(cell("n1", "a", cpu=2000, memory=1), cell("n1", "b", cpu=1, memory=8 << 30))

    assert 50 == points(graph, guaranteed())["n1"]


@pytest.mark.parametrize(
    ("policy", "cpu", "expected"),
    [
        ("single-numa-node", 1500, 0),
        ("single-numa-node", 2000, 100),
        ("restricted", 1500, 0),
        ("restricted", 900, 0),
        ("best-effort", 1500, 50),
        ("best-effort", 900, 0),
    ],
)
def test_a_kubelet_that_would_turn_it_away_gets_nothing(policy: str, cpu: int, expected: int) -> None:
    """One that insists on a single cell; a restricted one, which on an empty node would find one cell enough."""
    told = [cell("n1", name, policy=policy, cpu=cpu, memory=8 << 30) for name in "ab"]

    assert expected == points(world(*told), guaranteed())["n1"]


def test_a_restricted_kubelet_takes_what_needs_as_many_cells_anyway() -> None:
    """4 CPUs fit into no cell of 3: with two empty ones it runs, with less in each it would need a third."""
    full = [cell("n1", name, policy="restricted", cpu=3000, memory=8 << 30) for name in "abc"]
    empty = [msgspec.structs.replace(each, amounts=each.available) for each in full]
    used = [msgspec.structs.replace(each, available=(("cpu", 1500), ("memory", 8 << 30))) for each in empty]

    assert 50 == points(world(*empty), guaranteed("4"))["n1"]
    assert 0 == points(world(*used), guaranteed("4"))["n1"]


@pytest.mark.parametrize("pod", [make_pod("burst").cpu("2").build(), make_pod("idle").build()])
def test_a_pod_that_no_kubelet_aligns_is_not_concerned(pod: pods.Pod) -> None:
    """Nor is any where nobody tells of cells."""
    assert {} == points(world(*WIDE, *WHOLE), pod)
    assert {} == points(world(), guaranteed())


def test_without_a_weight_nothing_changes() -> None:
    """Not the totals, not the choice."""
    plain, told = world(), world(*WIDE, *WHOLE)
    for decider in (cycle.Decider(), cycle.Decider(profile.Profile(weights=profile.DEFAULT_WEIGHTS))):
        with_cells, without = (decider.evaluate(each.view(), guaranteed()) for each in (told, plain))
        assert with_cells.verdicts == without.verdicts
        assert decider.decide(told.view(), guaranteed()).node == decider.decide(plain.view(), guaranteed()).node


amounts = st.fixed_dictionaries({}, optional={name: st.integers(0, 9) for name in ("cpu", "memory", "x/y")})


@given(st.lists(st.lists(amounts, max_size=4), min_size=1, max_size=4), amounts)
def test_the_columns_say_what_a_loop_over_the_cells_says(
    told: list[list[dict[str, int]]], asked: dict[str, int]
) -> None:
    """For every node, whatever the others tell."""
    graph = world(
        *(
            cell(f"n{node}", f"c{number}", policy="", **free)
            for node, each in enumerate(told)
            for number, free in enumerate(each)
        ),
        nodes=tuple(f"n{number}" for number in range(len(told))),
    )
    wanted = tuple(sorted(asked.items()))
    there = graph.cells
    for name, row in graph.columns.rows.items():
        known = there.of(name)
        if known:
            assert scoring.taken(known, wanted) == scoring.taken_by_row(there.available, there.count, wanted)[row]


def test_explanations_tell_the_cell() -> None:
    """Of the node, and with --verbose of the runners-up; nothing where the score has no weight."""
    told = (*WIDE, *(cell("n2", name, policy="single-numa-node", cpu=2000, memory=1 << 30) for name in "ab"))
    graph, decider = world(*told), cycle.Decider(ASKED)
    graph.apply(delta.Patch().set_vertex(guaranteed()))
    found = why.explain(graph.view(), guaranteed(), decider)
    lines = telling.text(found, verbose=True).splitlines()

    assert "  NUMA: all of it fits into a of n2 (policy single-numa-node)." in lines
    assert "    it takes 2 of the 2 cells of n1" in lines
    assert "    n3 does not tell what is free in which" in lines
    assert any(line.startswith("  fits one NUMA cell") for line in lines)
    assert () == why.explain(graph.view(), guaranteed(), cycle.Decider()).cells
