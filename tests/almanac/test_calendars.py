"""Calendars: which days they list, and how they restrict windows and firings."""

import sys
from datetime import date
from itertools import islice

import pytest
from tests.almanac.builders import local, utc

from springtide.almanac import (
    UTC,
    CalendarError,
    CalendarFilter,
    CalendarMode,
    DayCalendar,
    Days,
    TimePattern,
    allowed,
    always,
    load_zone,
    public_holidays,
    recurring,
    restrict,
    with_lead_time,
)
from springtide.almanac.civil import date_of, day_of

BERLIN = "Europe/Berlin"


def _listed(days: Days, start: date, count: int) -> list[tuple[str, str]]:
    return [(str(date_of(a)), str(date_of(b))) for a, b in islice(days.runs(day_of(start)), count)]


def test_dates_and_ranges_become_runs() -> None:
    """Neighbouring days are one run, ranges include both ends, and runs cross the year."""
    days = Days(
        dates=(date(2026, 12, 24), date(2026, 12, 25), date(2027, 5, 1)),
        ranges=((date(2026, 12, 27), date(2027, 1, 2)), (date(2026, 12, 26), date(2026, 12, 27))),
    )

    expected = [("2026-12-24", "2027-01-02"), ("2027-05-01", "2027-05-01")]
    assert _listed(days, date(2026, 1, 1), 9) == expected
    assert _listed(days, date(2026, 12, 30), 1) == [("2026-12-24", "2027-01-02")]
    assert _listed(days, date(2027, 5, 2), 9) == []


def test_yearly_days_come_every_year() -> None:
    """29 February comes in leap years only."""
    days = Days(yearly=((1, 1), (2, 29)))

    assert [first for first, _ in _listed(days, date(2026, 6, 1), 4)] == [
        "2027-01-01",
        "2028-01-01",
        "2028-02-29",
        "2029-01-01",
    ]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        pytest.param(date(2026, 12, 24), True, id="date"),
        pytest.param(date(2026, 12, 31), True, id="last-of-range"),
        pytest.param(date(2027, 1, 3), False, id="after-range"),
        pytest.param(date(2030, 5, 1), True, id="yearly"),
        pytest.param(date(2027, 12, 24), False, id="date-of-another-year"),
    ],
)
def test_membership(day: date, expected: bool) -> None:
    """A day is in the set if a date, a range or a yearly day names it."""
    days = Days((date(2026, 12, 24),), ((date(2026, 12, 27), date(2027, 1, 2)),), ((5, 1),))

    assert (day_of(day) in days) is expected


def test_empty_calendar_lists_nothing() -> None:
    """Excluding an empty calendar changes nothing; allowing only an empty calendar is never active."""
    calendar = DayCalendar(Days())

    assert CalendarFilter(calendar).allows(0, UTC)
    assert restrict(always(), [CalendarFilter(calendar, CalendarMode.ONLY)], UTC).next_change(0) is None
    assert not restrict(always(), [CalendarFilter(calendar, CalendarMode.ONLY)], UTC).at(0)


def test_levels_are_cut_at_local_midnight() -> None:
    """A night that runs into an excluded day ends at its midnight, and the next begins after it."""
    nights = recurring(TimePattern.parse(hours=22), TimePattern.parse(hours=6), load_zone(BERLIN))
    holiday = CalendarFilter(DayCalendar(Days(dates=(date(2026, 12, 24),))))
    cut = restrict(nights, [holiday], load_zone(BERLIN))

    assert cut.changes(local(BERLIN, "2026-12-23T12:00"), local(BERLIN, "2026-12-25T12:00")) == [
        (local(BERLIN, "2026-12-23T22:00"), True),
        (local(BERLIN, "2026-12-24T00:00"), False),
        (local(BERLIN, "2026-12-25T00:00"), True),
        (local(BERLIN, "2026-12-25T06:00"), False),
    ]


def test_lead_is_applied_after_the_cut() -> None:
    """Capacity may be prepared on an excluded day for the day after it."""
    holiday = CalendarFilter(DayCalendar(Days(dates=(date(2026, 12, 24),))))
    early = with_lead_time(restrict(always(), [holiday], UTC), 600)

    assert early.changes(utc("2026-12-24T12:00"), utc("2026-12-26")) == [(utc("2026-12-24T23:50"), True)]


