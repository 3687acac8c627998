"""Compact adjacency: any history of changes gives what a fresh build gives, and a picture never changes."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st

from graphsched.graph import adjacency

Edges = dict[tuple[str, str, int], float]


def edges_of(picture: adjacency.Adjacency[Any]) -> dict[tuple[Any, Any, int], float]:
    """Every edge with its weight, by ids and kind; that none is there twice is checked on the way."""
    sources, records = picture.live()
    found = [
        (picture.name(source), picture.name(int(record["target"])), int(record["kind"]), float(record["weight"]))
        for source, record in zip(sources.tolist(), records, strict=True)
    ]
    assert len(found) == len({each[:3] for each in found})
    return {(source, target, kind): weight for source, target, kind, weight in found}


def fresh(vertices: set[str], edges: Edges) -> adjacency.Adjacency[str]:
    """Built in one go, in any order."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    for name in vertices:
        writer.add(name)
    for (source, target, kind), weight in edges.items():
        writer.set(source, target, kind=kind, weight=weight)
    return writer.compact()


def same(one: adjacency.Adjacency[Any], other: adjacency.Adjacency[Any]) -> bool:
    """Whether two pictures are equal, byte for byte."""
    return (
        list(one.names) == list(other.names)
        and dict(one.rows) == dict(other.rows)
        and one.vertex_offsets.tobytes() == other.vertex_offsets.tobytes()
        and one.ends.tobytes() == other.ends.tobytes()
        and one.records.tobytes() == other.records.tobytes()
    )


NAMES = st.sampled_from([f"v{number}" for number in range(12)])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("set"), NAMES, NAMES, st.integers(0, 2), st.integers(0, 9)),
        st.tuples(st.just("cut"), NAMES, NAMES, st.integers(0, 2)),
        st.tuples(st.just("picture")),
        st.tuples(st.just("compact")),
    ),
    max_size=60,
)


@hypothesis.given(CHANGES)
@hypothesis.settings(max_examples=300, deadline=None)
def test_any_history_of_changes_gives_what_a_fresh_build_gives(changes: list[tuple[Any, ...]]) -> None:
    """With vertices that went and came again, pictures taken in between, and rows packed anew."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    vertices: set[str] = set()
    edges: Edges = {}
    for what, *given in changes:
        match what:
            case "add":
                writer.add(given[0])
                vertices.add(given[0])
            case "remove":
                writer.remove(given[0])
                vertices.discard(given[0])
                edges = {edge: weight for edge, weight in edges.items() if given[0] not in edge[:2]}
            case "set" if {given[0], given[1]} <= vertices:
                writer.set(given[0], given[1], kind=given[2], weight=given[3])
                edges[given[0], given[1], given[2]] = given[3]
            case "cut":
                writer.cut(given[0], given[1], kind=given[2])
                edges.pop((given[0], given[1], given[2]), None)
            case "picture":
                assert edges == edges_of(writer.picture())
            case "compact":
                writer.compact()

    picture = writer.picture()
    assert edges == edges_of(picture)
    assert vertices == set(picture.rows) == {name for name in picture.names if name is not None}
    assert list(range(len(vertices))) == [picture.ranks[picture.rows[name]] for name in sorted(vertices)]
    assert same(writer.compact(), fresh(vertices, edges))


@hypothesis.given(st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=30, deadline=None)
def test_a_random_graph_with_holes_equals_that_of_networkx(seed: int) -> None:
    """Vertices are removed from both, so that rows are free and taken again."""
    rng = random.Random(seed)
    writer: adjacency.Writer[int] = adjacency.Writer()
    oracle = nx.DiGraph()
    for step in range(300):
        one, other = rng.randrange(40), rng.randrange(40)
        if rng.random() < 0.2 and one in oracle:
            writer.remove(one)
            oracle.remove_node(one)
        else:
            for name in (one, other):
                writer.add(name)
                oracle.add_node(name)
            writer.set(one, other, weight=step)
            oracle.add_edge(one, other)
        if rng.random() < 0.1:
            writer.picture()

    picture = writer.picture()
    assert set(oracle) == set(picture.rows)
    assert all(sorted(oracle.successors(name)) == picture.targets(name) for name in oracle)


def test_a_picture_does_not_change_while_the_writer_goes_on() -> None:
    """Not when rows are written anew, vertices go and their rows are taken by others, nor when all is packed again."""
    writer: adjacency.Writer[int] = adjacency.Writer()
    for name in range(200):
        writer.add(name)
    rng = random.Random(3)
    kept: list[tuple[adjacency.Adjacency[int], Any, Any]] = []
    for round_ in range(40):
        for _ in range(100):
            writer.set(*rng.sample([name for name in range(200) if name in writer], 2), weight=round_)
        writer.remove(rng.randrange(200))
        writer.add(1000 + round_)
        picture = writer.picture()
        kept.append((picture, edges_of(picture), list(picture.names)))

    assert all(edges == edges_of(picture) and names == list(picture.names) for picture, edges, names in kept)
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0].records["weight"][0] = 1.0


def test_only_dirty_rows_are_written_anew() -> None:
    """A change of one row leaves every other row's records where they are."""
    writer: adjacency.Writer[int] = adjacency.Writer()
    for name in range(100):
        writer.add(name)
    for name in range(100):
        writer.set(name, (name + 1) % 100)
    before = writer.picture()
    writer.set(7, 50)
    after = writer.picture()

    moved = np.flatnonzero(before.vertex_offsets != after.vertex_offsets)
    assert [before.rows[7]] == moved.tolist()
    assert np.shares_memory(before.records, writer.picture().records) or len(before.records) == 100


