"""The Calendar controller: tells which days a calendar comes to, and whether today is one of them.

It is the simplest controller there is, and shows the shape of all: `reconcile` observes and acts, `decide` is pure.
The status depends on nothing but the spec and the present, so it is right after a restart, a stall or a change of the
clock; between two changes there is nothing to do, and the controller sleeps until the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from springtide import almanac
from springtide.almanac import CalendarError, Zone, load_zone
from springtide.almanac.civil import DAY, date_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.springtide.calendars import Calendar, compile_calendar
from springtide.apis.structural_validation import check_structure
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.events import warning
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.controllers.validated import problem_message

CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
LISTED_DATES = 5
"""How many days the status names. They are looked for through one cycle of the calendar, 400 years: what does not
come by then never does."""

_CALENDARS = Cached(Selection(CALENDARS))


class CalendarController(Controller):
    """Keeps the status of Calendar objects."""

    name = "calendar"
    independent = True
    watches = (Watch(_CALENDARS),)
    permissions = (
        Permission(CALENDARS, ("get", "list", "watch")),
        Permission(CALENDARS, ("patch",), subresource="status"),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Write what the calendar comes to today, and come back when that changes."""
        calendar = self.context.store(_CALENDARS).get(key)
        if calendar is None:
            return None
        outcome = decide(calendar, now, self.context.default_zone)
        changed = await self.context.client.apply_status(
            CALENDARS,
            {"nextDates": list(outcome.dates) or None},
            outcome.conditions,
            of=calendar,
            now=now,
            because=outcome.active.message,
        )
        if changed and outcome.ready.status is ConditionStatus.FALSE:
            self.context.events.record(CALENDARS, calendar, warning(outcome.ready.reason, outcome.ready.message))
        return Result(requeue_at=outcome.until) if outcome.until is not None else None


@dataclass(frozen=True, slots=True)
class CalendarDecision:
    """What a calendar comes to at an instant."""

    ready: Condition
    active: Condition
    dates: tuple[str, ...] = ()
    """The next days of the calendar, today included."""
    until: int | None = None
    """When this is true no more; None where it is for ever, or until somebody changes the calendar."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions of this controller."""
        return self.ready, self.active


def decide(calendar: Object, now: int, default_zone: str = "UTC") -> CalendarDecision:
    """Read a calendar and tell what it comes to; the zone is that of calendars which name none."""
    written = {name: part for name, part in calendar.items() if name != "status"}
    checked = check_structure(written, Calendar, ValidationContext(now=now, default_zone=default_zone))
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    if errors or not isinstance(checked.view, Calendar):
        return _unusable("Invalid", "; ".join(problem_message(problem) for problem in errors))
    try:
        compiled = compile_calendar(checked.view.spec)
        return _resolve(compiled, compiled.zone or load_zone(default_zone), now)
    except CalendarError as failure:
        return _unusable("HolidaysUnavailable", f"{failure.message}: {failure.hint}")


def _resolve(calendar: almanac.DayCalendar, zone: Zone, now: int) -> CalendarDecision:
    today = zone.local(now) // DAY
    days = tuple(islice(_days(calendar, zone, today), LISTED_DATES))
    dates = tuple(date_of(day).isoformat() for day in days)
    resolved = Condition("Ready", ConditionStatus.TRUE, "Resolved", f"days begin and end at midnight in {zone.name}")
    if today in days:
        until = next(end for start, end in zone.stretches(today * DAY, (today + 1) * DAY) if start <= now < end)
        listed = Condition("Active", ConditionStatus.TRUE, "DayListed", f"{dates[0]} is in the calendar ({zone.name})")
        return CalendarDecision(resolved, listed, dates, until)
    coming = f"the next day in the calendar is {dates[0]}" if dates else "no day in the calendar lies ahead"
    listed = Condition("Active", ConditionStatus.FALSE, "DayNotListed", f"{coming} ({zone.name})")
    return CalendarDecision(resolved, listed, dates, _next_start(calendar, zone, today, now))


def _days(calendar: almanac.DayCalendar, zone: Zone, first: int) -> Iterator[int]:
    """Yield the days of a calendar from a day on, but for those that a zone skips, as Samoa did in 2011."""
    for run_first, run_last in calendar.days.runs(first):
        for day in range(max(run_first, first), run_last + 1):
            if any(zone.stretches(day * DAY, (day + 1) * DAY)):
                yield day


def _next_start(calendar: almanac.DayCalendar, zone: Zone, today: int, now: int) -> int | None:
    # From yesterday on: a clock that is turned back over midnight shows it once more.
    for day in _days(calendar, zone, today - 1):
        for start, _ in zone.stretches(day * DAY, (day + 1) * DAY):
            if start > now:
                return start
    return None


def _unusable(reason: str, message: str) -> CalendarDecision:
    return CalendarDecision(
        ready=Condition("Ready", ConditionStatus.FALSE, reason, message),
        active=Condition("Active", ConditionStatus.UNKNOWN, reason, "the days of the calendar are not known"),
    )
