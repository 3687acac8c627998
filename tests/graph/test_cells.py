"""What nodes tell of their NUMA cells is in columns, whatever came in which order."""

import random

import pytest

from graphsched.base.values import keys, nodes, places
from graphsched.graph import cells, delta, store
from tests.builders import make_node


def cell(node: str, name: str, *, policy: str = "", **free: int) -> places.Place:
    """A cell of a node, of twice what is free."""
    labels = ((places.POLICY, policy),) if policy else ()
    available = tuple(sorted(free.items()))
    amounts = tuple((resource, 2 * amount) for resource, amount in available)
    return places.Place(places.cell_name(node, name), places.NUMA, labels=labels, amounts=amounts, available=available)


def graph_of(*vertices: delta.Vertex) -> store.Store:
    """A graph to which these came one by one."""
    graph = store.Store()
    for vertex in vertices:
        assert isinstance(graph.apply(delta.Patch().set_vertex(vertex)), delta.Applied)
    return graph


def test_cells_are_columns_by_resource() -> None:
    """A resource that one cell does not tell of is none there; one that no cell tells of is unknown."""
    graph = graph_of(make_node("n1").build(), cell("n1", "a", cpu=2000, memory=8), cell("n1", "b", cpu=500))

    assert {
        "cells": 2,
        "strictness": 0,
        "available in cells": {"cpu": [2000, 500], "memory": [8, 0]},
        "offered in cells": {"cpu": [4000, 1000], "memory": [16, 0]},
    } == graph.cells.row("n1")
    assert graph.cells
    assert not store.Store().cells


@pytest.mark.parametrize(
    ("policy", "strictness"),
    [
        ("single-numa-node", cells.Strictness.SINGLE),
        ("SingleNUMANodePodLevel", cells.Strictness.SINGLE),
        ("restricted", cells.Strictness.RESTRICTED),
        ("RestrictedContainerLevel", cells.Strictness.RESTRICTED),
        ("best-effort", cells.Strictness.LENIENT),
        ("none", cells.Strictness.LENIENT),
        ("", cells.Strictness.LENIENT),
    ],
)
def test_a_policy_is_strict_in_both_spellings(policy: str, strictness: cells.Strictness) -> None:
    """That of kubelets and that of older agents."""
    graph = graph_of(make_node("n1").build(), cell("n1", "a", policy=policy, cpu=1))

    assert strictness == cells.strictness(policy) == graph.cells.strict[graph.columns.rows["n1"]]


def test_what_is_no_cell_or_tells_nothing_free_is_left_out() -> None:
    """A place of that name and another kind, another name of that kind, a cell without a report."""
    free: nodes.Amounts = (("cpu", 1),)
    others = (
        places.Place("numa/n1/a", "switch", available=free),
        places.Place("other/n1/a", places.NUMA, available=free),
        places.Place("numa/n1", places.NUMA, available=free),
        places.Place("numa/n1/a", places.NUMA, amounts=free),
    )
    for other in others:
        assert not graph_of(make_node("n1").build(), other).cells
    changed = graph_of(make_node("n1").build(), cell("n1", "a", cpu=1), others[3])
    assert not changed.cells
    assert 0 == changed.cells.count.sum()


def test_more_cells_than_are_looked_at_are_the_first_by_name() -> None:
    """Whatever an agent writes, the columns stay bounded."""
    graph = graph_of(make_node("n1").build(), *(cell("n1", f"c{number:03}", cpu=number) for number in range(40)))

    assert list(range(cells.CELLS_MAX)) == graph.cells.available["cpu"][:, graph.columns.rows["n1"]].tolist()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_a_fresh_store_holds_the_same(seed: int) -> None:
    """Nodes and cells in any order, rows recycled, cells before their node."""
    dice, graph = random.Random(seed), store.Store()
    for _ in range(60):
        node, name = f"n{dice.randrange(6)}", f"c{dice.randrange(3)}"
        patch = delta.Patch()
        match dice.randrange(5):
            case 0:
                patch.set_vertex(make_node(node).build())
            case 1:
                patch.remove(keys.node_key(node))
            case 2:
                patch.remove(keys.place_key(places.cell_name(node, name)))
            case _:
                policy = dice.choice(["", "restricted", "single-numa-node"])
                free = {dice.choice(["cpu", "memory"]): dice.randrange(1, 9)}
                patch.set_vertex(cell(node, name, policy=policy, **free))
        graph.apply(patch)
        assert [] == graph.audit()
    told = [place for place in graph.vertex_keys("place/") if keys.name_of(place).split("/")[1] in graph.columns.rows]
    assert len(told) == graph.cells.count.sum()


def test_the_audit_finds_a_cell_that_is_wrong() -> None:
    """By node, as what else is derived of it."""
    graph = graph_of(make_node("n1").build(), cell("n1", "a", cpu=1))
    graph.cells.available["cpu"][0, graph.columns.rows["n1"]] = 7

    (line,) = graph.audit()
    assert line.startswith("node/n1: available in cells is")
