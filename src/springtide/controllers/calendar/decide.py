"""What the status of a Calendar says at an instant, and when that changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from springtide import almanac
from springtide.almanac import CalendarError, Zone, load_zone
from springtide.almanac.civil import DAY, date_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.springtide.calendars import Calendar, compile_calendar
from springtide.apis.structural_validation import check_structure
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Object
from springtide.controllers.decision import Decision
from springtide.controllers.validated import problem_message

LISTED_DATES = 5
"""How many days the status lists. The search covers one cycle of the calendar, 400 years; later days do not exist."""


def decide(calendar: Object, now: int, default_zone: str = "UTC") -> Decision[None]:
    """Decide what the status of a calendar says; calendars that name no zone use the default one."""
    written = {name: part for name, part in calendar.items() if name != "status"}
    context = ValidationContext(now=now, default_zone=default_zone, deep_search=False)
    checked = check_structure(written, Calendar, context)
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    if errors or not isinstance(checked.view, Calendar):
        return _unusable("Invalid", "; ".join(problem_message(problem) for problem in errors))
    try:
        compiled = compile_calendar(checked.view.spec)
        return _resolve(compiled, compiled.zone or load_zone(default_zone), now)
    except CalendarError as failure:
        return _unusable("HolidaysUnavailable", f"{failure.message}: {failure.hint}")


def _resolve(calendar: almanac.DayCalendar, zone: Zone, now: int) -> Decision[None]:
    today = zone.local(now) // DAY
    days = tuple(islice(_days(calendar, zone, today), LISTED_DATES))
    dates = [date_of(day).isoformat() for day in days]
    ready = Condition("Ready", ConditionStatus.TRUE, "Resolved", f"days begin and end at midnight in {zone.name}")
    until: int | None
    if today in days:
        until = next(end for start, end in zone.stretches(today * DAY, (today + 1) * DAY) if start <= now < end)
        active = Condition("Active", ConditionStatus.TRUE, "DayListed", f"{dates[0]} is in the calendar ({zone.name})")
    else:
        until = _next_start(calendar, zone, today, now)
        coming = f"the next day in the calendar is {dates[0]}" if dates else "no day in the calendar lies ahead"
        active = Condition("Active", ConditionStatus.FALSE, "DayNotListed", f"{coming} ({zone.name})")
    return Decision(
        reasons=(active.message,), conditions=(ready, active), requeue_at=until, status={"nextDates": dates or None}
    )


def _days(calendar: almanac.DayCalendar, zone: Zone, first: int) -> Iterator[int]:
    """Yield the days of a calendar from a day on, without days that a zone skips, as Samoa did in 2011."""
    for run_first, run_last in calendar.days.runs(first):
        for day in range(max(run_first, first), run_last + 1):
            if any(zone.stretches(day * DAY, (day + 1) * DAY)):
                yield day


def _next_start(calendar: almanac.DayCalendar, zone: Zone, today: int, now: int) -> int | None:
    # From yesterday on: a local clock that is turned back over midnight begins that day a second time.
    for day in _days(calendar, zone, today - 1):
        for start, _ in zone.stretches(day * DAY, (day + 1) * DAY):
            if start > now:
                return start
    return None


def _unusable(reason: str, message: str) -> Decision[None]:
    ready = Condition("Ready", ConditionStatus.FALSE, reason, message)
    active = Condition("Active", ConditionStatus.UNKNOWN, reason, f"the days of the calendar are not known: {message}")
    return Decision(reasons=(active.message,), conditions=(ready, active), status={"nextDates": None})
