"""The grammar of Kubernetes quantities, all of it, against exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources import LARGEST, QuantityError, format_quantity, parse_milli, parse_nano, parse_quantity

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
EXPONENTS = {
    f"{letter}{sign}{power}": Fraction(10) ** (-power if sign == "-" else power)
    for letter in "eE"
    for sign in ("", "+", "-")
    for power in (0, 1, 3, 12, 30)
}


@st.composite
def quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A text of the grammar and the number that it means."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    digits = st.text("0123456789", max_size=25)
    whole, fraction = draw(digits), draw(st.none() | digits)
    if not whole and not fraction:
        whole = "0"
    text = whole if fraction is None else f"{whole}.{fraction}"
    suffix, scale = draw(st.sampled_from(sorted((SUFFIXES | EXPONENTS).items())))
    value = (Fraction(int(whole or "0")) + Fraction(int(fraction or "0"), 10 ** len(fraction or ""))) * scale
    return f"{sign}{text}{suffix}", -value if sign == "-" else value


def away_from_zero(value: Fraction) -> int:
    magnitude = -(-abs(value).numerator // abs(value).denominator)
    return magnitude if value >= 0 else -magnitude


def capped(amount: int) -> int:
    """What 64 bits can tell of it."""
    return max(-LARGEST, min(amount, LARGEST))


@given(quantities())
def test_a_quantity_is_exact_and_what_is_finer_than_the_unit_rounds_away_from_zero(item: tuple[str, Fraction]) -> None:
    """As Kubernetes' Value(), MilliValue() and nano scale do, for negative ones too."""
    text, value = item
    assert parse_quantity(text) == capped(away_from_zero(value))
    assert parse_milli(text) == capped(away_from_zero(value * 1000))
    assert parse_nano(text) == away_from_zero(value * 10**9)


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("100m", 1, 100),
        ("0.5", 1, 500),
        ("-0.5", -1, -500),
        ("-1500m", -2, -1500),
        ("1.5Gi", 1610612736, 1610612736000),
        (".5Ki", 512, 512000),
        ("1.", 1, 1000),
        ("+1", 1, 1000),
        ("1e3", 1000, 1000000),
        ("1E3", 1000, 1000000),
        ("12e-1", 2, 1200),
        ("1E", 10**18, LARGEST),
        ("1Ei", 2**60, LARGEST),
        ("-9999Ei", -LARGEST, -LARGEST),
        ("9223372036854775807", 2**63 - 1, LARGEST),
        ("0.1n", 1, 1),
        ("0n", 0, 0),
        ("1e-100", 1, 1),
        ("0." + "0" * 80 + "1", 1, 1),
        ("0e50", 0, 0),
    ],
)
def test_known_quantities(text: str, units: int, milli: int) -> None:
    assert (parse_quantity(text), parse_milli(text)) == (units, milli)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ".", "+", "-", "+.", "m", "Ki", "1K", "1ki", "1KI", "1kI", "1g", "1mm", "1Kim", "1e", "1e+", "1e3m"),
        *("1e3Ki", "--1", "+-1", "1-", "1,5", "1_000", "1.2.3", "0x10", "nan", "inf", "1i", "1e1.5", "Infinity"),
        *(" 1", "1 ", "1 Gi", "1\n", "١", "１", "1٣m", "1" * 5000, "1e999999999", "1e61"),
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("value", [None, True, False, [1], {"a": 1}, b"1", float("nan"), float("inf"), object()])
def test_values_of_other_types_are_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(value)  # type: ignore[arg-type]


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        parse_quantity(text)
    except QuantityError:
        pass


@given(st.integers(-(10**20), 10**20))
def test_integers_mean_themselves(value: int) -> None:
    assert parse_quantity(value) == capped(value)
    assert parse_milli(value) == capped(value * 1000)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_a_float_means_the_decimal_that_it_is_written_as(value: float) -> None:
    assert parse_milli(value) == away_from_zero(Fraction(repr(value)) * 1000)


@given(st.integers(-LARGEST, LARGEST), st.booleans())
def test_a_formatted_amount_reads_back_as_itself(amount: int, binary: bool) -> None:
    assert parse_quantity(format_quantity(amount, binary=binary)) == amount
    assert parse_milli(format_quantity(amount, milli=True)) == amount


@pytest.mark.parametrize(
    ("amount", "milli", "binary", "text"),
    [
        (0, True, False, "0"),
        (500, True, False, "500m"),
        (2000, True, False, "2"),
        (-1500, True, False, "-1500m"),
        (0, False, True, "0"),
        (1024, False, True, "1Ki"),
        (1536, False, True, "1536"),
        (3 << 30, False, True, "3Gi"),
        (-(1 << 20), False, True, "-1Mi"),
        (1000, False, False, "1000"),
    ],
)
def test_amounts_are_written_as_a_person_would(amount: int, milli: bool, binary: bool, text: str) -> None:
    assert format_quantity(amount, milli=milli, binary=binary) == text
