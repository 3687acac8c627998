"""The log of patches: whole between two bounds, and honest about what it no longer has."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import nodes
from graphsched.graph import delta, patchlog


def patch(number: int, rows: int = 1) -> delta.Patch:
    """A patch that can be told from others."""
    made = delta.Patch()
    for row in range(rows):
        made.set_vertex(nodes.PriorityClass(f"p{row}", number))
    return made


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 8), st.integers(600, 9000), st.integers(0, 30))
def test_a_follower_gets_exactly_what_it_misses_or_begins_again(
    rows: list[int], patches_max: int, bytes_max: int, asked: int
) -> None:
    """Whatever the bounds: all patches after its generation, in order, or nothing at all."""
    log = patchlog.PatchLog(3, patches_max=patches_max, bytes_max=bytes_max)
    made = [patch(number, count) for number, count in enumerate(rows)]
    for number, each in enumerate(made):
        log.add(4 + number, each)

    answer = log.since(asked)

    assert len(log) <= patches_max
    assert log.size <= bytes_max
    assert log.size == sum(map(patchlog.held_bytes, made[len(made) - len(log) :]))
    if log.begins <= asked <= 3 + len(made):
        assert answer == made[asked - 3 :]
    else:
        assert answer is None


def test_a_patch_larger_than_the_log_is_a_gap_for_everybody() -> None:
    """A list of a whole cluster does not fit, and nothing after it can stand on what went before."""
    log = patchlog.PatchLog(0, bytes_max=5000)
    log.add(1, patch(1))
    log.add(2, patch(2, 100))

    assert (len(log), log.size, log.begins) == (0, 0, 2)
    assert log.since(1) is None
    assert log.since(2) == []


def test_what_is_logged_does_not_change_with_the_patch() -> None:
    """Its maker may go on with it."""
    log, made = patchlog.PatchLog(0), patch(1)
    log.add(1, made)
    made.remove(next(iter(made.vertices)))

    assert log.since(0) == [patch(1)]


def test_a_generation_left_out_is_a_bug() -> None:
    """Followers would miss it without noticing."""
    with pytest.raises(ValueError, match="does not follow"):
        patchlog.PatchLog(0).add(2, patch(1))
