"""Walks give the orders that networkx gives, on random graphs with holes, and end where their budget does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import hypothesis
import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st

from graphsched.graph import adjacency, dag, walks

Pair = tuple[adjacency.Adjacency[int], nx.DiGraph]


def pair(seed: int, *, acyclic: bool = False) -> Pair:
    """A random graph, from which vertices were removed again, as a picture and as networkx has it, ids in order."""
    rng = random.Random(seed)
    writer: adjacency.Writer[int] = adjacency.Writer()
    oracle = nx.DiGraph()
    size, edges = rng.randrange(1, 40), rng.randrange(0, 160)
    for name in rng.sample(range(1000), size):
        writer.add(name)
        oracle.add_node(name)
    for _ in range(edges):
        one, other = rng.choice(list(oracle)), rng.choice(list(oracle))
        if acyclic and one >= other:
            continue
        writer.set(one, other)
        oracle.add_edge(one, other)
    for name in rng.sample(list(oracle), size // 4):
        writer.picture()
        writer.remove(name)
        oracle.remove_node(name)
    ordered = nx.DiGraph()
    ordered.add_nodes_from(sorted(oracle))
    ordered.add_edges_from(sorted(oracle.edges))
    return writer.picture(), ordered


def ids(picture: adjacency.Adjacency[int], rows: walks.Rows) -> list[int]:
    """The rows' ids."""
    return [picture.name(row) for row in rows.tolist()]


SEEDS = st.integers(0, 2**32 - 1)


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=100, deadline=None)
def test_breadth_first_is_that_of_networkx(seed: int) -> None:
    """Order and levels, from any vertex."""
    picture, oracle = pair(seed)
    for start in list(oracle)[:5]:
        walk = walks.breadth_first(picture, [picture.rows[start]])
        expected = [start, *(target for _, target in nx.bfs_edges(oracle, start))]

        assert expected == ids(picture, walk.rows)
        assert walk.whole
        spans = itertools.pairwise(walk.levels.tolist())
        assert [set(layer) for layer in nx.bfs_layers(oracle, start)] == [
            set(expected[begin:end]) for begin, end in spans
        ]
        assert sum(oracle.out_degree(name) for name in expected) == walk.edges


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=100, deadline=None)
def test_depth_first_is_that_of_networkx(seed: int) -> None:
    """Order on the way down, and on the way up."""
    picture, oracle = pair(seed)
    for start in list(oracle)[:5]:
        walk = walks.depth_first(picture, [picture.rows[start]])

        assert list(nx.dfs_preorder_nodes(oracle, start)) == ids(picture, walk.rows)
        assert list(nx.dfs_postorder_nodes(oracle, start)) == ids(picture, walk.finished)
        assert walk.whole


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=100, deadline=None)
def test_topological_waves_are_those_of_networkx(seed: int) -> None:
    """Over all that can be reached from some vertices."""
    picture, oracle = pair(seed, acyclic=True)
    starts = list(oracle)[:3]
    walk = walks.topological(picture, [picture.rows[name] for name in starts])
    reached = set(starts).union(*(nx.descendants(oracle, name) for name in starts))
    expected = [sorted(wave) for wave in nx.topological_generations(oracle.subgraph(reached))]
    order = ids(picture, walk.rows)

    assert expected == [order[begin:end] for begin, end in itertools.pairwise(walk.levels.tolist())]


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=100, deadline=None)
def test_a_graph_has_an_order_or_a_cycle_that_is_one(seed: int) -> None:
    """The cycle leads from each to the next and back to the first, which comes first of them."""
    picture, oracle = pair(seed)
    built = dag.build(picture)
    if isinstance(built, dag.Dag):
        assert nx.is_directed_acyclic_graph(oracle)
        assert set(oracle) == set(ids(picture, built.order))
    else:
        assert isinstance(built, dag.Cycle)
        assert all(oracle.has_edge(one, other) for one, other in itertools.pairwise((*built.ids, built.ids[0])))
        assert len(built.ids) == len(set(built.ids))
        assert min(built.ids) == built.ids[0]


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=60, deadline=None)
def test_longest_chains_are_those_of_networkx(seed: int) -> None:
    """Up to each vertex, and on from it."""
    picture, oracle = pair(seed, acyclic=True)
    built = dag.build(picture)
    assert isinstance(built, dag.Dag)
    depths, heights = built.depths(), built.heights()
    for name in oracle:
        above = oracle.subgraph({name, *nx.ancestors(oracle, name)})
        below = oracle.subgraph({name, *nx.descendants(oracle, name)})
        row = picture.rows[name]
        assert (nx.dag_longest_path_length(above), nx.dag_longest_path_length(below)) == (depths[row], heights[row])


