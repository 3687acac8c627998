"""Which of two resource versions came first, and when that can not be told."""

import pytest

from graphsched.base.kube import versions


@pytest.mark.parametrize(
    ("one", "other", "is_earlier"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("", "10", False),
        ("10", "", False),
        ("abc", "10", False),
        ("9", "1e3", False),
        ("9", "٣٣", False),
        ("1", "9" * 21, False),
    ],
)
def test_versions_are_compared_as_numbers_or_not_at_all(one: str, other: str, is_earlier: bool) -> None:
    """What is no number is neither earlier nor later."""
    assert is_earlier is versions.earlier(one, other)
