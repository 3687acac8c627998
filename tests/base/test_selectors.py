"""Selectors of the API become canonical values; what can not be parsed is told from what matches nothing."""

import pytest

from graphsched.base.kube import selectors, wire
from graphsched.base.values import errors, labels, pods

Op = labels.Operator
NAME = "metadata.name"


def term(*needs: tuple[str, str, list[str]], fields: list[tuple[str, str, list[str]]] | None = None) -> pods.NodeTerm:
    """A node selector term."""
    body = wire.NodeTerm(
        match_expressions=[wire.Requirement(*entry) for entry in needs],
        match_fields=[wire.Requirement(*entry) for entry in fields or []],
    )
    return selectors.node_term(body)


@pytest.mark.parametrize(
    "need",
    [
        ("a", "In", ["1"]),
        ("a", "In", ["1", "2", ""]),
        ("a", "NotIn", ["1"]),
        ("a", "Exists", []),
        ("a", "DoesNotExist", []),
        ("a", "Gt", ["5"]),
        ("a", "Lt", ["05"]),
        ("example.com/a", "Exists", []),
        ("a" * 63, "Exists", []),
    ],
)
def test_a_requirement_that_can_be_parsed_is_kept(need: tuple[str, str, list[str]]) -> None:
    """Values are sorted."""
    key, operator, values = need

    assert pods.NodeTerm((labels.Requirement(key, Op(operator), tuple(sorted(values))),)) == term(need)


@pytest.mark.parametrize(
    "need",
    [
        ("a", "in", ["1"]),
        ("a", "", []),
        ("a", "In", []),
        ("a", "NotIn", []),
        ("a", "Exists", ["1"]),
        ("a", "DoesNotExist", ["1"]),
        ("a", "Gt", []),
        ("a", "Gt", ["1", "2"]),
        ("a", "Gt", ["1.5"]),
        ("a", "Lt", ["five"]),
        ("a", "Lt", ["-5"]),  # an integer, but no label value
        ("a", "Lt", ["9223372036854775808"]),
        ("", "Exists", []),
        ("a/b/c", "Exists", []),
        ("Example.com/a", "Exists", []),
        ("a" * 64, "Exists", []),
        ("-a", "Exists", []),
        ("a", "In", ["x" * 64]),
        ("a", "In", ["has space"]),
    ],
)
def test_a_term_that_can_not_be_parsed_is_marked(need: tuple[str, str, list[str]]) -> None:
    """It matches nothing, whatever else it says."""
    assert pods.NodeTerm(valid=False) == term(("b", "Exists", []), need)


def test_a_term_without_requirements_is_valid_and_empty() -> None:
    """It matches nothing either, but is no mistake."""
    assert (True, True) == (term().empty, term().valid)


@pytest.mark.parametrize(
    ("field", "valid"),
    [
        ((NAME, "In", ["n1"]), True),
        ((NAME, "NotIn", ["n1"]), True),
        ((NAME, "In", ["n1", "n2"]), False),
        ((NAME, "In", []), False),
        ((NAME, "Exists", []), False),
        ((NAME, "Gt", ["1"]), False),
        (("metadata.namespace", "In", ["n1"]), False),
    ],
)
def test_fields_know_one_name(field: tuple[str, str, list[str]], valid: bool) -> None:
    """metadata.name with In or NotIn and exactly one value; names pinned by a mistaken term are kept all the same."""
    pins = valid or field[:2] == (NAME, "In")
    expected = (labels.Requirement(field[0], Op(field[1]), tuple(field[2])),) if pins else ()

    assert (valid, expected) == (term(fields=[field]).valid, term(fields=[field]).fields)


def test_required_affinity_without_terms_is_not_no_affinity() -> None:
    """The one matches nothing, the other everything."""
    assert selectors.node_terms(None) is None
    assert selectors.node_terms(wire.NodeAffinity()) is None
    assert () == selectors.node_terms(wire.NodeAffinity(required=wire.NodeSelector()))


def test_preferences_that_never_score_are_kept() -> None:
    """Weight 0 and the empty preference score nothing, which is not the same as having no preference."""
    broken = wire.NodeTerm(match_expressions=[wire.Requirement("a", "No")])
    fine = wire.NodeTerm(match_expressions=[wire.Requirement("a", "Exists")])
    affinity = wire.NodeAffinity(
        preferred=[
            wire.PreferredNodeTerm(0, fine),
            wire.PreferredNodeTerm(5, wire.NodeTerm()),
            wire.PreferredNodeTerm(6, broken),
            wire.PreferredNodeTerm(7, fine),
        ],
    )

    assert [(0, True), (5, True), (6, False), (7, True)] == [
        (entry.weight, entry.term.valid) for entry in selectors.preferred_node_terms(affinity)
    ]


def test_both_ways_of_writing_a_selector_are_one() -> None:
    """A label is an expression with In and one value."""
    by_label = wire.LabelSelector(match_labels={"b": "2", "a": "1"})
    by_expression = wire.LabelSelector(
        match_expressions=[wire.Requirement("a", "In", ["1"]), wire.Requirement("b", "In", ["2"])],
    )

    assert selectors.selector(by_label, "f") == selectors.selector(by_expression, "f")


def test_no_selector_is_not_the_empty_selector() -> None:
    """None matches nothing, {} matches everything."""
    assert selectors.selector(None, "f") is None
    assert labels.Selector() == selectors.selector(wire.LabelSelector(), "f")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (wire.LabelSelector(match_labels={"a b": "1"}), "f.matchLabels.a b: "),
        (wire.LabelSelector(match_labels={"a": "x y"}), "f.matchLabels.a: "),
        (wire.LabelSelector(match_expressions=[wire.Requirement("a", "In")]), "f.matchExpressions[0]: "),
        (
            wire.LabelSelector(match_expressions=[wire.Requirement("a", "Gt", ["1"])]),
            "f.matchExpressions[0].operator: ",
        ),
    ],
)
def test_a_pod_selector_that_can_not_be_parsed_is_refused(body: wire.LabelSelector, message: str) -> None:
    """With the field; comparisons are for nodes."""
    with pytest.raises(errors.InputError) as caught:
        selectors.selector(body, "f")

    assert str(caught.value).startswith(message)
