"""Attributes of nodes as encoded columns: the answer for a value is the answer for every node that has it."""

from __future__ import annotations

from hypothesis import given, strategies as st

from graphsched.base.values import labels, nodes
from graphsched.graph import attributes

ALL = slice(None)


def of(*zones: str | None) -> attributes.Attributes:
    """A node a row, in these zones."""
    made = attributes.Attributes()
    made.resize(len(zones))
    for row, zone in enumerate(zones):
        made.set(row, nodes.Node(f"n{row}", labels=(("zone", zone),) if zone else ()))
    return made


def holds(made: attributes.Attributes, operator: str, *values: str) -> list[bool]:
    """The answer for every row."""
    requirement = labels.Requirement("zone", labels.Operator(operator), values)
    found: list[bool] = made.holds(requirement, ALL).tolist()
    return found


def test_a_column_is_built_when_it_is_first_asked_for() -> None:
    """And it follows the nodes from then on."""
    made = of("a", None, "b")
    assert [True, False, False] == holds(made, "In", "a")
    made.set(1, nodes.Node("n1", labels=(("zone", "a"),)))
    made.set(0, None)

    assert [False, True, False] == holds(made, "In", "a")


def test_the_absence_of_a_label_has_an_answer_of_its_own() -> None:
    """NotIn and DoesNotExist hold for it, the others do not."""
    made = of("a", None)

    assert [False, True] == holds(made, "NotIn", "a")
    assert [False, True] == holds(made, "DoesNotExist")
    assert [True, False] == holds(made, "Exists")
    assert [False, False] == holds(made, "Gt", "1")


def test_a_question_is_asked_anew_when_a_value_appears() -> None:
    """The cached answers know nothing of values that came later."""
    made = of("1", "2")
    assert [False, True] == holds(made, "Gt", "1")
    made.set(0, nodes.Node("n0", labels=(("zone", "30"),)))

    assert [True, True] == holds(made, "Gt", "1")


def test_every_requirement_must_hold() -> None:
    """None of them holds for all rows; no requirement holds everywhere."""
    made = of("a", "b", None)
    exists = labels.Requirement("zone", labels.Operator.EXISTS)
    not_a = labels.Requirement("zone", labels.Operator.NOT_IN, ("a",))

    assert [False, True, False] == made.all_hold([exists, not_a], ALL).tolist()
    assert [True, True, True] == made.all_hold([], ALL).tolist()


def test_values_that_count_up_do_not_fill_the_memory() -> None:
    """Fifty thousand values pass through one row; the column is encoded anew now and then and stays right."""
    made = of("a", "b")
    made.label("zone")
    for number in range(50_000):
        made.set(0, nodes.Node("n0", labels=(("zone", str(number)),)))

    assert len(made.label("zone").values) < 2000
    assert [True, False] == holds(made, "In", "49999")
    assert [False, True] == holds(made, "In", "b")


def test_label_columns_have_a_bound() -> None:
    """The one asked for longest ago makes room, and is built again when it is wanted."""
    made = of("a", None)
    assert [True, False] == holds(made, "In", "a")
    for number in range(made.LABEL_KEYS_MAX):
        made.label(f"key-{number}")
    assert made.LABEL_KEYS_MAX == len(made._labels)
    made.set(1, nodes.Node("n1", labels=(("zone", "a"),)))

    assert [True, True] == holds(made, "In", "a")


def test_more_rows_have_no_values_yet() -> None:
    """Growing leaves what is there."""
    made = of("a")
    made.label("zone")
    made.resize(3)

    assert [True, False, False] == holds(made, "Exists")
    assert [-1, -1, -1] == made.taints.ids.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.none() | st.sampled_from(("a", "b", "7", "-3"))), max_size=30),
    st.sampled_from(labels.Operator),
    st.lists(st.sampled_from(("a", "b", "7")), min_size=1, max_size=1).map(tuple),
)
def test_the_column_answers_as_the_requirement_does(
    steps: list[tuple[int, str | None]], operator: labels.Operator, values: tuple[str, ...]
) -> None:
    """Through any sequence of label changes, asked after each."""
    requirement = labels.Requirement("zone", operator, values)
    made = of(None, None, None, None)
    have: list[str | None] = [None] * 4
    for row, zone in steps:
        made.set(row, nodes.Node(f"n{row}", labels=(("zone", zone),) if zone else ()))
        have[row] = zone

        assert [requirement.holds(value) for value in have] == made.holds(requirement, ALL).tolist()
