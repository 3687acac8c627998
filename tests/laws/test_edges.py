"""
The laws of edge tables: in whole columns they do what a dictionary of edges does one by one.

Tables are drawn from a handful of edges, so that two of them agree on much.
"""

from __future__ import annotations

import itertools
import sys
import typing

import numpy as np
import pytest
from hypothesis import given, strategies as st

from graphsched.graph import delta, edge_codec, edges, envelope
from graphsched.graph.generated import EdgeColumns

# A failing law is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

KINDS = 3
NAMES = ("a", "bc", "ä")
Plain = dict[int, float]

every_id = [
    int(edges.identities(source, target, kind)) for source in range(3) for target in range(3) for kind in range(KINDS)
]
some_ids = st.sampled_from(every_id)
some_weights = st.sampled_from((0.0, 0.25, 1.0, -3.5))
plains = st.dictionaries(some_ids, some_weights, max_size=12)


def table(plain: Plain) -> edges.Table:
    """The table of these edges."""
    ids = np.array(sorted(plain), np.uint64)
    return edges.Table(ids, np.array([plain[each] for each in ids.tolist()], np.float32))


def plainly(held: edges.Table) -> Plain:
    """The edges of a table, one by one."""
    return dict(zip(held.ids.tolist(), held.weights.tolist(), strict=True))


def change(removed: set[int], put: Plain, known: int = len(NAMES), names: tuple[str, ...] = ()) -> edges.Change:
    """The change that removes and sets these."""
    gone = np.array(sorted(removed - put.keys()), np.uint64)
    return edges.Change(gone, *table(put), known, names)


changes = st.builds(change, st.sets(some_ids, max_size=6), plains)


def after(before: Plain, done: edges.Change) -> Plain:
    """What a dictionary would hold."""
    kept = {each: weight for each, weight in before.items() if each not in set(done.removed.tolist())}
    return kept | dict(zip(done.ids.tolist(), done.weights.tolist(), strict=True))


def said(done: edges.Change) -> tuple[object, ...]:
    """A change in values that can be compared."""
    return done.removed.tolist(), done.ids.tolist(), done.weights.tolist(), done.known, tuple(done.names)


@given(plains, changes)
def test_applying_does_what_a_dictionary_does(before: Plain, done: edges.Change) -> None:
    """And the table stays sorted, and the one before is what it was."""
    held = table(before)
    then = edges.apply(held, done)

    assert plainly(then) == after(before, done)
    assert (then.ids[1:] > then.ids[:-1]).all()
    assert plainly(held) == before


@given(plains, plains)
def test_the_difference_leads_from_one_table_to_the_other(one: Plain, other: Plain) -> None:
    """apply(g, diff(g, h)) == h, and it says nothing that is so already."""
    done = edges.diff(table(one), table(other))

    assert plainly(edges.apply(table(one), done)) == other
    assert set(done.removed.tolist()) == one.keys() - other.keys()
    assert set(done.ids.tolist()) == {each for each, weight in other.items() if one.get(each) != weight}


@given(plains, changes)
def test_twice_is_once(before: Plain, done: edges.Change) -> None:
    """apply(apply(g, c), c) == apply(g, c)."""
    once = edges.apply(table(before), done)

    assert plainly(edges.apply(once, done)) == plainly(once)


@given(plains, st.lists(changes, max_size=4))
def test_merged_is_in_order(before: Plain, several: list[edges.Change]) -> None:
    """merge(c, d) means c, then d."""
    expected = table(before)
    for each in several:
        expected = edges.apply(expected, each)

    assert plainly(edges.apply(table(before), edges.merge(several))) == plainly(expected)


@given(plains, st.lists(st.tuples(changes, st.booleans()), max_size=6), st.integers(0, 12))
def test_layers_hold_what_the_changes_say(
    before: Plain, several: list[tuple[edges.Change, bool]], late_max: int
) -> None:
    """However often somebody reads in between, and however many changes are kept beside the table."""
    layers, expected = edges.Layers(table(before), late_max=late_max), table(before)
    for done, reads in several:
        layers.take(done)
        expected = edges.apply(expected, done)
        assert not reads or plainly(layers.table) == plainly(expected)

    assert plainly(layers.table) == plainly(expected)


