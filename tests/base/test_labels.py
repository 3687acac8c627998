"""Labels are sorted pairs, and requirements compare them as the API does."""

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.values import labels

Op = labels.Operator


@pytest.mark.parametrize(
    ("operator", "values", "present", "other", "absent"),
    [
        (Op.IN, ("a", "b"), True, False, False),
        (Op.NOT_IN, ("a", "b"), False, True, True),
        (Op.EXISTS, (), True, True, False),
        (Op.DOES_NOT_EXIST, (), False, False, True),
    ],
)
def test_set_operators_see_value_other_value_and_absence(
    operator: labels.Operator,
    values: tuple[str, ...],
    present: bool,
    other: bool,
    absent: bool,
) -> None:
    """NotIn holds where the label is absent; In does not."""
    requirement = labels.Requirement("key", operator, values)

    assert (present, other, absent) == tuple(requirement.holds(value) for value in ("a", "z", None))


@pytest.mark.parametrize(
    ("operator", "bound", "value", "holds"),
    [
        (Op.GT, "4", "5", True),
        (Op.GT, "4", "4", False),
        (Op.LT, "4", "3", True),
        (Op.LT, "4", "4", False),
        (Op.GT, "4", "05", True),
        (Op.GT, "4", "+5", True),
        (Op.LT, "4", "-5", True),
        (Op.GT, "4", "5.0", False),
        (Op.GT, "4", "five", False),
        (Op.GT, "4", "", False),
        (Op.GT, "4", "9223372036854775807", True),
        (Op.GT, "4", "9223372036854775808", False),
        (Op.LT, "4", "-9223372036854775808", True),
        (Op.LT, "4", "-9223372036854775809", False),
        (Op.GT, "x", "5", False),
    ],
)
def test_comparisons_are_of_64_bit_integers(
    operator: labels.Operator,
    bound: str,
    value: str,
    holds: bool,
) -> None:
    """What is no int64 satisfies nothing."""
    assert labels.Requirement("key", operator, (bound,)).holds(value) is holds


@pytest.mark.parametrize("text", [" 1", "1 ", "1_0", "0x1", "١", "", "+", "-", "1e3"])  # noqa: RUF001
def test_only_plain_digits_are_integers(text: str) -> None:
    """Go reads none of these, though Python's int() reads some."""
    assert labels.parse_int64(text) is None


@hypothesis.given(strategies.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1))
def test_every_int64_is_read_back(number: int) -> None:
    """parse(str(x)) == x."""
    assert number == labels.parse_int64(str(number))


@hypothesis.given(strategies.dictionaries(strategies.text(max_size=3), strategies.text(max_size=3), max_size=5))
def test_labels_do_not_depend_on_the_order_of_the_mapping(mapping: dict[str, str]) -> None:
    """Equal mappings make equal, sorted labels."""
    made = labels.from_mapping(mapping)

    assert made == labels.from_mapping(dict(reversed(mapping.items())))
    assert dict(made) == mapping


def test_an_empty_selector_matches_everything() -> None:
    """Also an object without labels."""
    assert labels.Selector().matches(labels.NO_LABELS)


def test_a_selector_is_a_conjunction() -> None:
    """One failing requirement is enough."""
    both = labels.selector([labels.Requirement("a", Op.IN, ("1",)), labels.Requirement("b", Op.EXISTS)])

    assert both.matches((("a", "1"), ("b", "2")))
    assert not both.matches((("a", "1"),))


def test_equal_conjunctions_are_equal_values() -> None:
    """Order and repetition do not matter."""
    first, second = labels.Requirement("a", Op.EXISTS), labels.Requirement("b", Op.EXISTS)

    assert labels.selector([first, second, first]) == labels.selector([second, first])
