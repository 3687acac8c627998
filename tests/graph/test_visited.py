"""Marks of walkers: a vertex is fresh once a walk, beginning a walk clears nothing, and numbers may run out."""

from __future__ import annotations

import threading

import hypothesis
import numpy as np
from hypothesis import strategies as st

from graphsched.graph import visited

BATCHES = st.lists(st.lists(st.integers(0, 19), max_size=30), max_size=20)


@hypothesis.given(st.lists(BATCHES, max_size=5), st.integers(0, 200))
@hypothesis.settings(max_examples=200, deadline=None)
def test_a_row_is_fresh_once_a_walk_in_the_order_given(walks: list[list[list[int]]], left: int) -> None:
    """As a set would tell, also where the numbers run out in the middle of a walk."""
    marks = visited.Marks(20)
    marks._next = visited.STAMP_MAX - left
    for batches in walks:
        marks.begin()
        seen: dict[int, None] = {}
        for batch in batches:
            expected = list(dict.fromkeys(row for row in batch if row not in seen))
            seen.update(dict.fromkeys(expected))
            assert expected == marks.fresh(np.array(batch, np.intp)).tolist()
            assert [row in seen for row in range(20)] == marks.seen(np.arange(20)).tolist()


@hypothesis.given(st.lists(st.lists(st.integers(0, 19), max_size=30), max_size=5), st.integers(0, 50))
def test_claiming_one_by_one_is_the_same(walks: list[list[int]], left: int) -> None:
    """With numbers that run out as well."""
    marks = visited.Marks(20)
    marks._next = visited.STAMP_MAX - left
    for rows in walks:
        marks.begin()
        assert [row not in rows[:place] for place, row in enumerate(rows)] == [marks.claim(row) for row in rows]


def test_room_is_made_for_more_rows() -> None:
    """A graph that has grown begins with nothing seen."""
    marks = visited.Marks(2)
    marks.claim(1)
    marks.begin(5)

    assert [False] * 5 == marks.seen(np.arange(5)).tolist()
    assert 5 == marks.capacity


def test_concurrent_walkers_have_marks_of_their_own() -> None:
    """And what is given back is used again, without what the last walker saw."""
    pool = visited.Pool()
    with pool.marks(3) as one, pool.marks(3) as other:
        assert one.claim(0)
        assert other.claim(0)
    assert 2 == len(pool)
    with pool.marks(3) as again:
        assert again in {one, other}
        assert again.claim(0)


def test_a_pool_keeps_no_more_than_it_may() -> None:
    """Marks that many walkers used at a time are let go."""
    pool = visited.Pool(kept_max=1)
    with pool.marks(3), pool.marks(3):
        pass
    assert 1 == len(pool)


def test_of_many_walkers_one_claims_a_row() -> None:
    """Threads that go over the same rows in other orders claim each row exactly once among them, walk after walk."""
    shared = visited.Shared(2000, threading.Lock)
    for _ in range(3):
        shared.begin()
        claimed: list[list[int]] = [[] for _ in range(8)]

        def walk(number: int, claimed: list[list[int]] = claimed) -> None:
            order = np.random.default_rng(number).permutation(2000).tolist()
            claimed[number] = [row for row in order if shared.claim(row)]

        threads = [threading.Thread(target=walk, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert list(range(2000)) == sorted(row for rows in claimed for row in rows)


def test_shared_marks_survive_the_end_of_their_numbers() -> None:
    """The stamps are cleared then, and only then."""
    shared = visited.Shared(4, threading.Lock, shards=2)
    shared._generation = visited.STAMP_MAX - 1
    for _ in range(3):
        shared.begin()
        assert [True, True, False] == [shared.claim(0), shared.claim(1), shared.claim(0)]
    assert 2 == shared._generation
