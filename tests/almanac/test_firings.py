"""Firings: schedules and single instants on the days that calendars allow, and counting them without listing."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.almanac.builders import utc
from tests.almanac.strategies import moments, schedules, zones

from springtide.almanac import (
    UTC,
    CalendarFilter,
    CalendarMode,
    Cron,
    DayCalendar,
    Days,
    Dialect,
    Firings,
    level_setters,
    load_zone,
)

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


def test_a_firing_at_the_first_second_of_an_allowed_day_counts() -> None:
    """Also where the day begins at the very end of what is looked at."""
    firings = Firings.of(Cron.parse("0 0 * * *", Dialect.RULE), UTC, [ONLY])
    before, midnight = utc("2026-12-23"), utc("2026-12-24")

    assert [firings.count(before, midnight + seconds) for seconds in (-1, 0, 1)] == [0, 1, 1]
    assert list(firings.between(before, midnight)) == [midnight]
    assert firings.count(midnight - 1, midnight) == 1


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


SIX, SEVEN = (Cron.parse(f"0 {hour} * * *", Dialect.RULE) for hour in (6, 7))
EVERY_MINUTE = Cron.parse("* * * * *", Dialect.RULE)


@pytest.mark.parametrize(
    ("rules", "current", "changes"),
    [
        pytest.param([], None, [], id="no-rules"),
        pytest.param([(Firings.of(NOON, UTC), 5)], 5, [], id="one-value-stays"),
        pytest.param([(Firings.once(utc("2026-03-02")), 5)], None, [("2026-03-02T00:00", 5)], id="not-set-yet"),
        pytest.param([(Firings.once(utc("2026-02-28")), 5)], 5, [], id="set-once-in-the-past"),
        pytest.param(
            [(Firings.of(SIX, UTC), 5), (Firings.of(NOON, UTC), 2)],
            2,
            [("2026-03-01T06:00", 5), ("2026-03-01T12:00", 2), ("2026-03-02T06:00", 5), ("2026-03-02T12:00", 2)],
            id="up-and-down",
        ),
        pytest.param(
            [(Firings.of(SIX, UTC), 5), (Firings.of(SEVEN, UTC), 5), (Firings.once(utc("2026-03-02T08:00")), 1)],
            5,
            [("2026-03-02T08:00", 1)],
            id="a-repeated-value-is-no-change",
        ),
        pytest.param([(Firings.of(NOON, UTC), 5), (Firings.of(NOON, UTC), 2)], 2, [], id="the-rule-listed-last-wins"),
        pytest.param(
            [(Firings.of(NOON, UTC), 5), (Firings.of(EVERY_MINUTE, UTC), 2)], 2, [], id="every-minute-wins-always"
        ),
        pytest.param(
            [(Firings.of(EVERY_MINUTE, UTC), 2), (Firings.of(NOON, UTC), 5)],
            2,
            [("2026-03-01T12:00", 5), ("2026-03-01T12:01", 2), ("2026-03-02T12:00", 5), ("2026-03-02T12:01", 2)],
            id="every-minute-is-listed-first",
        ),
    ],
)
def test_the_level_that_firings_leave_behind(
    rules: list[tuple[Firings, int]], current: int | None, changes: list[tuple[str, int]]
) -> None:
    setters = level_setters(rules)
    setter = setters.at(utc("2026-03-01"))
    found = setters.changes(utc("2026-03-01"), utc("2026-03-03"))

    assert (None if setter is None else rules[setter][1]) == current
    assert [(at, rules[index][1]) for at, index in found if index is not None] == [
        (utc(at), value) for at, value in changes
    ]


def test_a_level_that_never_changes_again_ends_its_search() -> None:
    setters = level_setters([(Firings.of(NOON, UTC), 5), (Firings.of(EVERY_MINUTE, UTC), 2)])

    assert setters.next_change(utc("2026-03-01")) is None


@given(data=st.data(), zone=zones)
def test_levels_equal_those_of_all_firings_in_order(data: st.DataObject, zone: str) -> None:
    """The reference applies every firing of the time, one after the other."""
    start = data.draw(moments(zone))
    until = start + 3 * 86_400
    crons = data.draw(st.lists(schedules, min_size=1, max_size=4))
    rules = [
        (Firings.of(Cron.parse(text, Dialect.RULE), load_zone(zone)), data.draw(st.integers(0, 2))) for text in crons
    ]
    setters = level_setters(rules)
    fired = sorted((at, index) for index, (firings, _) in enumerate(rules) for at in firings.between(start, until))
    setter = setters.at(start)
    latest = [
        (at, index) for index, (firings, _) in enumerate(rules) if (at := firings.at_or_before(start)) is not None
    ]
    assert setter == (max(latest)[1] if latest else None)
    value = None if setter is None else rules[setter][1]
    expected: list[tuple[int, int]] = []
    for at in sorted({at for at, _ in fired}):
        last = max(index for when, index in fired if when == at)
        if rules[last][1] != value:
            expected.append((at, last))
            value = rules[last][1]

    assert setters.changes(start, until) == expected
