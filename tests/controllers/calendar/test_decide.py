"""What a calendar comes to at an instant, against a slow reading of the same days by the standard library."""

from __future__ import annotations

import datetime
import importlib.util
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from springtide.apis.meta.times import parse_instant
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.resources import Object
from springtide.controllers.calendar import CalendarDecision, decide


def calendar(**spec: Any) -> Object:
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "days", "uid": "1", "resourceVersion": "1", "managedFields": [{}]},
        "spec": spec,
        "status": {"whatever": "others wrote"},
    }


def at(text: str, **spec: Any) -> CalendarDecision:
    return decide(calendar(**spec), parse_instant(text))


BERLIN = {"timeZone": "Europe/Berlin", "dates": ["2026-12-24", "2026-12-25", "2026-12-31"]}


@pytest.mark.parametrize(
    ("now", "active", "dates", "until", "message"),
    [
        pytest.param(
            "2026-12-23T22:59:59Z",
            ConditionStatus.FALSE,
            ("2026-12-24", "2026-12-25", "2026-12-31"),
            "2026-12-23T23:00:00Z",
            "the next day in the calendar is 2026-12-24 (Europe/Berlin)",
            id="a-second-before",
        ),
        pytest.param(
            "2026-12-23T23:00:00Z",
            ConditionStatus.TRUE,
            ("2026-12-24", "2026-12-25", "2026-12-31"),
            "2026-12-24T23:00:00Z",
            "2026-12-24 is in the calendar (Europe/Berlin)",
            id="as-it-begins",
        ),
        pytest.param(
            "2026-12-24T23:00:00Z",
            ConditionStatus.TRUE,
            ("2026-12-25", "2026-12-31"),
            "2026-12-25T23:00:00Z",
            "2026-12-25 is in the calendar (Europe/Berlin)",
            id="the-day-after",
        ),
        pytest.param(
            "2026-12-27T12:00:00Z",
            ConditionStatus.FALSE,
            ("2026-12-31",),
            "2026-12-30T23:00:00Z",
            "the next day in the calendar is 2026-12-31 (Europe/Berlin)",
            id="between",
        ),
        pytest.param(
            "2026-12-31T23:00:00Z",
            ConditionStatus.FALSE,
            (),
            None,
            "no day in the calendar lies ahead (Europe/Berlin)",
            id="all-over",
        ),
    ],
)
def test_a_calendar_over_time(
    now: str, active: ConditionStatus, dates: tuple[str, ...], until: str | None, message: str
) -> None:
    """Each instant has these days, and holds until the next midnight that matters."""
    outcome = at(now, **BERLIN)

    assert (outcome.active.status, outcome.dates, outcome.active.message) == (active, dates, message)
    assert outcome.until == (parse_instant(until) if until else None)
    assert (outcome.ready.status, outcome.ready.reason) == (ConditionStatus.TRUE, "Resolved")


def test_without_a_zone_days_are_those_of_utc() -> None:
    """The effective zone stands in the condition."""
    outcome = at("2026-12-23T23:30:00Z", dates=["2026-12-24"])

    assert outcome.active.status is ConditionStatus.FALSE
    assert outcome.ready.message == "days begin and end at midnight in UTC"


def test_at_most_five_days_are_listed() -> None:
    """A calendar that goes on for ever has a short status."""
    outcome = at("2026-06-01T00:00:00Z", yearly=["02-29", "06-01"])

    assert outcome.dates == ("2026-06-01", "2027-06-01", "2028-02-29", "2028-06-01", "2029-06-01")


def test_all_problems_stand_in_the_message() -> None:
    """Whoever mends the calendar wants to know everything at once."""
    outcome = at("2026-06-01T00:00:00Z", timeZone="CEST", dates=["2026-02-30"])

    assert (outcome.ready.status, outcome.ready.reason) == (ConditionStatus.FALSE, "Invalid")
    assert "spec.timeZone: " in outcome.ready.message
    assert "spec.dates[0]: " in outcome.ready.message
    assert (outcome.active.status, outcome.dates, outcome.until) == (ConditionStatus.UNKNOWN, (), None)


