"""YAML is read the way Kubernetes tools read it, within bounds."""

import pytest

from graphsched.base.values import errors
from graphsched.sources import yamls


def bodies(text: str) -> list[object]:
    """The documents of a text."""
    return [document.body for document in yamls.load(text)]


def refusal(text: str) -> str:
    """The line about a text."""
    with pytest.raises(errors.InputError) as caught:
        bodies(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("text", "text"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("0", 0),
        ("010", 8),
        ("08", 8.0),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("true", True),
        ("Yes", True),
        ("on", True),
        ("off", False),
        ("y", "y"),
        ("~", None),
        ("null", None),
        ("", None),
        ("1.2.3", "1.2.3"),
        ("12Gi", "12Gi"),
        ("500m", "500m"),
        ("1:30", "1:30"),
        ("2025-01-01", "2025-01-01"),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("0_", 0),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1),
        ("!!bool yes", True),
        ("!!null ''", None),
        ("! 12", "12"),
        ("9" * 65, "9" * 65),
        ("0x_", "0x_"),
        ("0b", "0b"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(text: str, value: object) -> None:
    """No dates and no base 60; only what stands without quotes is more than text."""
    found = bodies(f"key: {text}")[0]

    assert {"key": value} == found
    assert isinstance(found, dict)
    assert type(value) is type(found["key"])


def test_infinity_and_no_number_are_numbers() -> None:
    """And no quantities, later on."""
    assert "[inf, -inf, nan]" == str(bodies("[.inf, -.Inf, .nan]")[0])


def test_documents_know_their_line_and_empty_ones_are_left_out() -> None:
    """Comments and separators make no document."""
    text = "# head\n---\na: 1\n---\n# nothing\n---\n\n\nb: 2\n...\n"

    assert [yamls.Document(3, {"a": 1}), yamls.Document(9, {"b": 2})] == list(yamls.load(text))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "---\n---\n"])
def test_a_text_without_documents_has_none(text: str) -> None:
    """It is not an error here."""
    assert [] == bodies(text)


def test_aliases_and_merges_work() -> None:
    """What is written out wins over what is merged, earlier merges over later ones."""
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 9}\nd: *a\n"

    assert bodies(text) == [
        {"a": {"x": 1, "y": 2}, "b": {"y": 3, "z": 4}, "c": {"x": 9, "y": 2, "z": 4}, "d": {"x": 1, "y": 2}},
    ]


def test_anchors_end_with_their_document() -> None:
    """As the specification has it."""
    assert '3:4: alias "*a" has no anchor (write the value out)' == refusal("a: &a 1\n---\nb: *a\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", '3:1: the key "a" appears twice (remove one)'),
        ("x:\n  1: a\n  1: b\n", '3:3: the key "1" appears twice (remove one)'),
        ("? [a]\n: 1\n", "1:3: a key is a mapping or list, not a text (write a text)"),
        ("? {a: 1}\n: 1\n", "1:3: a key is a mapping or list, not a text (write a text)"),
        ("k: &k [1]\n*k : 1\n", "2:1: a key is a mapping or list, not a text (write a text)"),
        ("a:\n\t- 1\n", "2:1: broken YAML: found character that cannot start any token (while scanning"),
        ("a: [1, 2\n", "2:1: broken YAML: did not find expected ',' or ']'"),
        ("a: b: c\n", "1:5: broken YAML: mapping values are not allowed in this context (check quotes and indentation"),
        ("a: 'x\n", "2:1: broken YAML: found unexpected end of stream"),
        ("a: *b\n", '1:4: alias "*b" has no anchor (write the value out)'),
        ("a: &a [1, *a]\n", '1:11: alias "*a" contains itself (write the value out)'),
        ("a: {<<: 1}\n", "1:10: only mappings can be merged by << (name a mapping)"),
        ("a: !!python/object:os.system ls\n", '1:4: the tag "tag:yaml.org,2002:python/object:os.system" is not'),
        ("a: !own {}\n", '1:4: the tag "!own" is not supported (leave it out)'),
        ("a: !!int x\n", '1:4: "x" is no int (correct the value or its tag)'),
        ("a: !!binary x\n", '1:4: the tag "tag:yaml.org,2002:binary" is not supported'),
        ("a: \x01\n", "holds the control character #x01 (remove it)"),
    ],
)
def test_what_is_broken_is_told_with_line_and_column(text: str, line: str) -> None:
    """In one line, with a remedy."""
    told = refusal(text)

    assert told.startswith(line)
    assert told.endswith(")")
    assert "\n" not in told


@pytest.mark.parametrize("text", ["[" * 101, "- " * 101 + "x", "[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_nesting_is_bounded(text: str) -> None:
    """However deep, no recursion is left to overflow."""
    assert "100 levels" in refusal(text)


def test_nesting_up_to_the_bound_is_fine() -> None:
    """A hundred levels are."""
    assert 1 == len(bodies("[" * 100 + "]" * 100))


@pytest.mark.parametrize("inner", ["[{}]", "{{<<: [{}]}}"])
def test_a_bomb_of_aliases_is_defused(inner: str) -> None:
    """Nine levels of ten aliases would be a billion values."""
    first = "a0: &a0 {x: 1}\n"
    levels = [f"a{n}: &a{n} " + inner.format(", ".join([f"*a{n - 1}"] * 10)) + "\n" for n in range(1, 10)]

    assert "its aliases stand for more than 1,000,000 values (write the values out)" in refusal(first + "".join(levels))


def test_long_keys_are_told_in_short() -> None:
    """And on one line."""
    key = '"' + "x\\n" * 100 + '"'
    told = refusal(f"? {key}\n: 1\n? {key}\n: 2\n")

    assert len(told) < 200
    assert "\n" not in told
