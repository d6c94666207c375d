"""Counting firings gives what listing them gives, and takes no time."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from springtide.almanac import UTC, Calendar, CalendarMode, CalendarReference, Cron, Days, Dialect, Firings, load_zone

from .moments import utc
from .strategies import moments, schedules, zones

DAY = 86_400
SOME_DAYS = Calendar(Days(yearly=((3, 29), (10, 25), (12, 31)), ranges=((date(2000, 1, 1), date(2005, 6, 1)),)))
CALENDARS = st.sampled_from(
    ((), (CalendarReference(SOME_DAYS),), (CalendarReference(SOME_DAYS, CalendarMode.ONLY),)),
)


@given(st.data(), zones, schedules, st.sampled_from(Dialect), CALENDARS, st.integers(-DAY, 9 * DAY))
def test_a_count_is_the_length_of_the_list(
    data: st.DataObject,
    zone: str,
    schedule: str,
    dialect: Dialect,
    calendars: tuple[CalendarReference, ...],
    length: int,
) -> None:
    """Whatever clocks and calendars do, and where the end is before the beginning."""
    a = data.draw(moments(zone))
    firings = Firings.of(Cron.parse(schedule, dialect), load_zone(zone), calendars)

    assert firings.count(a, a + length) == len(list(firings.between(a, a + length)))


def test_every_minute_of_centuries_is_counted_at_once() -> None:
    """Listing them would take minutes."""
    firings = Firings.of(Cron.parse("* * * * *", Dialect.RULE), UTC)

    assert firings.count(utc("2000-01-01"), utc("2400-01-01")) == 146_097 * 1440


def test_a_single_instant_counts_once() -> None:
    """It lies in (a, b] or it does not."""
    once = Firings.once(100)

    assert (once.count(99, 100), once.count(100, 200), once.count(0, 99)) == (1, 0, 0)
