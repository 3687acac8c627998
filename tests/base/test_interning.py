"""Equal values become one, and no table grows without end."""

from graphsched.base.kube import interning


def test_equal_values_become_the_first_of_them() -> None:
    """By equality, not by identity."""
    table: interning.Table[tuple[int, ...]] = interning.Table()
    first, second = tuple(range(2)), tuple(range(2))

    assert table(first) is first
    assert table(second) is first


def test_a_full_table_starts_anew() -> None:
    """Bounded: what was known is merely not shared with what comes later."""
    table: interning.Table[tuple[int, ...]] = interning.Table(entries_max=2)
    values = [table((number,)) for number in range(5)]

    assert [(number,) for number in range(5)] == values
    assert 1 == len(table)


def test_empty_values_are_values() -> None:
    """An empty text is not an absent one."""
    table: interning.Table[str] = interning.Table()

    assert "" == table("")
    assert 1 == len(table)
