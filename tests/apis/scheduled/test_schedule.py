"""Compiled schedules: how the fields of a spec become a timeline.

The cases of windows between patterns are tested in tests/almanac/test_windows.py.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.almanac.builders import local, show, utc
from tests.apis.scheduled.objects import DAYTIME, NIGHT, WEEKEND, as_spec, at, behavior, daily, schedule

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
        pytest.param("2026-06-05T16:59:59", [1], 3, (1, "2026-06-05T17:00:00-07:00"), id="daytime"),
        pytest.param("2026-06-05T17:00:00", [0, 2], 1, (3, "2026-06-08T09:00:00-07:00"), id="weekend-over-night"),
        pytest.param("2026-06-08T17:00:00", [2], 2, (3, "2026-06-09T09:00:00-07:00"), id="night"),
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


def test_first_listed_wins() -> None:
    t = local(LA, "2026-06-06T12:00:00")
    claims = compile_behaviors(as_spec(REVERSED), load_zone(LA), {})

    assert compiled(REVERSED, LA).at(t) == 2
    assert [claim.position for claim in active_behaviors(claims, t)] == [0, 2]


FRIDAYS = behavior(at(weekdays="Fri", hours=6), at(weekdays="Fri", hours=20), 4)
BLACK_FRIDAY = behavior(
    at(weekdays="Fri", months="Nov", days="23,24,25,26,27,28,29", hours=6),
    at(weekdays="Fri", months="Nov", days="23,24,25,26,27,28,29", hours=20),
    50,
)


@pytest.mark.parametrize(
    ("value", "now", "expected", "following"),
    [
        pytest.param(schedule(daily(22, 6)), "2026-06-06T00:00", 9, (1, "2026-06-06T06:00:00"), id="over-midnight"),
        pytest.param(
            schedule(behavior(at(weekdays="Thu"), at(weekdays="Thu", hours=23, minutes=59))),
            "2026-06-11T23:58:59",
            9,
            (1, "2026-06-11T23:59:00"),
            id="minutes-and-weekdays",
        ),
        pytest.param(
            schedule(behavior(at(months="Nov", days=1), at(months="Feb", days=1))),
            "2027-01-31T23:59:59",
            9,
            (1, "2027-02-01T00:00:00"),
            id="months-and-days-over-new-year",
        ),
        pytest.param(
            schedule(daily(22, 6, 0), default=3), "2026-06-05T23:00", 0, (3, "2026-06-06T06:00:00"), id="zero-replicas"
        ),
        pytest.param(schedule(default=2), "2026-06-05T06:00", 2, None, id="no-behaviors"),
        pytest.param(
            schedule(daily(9, 17, 3), daily(17, 21, 5)),
            "2026-06-05T17:00",
            5,
            (1, "2026-06-05T21:00:00"),
            id="adjacent",
        ),
        pytest.param(
            schedule(FRIDAYS, BLACK_FRIDAY), "2026-11-27T06:00", 4, (1, "2026-11-27T20:00:00"), id="first-listed-wins"
        ),
        pytest.param(
            schedule(FRIDAYS, {**BLACK_FRIDAY, "priority": 10}),
            "2026-11-27T06:00",
            50,
            (1, "2026-11-27T20:00:00"),
            id="priority-wins",
        ),
        pytest.param(schedule(daily(9, 9)), "2026-06-05T03:00", 9, None, id="start-equals-end"),
    ],
)
def test_values_and_changes(value: dict[str, Any], now: str, expected: int, following: tuple[int, str] | None) -> None:
    timeline = compiled(value)
    change = timeline.next_change(utc(now))

    assert expected == timeline.at(utc(now))
    assert following == (change and (change[1], (show(change[0]) or "").removesuffix("+00:00")))


@pytest.mark.parametrize(
    ("now", "literal", "by_window"),
    [
        pytest.param("2026-06-05T10:00", False, True, id="between-two-starts"),
        pytest.param("2026-06-05T12:00", True, True, id="after-the-last-start"),
        pytest.param("2026-06-05T17:00", False, False, id="end"),
    ],
)
def test_match_policy(now: str, literal: bool, by_window: bool) -> None:
    """With two starts before an end, Literal begins at the second start and Window at the first."""
    window = behavior(at(hours="9,12"), at(hours=17))

    assert (literal, by_window) == (
        compiled(schedule(window)).at(utc(now)) == 9,
        compiled(schedule(window, matchPolicy="Window")).at(utc(now)) == 9,
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
            id="one-off-window",
        ),
        pytest.param(
            {"replicas": 9, "from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"},
            "2027-11-27T06:00:00",
            1,
            id="one-off-window-a-year-later",
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