def test_warnings_do_not_hold_a_calendar_back() -> None:
    """An empty calendar is probably a mistake, and works all the same."""
    outcome = at("2026-06-01T00:00:00Z")

    assert (outcome.ready.status, outcome.active.status, outcome.until) == (
        ConditionStatus.TRUE,
        ConditionStatus.FALSE,
        None,
    )


def test_holidays_that_are_not_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package nothing can be told, and the condition says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    monkeypatch.setattr("springtide.apis.springtide.calendars.find_spec", lambda name: None)

    outcome = at("2026-06-01T00:00:00Z", holidays={"country": "DE"})

    assert (outcome.ready.status, outcome.ready.reason) == (ConditionStatus.FALSE, "HolidaysUnavailable")
    assert "springtide[holidays]" in outcome.ready.message


def test_public_holidays_are_days_of_the_calendar() -> None:
    """Christmas is one in Germany, and Christmas Eve is not."""
    if importlib.util.find_spec("holidays") is None:
        pytest.skip("needs the holidays package: pip install springtide[holidays]")

    outcome = at("2026-12-24T12:00:00Z", holidays={"country": "DE"})

    assert outcome.dates[:2] == ("2026-12-25", "2026-12-26")


def test_a_day_that_a_zone_skips_is_none() -> None:
    """Samoa went from 29 to 31 December 2011."""
    outcome = at("2011-12-29T12:00:00Z", timeZone="Pacific/Apia", dates=["2011-12-30", "2011-12-31"])

    assert outcome.dates == ("2011-12-31",)
    assert outcome.until == parse_instant("2011-12-30T10:00:00Z")


# Zones that change at midnight, over it, by odd amounts, or skip a day.
ZONES = ["UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Asia/Beirut"]
SPAN = (parse_instant("2010-11-01T00:00:00Z"), parse_instant("2012-03-01T00:00:00Z"))
DAYS = st.dates(datetime.date(2010, 10, 25), datetime.date(2012, 3, 10))


def shown(zone: ZoneInfo, instant: int) -> datetime.date:
    return datetime.datetime.fromtimestamp(instant, zone).date()


def slow_dates(days: set[datetime.date], zone: ZoneInfo, now: int) -> tuple[str, ...]:
    """List the next days by looking at the clock every hour for two years."""
    today = shown(zone, now)
    seen = {shown(zone, t) for t in range(SPAN[0] - 20 * 86_400, SPAN[1] + 40 * 86_400, 3600)}
    return tuple(day.isoformat() for day in sorted(days & seen) if day >= today)[:5]


@settings(max_examples=150, deadline=None)
@given(zone=st.sampled_from(ZONES), days=st.sets(DAYS, max_size=8), now=st.integers(*SPAN))
@example(zone="America/Havana", days={datetime.date(2011, 11, 12)}, now=parse_instant("2011-11-13T04:30:00Z"))
@example(zone="America/Sao_Paulo", days={datetime.date(2011, 2, 19)}, now=parse_instant("2011-02-20T01:30:00Z"))
@example(zone="America/Sao_Paulo", days={datetime.date(2011, 2, 19)}, now=parse_instant("2011-02-20T02:30:00Z"))
def test_the_decision_agrees_with_the_slow_reading(zone: str, days: set[datetime.date], now: int) -> None:
    """Days are right now; they stay so until just before `until`, and not beyond."""
    clock = ZoneInfo(zone)
    spec = {"timeZone": zone, "dates": sorted(day.isoformat() for day in days)}
    outcome = decide(calendar(**spec), now)

    def state(t: int) -> tuple[bool, tuple[str, ...]]:
        return shown(clock, t) in days, slow_dates(days, clock, t)

    assert (outcome.active.status is ConditionStatus.TRUE, outcome.dates) == state(now)
    if outcome.until is None:
        assert not outcome.dates
        return
    assert now < outcome.until
    listed = shown(clock, now) if shown(clock, now) in days else None
    for t in (*range(now, outcome.until, 1800), outcome.until - 1):
        assert (shown(clock, t) if shown(clock, t) in days else None) == listed
    after = shown(clock, outcome.until)
    assert (after if after in days else None) != listed
