"""Schedules and windows that calendars always exclude: the search ends after a cycle of the calendar with no result."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.almanac.builders import utc

from springtide.almanac import (
    UTC,
    CalendarFilter,
    CalendarMode,
    Cron,
    DayCalendar,
    Days,
    Dialect,
    Firings,
    Timeline,
    TimePattern,
    overlay,
    recurring,
    restrict,
    with_lead_time,
)

_LEAP_YEAR = [date(2024, 1, 1) + timedelta(days=n) for n in range(366)]
EVERY_DAY = tuple((day.month, day.day) for day in _LEAP_YEAR)
#: Days that a calendar and a schedule are likely to share, and that leap years and weekdays make rare.
FEASTS = ((1, 1), (2, 28), (2, 29), (12, 25), (12, 31))


def _reference(days: Days, mode: CalendarMode = CalendarMode.EXCLUDE) -> CalendarFilter:
    return CalendarFilter(DayCalendar(days), mode)


NEVER = [
    pytest.param((1, 1), [_reference(Days(yearly=((1, 1),)))], id="its-only-day-is-excluded"),
    pytest.param((1, 2), [_reference(Days(yearly=((1, 1),)), CalendarMode.ONLY)], id="another-day-alone-is-allowed"),
    pytest.param((2, 29), [_reference(Days(yearly=((2, 29),)))], id="leap-days-are-excluded"),
    pytest.param((5, 1), [_reference(Days(yearly=EVERY_DAY))], id="every-day-is-excluded"),
    pytest.param((5, 1), [_reference(Days(), CalendarMode.ONLY)], id="no-day-is-allowed"),
    pytest.param(
        (1, 1),
        [_reference(Days(yearly=((1, 1), (5, 1))), CalendarMode.ONLY), _reference(Days(yearly=((1, 1),)))],
        id="two-calendars-leave-nothing",
    ),
]


@pytest.mark.parametrize(("day", "references"), NEVER)
def test_a_schedule_that_is_always_excluded_never_fires(day: tuple[int, int], references: list[CalendarFilter]) -> None:
    """There is neither a next nor a previous firing."""
    firings = Firings.of(Cron.parse(f"0 9 {day[1]} {day[0]} *", Dialect.RULE), UTC, references)

    assert firings.after(utc("2026-11-18")) is None
    assert firings.at_or_before(utc("2026-11-18")) is None


@pytest.mark.parametrize(("day", "references"), NEVER)
def test_a_window_that_is_always_excluded_never_opens(day: tuple[int, int], references: list[CalendarFilter]) -> None:
    """There is no next change, neither of the window nor of an overlay of it with a lead time."""
    window = _window(*day, references)

    assert not window.at(utc("2026-11-18"))
    assert window.next_change(utc("2026-11-18")) is None
    assert overlay([(with_lead_time(window, 600), 4)], 1).next_change(utc("2026-11-18")) is None


def test_a_single_firing_may_be_centuries_ahead() -> None:
    """A one-off firing is allowed or excluded by its own day, also beyond a cycle of recurring days."""
    new_year = _reference(Days(yearly=((1, 1),)))
    allowed, excluded = utc("2999-01-02T12:00"), utc("2999-01-01T12:00")

    assert Firings.once(allowed, UTC, [new_year]).after(utc("2026-11-18")) == allowed
    assert Firings.once(excluded, UTC, [new_year]).after(utc("2026-11-18")) is None
    assert Firings.once(allowed, UTC, [new_year]).at_or_before(utc("3999-01-01")) == allowed


def test_days_are_listed_beyond_a_cycle() -> None:
    """New Year is listed for a thousand years, beyond the cycle of 400."""
    runs = Days(yearly=((1, 1),)).runs(0)

    assert sum(1 for _ in zip(runs, range(1000), strict=False)) == 1000


@st.composite
def _references(draw: st.DrawFn) -> CalendarFilter:
    yearly = draw(st.lists(st.sampled_from(FEASTS), max_size=3))
    dates = draw(st.lists(st.dates(date(2024, 1, 1), date(2060, 12, 31)), max_size=2))
    ranges = draw(st.lists(st.tuples(st.dates(date(2024, 1, 1), date(2030, 1, 1)), st.integers(0, 9000)), max_size=1))
    days = Days(tuple(dates), tuple((first, first + timedelta(days=n)) for first, n in ranges), tuple(yearly))
    return _reference(days, draw(st.sampled_from(CalendarMode)))


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(FEASTS),
    st.lists(_references(), min_size=1, max_size=2),
    st.dates(date(2024, 1, 1), date(2032, 12, 31)),
)
def test_the_next_time_equals_a_search_day_by_day(
    day: tuple[int, int], references: list[CalendarFilter], today: date
) -> None:
    """Firings and windows begin on the first allowed day within a cycle, or never."""
    expected = next(_allowed_days(day, references, today), None)
    start = None if expected is None else utc(f"{expected}T09:00")
    firings = Firings.of(Cron.parse(f"0 9 {day[1]} {day[0]} *", Dialect.RULE), UTC, references)

    assert firings.after(utc(str(today))) == start
    assert _window(*day, references).next_change(utc(str(today))) == (start and (start, True))


def _window(month: int, day: int, references: Sequence[CalendarFilter]) -> Timeline[bool]:
    opens = TimePattern.parse(months=month, days=day, hours=9)
    return restrict(recurring(opens, TimePattern.parse(months=month, days=day, hours=17), UTC), references, UTC)


def _allowed_days(day: tuple[int, int], references: list[CalendarFilter], today: date) -> Iterator[date]:
    for year in range(today.year, today.year + 402):
        try:
            candidate = date(year, *day)
        except ValueError:
            continue
        if candidate >= today and all(_allows(reference, candidate) for reference in references):
            yield candidate


def _allows(reference: CalendarFilter, day: date) -> bool:
    days = reference.calendar.days
    listed = (
        day in days.dates
        or (day.month, day.day) in days.yearly
        or any(first <= day <= last for first, last in days.ranges)
    )
    return listed == (reference.mode is CalendarMode.ONLY)


def test_a_search_into_the_past_stops_where_nothing_older_counts() -> None:
    """With `since`, a firing before that instant is not returned."""
    weekday = _reference(Days(dates=(date(2026, 11, 18),)))
    firings = Firings.of(Cron.parse("0 9 * * *", Dialect.RULE), UTC, [weekday])
    yesterday = utc("2026-11-17T09:00")

    assert firings.at_or_before(utc("2026-11-18T12:00"), since=yesterday) == yesterday
    assert firings.at_or_before(utc("2026-11-18T12:00"), since=yesterday + 1) is None
