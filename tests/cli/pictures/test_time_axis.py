"""Local times, clock changes, and the ticks of the time axis."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.pictures.samples import DAY, LOS_ANGELES, START, forecast, instant

from springtide.cli.pictures.time_axis import clock_for, lay_out_axis, zone_clock

YEAR = 365 * 86400


def test_a_moment_has_day_time_and_abbreviation() -> None:
    assert zone_clock(LOS_ANGELES).moment(instant("2026-11-02T17:00:00")) == "Mon 2 Nov 09:00 PST"


def test_seconds_of_zero_are_left_out() -> None:
    assert zone_clock("UTC").moment(instant("2026-11-02T17:00:05"), year=True) == "Mon 2 Nov 2026 17:00:05 UTC"


def test_moments_before_the_epoch() -> None:
    assert zone_clock("Africa/Monrovia").moment(-86400, year=True) == "Tue 30 Dec 1969 23:15:30 MMT"


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-11-02T08:00", "2026-11-02T09:00", "Mon 2 Nov 2026 08:00 – 09:00 UTC"),
        ("2026-11-02T08:00", "2026-11-03T09:00", "Mon 2 Nov 2026 08:00 UTC – Tue 3 Nov 09:00 UTC"),
        ("2026-12-31T08:00", "2027-01-01T09:00", "Thu 31 Dec 2026 08:00 UTC – Fri 1 Jan 2027 09:00 UTC"),
    ],
    ids=["same-day", "same-year", "across-years"],
)
def test_a_range_has_day_and_year_only_as_often_as_needed(start: str, end: str, text: str) -> None:
    assert text == zone_clock("UTC").range(instant(start), instant(end), year=True)


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
def test_sentences_of_clock_changes(zone: str, start: str, sentences: list[str]) -> None:
    begin = instant(start)
    length = YEAR if len(sentences) != 1 else 120 * 86400

    assert sentences == [
        clock_change.sentence for clock_change in zone_clock(zone).clock_changes(begin, begin + length)
    ]


def test_clock_changes_exclude_the_start_and_include_the_end() -> None:
    back = instant("2026-11-01T09:00")
    clock = zone_clock(LOS_ANGELES)

    assert clock.clock_changes(back, back + 60) == []
    assert [back] == [clock_change.at for clock_change in clock.clock_changes(back - 60, back)]


def test_the_clock_is_of_the_requested_zone_else_of_the_forecast_else_utc() -> None:
    assert clock_for(forecast(zone=LOS_ANGELES), "Asia/Tokyo").zone.name == "Asia/Tokyo"
    assert clock_for(forecast(zone=LOS_ANGELES), None).zone.name == LOS_ANGELES
    assert clock_for(forecast(zone=None), None).zone.name == "UTC"


ZONES = (LOS_ANGELES, "UTC", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia")


@settings(max_examples=150, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    start=st.integers(instant("1970-01-02T00:00"), instant("2037-01-01T00:00")),
    length=st.sampled_from((1, 60, 3600, 86400, 7 * 86400, 31 * 86400, 90 * 86400, 400 * 86400)),
    room=st.integers(5, 40),
)
def test_ticks_and_cells_fill_the_range_in_order(zone: str, start: int, length: int, room: int) -> None:
    clock, until = zone_clock(zone), start + length

    axis = lay_out_axis(clock, start, until, room=room)

    assert axis.cells[0].start == start
    assert axis.cells[-1].end == until
    assert all(one.end == two.start for one, two in pairwise(axis.cells))
    assert all(one.at < two.at for one, two in pairwise(axis.ticks))
    assert all(start < tick.at < until for tick in axis.ticks)
    assert len(axis.ticks) <= 2 * room
    for begin, end in axis.weekends:
        assert clock.read(begin).weekday() in (5, 6)
        assert clock.read(end - 1).weekday() in (5, 6)


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        pytest.param(3600, ["12:05", "12:10"], id="an-hour"),
        pytest.param(DAY, ["13:00", "14:00"], id="a-day"),
        pytest.param(7 * DAY, ["18:00", "06:00"], id="a-week"),
        pytest.param(30 * DAY, ["31", "1"], id="a-month"),
        pytest.param(90 * DAY, ["2 Nov", "9 Nov"], id="a-quarter"),
        pytest.param(400 * DAY, ["Nov", "Dec"], id="a-year"),
    ],
)
def test_ticks_depend_on_the_range(length: int, labels: list[str]) -> None:
    axis = lay_out_axis(zone_clock(LOS_ANGELES), START, START + length, room=28)

    assert labels == [tick.label for tick in axis.ticks[:2]]


def test_a_day_on_which_the_clocks_go_back_is_an_hour_longer() -> None:
    axis = lay_out_axis(zone_clock(LOS_ANGELES), START, START + 7 * DAY, room=28)

    sunday = next(cell for cell in axis.cells if cell.labels[0] == "Sun 1 Nov")
    assert sunday.end - sunday.start == 25 * 3600


def test_a_skipped_local_time_has_no_tick() -> None:
    start = instant("2026-03-08T00:00", LOS_ANGELES)

    labels = [tick.label for tick in lay_out_axis(zone_clock(LOS_ANGELES), start, start + 6 * 3600, room=6).ticks]

    assert labels == ["01:00", "03:00", "04:00", "05:00", "06:00"]


def test_a_day_without_midnight_starts_at_its_first_instant() -> None:
    start = instant("2026-03-28T12:00", "Asia/Beirut")

    cells = lay_out_axis(zone_clock("Asia/Beirut"), start, start + DAY, room=28).cells

    assert zone_clock("Asia/Beirut").moment(cells[1].start) == "Sun 29 Mar 01:00 EEST"


def test_an_empty_range_is_an_axis() -> None:
    axis = lay_out_axis(zone_clock("UTC"), START, START, room=28)

    assert (len(axis.cells), axis.ticks) == (1, ())


def test_a_skipped_day_is_not_on_the_axis() -> None:
    start = instant("2011-12-28T12:00", "Pacific/Apia")

    cells = lay_out_axis(zone_clock("Pacific/Apia"), start, start + 3 * DAY, room=28).cells

    assert [cell.labels[0] for cell in cells] == ["Wed 28 Dec", "Thu 29 Dec", "Sat 31 Dec", "Sun 1 Jan"]
