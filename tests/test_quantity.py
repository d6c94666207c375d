"""Quantities, durations and counts: tables of Kubernetes' forms, and fractions as an independent reference."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.quantity import (
    DurationError,
    IntOrPercent,
    IntOrPercentError,
    Quantity,
    QuantityError,
    format_duration,
    parse_duration,
    parse_karpenter_duration,
    parse_span,
    parse_window_duration,
)

MAX_INT64 = 2**63 - 1

# Quantities


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1", "-1"),
        ("007", "7"),
        ("1.", "1"),
        (".5", "500m"),
        ("1.5", "1500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1100", "1100"),
        ("100000", "100k"),
        ("0.1", "100m"),
        ("1.0001", "1000100u"),
        ("1u", "1u"),
        ("0.001u", "1n"),
        ("0.5Gi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1.5Ki", "1536"),
        ("0.5Ki", "512"),
        ("1023", "1023"),
        ("1.1Ki", "1126400m"),
        ("-1.5Gi", "-1536Mi"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e+6", "12e6"),
        ("12e-4", "1200e-6"),
        ("1e2", "100"),
        ("5e-1", "500e-3"),
        ("1000E", "1e21"),
        ("18446744073709551616", "18446744073709551616"),
        ("8Ei", "9223372036854775807"),
        ("-100Ei", "-9223372036854775807"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert canonical == str(Quantity.parse(text))


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.9n", 1),
        ("1.1n", 2),
        ("-0.1n", -1),
        ("1e-300", 1),
        ("1e-99999999999", 1),
        ("0e-99999999999", 0),
        ("0e99999999999", 0),
        ("0.0000000001Ki", 103),
    ],
)
def test_amounts_are_rounded_to_billionths_away_from_zero(text: str, nano: int) -> None:
    assert nano == Quantity.parse(text).nano


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("1.5", 2, 1500),
        ("-1.5", -2, -1500),
        ("100u", 1, 1),
        ("-100u", -1, -1),
        ("2Ki", 2048, 2_048_000),
        ("0", 0, 0),
    ],
)
def test_units_and_thousandths_are_rounded_away_from_zero(text: str, units: int, milli: int) -> None:
    quantity = Quantity.parse(text)

    assert (units, milli) == (quantity.units, quantity.milli)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param("", "leave the field out", id="empty"),
        pytest.param("5GB", "did you mean 5G or 5Gi?", id="gigabytes"),
        pytest.param("5GiB", "did you mean 5G or 5Gi?", id="gibibytes"),
        pytest.param("5g", "did you mean 5G or 5Gi?", id="lower-case"),
        pytest.param("1K", "did you mean 1k or 1Ki?", id="upper-case-kilo"),
        pytest.param("10mb", "did you mean 10M or 10Mi?", id="megabytes"),
        pytest.param("5bytes", "did you mean 5?", id="bytes"),
        pytest.param("100 m", "write 100m", id="space"),
        pytest.param(" 1", "write 1,", id="leading-space"),
        pytest.param("1,5", "decimals follow a point", id="comma"),
        pytest.param("1.2.3", "suffixes are", id="two-points"),
        pytest.param("5X", "suffixes are", id="unknown-suffix"),
        pytest.param("lots", "write a number", id="words"),
        pytest.param(".", "write a number", id="point"),
        pytest.param("+", "write a number", id="sign"),
        pytest.param("Ki", "write a number", id="suffix-only"),
        pytest.param("1e", "did you mean 1E", id="exponent-without-digits"),
        pytest.param("1e1.5", "write a number", id="broken-exponent"),
        pytest.param("1\n", "without spaces", id="line-break"),
        pytest.param("١", "write a number", id="other-digits"),
        pytest.param("1e301", "smaller exponent", id="beyond-any-resource"),
        pytest.param("9" * 1001, "write at most 1000", id="endless"),
    ],
)
def test_invalid_quantities_are_rejected_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)

    assert re.search(hint.replace("?", r"\?"), caught.value.hint)
    assert "quantity" in caught.value.message
    assert len(caught.value.message) < 120


def test_floats_are_parsed_by_their_shortest_text() -> None:
    assert [str(Quantity.parse(number)) for number in (3, 0.5, 1e22, 0.1)] == ["3", "500m", "10e21", "100m"]


@pytest.mark.parametrize("value", [True, float("nan"), float("inf")])
def test_infinite_numbers_and_booleans_are_rejected(value: float) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(value)


def test_quantities_are_compared_by_amount() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024")
    assert hash(Quantity.parse("1Ki")) == hash(Quantity.parse("1024"))
    assert Quantity.parse("1G") < Quantity.parse("1Gi")
    assert Quantity.parse("100m") != Quantity.parse("100M")


def test_a_sum_keeps_the_suffix_family_of_its_first_term() -> None:
    gibi, mega = Quantity.parse("1Gi"), Quantity.parse("24M")

    assert str(gibi + mega) == "1097741824"
    assert str(gibi + gibi) == "2Gi"
    assert "3Gi" == str(gibi * 3) == str(3 * gibi)
    assert str(Quantity.parse("0") + mega) == "24M"
    assert "-1Gi" == str(Quantity.parse("0") - gibi) == str(-gibi)


def test_floor_div_counts_whole_times() -> None:
    assert Quantity.parse("1").floor_div(Quantity.parse("300m")) == 3
    assert Quantity.parse("1Gi").floor_div(Quantity.parse("256Mi")) == 4
    with pytest.raises(ZeroDivisionError):
        Quantity.parse("1").floor_div(Quantity.parse("0"))


FACTORS = {
    **{
        suffix: Fraction(10) ** (3 * step)
        for step, suffix in enumerate(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], -3)
    },
    **{f"{letter}i": Fraction(1024) ** (step + 1) for step, letter in enumerate("KMGTPE")},
    **{f"e{exponent}": Fraction(10) ** exponent for exponent in range(-12, 25)},
}


@st.composite
def written_quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    """Draw a quantity's text with its exact amount, before rounding."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    number = draw(st.from_regex(r"[0-9]{1,22}(\.[0-9]{0,14})?|\.[0-9]{1,14}", fullmatch=True).filter(str.isascii))
    suffix = draw(st.sampled_from(sorted(FACTORS)))
    amount = Fraction(number + "0" if number.endswith(".") else number) * FACTORS[suffix]
    return sign + number + suffix, -amount if sign == "-" else amount


