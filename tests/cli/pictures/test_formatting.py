"""Formats of values, durations and distances in time."""

from __future__ import annotations

import pytest

from springtide.apis.forecast import LaneValue
from springtide.cli.pictures.formatting import format_relative, format_span, format_value, printable, value_forms


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        pytest.param(3, ("3",), id="count"),
        pytest.param(0, ("0",), id="zero"),
        pytest.param(True, ("on",), id="on"),
        pytest.param(False, ("off",), id="off"),
        pytest.param(None, ("nothing", "–"), id="nothing"),
        pytest.param("20%", ("20%",), id="percentage"),
        pytest.param("unlimited", ("∞ unlimited", "∞"), id="unlimited"),
        pytest.param({"min": ["20%", 5]}, ("min(20%, 5)",), id="smaller-of-two"),
        pytest.param({"replicas": 12}, ("replicas 12", "12"), id="replicas"),
        pytest.param({"min": 2, "max": 10}, ("min 2, max 10", "2–10"), id="bounds"),
        pytest.param({"min": 2}, ("min 2", "≥2"), id="lower-bound"),
        pytest.param({"max": 10}, ("max 10", "≤10"), id="upper-bound"),
        pytest.param({"replicas": 1, "min": 2, "max": 3}, ("replicas 1, min 2, max 3",), id="all-fields"),
        pytest.param({}, ("nothing",), id="no-fields"),
        pytest.param({"other": {"a": "é"}}, ('other {"a": "é"}',), id="unknown-field"),
    ],
)
def test_values_are_written_from_the_longest_form_to_the_shortest(value: LaneValue, forms: tuple[str, ...]) -> None:
    assert forms == value_forms(value)


@pytest.mark.parametrize("value", ["unlimited", None, {"min": 2, "max": 10}, {"min": 2}, {"max": 10}])
def test_without_unicode_the_forms_are_ascii(value: LaneValue) -> None:
    assert all(form.isascii() for form in value_forms(value, unicode=False))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="none"),
        pytest.param(45, "45s", id="seconds"),
        pytest.param(3600, "1h", id="whole-hour"),
        pytest.param(9000, "2h 30min", id="two-units"),
        pytest.param(2 * 86400 + 14 * 3600 + 59, "2d 14h", id="only-two-units"),
        pytest.param(2 * 86400 + 180, "2d", id="only-adjacent-units"),
        pytest.param(-1800, "30min", id="length-not-direction"),
    ],
)
def test_spans_are_written_in_their_two_largest_units(seconds: int, text: str) -> None:
    assert text == format_span(seconds)


@pytest.mark.parametrize(("at", "text"), [(100, "now"), (160, "in 1min"), (40, "1min ago")])
def test_distances_have_a_direction(at: int, text: str) -> None:
    assert text == format_relative(at, 100)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("web", "web", id="untouched"),
        pytest.param("Grüße 漢字 שלום", "Grüße 漢字 שלום", id="letters-of-any-script"),
        pytest.param("a\nb\tc", "a b c", id="one-line"),
        pytest.param("\x1b[31mred", r"\x1b[31mred", id="escape-code"),
        pytest.param("user\u202egnp.exe", r"user\u202egnp.exe", id="reordering"),
        pytest.param("a\ud800b", r"a\ud800b", id="half-a-character"),
        pytest.param("a\x00b\x7f\x9b", r"a\x00b\x7f\x9b", id="controls"),
        pytest.param("a\ufffeb", r"a\ufffeb", id="not-a-character"),
    ],
)
def test_text_is_made_printable(text: str, shown: str) -> None:
    assert shown == printable(text)


def test_values_are_made_printable() -> None:
    assert "\x1b" not in format_value({"\x1b[2J": "\x1b[2J"})
