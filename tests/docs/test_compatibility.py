"""docs/compatibility.md names every field that is decoded, and every proof it names exists."""

import pathlib
import re

import msgspec
import pytest

from graphsched.base.kube import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")

FILES = sorted(set(re.findall(r"`(\w+/\w+\.py)(?:::\w+)?`", PAGE)))
FUNCTIONS = sorted(set(re.findall(r"`(\w+/\w+\.py)::(\w+)`", PAGE)))
ROWS = sorted(set(re.findall(r'`(\w+/\w+\.py)` "([^"]+)"', PAGE)))
CASES = sorted({number for found in re.findall(r"\bcases? ((?:\d{3}(?:, )?)+)", PAGE) for number in found.split(", ")})

DECODED = (
    wire.PodSpec,
    wire.PodStatus,
    wire.SpreadConstraint,
    wire.PodTerm,
    wire.Toleration,
    wire.NodeSpec,
    wire.NodeStatus,
)


def test_the_page_names_proofs() -> None:
    """Of each sort, so that none of the checks below is empty."""
    assert min(len(FILES), len(FUNCTIONS), len(ROWS), len(CASES)) > 10


def test_every_file_that_is_named_exists() -> None:
    """Below `tests/`."""
    assert [] == [name for name in FILES if not (TESTS / name).is_file()]


def test_every_test_that_is_named_exists() -> None:
    """As a function of that file."""
    missing = [
        f"{file}::{name}"
        for file, name in FUNCTIONS
        if not re.search(rf"^(?:async )?def {name}\(", (TESTS / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert [] == missing


def test_every_row_that_is_named_exists() -> None:
    """As the key of a row of that file's tables."""
    missing = [(file, row) for file, row in ROWS if f'"{row}": (' not in (TESTS / file).read_text(encoding="utf-8")]
    assert [] == missing


def test_every_case_that_is_named_exists() -> None:
    """By its number."""
    assert [] == [number for number in CASES if not list((TESTS / "cases" / "data").glob(f"{number}-*.yaml"))]


@pytest.mark.parametrize("body", DECODED, ids=lambda body: body.__name__)
def test_every_field_that_is_decoded_is_told_of(body: type[msgspec.Struct]) -> None:
    """In code style, alone or as the end of a path."""
    quoted = re.findall(r"`([^`\n]+)`", PAGE)
    told = {part for text in quoted for part in re.findall(r"\w+", text)}

    assert [] == [name for name in body.__struct_encode_fields__ if name not in told]