@given(written_quantities())
def test_amounts_are_exact(written: tuple[str, Fraction]) -> None:
    text, amount = written
    nano = Fraction(math.ceil(abs(amount) * 10**9))
    if text.endswith("i"):
        nano = min(nano, Fraction(MAX_INT64 * 10**9))

    quantity = Quantity.parse(text)

    assert abs(quantity.nano) == nano
    assert quantity.sign == (0 if not amount else 1 if amount > 0 else -1)
    assert abs(quantity.units) == math.ceil(nano / 10**9)
    assert abs(quantity.milli) == math.ceil(nano / 10**6)


@given(written_quantities())
def test_canonical_text_has_the_same_amount_and_is_stable(written: tuple[str, Fraction]) -> None:
    quantity = Quantity.parse(written[0])
    again = Quantity.parse(str(quantity))

    assert again == quantity
    assert str(again) == str(quantity)
    assert "." not in str(quantity)


@given(written_quantities(), written_quantities(), st.integers(-1000, 1000))
def test_arithmetic_is_exact(one: tuple[str, Fraction], other: tuple[str, Fraction], times: int) -> None:
    first, second = Quantity.parse(one[0]), Quantity.parse(other[0])

    assert (first + second).nano == first.nano + second.nano
    assert (first - second) + second == first
    assert (first * times).nano == first.nano * times
    assert (first < second) == (first.nano < second.nano)


@given(st.text(alphabet="012.+-eEinumkKMGTP ", max_size=5))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    pattern = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)"
    if re.fullmatch(pattern, text):
        assert isinstance(Quantity.parse(text), Quantity)
    else:
        with pytest.raises(QuantityError):
            Quantity.parse(text)


# Durations

SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("5s", 5 * SECOND),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("300ms", 300 * 10**6),
        ("-2m", -2 * MINUTE),
        ("+5s", 5 * SECOND),
        ("1.s", SECOND),
        (".5s", SECOND // 2),
        ("007s", 7 * SECOND),
        ("3us", 3000),
        ("3µs", 3000),
        ("3μs", 3000),
        ("1m1m", 2 * MINUTE),
        ("39h9m14.425s", 39 * HOUR + 9 * MINUTE + 14_425 * 10**6),
        ("0.3333333333333333333h", 20 * MINUTE),
        ("0.100000000000000000000h", 6 * MINUTE),
        ("0.9223372036854775807h", 3_320_413_933_267),
        ("9223372036854775807ns", MAX_INT64),
        ("-9223372036854775808ns", -MAX_INT64 - 1),
        ("0.9ns", 0),
    ],
)
def test_durations_are_parsed_as_in_go(text: str, nanoseconds: int) -> None:
    assert nanoseconds == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "such as 90s"),
        ("-", "such as 90s"),
        (".", "such as 90s"),
        ("s", "such as 90s"),
        (".s", "such as 90s"),
        ("3", "3s or 3m"),
        ("1.5", "such as 90s"),
        ("1h 30m", "without spaces"),
        ("1d", "1d is 24h"),
        ("2w", "1w is 168h"),
        ("1x", "units are"),
        ("1H", "units are"),
        ("--1s", "such as 90s"),
        ("9223372036854775808ns", "292 years"),
        ("3000000h", "292 years"),
        ("9" * 900 + "h", "292 years"),
        ("9" * 5000 + "h", "write at most 1000"),
    ],
)
def test_invalid_durations_are_rejected_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)

    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245 * SECOND, "4m5s"),
        (245_001_000_000, "4m5.001s"),
        (5 * HOUR + 7_001_000_000, "5h0m7.001s"),
        (90 * MINUTE, "1h30m0s"),
        (-90 * MINUTE, "-1h30m0s"),
        (MAX_INT64, "2562047h47m16.854775807s"),
    ],
)
def test_durations_are_formatted_as_in_go(nanoseconds: int, text: str) -> None:
    assert text == format_duration(nanoseconds)


@given(st.integers(-MAX_INT64 - 1, MAX_INT64))
def test_formatted_durations_are_parsed_back(nanoseconds: int) -> None:
    # Go computes the fraction of a second in floating point; up to nine digits that is exact.
    assert nanoseconds == parse_duration(format_duration(nanoseconds))


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.sampled_from(["ns", "us", "ms", "s", "m", "h"])), min_size=1, max_size=5
    )
)
def test_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    nano_per = {"ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "m": MINUTE, "h": HOUR}
    expected = sum(number * nano_per[unit] for number, unit in parts)
    text = "".join(f"{number}{unit}" for number, unit in parts)

    if expected > MAX_INT64:
        with pytest.raises(DurationError):
            parse_duration(text)
    else:
        assert expected == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("8h", 28_800),
        ("8h30m", 30_600),
        ("20m0s", 1200),
        ("48h0m0s", 172_800),
        ("1h0s", 3600),
        ("0m", 0),
    ],
)
def test_window_durations(text: str, seconds: int) -> None:
    assert seconds == parse_window_duration(text)