def test_a_cycle_is_named() -> None:
    """By the ids on it, without those that only wait for it."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    for name in "abcde":
        writer.add(name)
    for one, other in ("da", "ab", "bc", "ca", "ce"):
        writer.set(one, other)
    built = dag.build(writer.picture())

    assert isinstance(built, dag.Cycle)
    assert "a → b → c → a" == str(built)


WALKS: list[Callable[..., walks.Walk]] = [walks.breadth_first, walks.depth_first, walks.topological]


def comb(teeth: int) -> adjacency.Adjacency[int]:
    """0 leads to all others, and each of them to the next."""
    names = np.arange(teeth)
    sources = np.concatenate([np.zeros(teeth - 1, np.intp), names[1:-1]])
    return adjacency.pack(range(teeth), sources, np.concatenate([names[1:], names[2:]]))


@pytest.mark.parametrize("walk", WALKS)
def test_a_cancelled_walk_visits_no_more(walk: Callable[..., walks.Walk]) -> None:
    """Whatever its order."""
    ended = walk(comb(10_000), [0], walks.Budget(cancelled=lambda: True))

    assert walks.Ended.CANCELLED is ended.ended
    assert len(ended.rows) < 10_000


@pytest.mark.parametrize("walk", [walks.breadth_first, walks.depth_first])
def test_a_walk_looks_at_the_time_between_pieces(walk: Callable[..., walks.Walk]) -> None:
    """A level, or a row, of many edges does not make it miss the end."""
    looks = itertools.count()
    budget = walks.Budget(expired=lambda: next(looks) >= 2)
    wide = adjacency.load(np.arange(400_000) // 4, np.arange(400_000) + 1_000_000)
    ended = walk(wide, [wide.rows[name] for name in range(100_000)], budget)

    assert walks.Ended.EXPIRED is ended.ended
    assert 0 < ended.edges < 400_000
    assert next(looks) == 3


@pytest.mark.parametrize("walk", [walks.breadth_first, walks.depth_first])
def test_limits_cut_a_walk_short_at_the_same_place_every_time(walk: Callable[..., walks.Walk]) -> None:
    """What was visited until then is the beginning of the whole walk."""
    picture = comb(50)
    whole = walk(picture, [0]).rows.tolist()
    few = walk(picture, [0], walks.Budget(vertices_max=7))
    short = walk(picture, [0], walks.Budget(edges_max=52))

    assert (walks.Ended.VERTICES, whole[:7]) == (few.ended, few.rows.tolist())
    assert walks.Ended.EDGES is short.ended
    assert whole[: len(short.rows)] == short.rows.tolist()
    assert short.edges <= 52


@pytest.mark.parametrize("walk", WALKS)
def test_depth_is_counted_from_the_start(walk: Callable[..., walks.Walk]) -> None:
    """At depth 0 only the starts are visited; a graph that is not deeper ends as a whole."""
    chain = adjacency.pack(range(6), np.arange(5), np.arange(1, 6))
    for depth in range(6):
        ended = walk(chain, [0], walks.Budget(depth_max=depth))
        assert list(range(depth + 1)) == ended.rows.tolist()
        assert (walks.Ended.DONE if depth == 5 else walks.Ended.DEPTH) is ended.ended


def test_a_topological_walk_does_not_order_half_of_what_it_should() -> None:
    """Cut off before it knows what can be reached, it visits nothing."""
    ended = walks.topological(comb(50), [0], walks.Budget(vertices_max=7))

    assert (walks.Ended.VERTICES, []) == (ended.ended, ended.rows.tolist())


def test_depth_first_leaves_alone_what_is_pruned() -> None:
    """The row itself is visited, what only it leads to is not."""
    walk = walks.depth_first(comb(5), [1], prune=lambda row, depth: row == 3 and depth == 2)

    assert [1, 2, 3] == walk.rows.tolist()
    assert walk.whole


def test_one_space_serves_walk_after_walk() -> None:
    """Over pictures of any size, each walk from nothing, without more memory than the largest needs."""
    space = walks.Space()
    for size in (10, 1000, 5, 1000):
        assert list(range(size)) == walks.breadth_first(comb(size), [0], space=space).rows.tolist()
        assert size == len(walks.topological(comb(size), [0], space=space).rows)
    assert space.scratch.high_water <= 1000 * 20


def test_a_walk_from_nowhere_is_empty_and_whole() -> None:
    """No start, no visit."""
    for walk in WALKS:
        assert (0, walks.Ended.DONE) == ((ended := walk(comb(3), [])).rows.size, ended.ended)