@given(plains, changes, st.integers(1, 5))
def test_split_in_order_is_whole(before: Plain, done: edges.Change, rows_max: int) -> None:
    """Parts are small, and together mean the whole."""
    parts = edges.split(done._replace(names=("x",)), rows_max=rows_max)
    expected = table(before)
    for part in parts:
        assert part.rows <= rows_max
        expected = edges.apply(expected, part)

    assert plainly(expected) == after(before, done)
    assert sum(part.rows for part in parts) == done.rows
    assert tuple(edges.merge(parts).names) == ("x",)


@given(plains, changes)
def test_what_is_inverted_is_taken_back(before: Plain, done: edges.Change) -> None:
    """apply(apply(g, c), invert(c, g)) == g."""
    then = edges.apply(table(before), done)

    assert plainly(edges.apply(then, edges.invert(done, table(before)))) == before


@given(changes, st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=3), max_size=3, unique=True))
def test_decoding_what_was_encoded_gives_the_change(done: edges.Change, names: list[str]) -> None:
    """With its names, and where it belongs."""
    sent = edge_codec.Message(done._replace(names=tuple(names)), epoch=-5, base=7, generation=9)

    got = edge_codec.decode(edge_codec.encode(sent), kinds=KINDS)

    assert isinstance(got, edge_codec.Message)
    assert said(got.change) == said(sent.change)
    assert got[1:] == sent[1:]


@given(st.lists(changes, max_size=6), st.integers(0, 6), st.integers(1, 30))
def test_a_ledger_tells_what_happened_since_or_that_it_forgot(
    several: list[edges.Change], asked: int, dirty_max: int
) -> None:
    """The same as scanning both tables would, give or take edges that are as they were."""
    ledger = edges.Ledger(dirty_max=dirty_max)
    held = [edges.Table()]
    known = [0]
    for number, each in enumerate(several):
        ledger.names.number(f"n{number}")
        ledger.update(each)
        held.append(ledger.table)
        known.append(len(ledger.names))

    found = ledger.since(asked)

    if asked > len(several):
        assert found is None
    elif found is not None:
        assert plainly(edges.apply(held[asked], found)) == plainly(ledger.table)
        assert found.known == known[asked]
        assert tuple(found.names) == tuple(f"n{number}" for number in range(asked, len(several)))
    else:
        assert sum(each.rows for each in several[asked:]) + several[asked].rows > 0
        assert sum(each.rows for each in several) > dirty_max


def test_edges_are_found_again_in_their_identities() -> None:
    """Source, target and kind, up to the largest."""
    numbers = np.array([0, 1, edges.NAMES_MAX - 1])
    ids = edges.identities(numbers, numbers[::-1], np.array([2, 0, edges.KINDS_MAX - 1]))

    assert edges.sources(ids).tolist() == numbers.tolist()
    assert edges.targets(ids).tolist() == numbers[::-1].tolist()
    assert edges.kinds(ids).tolist() == [2, 0, edges.KINDS_MAX - 1]


def test_an_edge_is_in_a_table_once() -> None:
    """Twice is a bug of whoever makes it."""
    with pytest.raises(ValueError, match="twice"):
        edges.table(np.array([7, 7], np.uint64), [1, 1])


def test_parts_and_merges_have_their_bounds() -> None:
    """Bugs of the caller, said at once."""
    with pytest.raises(ValueError, match="not positive"):
        edges.split(edges.Change(), rows_max=0)
    with pytest.raises(ValueError, match="numbers names from 5 on"):
        edges.merge([edges.Change(known=2, names=("a",)), edges.Change(known=5)])


