"""When budgets are active: schedules and durations, zones, one-off windows, calendars.

The cases of windows after hits are tested in tests/almanac/test_budget_windows.py.
"""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest
from tests.apis.karpenter.samples import instant, limits, node_pool
from tests.apis.manifests import problems_of

from springtide.almanac import DayCalendar, Days, load_zone
from springtide.apis.karpenter import v1beta1
from springtide.apis.karpenter.budgets import compile_budget
from springtide.apis.karpenter.disruption import Budget
from springtide.apis.karpenter.forecast import pool_budgets

WEDNESDAY = "2024-01-10"


def active(at: str, schedule: str, duration: str, **more: Any) -> bool:
    budget = msgspec.convert({"nodes": "1", "schedule": schedule, "duration": duration, **more}, Budget)
    made = compile_budget(budget, 0)
    assert not made.failure
    return made.open.at(instant(at))


@pytest.mark.parametrize(
    ("schedule", "duration", "at", "expected"),
    [
        pytest.param("0 9 * * mon-fri", "8h", f"{WEDNESDAY} 08:59:59", False, id="before-the-hit"),
        pytest.param("0 9 * * mon-fri", "8h", f"{WEDNESDAY} 09:00:00", True, id="at-the-hit"),
        pytest.param("0 9 * * mon-fri", "8h", f"{WEDNESDAY} 17:00:00", False, id="end"),
        pytest.param("@hourly", "15m", f"{WEDNESDAY} 12:14:59", True, id="minutes"),
        pytest.param("@daily", "48h", f"{WEDNESDAY} 13:13:13", True, id="longer-than-the-period"),
        pytest.param("0 9 * * mon-fri", "8h30m", f"{WEDNESDAY} 17:29:59", True, id="hours-and-minutes"),
        pytest.param("0 9 * * mon-fri", "20m0s", f"{WEDNESDAY} 09:20:00", False, id="canonical-zero-seconds"),
    ],
)
def test_windows_in_utc(schedule: str, duration: str, at: str, expected: bool) -> None:
    """A budget is active from each hit on, for its duration, and no longer at its end."""
    assert expected is active(at, schedule, duration)


@pytest.mark.parametrize(
    ("schedule", "duration", "zone", "at", "expected"),
    [
        pytest.param("0 9 * * mon-fri", "8h", "America/New_York", "2024-01-10 13:59:59", False, id="before-the-hit"),
        pytest.param("0 9 * * mon-fri", "8h", "America/New_York", "2024-01-10 14:00:00", True, id="at-the-hit"),
        pytest.param(
            "30 2 * * *", "1h", "America/New_York", "2024-03-10 07:30:00", False, id="hit-in-a-gap-is-skipped"
        ),
        pytest.param("0 22 * * sat", "8h", "America/New_York", "2024-03-10 10:59:59", True, id="elapsed-over-a-gap"),
    ],
)
def test_windows_in_zones(schedule: str, duration: str, zone: str, at: str, expected: bool) -> None:
    """Schedules are read on the local clock, durations are elapsed time."""
    assert expected is active(at, schedule, duration, timeZone=zone)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"schedule": "@wrongly", "duration": "1h"}, id="unknown-macro"),
        pytest.param({"schedule": "0 0 * * 7", "duration": "1h"}, id="weekday-seven"),
        pytest.param({"schedule": "0 0 * * 6-7", "duration": "1h"}, id="weekday-range-to-seven"),
        pytest.param({"schedule": "TZ=America/New_York 0 9 * * *", "duration": "1h"}, id="zone-prefix-tz"),
        pytest.param({"schedule": "CRON_TZ=UTC 0 9 * * *", "duration": "1h"}, id="zone-prefix-cron-tz"),
        pytest.param({"schedule": "60 * * * *", "duration": "1h"}, id="minute-60"),
        pytest.param({"schedule": "*/0 * * * *", "duration": "1h"}, id="step-0"),
        pytest.param({"schedule": "*", "duration": "1h"}, id="one-field"),
        pytest.param({"schedule": "* * * * ", "duration": "1h"}, id="four-fields"),
        pytest.param({"schedule": "0 0 30 2 *", "duration": "1h"}, id="never-fires"),
        pytest.param({"schedule": "0 9 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}, id="unknown-zone"),
        pytest.param({"schedule": "0 9 * * *", "duration": "30s"}, id="seconds"),
        pytest.param({"schedule": "0 9 * * *", "duration": "10mh"}, id="10mh"),
        pytest.param({"schedule": "0 9 * * *", "duration": "1h1h"}, id="twice"),
        pytest.param({"schedule": "0 9 * * *"}, id="no-duration"),
        pytest.param({"duration": "1h"}, id="no-schedule"),
        pytest.param({"from": "2026-01-01T00:00:00Z"}, id="no-until"),
        pytest.param({"until": "2026-01-01T00:00:00Z"}, id="no-from"),
    ],
)
def test_windows_that_cannot_be_evaluated(wrong: dict[str, Any]) -> None:
    """They are errors, and in a stored pool they block the reasons that they name; all if they name none."""
    found = problems_of(node_pool({"budgets": [{"nodes": "5", **wrong}]}))
    some = pool_budgets(node_pool({"budgets": [{"nodes": "5", "reasons": ["Empty"], **wrong}, {"nodes": "9"}]}))
    every = pool_budgets(node_pool({"budgets": [{"nodes": "5", **wrong}, {"nodes": "9", "reasons": ["Empty"]}]}))

    assert [problem.severity for problem in found] == ["error"]
    assert found[0].path[:4] == ("spec", "disruption", "budgets", 0)
    assert limits(some, 0, 100) == {"U": 9, "E": 0, "D": 9, "X": 9}
    assert dict.fromkeys("UEDX", 0) == limits(every, 0, 100)


