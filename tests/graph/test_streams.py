"""A patch is taken once and in order, or refused with what the source must do."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from graphsched.graph import delta, streams

SOURCE = "watch/pods"
NEW, REPEATED = streams.Admission.NEW, streams.Admission.REPEATED


def at(sequence: int, *, epoch: int = 7, source: str = SOURCE) -> delta.Stream:
    """A position."""
    return delta.Stream(source, epoch, sequence)


@pytest.fixture
def table() -> streams.StreamTable:
    """A table with one source that has sent two patches in epoch 7."""
    made = streams.StreamTable()
    assert made.open(SOURCE, 7) is None
    made.advance(at(1))
    made.advance(at(2))
    return made


def reason(answer: object) -> str:
    """Why it was refused."""
    assert isinstance(answer, delta.Refused)
    return answer.reason


def test_the_next_sequence_is_new(table: streams.StreamTable) -> None:
    """One after the last."""
    assert table.check(at(3)) is NEW


@pytest.mark.parametrize("sequence", [1, 2])
def test_a_sequence_that_was_taken_is_repeated_and_counted(table: streams.StreamTable, sequence: int) -> None:
    """It moves nothing, and is not lost from sight either."""
    assert table.check(at(sequence)) is REPEATED
    table.advance(at(sequence))

    assert table.position(SOURCE) == streams.Position(7, 2, repeated=1)


def test_a_gap_is_refused(table: streams.StreamTable) -> None:
    """The source is told to send its full state."""
    assert reason(table.check(at(4))) == "gap"


@pytest.mark.parametrize("epoch", [6, 8])
def test_an_epoch_nobody_announced_is_refused(table: streams.StreamTable, epoch: int) -> None:
    """Neither a ghost of the past nor a life that has not said hello is heard."""
    assert reason(table.check(at(3, epoch=epoch))) == "epoch"


def test_a_source_nobody_announced_is_refused(table: streams.StreamTable) -> None:
    """Hello comes first."""
    assert reason(table.check(at(1, source="agent/n1"))) == "epoch"


def test_a_new_life_starts_at_one(table: streams.StreamTable) -> None:
    """After hello the new epoch counts from 1 and the old one is not heard again."""
    assert table.open(SOURCE, 8) is None

    assert table.check(at(1, epoch=8)) is NEW
    assert reason(table.check(at(3, epoch=7))) == "epoch"


def test_hello_again_in_the_same_life_keeps_the_position(table: streams.StreamTable) -> None:
    """A reconnect must not make old patches new."""
    assert table.open(SOURCE, 7) is None

    assert table.check(at(2)) is REPEATED


def test_a_full_state_moves_over_a_gap(table: streams.StreamTable) -> None:
    """After the resync the next sequence follows the state's."""
    assert table.resync(SOURCE, 7, 9) is None

    assert table.check(at(10)) is NEW
    assert table.check(at(9)) is REPEATED


def test_a_full_state_of_the_past_is_refused(table: streams.StreamTable) -> None:
    """It would bring back what is gone."""
    assert reason(table.resync(SOURCE, 7, 1)) == "invalid"


@pytest.mark.parametrize("sequence", [0, -1])
def test_a_sequence_below_one_is_invalid(table: streams.StreamTable, sequence: int) -> None:
    """Counting starts at 1."""
    assert reason(table.check(at(sequence))) == "invalid"


def test_the_number_of_sources_is_bounded() -> None:
    """A leak of names is refused; a source that closed makes room."""
    table = streams.StreamTable(sources_max=1)
    assert table.open("a", 1) is None
    assert reason(table.open("b", 1)) == "invalid"

    assert table.close("a")
    assert table.open("b", 1) is None


def test_progress_on_a_refused_patch_is_a_bug(table: streams.StreamTable) -> None:
    """The caller skipped the check."""
    with pytest.raises(ValueError, match="follows 2"):
        table.advance(at(9))


@given(st.lists(st.integers(1, 6), max_size=30))
def test_each_sequence_is_new_once_and_in_order(arriving: list[int]) -> None:
    """However patches are repeated, reordered or lost, those taken are 1, 2, 3 and so on."""
    table = streams.StreamTable()
    table.open(SOURCE, 7)
    taken = []
    for sequence in arriving:
        admitted = table.check(at(sequence))
        assert table.check(at(sequence)) == admitted
        if admitted is NEW:
            taken.append(sequence)
        if not isinstance(admitted, delta.Refused):
            table.advance(at(sequence))

    assert taken == list(range(1, len(taken) + 1))
