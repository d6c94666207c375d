"""Moments by the clock of a zone, and the moments at which that clock is changed."""

from __future__ import annotations

import pytest
from tests.cli.pictures.samples import LOS_ANGELES, forecast, instant

from springtide.cli.pictures.clock import clock_for, wall_clock

YEAR = 365 * 86400


def test_a_moment_names_day_time_and_abbreviation() -> None:
    assert wall_clock(LOS_ANGELES).moment(instant("2026-11-02T17:00:00")) == "Mon 2 Nov 09:00 PST"


def test_seconds_are_written_only_where_there_are_any() -> None:
    assert wall_clock("UTC").moment(instant("2026-11-02T17:00:05"), year=True) == "Mon 2 Nov 2026 17:00:05 UTC"


def test_moments_before_the_epoch_are_written_too() -> None:
    assert wall_clock("Africa/Monrovia").moment(-86400, year=True) == "Tue 30 Dec 1969 23:15:30 MMT"


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-11-02T08:00", "2026-11-02T09:00", "Mon 2 Nov 2026 08:00 – 09:00 UTC"),
        ("2026-11-02T08:00", "2026-11-03T09:00", "Mon 2 Nov 2026 08:00 UTC – Tue 3 Nov 09:00 UTC"),
        ("2026-12-31T08:00", "2027-01-01T09:00", "Thu 31 Dec 2026 08:00 UTC – Fri 1 Jan 2027 09:00 UTC"),
    ],
    ids=["same-day", "same-year", "across-years"],
)
def test_a_range_names_day_and_year_only_as_often_as_needed(start: str, end: str, text: str) -> None:
    assert text == wall_clock("UTC").range(instant(start), instant(end), year=True)


@pytest.mark.parametrize(
    ("zone", "start", "sentences"),
    [
        pytest.param(
            "America/New_York",
            "2026-01-01T00:00",
            [
                "Sun 8 Mar 2026: clocks go forward 1h, from 02:00 EST to 03:00 EDT",
                "Sun 1 Nov 2026: clocks go back 1h, from 02:00 EDT to 01:00 EST",
            ],
            id="north",
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "2026-01-01T00:00",
            [
                "Sun 5 Apr 2026: clocks go back 30min, from 02:00 +11 to 01:30 +1030",
                "Sun 4 Oct 2026: clocks go forward 30min, from 02:00 +1030 to 02:30 +11",
            ],
            id="half-an-hour",
        ),
        pytest.param(
            "Pacific/Apia",
            "2011-10-01T00:00",
            ["Sat 31 Dec 2011: clocks go forward 1d, from 00:00 -10 to 00:00 +14"],
            id="a-whole-day",
        ),
        pytest.param("Asia/Kolkata", "2026-01-01T00:00", [], id="never"),
    ],
)
def test_changes_of_the_clocks_are_told(zone: str, start: str, sentences: list[str]) -> None:
    begin = instant(start)
    length = YEAR if len(sentences) != 1 else 120 * 86400

    assert sentences == [shift.sentence for shift in wall_clock(zone).shifts(begin, begin + length)]


def test_a_change_at_the_start_is_past_and_one_at_the_end_is_told() -> None:
    back = instant("2026-11-01T09:00")
    clock = wall_clock(LOS_ANGELES)

    assert clock.shifts(back, back + 60) == []
    assert [back] == [shift.at for shift in clock.shifts(back - 60, back)]


def test_a_forecast_is_drawn_in_the_zone_asked_for_else_in_its_own_else_in_utc() -> None:
    assert clock_for(forecast(zone=LOS_ANGELES), "Asia/Tokyo").zone.name == "Asia/Tokyo"
    assert clock_for(forecast(zone=LOS_ANGELES), None).zone.name == LOS_ANGELES
    assert clock_for(forecast(zone=None), None).zone.name == "UTC"
