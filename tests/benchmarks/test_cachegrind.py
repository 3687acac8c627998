"""What cachegrind writes is read as it means."""

import pytest

from benchmarks.graph import cachegrind

TEXT = """desc: I1 cache: 32768 B
cmd: program
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fn=main
12 1 0 0 5 2 1 3 1 1
summary: 100 2 1 50 20 5 30 10 3
"""


def test_data_accesses_and_misses_are_read_from_the_totals() -> None:
    """Reads and writes together, instructions apart."""
    assert (80, 30, 8) == cachegrind.read(TEXT)


def test_the_miss_rate_is_that_of_the_last_level() -> None:
    """Of the questions that reach it, those it can not answer."""
    assert 25.0 == cachegrind.Misses(accesses=1000, last_level=40, memory=10).rate
    assert 0.0 == cachegrind.Misses(0, 0, 0).rate


def test_a_file_without_totals_is_no_measurement() -> None:
    """A run that was broken off leaves such files."""
    with pytest.raises(ValueError, match="no totals"):
        cachegrind.read("events: Ir\n")
