"""Node columns: rows that are handed out and taken back, sums that return to where they were."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from graphsched.base.values import pods
from graphsched.graph import columns


def filled(*names: str) -> columns.Columns:
    """Columns that hold these nodes."""
    made = columns.Columns()
    made.reserve(len(names))
    for name in names:
        made.add(name)
    return made


def test_a_bulk_load_gets_exactly_the_rows_it_asks_for() -> None:
    """Padding is walked over on every decision, so there is none."""
    made = columns.Columns()

    assert made.reserve(1000)
    assert 1000 == made.capacity
    assert not made.reserve(1000)


def test_nodes_that_trickle_in_do_not_grow_the_columns_each_time() -> None:
    """A hundred single arrivals grow them a few times only."""
    made = columns.Columns()
    grown = 0
    for number in range(100):
        grown += made.reserve(1)
        made.add(f"n{number}")

    assert grown < 15
    assert made.capacity < 130


def test_a_row_is_given_again_before_the_columns_grow() -> None:
    """The freed row is empty, and the next node gets it."""
    made = filled("a", "b")
    row = made.rows["a"]
    made.set_allocatable(row, (("cpu", 5), ("example.com/fpga", 1)))
    made.count(row, pods.Demand((("cpu", 3), ("example.com/fpga", 1)), 3, 4), sign=1)
    assert row == made.remove("a")

    assert not made.reserve(1)
    assert row == made.add("c")

    values = [column[row] for column in (*made.allocatable.values(), *made.requested.values())]
    assert not any(values)
    assert (0, 0, 0) == (made.scored_cpu[row], made.scored_memory[row], made.pods[row])
    assert "c" == made.names[row]


def test_a_resource_nobody_offers_reads_as_zero() -> None:
    """It has no column, and asking for it makes none."""
    made = filled("a", "b")

    assert [0, 0] == made.column(made.allocatable, "example.com/fpga").tolist()
    assert "example.com/fpga" not in made.allocatable


def test_the_layout_moves_when_rows_do_and_only_then() -> None:
    """Whoever derived something from row numbers sees that it is void."""
    made = filled("a")
    seen = made.layout
    made.set_allocatable(0, (("cpu", 1),))
    made.count(0, pods.Demand((("cpu", 1),)), sign=1)
    assert seen == made.layout

    made.reserve(1)
    made.add("b")
    with_b = made.layout
    made.remove("a")

    assert seen < with_b < made.layout


def test_free_rows_rank_last() -> None:
    """Names decide among the others."""
    made = filled("b", "c", "a")
    made.remove("c")

    order = np.argsort(made.rank).tolist()
    assert ["a", "b", ""] == [made.names[row] for row in order]


def test_an_overlay_can_be_counted_on_without_the_columns_noticing() -> None:
    """Also where the pod brings a resource that nobody held before."""
    made = filled("a")
    made.count(0, pods.Demand((("cpu", 1),), 1, 2), sign=1)
    twin = made.overlay()

    twin.count(0, pods.Demand((("cpu", 4), ("example.com/fpga", 1)), 4, 4), sign=1)

    assert (1, 1, 2, 1) == (made.requested["cpu"][0], made.scored_cpu[0], made.scored_memory[0], made.pods[0])
    assert "example.com/fpga" not in made.requested
    assert (5, 5, 6, 2) == (twin.requested["cpu"][0], twin.scored_cpu[0], twin.scored_memory[0], twin.pods[0])


@given(st.lists(st.tuples(st.integers(0, 1 << 55), st.integers(0, 1 << 55)), max_size=60), st.randoms())
def test_sums_return_to_where_they_were(amounts: list[tuple[int, int]], random: object) -> None:
    """Bytes are not lost, whatever the size and the order in which pods leave."""
    made = filled("a")
    demands = [pods.Demand((("cpu", cpu), ("memory", memory)), cpu, memory) for cpu, memory in amounts]
    for demand in demands:
        made.count(0, demand, sign=1)
    assert sum(cpu for cpu, _ in amounts) == made.requested["cpu"][0]
    random.shuffle(demands)  # type: ignore[attr-defined]  # random.Random, which hypothesis replays
    for demand in demands:
        made.count(0, demand, sign=-1)

    assert (0, 0, 0) == (made.requested["cpu"][0], made.requested["memory"][0], made.scored_memory[0])
