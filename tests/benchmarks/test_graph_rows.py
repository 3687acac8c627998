"""The rows of the graph benchmark: both ways give equal answers, and the frame judges as it says."""

import pathlib

import msgspec
import pytest

from benchmarks.graph import __main__ as program, frame


def test_every_row_gives_equal_answers_both_ways() -> None:
    """At tiny sizes; how long it takes means nothing here."""
    for row in frame.find():
        outcome = row.run(quick=True)

        assert outcome.equal, row.NAME
        assert outcome.measures, row.NAME


def test_every_row_says_what_it_is() -> None:
    """Name, shape and reference are for people, and names are unique."""
    rows = frame.find()

    assert len(rows) == len({row.NAME for row in rows})
    assert all(row.NAME and row.SHAPE and row.REFERENCE for row in rows)


def test_less_is_better_unless_said_otherwise() -> None:
    """A ratio tells how many times better ours is, in either direction."""
    assert 4.0 == frame.Ratio("time", "ms", plain=8, ours=2, bar=4).ratio
    assert 4.0 == frame.Ratio("throughput", "/s", plain=2, ours=8, bar=4, more=True).ratio
    assert frame.Ratio("allocations", "", plain=8, ours=0, bar=100).passed


def test_a_row_passes_only_with_equal_answers_and_every_bar_reached() -> None:
    """One missed bar, one limit exceeded, or another answer fails it."""
    reached, missed = frame.Ratio("time", "ms", 8, 2, bar=4), frame.Ratio("time", "ms", 8, 2, bar=4.1)
    within, beyond = frame.Limit("calls", "", 32, at_most=32), frame.Limit("calls", "", 33, at_most=32)

    assert frame.Outcome(True, (reached, within)).passed
    assert not frame.Outcome(True, (reached, missed)).passed
    assert not frame.Outcome(True, (beyond,)).passed
    assert not frame.Outcome(False, (reached, within)).passed


def test_an_outcome_survives_the_way_from_one_process_to_another() -> None:
    """Rows run in processes of their own and hand over JSON."""
    outcome = frame.Outcome(True, (frame.Ratio("a", "ms", 2, 1, 2), frame.Limit("b", "", 1, 2)), ("a note",))

    assert outcome == msgspec.json.decode(msgspec.json.encode(outcome), type=frame.Outcome)


def test_held_memory_is_what_is_kept() -> None:
    """A megabyte that is kept counts, one that was only passed through does not."""
    held = frame.held_bytes(lambda: (bytes(1 << 20), len(bytes(1 << 20)))[:1])

    assert 1 << 20 <= held < (1 << 20) + 10_000


def test_the_rows_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` names each."""
    assert 0 == program.main(["--list"])
    listed = capsys.readouterr().out
    assert all(row.NAME in listed for row in frame.find())


def test_a_chosen_row_is_written_as_json(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--row` with `--output` leaves what scripts read."""
    for row in frame.find()[:1]:
        path = tmp_path / "out.json"
        assert 0 == program.main(["--row", row.NAME, "--quick", "--output", str(path)])
        assert row.NAME in capsys.readouterr().out
        assert msgspec.json.decode(path.read_bytes(), type=dict[str, frame.Outcome])[row.NAME].equal