def test_decoding_makes_nothing_of_an_edge() -> None:
    """A hundred times as many edges take no more allocations."""

    def blocks(count: int) -> int:
        ids = edges.identities(np.arange(count) // 100, np.arange(count) % 100, 0)
        sent = edges.Change(edges.Table().ids, ids, np.ones(count, np.float32), count)
        data = edge_codec.encode(edge_codec.Message(sent, 1, 0, 1))
        edge_codec.decode(data, kinds=1)
        before = sys.getallocatedblocks()
        kept = edge_codec.decode(data, kinds=1)
        made = sys.getallocatedblocks() - before
        assert isinstance(kept, edge_codec.Message)
        assert len(kept.change.ids) == count
        return made

    assert blocks(100_000) <= blocks(1000) + 5


TWO = edges.Change(
    np.array([every_id[0]], np.uint64), np.array(every_id[5:7], np.uint64), np.ones(2, np.float32), 1, ("bc", "ä")
)


@pytest.mark.parametrize(
    ("broken", "detail"),
    [
        pytest.param(TWO._replace(ids=TWO.ids[::-1].copy()), "not sorted", id="unsorted"),
        pytest.param(TWO._replace(removed=TWO.ids[:1]), "set as well", id="removed and set"),
        pytest.param(TWO._replace(known=0, names=()), "no name", id="no such name"),
        pytest.param(TWO._replace(weights=TWO.weights[:1]), "1 are there for 2", id="a weight is missing"),
        pytest.param(TWO._replace(weights=TWO.weights * np.float32("nan")), "no finite", id="no weight"),
        pytest.param(TWO._replace(names=("", "x")), "do not divide", id="an empty name"),
        pytest.param(TWO._replace(ids=edges.identities([0, 1], 0, KINDS)), "a kind is not known", id="no such kind"),
    ],
)
def test_what_is_wrong_is_named(broken: edges.Change, detail: str) -> None:
    """Each check refuses what it is for."""
    answer = edge_codec.decode(edge_codec.encode(edge_codec.Message(broken, 1, 0, 1)), kinds=KINDS)

    assert isinstance(answer, delta.Refused)
    assert detail in answer.detail


@pytest.mark.parametrize("sent", [TWO, edges.Change(), TWO._replace(removed=edges.Table().ids), TWO._replace(names=())])
def test_the_bytes_are_what_the_schema_says(sent: edges.Change) -> None:
    """The generated code, which knows the schema, reads every field that was written by hand."""
    data = edge_codec.encode(edge_codec.Message(sent, -3, 1, 1 << 40))[envelope.HEADER_BYTES :]

    # The stubs say of one element that it is a list.
    root: typing.Any = EdgeColumns.EdgeColumns.GetRootAs(data, 0)

    assert EdgeColumns.EdgeColumns.EdgeColumnsBufferHasIdentifier(data, 0, size_prefixed=False)
    assert (root.Epoch(), root.Generation(), root.Known()) == (-3, 1 << 40, sent.known)
    assert [root.Ids(place) for place in range(root.IdsLength())] == sent.ids.tolist()
    assert [root.Removed(place) for place in range(root.RemovedLength())] == sent.removed.tolist()
    assert [root.Weights(place) for place in range(root.WeightsLength())] == sent.weights.tolist()
    text = bytes(root.Text(place) for place in range(root.TextLength()))
    assert text == "".join(sent.names).encode()
    ends = [root.TextEnds(place) for place in range(root.TextEndsLength())]
    assert ends == list(itertools.accumulate(len(name.encode()) for name in sent.names))


def test_a_number_that_does_not_fit_is_a_bug_of_the_sender() -> None:
    """The sender hears of it, not the receiver."""
    with pytest.raises(OverflowError):
        edge_codec.encode(edge_codec.Message(TWO, 1 << 70, 0, 1))


def test_a_change_that_leads_back_is_refused() -> None:
    """The generation reached is not before its base."""
    answer = edge_codec.decode(edge_codec.encode(edge_codec.Message(TWO, 1, 5, 4)), kinds=KINDS)

    assert isinstance(answer, delta.Refused)
    assert "leads back" in answer.detail