def test_a_lone_schedule_of_v1beta1_is_always_active() -> None:
    """Where a schedule without duration is read at all, it never means never."""
    budget = msgspec.convert({"nodes": "1", "schedule": "0 9 * * *"}, v1beta1.BudgetV1Beta1)

    assert compile_budget(budget, 0).always_open


def test_a_window_that_happens_once() -> None:
    """From its first instant up to, and not including, its last."""
    budget = msgspec.convert({"from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"}, Budget)

    made = compile_budget(budget, 0).open.segments(0)

    assert [
        (0, False),
        (instant("2026-11-27 06:00:00"), True),
        (instant("2026-11-27 20:00:00"), False),
    ] == list(made)


def test_the_zone_of_budgets_that_name_none() -> None:
    """It is the one that the caller gives."""
    budget = msgspec.convert({"schedule": "0 9 * * *", "duration": "1h"}, Budget)
    made = compile_budget(budget, 0, default_zone="Asia/Kolkata")

    assert made.open.at(instant("2024-01-10 03:30:00"))
    assert made.zone == "Asia/Kolkata"


@pytest.mark.parametrize(
    ("mode", "on_holiday", "next_day"),
    [pytest.param("Exclude", False, True, id="exclude"), pytest.param("Only", True, False, id="only")],
)
def test_calendars_cut_windows(mode: str, on_holiday: bool, next_day: bool) -> None:
    """A calendar takes days away, or leaves only its own, cut at local midnight."""
    zone = load_zone("Europe/Berlin")
    calendars = {"holidays": DayCalendar(Days(dates=(datetime.date(2026, 12, 24),)), zone)}
    budget = msgspec.convert({"nodes": "0", "calendars": [{"name": "holidays", "mode": mode}]}, Budget)

    made = compile_budget(budget, 0, calendars=calendars)

    assert on_holiday is made.open.at(instant("2026-12-24 22:59:59"))
    assert next_day is made.open.at(instant("2026-12-24 23:00:00"))
    assert not made.always_open


def test_calendars_that_do_not_exist_cut_nothing() -> None:
    """A missing calendar is a problem of its own."""
    budget = msgspec.convert({"nodes": "0", "calendars": [{"name": "holidays"}]}, Budget)

    assert compile_budget(budget, 0).always_open
