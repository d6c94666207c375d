"""The status of a Calendar at an instant, against a slow computation of the same days with zoneinfo."""

from __future__ import annotations

import datetime
import importlib.util
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.springtide.calendars import Calendar
from springtide.apis.structural_validation import check_structure
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Object
from springtide.controllers.calendar import decide as deciding
from springtide.controllers.calendar.decide import decide
from springtide.controllers.decision import Decision


def calendar(**spec: Any) -> Object:
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "days", "uid": "1", "resourceVersion": "1", "managedFields": [{}]},
        "spec": spec,
        "status": {"whatever": "others wrote"},
    }


def at(text: str, **spec: Any) -> Decision[None]:
    return decide(calendar(**spec), parse_instant(text))


def dates_of(decision: Decision[None]) -> tuple[str, ...]:
    return tuple(decision.status["nextDates"] or ())


def ready(decision: Decision[None]) -> Condition:
    return decision.condition("Ready")


def active_of(decision: Decision[None]) -> Condition:
    return decision.condition("Active")


def test_warnings_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status has errors only, so nothing may search years of time for warnings."""
    contexts: list[ValidationContext] = []

    def noting(value: Object, view: type[Calendar], context: ValidationContext) -> Any:
        contexts.append(context)
        return check_structure(value, view, context)

    monkeypatch.setattr(deciding, "check_structure", noting)

    assert ready(at("2026-12-23T00:00:00Z", dates=["2026-12-24"])).status is ConditionStatus.TRUE
    assert [context.deep_search for context in contexts] == [False]


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
            id="at-its-first-second",
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
            id="between-two-days",
        ),
        pytest.param(
            "2026-12-31T23:00:00Z",
            ConditionStatus.FALSE,
            (),
            None,
            "no day in the calendar lies ahead (Europe/Berlin)",
            id="after-the-last-day",
        ),
    ],
)
def test_dates_and_requeue_over_time(
    now: str, active: ConditionStatus, dates: tuple[str, ...], until: str | None, message: str
) -> None:
    """The decision holds until the next midnight at which it changes."""
    decision = at(now, **BERLIN)

    assert (active_of(decision).status, dates_of(decision), active_of(decision).message) == (
        active,
        dates,
        message,
    )
    assert decision.requeue_at == (parse_instant(until) if until else None)
    assert (ready(decision).status, ready(decision).reason) == (
        ConditionStatus.TRUE,
        "Resolved",
    )


def test_a_day_that_the_clock_shows_again_is_awaited() -> None:
    """In St John's the 29th began at 02:30 UTC, and after a minute clocks went back to 23:01 of the 28th."""
    decision = at("2006-10-29T02:30:30Z", timeZone="America/St_Johns", dates=["2006-10-28"])

    assert active_of(decision).status is ConditionStatus.FALSE
    assert decision.requeue_at == parse_instant("2006-10-29T02:31:00Z")


def test_default_time_zone_is_utc() -> None:
    """The condition has the effective time zone."""
    decision = at("2026-12-23T23:30:00Z", dates=["2026-12-24"])

    assert active_of(decision).status is ConditionStatus.FALSE
    assert ready(decision).message == "days begin and end at midnight in UTC"


def test_at_most_five_days_are_listed() -> None:
    """An endless calendar has a short status."""
    decision = at("2026-06-01T00:00:00Z", yearly=["02-29", "06-01"])

    assert dates_of(decision) == ("2026-06-01", "2027-06-01", "2028-02-29", "2028-06-01", "2029-06-01")


def test_message_lists_all_errors() -> None:
    """The author of the calendar sees all errors at once."""
    decision = at("2026-06-01T00:00:00Z", timeZone="CEST", dates=["2026-02-30"])

    assert (ready(decision).status, ready(decision).reason) == (
        ConditionStatus.FALSE,
        "Invalid",
    )
    assert "spec.timeZone: " in ready(decision).message
    assert "spec.dates[0]: " in ready(decision).message
    assert (active_of(decision).status, dates_of(decision), decision.requeue_at) == (
        ConditionStatus.UNKNOWN,
        (),
        None,
    )