def test_the_calendars_own_zone_counts() -> None:
    """The days of a calendar are days in its own zone, not in that of the object."""
    freeze = CalendarFilter(DayCalendar(Days(dates=(date(2026, 12, 24),)), load_zone("Asia/Tokyo")))
    open_times = allowed([freeze], load_zone("America/New_York"))

    assert open_times.changes(utc("2026-12-20"), utc("2026-12-30")) == [
        (utc("2026-12-23T15:00"), False),
        (utc("2026-12-24T15:00"), True),
    ]


def test_a_day_that_the_clock_shows_twice_is_cut_twice() -> None:
    """In St John's clocks went from 00:01 back to 23:01: the excluded day begins, pauses, and begins again."""
    zone = load_zone("America/St_Johns")
    holiday = CalendarFilter(DayCalendar(Days(dates=(date(2006, 10, 29),))))

    assert allowed([holiday], zone).changes(utc("2006-10-28T12:00"), utc("2006-10-31")) == [
        (utc("2006-10-29T00:00-02:30"), False),
        (utc("2006-10-28T23:01-03:30"), True),
        (utc("2006-10-29T00:00-03:30"), False),
        (utc("2006-10-30T00:00-03:30"), True),
    ]


def test_every_reference_applies() -> None:
    """An instant must be allowed by every reference."""
    december = CalendarFilter(DayCalendar(Days(ranges=((date(2026, 12, 1), date(2026, 12, 31)),))), CalendarMode.ONLY)
    christmas = CalendarFilter(DayCalendar(Days(dates=(date(2026, 12, 25),))))

    assert restrict(always(), [december, christmas], UTC).changes(utc("2026-11-01"), utc("2027-06-01")) == [
        (utc("2026-12-01"), True),
        (utc("2026-12-25"), False),
        (utc("2026-12-26"), True),
        (utc("2027-01-01"), False),
    ]


def test_public_holidays_of_a_part_of_a_country() -> None:
    """Women's Day is a holiday in Berlin and not in all of Germany."""
    womens_day = day_of(date(2026, 3, 8))

    assert womens_day in Days(holidays=public_holidays("DE", "BE"))
    assert womens_day not in Days(holidays=public_holidays("DE"))
    assert day_of(date(2026, 12, 25)) in Days(holidays=public_holidays("DE"))


@pytest.mark.parametrize(
    ("country", "subdivision", "message", "hint"),
    [
        ("de", None, "country 'de' is unknown", "did you mean DE?"),
        ("Germany", None, "country 'Germany' is unknown", "did you mean"),
        ("DE", "Bavaria", "subdivision 'Bavaria' of DE is unknown", "did you mean"),
        ("DE", "by", "subdivision 'by' of DE is unknown", "did you mean BY?"),
        ("JP", "13", "subdivision '13' of JP is unknown", "JP has no subdivisions: leave the field out"),
    ],
)
def test_unknown_countries_have_a_hint(country: str, subdivision: str | None, message: str, hint: str) -> None:
    """An unknown country or subdivision is an error with similar names."""
    with pytest.raises(CalendarError) as caught:
        public_holidays(country, subdivision)

    assert message in caught.value.message
    assert hint in caught.value.hint


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the hint is the command that installs it."""
    monkeypatch.setitem(sys.modules, "holidays", None)

    with pytest.raises(CalendarError) as caught:
        public_holidays("DE")

    assert caught.value.hint == "pip install './springtide[holidays]', in the folder with the clone"


def test_a_day_that_comes_back_is_found_from_within_the_day_before() -> None:
    """In St John's clocks went from 00:01 of the 28th back to 23:01 of the 27th, and the 27th is excluded."""
    zone = load_zone("America/St_Johns")
    holiday = CalendarFilter(DayCalendar(Days(dates=(date(2006, 10, 28),))))
    open_times = allowed([holiday], zone)
    back = utc("2006-10-28T23:01-03:30")

    # The clock shows the 29th for one minute; the excluded 28th comes back after it.
    assert open_times.changes(back - 30, back + 7200)[:2] == [(back, False), (utc("2006-10-29T00:00-03:30"), True)]
