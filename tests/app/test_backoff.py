"""Penalties double, are capped, end on whole seconds, and pods wait them out in the queue's order."""

import hypothesis
import hypothesis.strategies as st
import pytest

from graphsched.app import backoff
from graphsched.base.values import keys

POLICY = backoff.Policy(initial_s=1.0, max_s=10.0, refused_max_s=60.0)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (6, 10.0), (10_000, 10.0)],
)
def test_the_wait_doubles_up_to_the_maximum(times: int, seconds: float) -> None:
    """It is initial * 2^(n-1), capped, for any n."""
    assert seconds == POLICY.duration_s(times)


def test_what_a_retry_does_not_mend_thins_out_further() -> None:
    """A refused call has a longer maximum, and never a shorter one than others."""
    assert 60.0 == POLICY.duration_s(50, refused=True)
    assert 10.0 == backoff.Policy(max_s=10.0, refused_max_s=1.0).duration_s(50, refused=True)


def test_a_maximum_of_zero_turns_penalties_off() -> None:
    """As in kube-scheduler."""
    assert 0.0 == backoff.Policy(max_s=0.0).duration_s(7)


def test_a_penalty_lasts_to_the_close_of_the_second_it_ends_in() -> None:
    """An end is rounded down, and a pod goes once that whole second has passed, in the queue's order."""
    waiting = backoff.Waiting()
    late, early, low = (keys.pod_key("d", name) for name in ("late", "early", "low"))
    waiting.put(low, end=backoff.align(1.2), order=(0, 0.0, 1))
    waiting.put(early, end=backoff.align(1.9), order=(-5, 0.0, 2))
    waiting.put(late, end=backoff.align(2.0), order=(-9, 0.0, 3))

    assert [] == waiting.take_due(1.99)
    assert 1.0 == waiting.first_end()
    assert [early, low] == waiting.take_due(2.0)
    assert [late] == waiting.take_due(3.5)


@hypothesis.given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(-2, 2)), max_size=200))
def test_the_line_agrees_with_a_sorted_list(steps: list[tuple[int, bool, int]]) -> None:
    """Whatever is put, moved and taken out, the next is always the least, and leftovers do not pile up."""
    line, model = backoff.Line(), {}
    for serial, (number, put, priority) in enumerate(steps):
        key = keys.pod_key("d", str(number))
        if put:
            model[key] = (-priority, 0.0, serial)
            line.put(key, model[key])
        else:
            model.pop(key, None)
            line.discard(key)
        assert len(model) == len(line)
        assert len(line._heap) <= 2 * len(model) + 16

    taken = []
    while (first := line.take()) is not None:
        taken.append(first)

    assert sorted(model, key=model.__getitem__) == taken
