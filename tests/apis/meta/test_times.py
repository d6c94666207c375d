"""Windows and patterns as users write them, and instants.

Instants in sentences.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.almanac.builders import utc
from tests.apis.manifests import CONTEXT, shown

from springtide.almanac import UTC, DayCalendar, Days, MatchPolicy, always, load_zone
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import (
    CalendarReference,
    PatternSpec,
    Window,
    clock_time,
    date_and_time,
    dates_and_times,
    on_calendars,
    open_times,
    parse_instant,
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"hours": 17}, [], id="integer"),
        pytest.param({}, [], id="midnight"),
        pytest.param({"days": 13, "weekdays": "Fri"}, [], id="days-and-weekdays"),
        pytest.param({"weekdays": "Mon-Fri"}, ["error weekdays"], id="range-of-weekdays"),
        pytest.param({"months": "Jan-Mar", "hours": "*/2"}, ["error hours", "error months"], id="all-at-once"),
        pytest.param({"weekdays": "Monday,7"}, [], id="full-name-and-number"),
        pytest.param({"weekdays": 8}, ["error weekdays"], id="eighth-day"),
        pytest.param({"hours": ""}, ["error hours"], id="empty"),
        pytest.param({"hours": "9,,10"}, ["error hours"], id="gap"),
        pytest.param({"days": "29", "months": "Feb"}, ["warning days"], id="leap-day"),
        pytest.param({"days": "30", "months": "Feb"}, ["error days"], id="never"),
    ],
)
def test_patterns(fields: dict[str, Any], expected: list[str]) -> None:
    """Problems have the path of their field."""
    assert expected == shown(msgspec.convert(fields, PatternSpec).problems(CONTEXT))


def test_the_hint_writes_a_range_out() -> None:
    """Ranges are rejected with a hint that has the equivalent list."""
    (problem,) = msgspec.convert({"weekdays": "Mon-Fri"}, PatternSpec).problems(CONTEXT)

    assert "Mon,Tue,Wed,Thu,Fri" in problem.hint


def test_a_window_with_a_broken_pattern_says_no_more() -> None:
    """The pattern reports itself; its window does not fail over it."""
    window = msgspec.convert({"start": {"hours": 24}, "end": {"hours": 24}}, Window)

    assert list(window.problems(CONTEXT)) == []


def test_policies_differ_where_starts_and_ends_do_not_alternate() -> None:
    """On a Saturday, an end that comes daily is ahead of Monday's start; behind lies Friday's end."""
    window = msgspec.convert({"start": {"hours": 9, "weekdays": "Mon"}, "end": {"hours": 17}}, Window)
    saturday = parse_instant("2026-06-06T10:00:00Z")

    assert open_times(window, UTC, MatchPolicy.LITERAL).at(saturday) is True
    assert open_times(window, UTC, MatchPolicy.WINDOW).at(saturday) is False


def test_a_window_without_times_cannot_be_compiled() -> None:
    """Compiling an invalid window raises an error."""
    with pytest.raises(ValueError, match="neither"):
        open_times(Window(), UTC, MatchPolicy.WINDOW)


def test_references_to_the_unknown_cut_nothing() -> None:
    """Of two calendars only the one that exists counts."""
    references = (CalendarReference(name="missing", mode="Only"), CalendarReference(name="new-year"))
    calendars = {"new-year": DayCalendar(Days(yearly=((1, 1),)))}

    cut = on_calendars(always(), references, calendars, UTC)

    assert cut.changes(parse_instant("2026-12-31T00:00:00Z"), parse_instant("2027-01-31T00:00:00Z")) == [
        (parse_instant("2027-01-01T00:00:00Z"), False),
        (parse_instant("2027-01-02T00:00:00Z"), True),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="epoch"),
        pytest.param("1969-12-31T23:59:59Z", -1, id="before"),
        pytest.param("2026-11-27T06:00:00Z", 1795759200, id="utc"),
        pytest.param("2026-11-27T07:00:00+01:00", 1795759200, id="offset"),
        pytest.param("2026-11-27T06:00:00.999Z", 1795759200, id="fraction-is-cut-off"),
        pytest.param("1969-12-31T23:59:58.5Z", -2, id="fraction-before-the-epoch"),
    ],
)
def test_instants(text: str, expected: int) -> None:
    """Whole seconds since the epoch."""
    assert expected == parse_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-11-27",
        "2026-11-27T06:00:00",
        "2026-11-27 06:00:00Z",
        "2026-11-27T06:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-27T24:00:00Z",
        "2026-11-27T23:59:60Z",
        "2026-11-27T06:00:00+0100",
        "2026-11-27t06:00:00z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "٢٠٢٦-11-27T06:00:00Z",
    ],
)
def test_texts_that_are_no_instants(text: str) -> None:
    """What Kubernetes does not read as a time is refused, with the text that was given."""
    with pytest.raises(ValueError, match="is not") as caught:
        parse_instant(text)

    assert f"`{text}`" in str(caught.value)


BERLIN = load_zone("Europe/Berlin")


def test_time_of_day() -> None:
    assert clock_time(utc("2026-06-05T15:00:00"), BERLIN) == "17:00 Europe/Berlin"


def test_seconds_are_shown_where_there_are_any() -> None:
    assert clock_time(utc("2026-06-05T15:00:01"), BERLIN) == "17:00:01 Europe/Berlin"


def test_day_is_the_local_one() -> None:
    assert date_and_time(utc("2026-06-05T23:00:00"), BERLIN) == "Sat 2026-06-06 01:00 Europe/Berlin"


def test_before_the_epoch() -> None:
    assert date_and_time(utc("1900-01-01T00:00:00"), load_zone("UTC")) == "Mon 1900-01-01 00:00 UTC"


def test_the_zone_is_named_once() -> None:
    instants = [utc("2026-06-05T15:00:00"), utc("2026-06-12T15:00:00")]

    assert dates_and_times(instants, BERLIN) == "Fri 2026-06-05 17:00, Fri 2026-06-12 17:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        pytest.param("2026-06-05T08:59:59Z", ["error until"], id="before-it-opens"),
        pytest.param("2026-06-05T09:00:00Z", ["error until"], id="when-it-opens"),
        pytest.param("2026-06-05T09:00:01Z", [], id="after-it-opens"),
    ],
)
def test_a_single_window_closes_after_it_opens(until: str, expected: list[str]) -> None:
    """A window without any length is never open."""
    window = msgspec.convert({"from": "2026-06-05T09:00:00Z", "until": until}, Window)

    assert shown(window.problems(ValidationContext(now=0))) == expected