@pytest.mark.parametrize(
    "text", ["30s", "1h30s", "-20m", "1d", "1h1h", "10mh", "1.5h", "", "8", "1m1h", "8h\n", "9" * 30 + "h"]
)
def test_invalid_window_durations_are_rejected(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_window_duration(text)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1h30m", 5400), ("1h1h", 7200), ("720h", 2_592_000), ("0s", 0), ("Never", None)]
)
def test_karpenter_durations(text: str, seconds: int | None) -> None:
    assert seconds == parse_karpenter_duration(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("never", "write Never"), ("1.5h", "Never"), ("-1s", "Never"), ("", "Never"), ("5", "Never"), ("1d", "Never")],
)
def test_invalid_karpenter_durations_are_rejected(text: str, hint: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_karpenter_duration(text)

    assert hint in caught.value.hint


# Counts that may be percentages


@pytest.mark.parametrize(
    ("nodes", "total", "limit"),
    [
        pytest.param("10%", 0, 0, id="percentage-of-zero"),
        pytest.param("10%", 1, 1, id="percentage-rounded-up-to-one"),
        pytest.param("10%", 10, 1, id="exact-percentage"),
        pytest.param("10%", 11, 2, id="fraction-rounded-up"),
        pytest.param("50%", 3, 2, id="half-rounded-up"),
        pytest.param("5%", 10, 1, id="half-a-node-is-one"),
        pytest.param("0%", 50, 0, id="zero-percent"),
        pytest.param("99%", 1, 1, id="almost-all-of-one"),
        pytest.param("33%", 3, 1, id="third-of-three"),
        pytest.param("20%", 25, 5, id="fifth"),
        pytest.param("100%", 7, 7, id="all"),
        pytest.param("007", 100, 7, id="leading-zeros"),
        pytest.param(10, 3, 10, id="count"),
    ],
)
def test_limits(nodes: str | int, total: int, limit: int) -> None:
    assert limit == IntOrPercent.parse(nodes).of(total)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10, "10"),
        ("10", "10"),
        ("007", "7"),
        ("05%", "5%"),
        ("00%", "0%"),
        ("100%", "100%"),
        ("2147483647", "2147483647"),
        (0, "0"),
    ],
)
def test_canonical_text_of_counts(value: str | int, text: str) -> None:
    assert text == IntOrPercent.parse(value).text


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        pytest.param("101%", "largest percentage", id="101-percent"),
        pytest.param("1000%", "largest percentage", id="1000-percent"),
        pytest.param("-10", "smallest is 0", id="negative"),
        pytest.param("-10%", "smallest is 0", id="negative-percentage"),
        pytest.param(-1, "smallest is 0", id="negative-int"),
        pytest.param("99999999999999999999", "smaller count", id="beyond-64-bits"),
        pytest.param("2147483648", "smaller count", id="beyond-32-bits"),
        pytest.param(2**31, "smaller count", id="integer-beyond-32-bits"),
        pytest.param("9" * 900, "smaller count", id="many-digits"),
        pytest.param("9" * 5000, "write at most 1000", id="too-many-digits"),
        pytest.param("10.5%", "whole number", id="fraction"),
        pytest.param("1,5", "whole number", id="comma"),
        pytest.param("", "a count such as 10", id="empty"),
        pytest.param("%", "a count such as 10", id="sign-only"),
        pytest.param("10 %", "without spaces", id="space"),
        pytest.param("ten", "a count such as 10", id="words"),
        pytest.param("005%", 'write "5%"', id="zeros"),
        pytest.param("10\n", "a count such as 10", id="line-break"),
        pytest.param(True, "a count such as 10", id="bool"),
    ],
)
def test_invalid_counts_are_rejected_with_a_hint(value: str | int, hint: str) -> None:
    with pytest.raises(IntOrPercentError) as caught:
        IntOrPercent.parse(value)

    assert hint in caught.value.hint
    assert len(caught.value.message) < 120


def test_a_float_is_rejected_as_a_count() -> None:
    with pytest.raises(IntOrPercentError, match=r"1\.5"):
        IntOrPercent.parse(1.5)  # type: ignore[arg-type]


@given(st.integers(0, 100), st.integers(0, 10**6))
def test_percentages_are_rounded_up_exactly(percent: int, total: int) -> None:
    assert math.ceil(Fraction(percent * total, 100)) == IntOrPercent.parse(f"{percent}%").of(total)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("7d", 604_800, id="days"),
        pytest.param("36h", 129_600, id="more hours than a day has"),
        pytest.param("2w", 1_209_600, id="weeks"),
        pytest.param("1d12h", 129_600, id="two units"),
        pytest.param("90s", 90, id="seconds"),
        pytest.param("0s", 0, id="nothing"),
    ],
)
def test_spans(text: str, seconds: int) -> None:
    """A span is parsed to seconds."""
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "1.5h", "-1d", "7 d", "7D", "5 parsecs", "١d"])
def test_invalid_spans_are_rejected(text: str) -> None:
    """An invalid span is rejected with a hint."""
    with pytest.raises(DurationError) as refused:
        parse_span(text)

    assert refused.value.hint == "write 7d, 36h, 2w or 1d12h"