def test_calendar_with_warnings_is_ready() -> None:
    """An empty calendar is probably a mistake, but valid."""
    decision = at("2026-06-01T00:00:00Z")

    assert (ready(decision).status, active_of(decision).status, decision.requeue_at) == (
        ConditionStatus.TRUE,
        ConditionStatus.FALSE,
        None,
    )


def test_missing_holidays_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    monkeypatch.setattr("springtide.apis.springtide.calendars.find_spec", lambda name: None)

    decision = at("2026-06-01T00:00:00Z", holidays={"country": "DE"})

    assert (ready(decision).status, ready(decision).reason) == (
        ConditionStatus.FALSE,
        "HolidaysUnavailable",
    )
    assert "springtide[holidays]" in ready(decision).message


def test_public_holidays_are_days_of_the_calendar() -> None:
    """Christmas Day is a holiday in Germany, Christmas Eve is not."""
    if importlib.util.find_spec("holidays") is None:
        pytest.skip("needs the holidays package: pip install './springtide[holidays]', in the folder with the clone")

    decision = at("2026-12-24T12:00:00Z", holidays={"country": "DE"})

    assert dates_of(decision)[:2] == ("2026-12-25", "2026-12-26")


def test_skipped_day_of_a_time_zone_is_not_listed() -> None:
    """Samoa went from 29 to 31 December 2011."""
    decision = at("2011-12-29T12:00:00Z", timeZone="Pacific/Apia", dates=["2011-12-30", "2011-12-31"])

    assert dates_of(decision) == ("2011-12-31",)
    assert decision.requeue_at == parse_instant("2011-12-30T10:00:00Z")


# Zones that change at midnight, over it, by odd amounts, or skip a day.
ZONES = ["UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Asia/Beirut"]
SPAN = (parse_instant("2010-11-01T00:00:00Z"), parse_instant("2012-03-01T00:00:00Z"))
DAYS = st.dates(datetime.date(2010, 10, 25), datetime.date(2012, 3, 10))


def local_date(zone: ZoneInfo, instant: int) -> datetime.date:
    return datetime.datetime.fromtimestamp(instant, zone).date()


def reference_dates(days: set[datetime.date], zone: ZoneInfo, now: int) -> tuple[str, ...]:
    """List the next days by computing the local date of every hour for two years."""
    today = local_date(zone, now)
    seen = {local_date(zone, t) for t in range(SPAN[0] - 20 * 86_400, SPAN[1] + 40 * 86_400, 3600)}
    return tuple(day.isoformat() for day in sorted(days & seen) if day >= today)[:5]


@settings(max_examples=150, deadline=None)
@given(zone=st.sampled_from(ZONES), days=st.sets(DAYS, max_size=8), now=st.integers(*SPAN))
@example(zone="America/Havana", days={datetime.date(2011, 11, 12)}, now=parse_instant("2011-11-13T04:30:00Z"))
@example(zone="America/Sao_Paulo", days={datetime.date(2011, 2, 19)}, now=parse_instant("2011-02-20T01:30:00Z"))
@example(zone="America/Sao_Paulo", days={datetime.date(2011, 2, 19)}, now=parse_instant("2011-02-20T02:30:00Z"))
def test_decision_agrees_with_the_reference(zone: str, days: set[datetime.date], now: int) -> None:
    """The dates are right now and until just before `requeue_at`, and differ from then on."""
    clock = ZoneInfo(zone)
    spec = {"timeZone": zone, "dates": sorted(day.isoformat() for day in days)}
    decision = decide(calendar(**spec), now)

    def state(t: int) -> tuple[bool, tuple[str, ...]]:
        return local_date(clock, t) in days, reference_dates(days, clock, t)

    assert (active_of(decision).status is ConditionStatus.TRUE, dates_of(decision)) == state(now)
    if decision.requeue_at is None:
        assert not dates_of(decision)
        return
    assert now < decision.requeue_at
    listed = local_date(clock, now) if local_date(clock, now) in days else None
    for t in (*range(now, decision.requeue_at, 1800), decision.requeue_at - 1):
        assert (local_date(clock, t) if local_date(clock, t) in days else None) == listed
    after = local_date(clock, decision.requeue_at)
    assert (after if after in days else None) != listed
