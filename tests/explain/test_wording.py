"""Amounts and counts as people write them, rounded to the safe side."""

import pytest

from graphsched.explain import wording


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 500, "500m CPU"),
        ("cpu", 1000, "1 CPU"),
        ("cpu", 1500, "1.5 CPUs"),
        ("cpu", 116_524, "116.524 CPUs"),
        ("cpu", 0, "0 CPUs"),
        ("memory", 512 << 20, "512Mi memory"),
        ("memory", (3 << 30) + 1, "3Gi memory"),
        ("memory", 1000, "1000 memory"),
        ("nvidia.com/gpu", 4, "4 nvidia.com/gpu"),
        ("pods", 1, "1 pod"),
    ],
)
def test_an_amount_has_its_unit(resource: str, value: int, text: str) -> None:
    """Milli-CPU only below one CPU; bytes in the largest unit."""
    assert text == wording.amount(resource, value)


def test_what_is_missing_is_rounded_up() -> None:
    """A pod refused for one byte must not read "3Gi missing of 3Gi"."""
    assert ("3Gi", "3.01Gi") == (wording.size((3 << 30) + 1), wording.size((3 << 30) + 1, up=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.85, "850ms"), (12, "12s"), (192, "3m12s"), (7500, "2h5m"), (273_600, "3d4h"), (60, "1m"), (-1, "0ms")],
)
def test_a_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    """As a person would say it."""
    assert text == wording.duration(seconds)


def test_lists_read_as_sentences() -> None:
    """With one word before the last."""
    assert ("", "a", "a or b", "a, b and c") == (
        wording.either([]),
        wording.either(["a"]),
        wording.either(["a", "b"]),
        wording.both(["a", "b", "c"]),
    )
