"""Firings: schedules and single instants on the days that calendars allow, and counting them without listing."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.almanac.builders import utc
from tests.almanac.strategies import moments, schedules, zones

from springtide.almanac import UTC, CalendarFilter, CalendarMode, Cron, DayCalendar, Days, Dialect, Firings, load_zone

NOON = Cron.parse("0 12 * * *", Dialect.RULE)
CHRISTMAS = DayCalendar(Days(dates=(date(2026, 12, 24), date(2026, 12, 25))))
EXCLUDE = CalendarFilter(CHRISTMAS)
ONLY = CalendarFilter(CHRISTMAS, CalendarMode.ONLY)


def test_a_single_instant() -> None:
    """A single firing is found after instants before it, and at or before later ones."""
    once = Firings.once(100)

    assert (once.after(99), once.after(100)) == (100, None)
    assert (once.at_or_before(99), once.at_or_before(100)) == (None, 100)
    assert list(once.between(99, 100)) == [100]
    assert list(once.between(100, 200)) == []


def test_a_single_instant_on_an_excluded_day_never_fires() -> None:
    """Calendars apply to a single firing by its local day."""
    noon = utc("2026-12-24T12:00")

    assert Firings.once(noon, UTC, [EXCLUDE]).after(0) is None
    assert Firings.once(noon, UTC, [ONLY]).after(0) == noon
    assert Firings.once(noon, load_zone("Pacific/Kiritimati"), [EXCLUDE]).at_or_before(noon) is None


@pytest.mark.parametrize(
    ("references", "t", "following", "latest"),
    [
        pytest.param([], "2026-12-24T11:00", "2026-12-24T12:00", "2026-12-23T12:00", id="no-calendar"),
        pytest.param([EXCLUDE], "2026-12-24T11:00", "2026-12-26T12:00", "2026-12-23T12:00", id="exclude"),
        pytest.param([EXCLUDE], "2026-12-26T11:00", "2026-12-26T12:00", "2026-12-23T12:00", id="exclude-after"),
        pytest.param([ONLY], "2026-12-20T11:00", "2026-12-24T12:00", None, id="only-before"),
        pytest.param([ONLY], "2030-01-01T11:00", None, "2026-12-25T12:00", id="only-after"),
        pytest.param([ONLY, EXCLUDE], "2026-12-20T11:00", None, None, id="nothing-left"),
    ],
)
def test_firings_on_allowed_days(
    references: list[CalendarFilter], t: str, following: str | None, latest: str | None
) -> None:
    """The nearest allowed firing is found in both directions, or None."""
    firings = Firings.of(NOON, UTC, references)

    assert firings.after(utc(t)) == (following and utc(following))
    assert firings.at_or_before(utc(t)) == (latest and utc(latest))


def test_the_midnight_that_ends_an_allowed_day_is_not_part_of_it() -> None:
    """A firing at the midnight that begins an excluded day is not allowed."""
    firings = Firings.of(Cron.parse("0 0,12 * * *", Dialect.RULE), UTC, [ONLY])

    assert firings.at_or_before(utc("2026-12-26T00:00")) == utc("2026-12-25T12:00")


def test_a_day_shown_for_a_minute_before_the_clock_went_back_counts() -> None:
    """In St John's the 29th began, and after a minute clocks went back to 23:01 of the 28th."""
    only = CalendarFilter(DayCalendar(Days(dates=(date(2006, 10, 29),))), CalendarMode.ONLY)
    firings = Firings.of(Cron.parse("* * * * *", Dialect.BUDGET), load_zone("America/St_Johns"), [only])

    assert firings.at_or_before(utc("2006-10-28T23:30-03:30")) == utc("2006-10-29T00:00-02:30")
    assert firings.after(utc("2006-10-28T23:30-03:30")) == utc("2006-10-29T00:00-03:30")


def test_firings_between_leave_out_excluded_days() -> None:
    """Firings on excluded days are not listed."""
    firings = Firings.of(NOON, UTC, [EXCLUDE])

    assert list(firings.between(utc("2026-12-22T12:00"), utc("2026-12-26T12:00"))) == [
        utc("2026-12-23T12:00"),
        utc("2026-12-26T12:00"),
    ]


def test_a_recurring_calendar_is_searched_year_by_year() -> None:
    """With a calendar that allows only New Year, one firing a year is found in both directions."""
    new_year = CalendarFilter(DayCalendar(Days(yearly=((1, 1),))), CalendarMode.ONLY)
    firings = Firings.of(Cron.parse("*/10 9 * * *", Dialect.RULE), UTC, [new_year])

    assert firings.after(utc("2026-01-01T09:50")) == utc("2027-01-01T09:00")
    assert firings.at_or_before(utc("2026-01-01T08:00")) == utc("2025-01-01T09:50")


DAY = 86_400
SOME_DAYS = DayCalendar(Days(yearly=((3, 29), (10, 25), (12, 31)), ranges=((date(2000, 1, 1), date(2005, 6, 1)),)))
CALENDARS = st.sampled_from(
    ((), (CalendarFilter(SOME_DAYS),), (CalendarFilter(SOME_DAYS, CalendarMode.ONLY),)),
)


@given(st.data(), zones, schedules, st.sampled_from(Dialect), CALENDARS, st.integers(-DAY, 9 * DAY))
def test_a_count_is_the_length_of_the_list(
    data: st.DataObject,
    zone: str,
    schedule: str,
    dialect: Dialect,
    calendars: tuple[CalendarFilter, ...],
    length: int,
) -> None:
    """Also around clock changes, with calendars, and for an interval whose end is before its beginning."""
    a = data.draw(moments(zone))
    firings = Firings.of(Cron.parse(schedule, dialect), load_zone(zone), calendars)

    assert firings.count(a, a + length) == len(list(firings.between(a, a + length)))


def test_every_minute_of_centuries_is_counted_at_once() -> None:
    """Counting does not list the firings, which would take minutes."""
    firings = Firings.of(Cron.parse("* * * * *", Dialect.RULE), UTC)

    assert firings.count(utc("2000-01-01"), utc("2400-01-01")) == 146_097 * 1440


def test_a_single_instant_counts_once() -> None:
    """A single firing counts if it is in (a, b]."""
    once = Firings.once(100)

    assert (once.count(99, 100), once.count(100, 200), once.count(0, 99)) == (1, 0, 0)