def test_dead_records_never_outnumber_the_living_for_long() -> None:
    """However often one row is written anew, the buffer stays within twice the edges and a little."""
    writer: adjacency.Writer[int] = adjacency.Writer()
    for name in range(50):
        writer.add(name)
    for round_ in range(500):
        for name in range(50):
            writer.set(0, name, weight=round_)
        picture = writer.picture()
        assert len(picture.records) <= 2 * picture.edges + adjacency._SLACK_RECORDS + 50
    weights = {(target, weight) for (_, target, _), weight in edges_of(writer.picture()).items()}
    assert {(name, 499.0) for name in range(50)} == weights


def test_loading_arrays_is_the_same_as_setting_edge_by_edge() -> None:
    """Ids are any numbers, far apart and in no order; of equal edges the last one counts."""
    rng = np.random.default_rng(5)
    ids = rng.choice(10**12, 50, replace=False)
    sources, targets = rng.choice(ids, 400), rng.choice(ids, 400)
    kinds, weights = rng.integers(0, 3, 400), rng.integers(0, 100, 400).astype(np.float32)
    loaded = adjacency.load(sources, targets, weights, kinds, vertices=ids)
    writer: adjacency.Writer[int] = adjacency.Writer()
    for name in ids.tolist():
        writer.add(name)
    for source, target, kind, weight in zip(
        sources.tolist(), targets.tolist(), kinds.tolist(), weights.tolist(), strict=True
    ):
        writer.set(source, target, kind=kind, weight=weight)

    assert same(loaded, writer.compact())


def test_a_record_is_sixteen_bytes_and_flags_do_not_tell_edges_apart() -> None:
    """The lowest 8 bits of the kind belong to the identity of an edge; what is above them is replaced with it."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    writer.add("a")
    writer.set("a", "a", kind=2, weight=1)
    writer.set("a", "a", kind=2 | 5 << adjacency.KIND_BITS, weight=3)

    assert 16 == adjacency.RECORD.itemsize
    assert {("a", "a", 2 | 5 << adjacency.KIND_BITS): 3.0} == edges_of(writer.picture())


def test_an_edge_needs_both_its_ends() -> None:
    """Setting one is an error; cutting what can not be there is nothing."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    writer.add("a")

    with pytest.raises(KeyError):
        writer.set("a", "b")
    writer.cut("a", "b")
    assert 0 == writer.picture().edges


def test_nothing_changed_is_the_same_picture() -> None:
    """Asking again costs nothing."""
    writer: adjacency.Writer[str] = adjacency.Writer()
    writer.add("a")

    assert writer.picture() is writer.picture()
    writer.add("a")
    writer.remove("b")
    assert writer.picture() is writer.picture()


def test_what_is_filled_at_once_is_what_was_set_one_by_one() -> None:
    """Byte for byte, with what each record is to be found by, whatever was there before; and both go on alike."""
    names = [f"v{number:02}" for number in range(20)]
    rng = np.random.default_rng(5)
    sources, targets, kinds = (rng.integers(0, size, 90) for size in (20, 20, 3))
    at_once: adjacency.Writer[str] = adjacency.Writer()
    at_once.add("gone")
    at_once.fill(names, sources, targets, kinds, np.arange(90))
    one_by_one: adjacency.Writer[str] = adjacency.Writer()
    for name in reversed(names):
        one_by_one.add(name)
    for number, (source, target, kind) in enumerate(zip(sources, targets, kinds, strict=True)):
        one_by_one.set(names[source], names[target], kind=int(kind), spare=number)

    assert same(at_once.picture(), one_by_one.compact())
    for writer in (at_once, one_by_one):
        writer.remove("v03")
        writer.add("new")
        writer.set("new", "v01", spare=77)
    assert same(at_once.compact(), one_by_one.compact())
    assert at_once.picture().out(at_once.rows["new"])["spare"].tolist() == [77]


def test_gathered_records_are_those_of_the_rows_in_their_order() -> None:
    """Also of a row that is asked for twice, and of one without any."""
    picture = adjacency.pack(["a", "b", "c"], np.array([0, 0, 2]), np.array([1, 2, 0]), spares=[7, 8, 9])
    records, counts = picture.gathered(np.array([2, 1, 0, 2]))

    assert records["spare"].tolist() == [9, 7, 8, 9]
    assert counts.tolist() == picture.degrees(np.array([2, 1, 0, 2])).tolist() == [1, 0, 2, 1]


def test_a_writer_that_nobody_asks_for_a_picture_keeps_few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vertices come and go on a standby for days: rows are used again, and what waits to be taken in is bounded."""
    monkeypatch.setattr(adjacency, "PENDING_MAX", 16)
    writer: adjacency.Writer[str] = adjacency.Writer()
    writer.add("hub")
    for number in range(500):
        writer.add(f"v{number}")
        writer.set(f"v{number}", "hub")
        writer.remove(f"v{number}")

    assert len(writer.names) <= 1 + 16
    assert len(writer._changes) + len(writer._doomed) <= 16
    assert ["hub"] == [name for name in writer.picture().names if name is not None]
