"""What `springtide explain` says about a Calendar: its next days, and the objects whose times depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from springtide.almanac import CalendarError, load_zone
from springtide.apis.forecast import ForecastQuery
from springtide.apis.references import ReferenceRole, object_key, references_of
from springtide.apis.springtide.calendars import Calendar, compile_calendar, forecast_calendar
from springtide.cluster.conditions import ConditionStatus
from springtide.controllers.calendar.decide import decide
from springtide.controllers.explanation import Explanation, ExplanationInput, UpcomingChange, common_blockers

_LISTED = 5


def explain_calendar(facts: ExplanationInput) -> Explanation:
    """Explain whether today is a day of the calendar, and which come next."""
    view = facts.object.view
    calendar = view if isinstance(view, Calendar) and facts.object.sound else None
    decision = decide(facts.object.value, facts.at, facts.default_zone)
    active = decision.condition("Active")
    today = None if active.status == ConditionStatus.UNKNOWN else active.status == ConditionStatus.TRUE
    zone = (calendar.spec.time_zone if calendar is not None else None) or facts.default_zone
    # That no day of the calendar is today stops nothing.
    listed = facts.status.get("conditions")
    kept = [one for one in listed if one.get("type") != "Active"] if isinstance(listed, list) else []
    blocking = replace(facts, status={**facts.status, "conditions": kept} if facts.status else {})
    return Explanation(
        subject=facts.subject,
        zone=zone,
        wants={"active": today},
        headline=facts.not_known if today is None else f"the day is {'' if today else 'not '}in the calendar",
        because=decision.reasons,
        next=tuple(_next_days(calendar, facts)) if calendar is not None else (),
        stopped=tuple(common_blockers(blocking, "calendar")),
        conditions=facts.conditions,
        history=facts.events,
        notes=(*_users(facts), *facts.unknown),
    )


def _next_days(calendar: Calendar, facts: ExplanationInput) -> Iterator[UpcomingChange]:
    try:
        compiled = compile_calendar(calendar.spec)
    except CalendarError:
        return
    timeline = compiled.timeline(compiled.zone or load_zone(facts.default_zone))
    ahead = list(islice(timeline.segments(facts.at), 1, _LISTED + 1))
    if ahead:
        outlook = forecast_calendar(calendar, ForecastQuery(facts.at, ahead[-1][0], default_zone=facts.default_zone))
        for change in outlook.lanes[0].changes:
            yield UpcomingChange(change.at, change.value, "active", change.because, outlook.zones[0])


def _users(facts: ExplanationInput) -> Iterator[str]:
    """Name the objects that use the calendar, or say that there are none."""
    key = object_key(facts.object)
    users = [
        other
        for other in facts.others
        if any(one.role is ReferenceRole.CALENDAR and one.target == key for one in references_of(other))
    ]
    for other in users:
        where = f" in namespace {other.namespace}" if other.namespace is not None else ""
        yield f"{other.kind.kind} `{other.name}`{where} depends on its days"
    if not users:
        yield "no object that was read depends on its days"
