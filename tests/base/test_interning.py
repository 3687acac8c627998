"""Equal values become one, and no table grows without end."""

import msgspec

from graphsched.base.kube import interning


def made(number: int) -> tuple[int, ...]:
    """A value that no other is identical to."""
    return tuple(range(number, number + 1))


def test_equal_values_become_the_first_of_them() -> None:
    """By equality, not by identity."""
    table: interning.Table[tuple[int, ...]] = interning.Table()
    first, second = tuple(range(2)), tuple(range(2))

    assert table(first) is first
    assert table(second) is first


def test_what_nobody_asks_for_is_forgotten() -> None:
    """Bounded: what was known is merely not shared with what comes later."""
    table: interning.Table[tuple[int, ...]] = interning.Table(entries_max=4)
    values = [table(made(number)) for number in range(9)]

    assert [(number,) for number in range(9)] == values
    assert len(table) <= 4
    assert table(made(0)) is not values[0]


def test_what_is_asked_for_stays() -> None:
    """However much else comes by."""
    table: interning.Table[tuple[int, ...]] = interning.Table(entries_max=4)
    first = table(made(0))

    for number in range(1, 20):
        table(made(number))
        assert table(made(0)) is first
    assert len(table) <= 4


def test_empty_values_are_values() -> None:
    """An empty text is not an absent one."""
    table: interning.Table[str] = interning.Table()

    assert "" == table("")
    assert 1 == len(table)


class Held(msgspec.Struct, frozen=True, weakref=True):
    """A value that can be referred to weakly."""

    number: int


def test_a_weak_table_knows_what_somebody_holds() -> None:
    """However many others come by, and no longer than that."""
    table: interning.WeakTable[Held] = interning.WeakTable()
    held = table(Held(0))
    for number in range(1, 1000):
        table(Held(number))

    assert table(Held(0)) is held
    assert 1 == len(table)
    del held
    assert 0 == len(table)
