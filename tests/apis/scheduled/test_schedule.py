"""What schedules are worth at every instant: the rows of the reference, through the compiled schedule."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.almanac.builders import local, show, utc
from tests.apis.scheduled.objects import DAYTIME, NIGHT, WEEKDAYS, WEEKEND, as_spec, at, behavior, daily, schedule

from springtide.almanac import DayCalendar, Days, Timeline, load_zone
from springtide.apis.scheduled.schedule import active_behaviors, compile_behaviors, compile_schedule

LA = "America/Los_Angeles"
DESIGN = schedule(WEEKEND, DAYTIME, NIGHT, default=2)
REVERSED = schedule(NIGHT, DAYTIME, WEEKEND, default=2)


def compiled(value: dict[str, Any], zone: str = "UTC") -> Timeline[int]:
    return compile_schedule(as_spec(value), load_zone(zone), {})


@pytest.mark.parametrize(
    ("now", "active", "value", "following"),
    [
        pytest.param("2026-06-05T16:59:59", [1], 3, (1, "2026-06-05T17:00:00-07:00"), id="friday-before-the-end"),
        pytest.param("2026-06-05T17:00:00", [0, 2], 1, (3, "2026-06-08T09:00:00-07:00"), id="friday-at-the-end"),
        pytest.param("2026-06-07T23:59:59", [0, 2], 1, (3, "2026-06-08T09:00:00-07:00"), id="sunday-night"),
        pytest.param("2026-06-08T08:59:59", [0, 2], 1, (3, "2026-06-08T09:00:00-07:00"), id="monday-before-the-start"),
        pytest.param("2026-06-08T17:00:00", [2], 2, (3, "2026-06-09T09:00:00-07:00"), id="monday-at-the-end"),
        pytest.param("2026-06-09T03:00:00", [2], 2, (3, "2026-06-09T09:00:00-07:00"), id="night-before-the-start"),
    ],
)
def test_week_of_the_design(now: str, active: list[int], value: int, following: tuple[int, str]) -> None:
    zone = load_zone(LA)
    t = local(LA, now)
    timeline = compiled(DESIGN, LA)
    change = timeline.next_change(t)

    assert change is not None
    assert (value, *following) == (timeline.at(t), change[1], show(change[0], LA))
    assert active == [claim.position for claim in active_behaviors(compile_behaviors(as_spec(DESIGN), zone, {}), t)]


@pytest.mark.parametrize(
    "now",
    [pytest.param("2026-06-06T12:00:00", id="saturday"), pytest.param("2026-06-08T08:59:59", id="monday")],
)
def test_first_listed_wins(now: str) -> None:
    t = local(LA, now)
    claims = compile_behaviors(as_spec(REVERSED), load_zone(LA), {})

    assert compiled(REVERSED, LA).at(t) == 2
    assert [claim.position for claim in active_behaviors(claims, t)] == [0, 2]


NIGHTLY = schedule(daily(22, 6))
WRAP_WEEK = schedule(behavior(at(weekdays="Sat", hours=20), at(weekdays="Tue", hours=4)))
WRAP_YEAR = schedule(behavior(at(months="Nov", days=1), at(months="Feb", days=1)))
MON_TO_FRI = schedule(behavior(at(weekdays="Mon"), at(weekdays="Fri")))
MIDNIGHT = schedule(behavior({}, at(hours=6)))
THURSDAY = schedule(behavior(at(weekdays="Thu"), at(weekdays="Thu", hours=23, minutes=59)))
EVEN_ODD = schedule(
    behavior(at(hours=",".join(map(str, range(0, 24, 2)))), at(hours=",".join(map(str, range(1, 24, 2)))))
)
TO_ZERO = schedule(daily(22, 6, 0), default=3)
RELAY = schedule(daily(9, 17, 3), daily(17, 21, 5))
SAME_VALUE = schedule(daily(9, 12, 3), daily(12, 15, 3))
NESTED = schedule(daily(12, 13, 8), daily(8, 20, 3))
FRIDAYS = behavior(at(weekdays="Fri", hours=6), at(weekdays="Fri", hours=20), 4)
BLACK_FRIDAY = behavior(
    at(weekdays="Fri", months="Nov", days="23,24,25,26,27,28,29", hours=6),
    at(weekdays="Fri", months="Nov", days="23,24,25,26,27,28,29", hours=20),
    50,
)


@pytest.mark.parametrize(
    ("value", "now", "expected", "following"),
    [
        pytest.param(NIGHTLY, "2026-06-05T21:59:59", 1, (9, "2026-06-05T22:00:00"), id="nightly-before-the-start"),
        pytest.param(NIGHTLY, "2026-06-05T22:00", 9, (1, "2026-06-06T06:00:00"), id="nightly-start"),
        pytest.param(NIGHTLY, "2026-06-06T00:00", 9, (1, "2026-06-06T06:00:00"), id="nightly-past-midnight"),
        pytest.param(NIGHTLY, "2026-06-06T06:00", 1, (9, "2026-06-06T22:00:00"), id="nightly-end"),
        pytest.param(WRAP_WEEK, "2026-06-06T19:59:59", 1, (9, "2026-06-06T20:00:00"), id="week-wrap-before"),
        pytest.param(WRAP_WEEK, "2026-06-06T20:00", 9, (1, "2026-06-09T04:00:00"), id="week-wrap-start"),
        pytest.param(WRAP_WEEK, "2026-06-08T12:00", 9, (1, "2026-06-09T04:00:00"), id="week-wrap-inside"),
        pytest.param(WRAP_WEEK, "2026-06-09T04:00", 1, (9, "2026-06-13T20:00:00"), id="week-wrap-end"),
        pytest.param(WRAP_YEAR, "2026-10-31T23:59:59", 1, (9, "2026-11-01T00:00:00"), id="year-wrap-before"),
        pytest.param(WRAP_YEAR, "2026-11-01T00:00", 9, (1, "2027-02-01T00:00:00"), id="year-wrap-start"),
        pytest.param(WRAP_YEAR, "2027-01-31T23:59:59", 9, (1, "2027-02-01T00:00:00"), id="year-wrap-inside"),
        pytest.param(WRAP_YEAR, "2027-02-01T00:00", 1, (9, "2027-11-01T00:00:00"), id="year-wrap-end"),
        pytest.param(MON_TO_FRI, "2026-06-08T00:00", 9, (1, "2026-06-12T00:00:00"), id="monday-to-friday-monday"),
        pytest.param(MON_TO_FRI, "2026-06-11T23:59:59", 9, (1, "2026-06-12T00:00:00"), id="monday-to-friday-thursday"),
        pytest.param(MON_TO_FRI, "2026-06-12T00:00", 1, (9, "2026-06-15T00:00:00"), id="monday-to-friday-friday"),
        pytest.param(MON_TO_FRI, "2026-06-14T12:00", 1, (9, "2026-06-15T00:00:00"), id="monday-to-friday-sunday"),
        pytest.param(MIDNIGHT, "2026-06-05T00:00", 9, (1, "2026-06-05T06:00:00"), id="midnight-start"),
        pytest.param(MIDNIGHT, "2026-06-05T05:59", 9, (1, "2026-06-05T06:00:00"), id="midnight-inside"),
        pytest.param(MIDNIGHT, "2026-06-05T06:00", 1, (9, "2026-06-06T00:00:00"), id="midnight-end"),
        pytest.param(THURSDAY, "2026-06-10T23:59:59", 1, (9, "2026-06-11T00:00:00"), id="thursday-before"),
        pytest.param(THURSDAY, "2026-06-11T00:00", 9, (1, "2026-06-11T23:59:00"), id="thursday-start"),
        pytest.param(THURSDAY, "2026-06-11T23:58:59", 9, (1, "2026-06-11T23:59:00"), id="thursday-inside"),
        pytest.param(THURSDAY, "2026-06-11T23:59", 1, (9, "2026-06-18T00:00:00"), id="thursday-end"),
        pytest.param(THURSDAY, "2026-06-12T12:00", 1, (9, "2026-06-18T00:00:00"), id="thursday-next-day"),
        pytest.param(EVEN_ODD, "2026-06-05T10:00", 9, (1, "2026-06-05T11:00:00"), id="even-hour"),
        pytest.param(EVEN_ODD, "2026-06-05T10:59:59", 9, (1, "2026-06-05T11:00:00"), id="even-hour-inside"),
        pytest.param(EVEN_ODD, "2026-06-05T11:00", 1, (9, "2026-06-05T12:00:00"), id="odd-hour"),
        pytest.param(EVEN_ODD, "2026-06-05T23:30", 1, (9, "2026-06-06T00:00:00"), id="last-odd-hour"),
        pytest.param(TO_ZERO, "2026-06-05T23:00", 0, (3, "2026-06-06T06:00:00"), id="zero-replicas"),
        pytest.param(TO_ZERO, "2026-06-05T06:00", 3, (0, "2026-06-05T22:00:00"), id="default-after-zero"),
        pytest.param(schedule(default=2), "2026-06-05T06:00", 2, None, id="no-behaviors"),
        pytest.param(RELAY, "2026-06-05T16:59:59", 3, (5, "2026-06-05T17:00:00"), id="relay-first"),
        pytest.param(RELAY, "2026-06-05T17:00", 5, (1, "2026-06-05T21:00:00"), id="relay-second"),
        pytest.param(RELAY, "2026-06-05T20:59:59", 5, (1, "2026-06-05T21:00:00"), id="relay-inside"),
        pytest.param(RELAY, "2026-06-05T21:00", 1, (3, "2026-06-06T09:00:00"), id="relay-end"),
        pytest.param(SAME_VALUE, "2026-06-05T10:00", 3, (1, "2026-06-05T15:00:00"), id="same-value-is-no-change"),
        pytest.param(NESTED, "2026-06-05T11:59:59", 3, (8, "2026-06-05T12:00:00"), id="nested-outer"),
        pytest.param(NESTED, "2026-06-05T12:30", 8, (3, "2026-06-05T13:00:00"), id="nested-inner"),
        pytest.param(NESTED, "2026-06-05T13:00", 3, (1, "2026-06-05T20:00:00"), id="nested-after"),
        pytest.param(
            schedule(FRIDAYS, BLACK_FRIDAY), "2026-11-20T12:00", 4, (1, "2026-11-20T20:00:00"), id="ordinary-friday"
        ),
        pytest.param(
            schedule(FRIDAYS, BLACK_FRIDAY), "2026-11-27T06:00", 4, (1, "2026-11-27T20:00:00"), id="first-listed-wins"
        ),
        pytest.param(
            schedule(FRIDAYS, {**BLACK_FRIDAY, "priority": 10}),
            "2026-11-27T06:00",
            50,
            (1, "2026-11-27T20:00:00"),
            id="higher-priority-wins",
        ),
        pytest.param(schedule(daily(9, 9)), "2026-06-05T03:00", 9, None, id="start-equals-end"),
    ],
)
def test_windows(value: dict[str, Any], now: str, expected: int, following: tuple[int, str] | None) -> None:
    timeline = compiled(value)
    change = timeline.next_change(utc(now))

    assert expected == timeline.at(utc(now))
    assert following == (change and (change[1], (show(change[0]) or "").removesuffix("+00:00")))


def test_black_friday_is_found_every_year() -> None:
    """The Friday among 23 to 29 November."""
    timeline = compiled(schedule(BLACK_FRIDAY))
    days = [(show(t) or "")[:10] for t, v in timeline.changes(utc("2024-01-01"), utc("2032-01-01")) if v == 50]

    assert [f"{2024 + i}-11-{day}" for i, day in enumerate((29, 28, 27, 26, 24, 23, 29, 28))] == days


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param(
            at(months="Jan", days="22,23,24,25,26,27,28,29,30,31", weekdays="Fri"),
            ["01-23", "01-30"],
            id="january",
        ),
        pytest.param(
            at(months="Feb", days="1,2,3,4,5,6,7,8,9,10,11,12,13,14", weekdays="Fri"),
            ["02-06", "02-13"],
            id="february",
        ),
        pytest.param(
            at(months="Mar", weekdays="Tue"), ["03-03", "03-10", "03-17", "03-24", "03-31"], id="weekday-without-days"
        ),
    ],
)
def test_days_and_weekdays_must_both_hold(pattern: dict[str, Any], expected: list[str]) -> None:
    """Unlike in cron, a date counts only on the listed weekday."""
    timeline = compiled(schedule(behavior(pattern, {**pattern, "hours": 1})))
    starts = [(show(t) or "")[5:10] for t, v in timeline.changes(utc("2025-12-31"), utc("2026-12-31")) if v == 9]

    assert expected == starts


QUARTER = behavior(
    at(weekdays=WEEKDAYS, hours=9, months="Jan,Feb,Mar"), at(weekdays=WEEKDAYS, hours=17, months="Feb,Mar,Apr")
)
LUNCH = behavior(at(hours="9,12"), at(hours=17))
LEAP = behavior(at(months="Feb", days=29), at(months="Mar", days=1))


@pytest.mark.parametrize(
    ("window", "zone", "now", "literal", "by_window"),
    [
        pytest.param(QUARTER, LA, "2026-01-01T09:00", False, True, id="quarter-first-morning"),
        pytest.param(QUARTER, LA, "2026-01-31T10:00", False, True, id="quarter-saturday"),
        pytest.param(QUARTER, LA, "2026-02-02T10:00", True, True, id="quarter-monday"),
        pytest.param(QUARTER, LA, "2026-03-31T17:00", True, False, id="quarter-last-day"),
        pytest.param(QUARTER, LA, "2026-03-31T20:00", True, False, id="quarter-last-night"),
        pytest.param(QUARTER, LA, "2026-04-15T03:00", True, False, id="quarter-after"),
        pytest.param(QUARTER, LA, "2026-05-10T12:00", False, False, id="quarter-long-after"),
        pytest.param(LUNCH, "UTC", "2026-06-05T10:00", False, True, id="lunch-morning"),
        pytest.param(LUNCH, "UTC", "2026-06-05T12:00", True, True, id="lunch-noon"),
        pytest.param(LUNCH, "UTC", "2026-06-05T17:00", False, False, id="lunch-end"),
        pytest.param(LEAP, "UTC", "2026-02-28T12:00", True, False, id="leap-day-other-year"),
        pytest.param(LEAP, "UTC", "2028-02-28T23:59:59", False, False, id="leap-day-before"),
        pytest.param(LEAP, "UTC", "2028-02-29T00:00", True, True, id="leap-day-start"),
        pytest.param(LEAP, "UTC", "2028-02-29T23:59:59", True, True, id="leap-day-inside"),
        pytest.param(LEAP, "UTC", "2028-03-01T00:00", True, False, id="leap-day-end"),
    ],
)
def test_match_policy(window: dict[str, Any], zone: str, now: str, literal: bool, by_window: bool) -> None:
    """Starts and ends that do not alternate mean one thing read literally, another as windows."""
    t = local(zone, now)

    assert (literal, by_window) == (
        compiled(schedule(window), zone).at(t) == 9,
        compiled(schedule(window, matchPolicy="Window"), zone).at(t) == 9,
    )


@pytest.mark.parametrize(
    ("value", "now", "expected"),
    [
        pytest.param(daily(9, 17, suspend=True), "2026-06-05T10:00", 1, id="suspended"),
        pytest.param(daily(9, 17, leadSeconds=600), "2026-06-05T08:49:59", 1, id="before-the-lead"),
        pytest.param(daily(9, 17, leadSeconds=600), "2026-06-05T08:50:00", 9, id="lead"),
        pytest.param(daily(9, 17, leadSeconds=600), "2026-06-05T17:00:00", 1, id="lead-leaves-the-end"),
        pytest.param(
            {"replicas": 9, "from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"},
            "2026-11-27T06:00:00",
            9,
            id="single-window",
        ),
        pytest.param(
            {"replicas": 9, "from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"},
            "2027-11-27T06:00:00",
            1,
            id="single-window-only-once",
        ),
        pytest.param(daily(9, 17, calendars=[{"name": "holidays"}]), "2026-12-24T10:00", 1, id="excluded-day"),
        pytest.param(
            daily(9, 17, calendars=[{"name": "holidays"}]), "2026-12-23T10:00", 9, id="day-that-is-not-excluded"
        ),
        pytest.param(
            daily(9, 17, calendars=[{"name": "holidays", "mode": "Only"}]), "2026-12-24T10:00", 9, id="only-day"
        ),
        pytest.param(
            daily(9, 17, calendars=[{"name": "holidays", "mode": "Only"}]), "2026-12-23T10:00", 1, id="not-an-only-day"
        ),
        pytest.param(
            daily(22, 6, calendars=[{"name": "holidays"}]), "2026-12-23T23:59:59", 9, id="night-up-to-the-day"
        ),
        pytest.param(daily(22, 6, calendars=[{"name": "holidays"}]), "2026-12-24T00:00:00", 1, id="night-is-cut"),
        pytest.param(
            daily(0, 6, calendars=[{"name": "holidays"}], leadSeconds=600),
            "2026-12-24T23:50:00",
            9,
            id="lead-comes-after-the-cut",
        ),
        pytest.param(
            daily(9, 17, calendars=[{"name": "elsewhere"}]), "2026-12-24T10:00", 9, id="unknown-calendar-cuts-nothing"
        ),
    ],
)
def test_extensions(value: dict[str, Any], now: str, expected: int) -> None:
    holidays = DayCalendar(Days(dates=(date(2026, 12, 24),)))
    timeline = compile_schedule(as_spec(schedule(value)), load_zone("UTC"), {"holidays": holidays})

    assert expected == timeline.at(utc(now))
