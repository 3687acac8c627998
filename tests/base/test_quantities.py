"""Kubernetes quantities become exact integers, rounded as the API rounds them."""

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.values import errors, quantities

INT64_MAX = 9_223_372_036_854_775_807

TABLE = [
    # text, whole units, thousandths
    ("0", 0, 0),
    ("1", 1, 1_000),
    ("+1", 1, 1_000),
    ("-1", -1, -1_000),
    ("007", 7, 7_000),
    ("100m", 1, 100),
    ("1000m", 1, 1_000),
    ("1001m", 2, 1_001),
    ("1500m", 2, 1_500),
    ("0.1", 1, 100),
    (".5", 1, 500),
    ("5.", 5, 5_000),
    ("0.0001", 1, 1),
    ("1.0005", 2, 1_001),
    ("-0.5", -1, -500),
    ("-1.0005", -2, -1_001),
    ("1n", 1, 1),
    ("999999n", 1, 1),
    ("1000000n", 1, 1),
    ("1000001n", 1, 2),
    ("1u", 1, 1),
    ("1500u", 1, 2),
    ("1k", 1_000, 1_000_000),
    ("1.5k", 1_500, 1_500_000),
    ("1M", 10**6, 10**9),
    ("1G", 10**9, 10**12),
    ("1T", 10**12, 10**15),
    ("1P", 10**15, 10**18),
    ("1Ki", 1_024, 1_024_000),
    ("0.5Ki", 512, 512_000),
    ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
    ("0.0001Ki", 1, 103),
    ("200Mi", 209_715_200, 209_715_200_000),
    ("12Gi", 12_884_901_888, 12_884_901_888_000),
    ("2Ti", 2_199_023_255_552, 2_199_023_255_552_000),
    ("1Pi", 1_125_899_906_842_624, 1_125_899_906_842_624_000),
    ("1e3", 1_000, 1_000_000),
    ("1E3", 1_000, 1_000_000),
    ("1e+3", 1_000, 1_000_000),
    ("12e-4", 1, 2),
    ("1.5e2", 150, 150_000),
    ("-5e-1", -1, -500),
    ("9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_993_000),
]


@pytest.mark.parametrize(("text", "units", "milli"), TABLE)
def test_a_quantity_is_read_exactly_and_rounded_away_from_zero(text: str, units: int, milli: int) -> None:
    """Rows: what the API's Value() and MilliValue() say."""
    assert (units, milli) == (quantities.parse_units(text), quantities.parse_milli(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "12Gx",
        "1 ",
        " 1",
        "1Kib",
        "1ki",
        "1K",
        "m",
        ".",
        "+",
        "1e",
        "e3",
        "1.2.3",
        "0x10",
        "1_000",
        "nan",
        "inf",
        "١",  # noqa: RUF001  Arabic digits are none to the API
        "1e1000",
        "--1",
        "1i",
        "1mm",
        "1e3Ki",
        "9" * 65,
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """A look-alike never becomes a number."""
    with pytest.raises(errors.QuantityError, match="is not a quantity"):
        quantities.parse_units(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "8Ei", "10E", "1e30", "-9223372036854775809"])
def test_more_than_64_bits_is_refused(text: str) -> None:
    """Nothing wraps around."""
    with pytest.raises(errors.QuantityError, match="does not fit 64 bits"):
        quantities.parse_units(text)


def test_the_edges_of_64_bits_are_held() -> None:
    """The greatest amount passes, and in thousandths only a thousandth of it."""
    assert quantities.parse_units(str(INT64_MAX)) == INT64_MAX
    assert quantities.parse_units("7Ei") == 7 << 60
    with pytest.raises(errors.QuantityError):
        quantities.parse_milli(str(INT64_MAX))


@pytest.mark.parametrize(("value", "milli"), [(2, 2_000), (0.5, 500), (1e-7, 1), (1e3, 1_000_000)])
def test_a_number_in_a_manifest_is_read_like_its_text(value: float, milli: int) -> None:
    """YAML hands over numbers where nobody wrote quotes."""
    assert milli == quantities.parse_milli(value)


@hypothesis.given(strategies.integers(min_value=0, max_value=INT64_MAX // 1000))
def test_formatted_amounts_are_read_back(amount: int) -> None:
    """parse(format(x)) == x."""
    assert amount == quantities.parse_milli(quantities.format_milli(amount))
    assert amount == quantities.parse_units(quantities.format_bytes(amount))


@hypothesis.given(
    strategies.integers(min_value=0, max_value=10**9),
    strategies.integers(min_value=0, max_value=9),
    strategies.sampled_from(["", "k", "M", "Ki", "Mi"]),
)
def test_thousandths_and_units_agree(digits: int, places: int, suffix: str) -> None:
    """Units are the thousandths rounded up."""
    text = f"{digits}.{'1' * places}{suffix}"

    assert quantities.parse_units(text) == -(-quantities.parse_milli(text) // 1000)


@pytest.mark.parametrize(
    ("amount", "milli", "size"),
    [(0, "0", "0"), (1, "1m", "1"), (1000, "1", "1000"), (1 << 30, "1073741824m", "1Gi"), (1536, "1536m", "1536")],
)
def test_amounts_are_printed_as_the_api_prints_them(amount: int, milli: str, size: str) -> None:
    """The largest unit without a fraction."""
    assert (milli, size) == (quantities.format_milli(amount), quantities.format_bytes(amount))
