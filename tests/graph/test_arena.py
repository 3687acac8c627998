"""The arena gives memory piece by piece, takes it back at once, and never holds more than it may."""

import numpy as np
import pytest

from graphsched.graph import arena


def test_arrays_do_not_overlap() -> None:
    """Each can be filled without touching another, whatever its type and size."""
    memory = arena.Arena(bytes_max=1 << 16, block_bytes=1 << 10)
    taken = [memory.take(count, dtype) for count, dtype in ((3, np.uint8), (100, np.int64), (7, np.float32), (0, int))]
    for number, array in enumerate(taken):
        array[:] = number

    assert all((array == number).all() for number, array in enumerate(taken))
    assert all(array.__array_interface__["data"][0] % 64 == 0 for array in taken)


def test_a_reset_gives_the_same_memory_again() -> None:
    """No block is let go, none is added."""
    memory = arena.Arena(bytes_max=1 << 20, block_bytes=1 << 12)
    first = memory.take(1000, np.int64)
    held = memory.held
    memory.reset()
    again = memory.take(1000, np.int64)

    assert np.shares_memory(first, again)
    assert held == memory.held


def test_the_high_water_mark_stays() -> None:
    """It tells the most that was ever taken between two resets."""
    memory = arena.Arena(bytes_max=1 << 20)
    memory.take(64, np.uint8)
    memory.take(128, np.uint8)
    memory.reset()
    memory.take(64, np.uint8)

    assert (64, 192) == (memory.used, memory.high_water)


def test_more_than_the_bound_is_refused() -> None:
    """With the sizes in the message; what was taken before stays good."""
    memory = arena.Arena(bytes_max=4096, block_bytes=1024)
    kept = memory.take(1024, np.uint8)
    kept[:] = 7
    with pytest.raises(arena.ArenaFullError, match="4,096"):
        memory.take(3073, np.uint8)

    assert memory.held <= 4096
    assert (kept == 7).all()
    assert 3072 == len(memory.take(3072, np.uint8))


def test_a_scope_gives_back_what_was_taken_within() -> None:
    """And nothing of what was taken before it."""
    memory = arena.Arena(bytes_max=1 << 16)
    kept = memory.take(10, np.int64)
    kept[:] = 1
    with memory.scope():
        inner = memory.take(10, np.int64)
        inner[:] = 2
    again = memory.take(10, np.int64)

    assert np.shares_memory(inner, again)
    assert (kept == 1).all()
