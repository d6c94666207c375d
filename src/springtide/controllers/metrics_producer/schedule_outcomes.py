"""What a schedule comes to at an instant; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.clock_times import clock_time, date_and_time
from springtide.apis.scheduled.conflicts import Surprise
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again
from springtide.cluster.events import Notice, normal
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer.outcomes import Outcome, Series, condition_in
from springtide.controllers.metrics_producer.plans import Plan, Present

METRICS = ("karpenter_scheduled_capacity", "karpenter_scheduled_replicas_value")
"""The names that the design and the first implementation have given to the same value."""
LISTED = 5
"""How many changes the status names."""


def decide(plan: Plan, present: Present, surprises: Sequence[Surprise] | None, status: Object, now: int) -> Outcome:
    """Tell what a schedule comes to; `surprises` is None while nobody has looked for them yet.

    The status as it stands is what people were told last.
    """
    until = present.until
    return Outcome(
        active=_active(plan, present),
        calculable=_calculable(plan),
        remarks=(_unambiguous(surprises, status),),
        fields={"scheduledCapacity": _shown(plan, present)},
        series=Series(dict.fromkeys(METRICS, present.value), until),
        words={"Unambiguous": "; ".join(one.dated for one in surprises)} if surprises else {},
        notices=tuple(_changes(plan, present, status, now)),
        again=Again(at=until) if until is not None else None,
    )


def replicas(count: int) -> str:
    """Write a number of replicas."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _shown(plan: Plan, present: Present) -> dict[str, Any]:
    shown: dict[str, Any] = {"currentValue": present.value, "timezone": plan.zone.name}
    if present.rank is not None:
        claim = plan.claims[present.rank]
        shown["activeBehavior"] = claim.behavior.name or f"behaviors[{claim.position}]"
    if present.upcoming:
        upcoming = [{"at": format_instant(at), "value": value} for at, value in present.upcoming]
        shown |= {"upcoming": upcoming, "nextValueTime": upcoming[0]["at"], "nextValue": upcoming[0]["value"]}
    return shown


def _who(plan: Plan, present: Present) -> str:
    return "no behaviour is active" if present.rank is None else f"{plan.claims[present.rank].label} is active"


def _active(plan: Plan, present: Present) -> Condition:
    # No time of day: it would make a restart write what has not changed.
    default = present.rank is None
    amount = f"{replicas(present.value)}, the default" if default else replicas(present.value)
    reason = "NoBehaviorActive" if default else "BehaviorActive"
    return Condition("Active", Truth.TRUE, reason, f"{amount}: {_who(plan, present)} ({plan.zone.name})")


def _calculable(plan: Plan) -> Condition:
    faults = [
        f"calendar `{name}` {'does not exist' if found is None else 'has errors'}" for name, found in plan.unusable
    ]
    if faults:
        message = f"{', '.join(faults)}: the schedule is read as if it did not refer to it"
        return Condition("Calculable", Truth.FALSE, "CalendarUnusable", message)
    return Condition("Calculable", Truth.TRUE, "Compiled", "all that the schedule refers to is there")


def _unambiguous(surprises: Sequence[Surprise] | None, status: Object) -> Condition:
    if surprises is None:
        known = condition_in(status, "Unambiguous")
        if known is not None and known.get("status") in tuple(Truth):
            # Most likely it still holds: what it says depends on the schedule, and hardly on the present.
            return Condition("Unambiguous", Truth(known["status"]), known.get("reason", ""), known.get("message", ""))
        return Condition("Unambiguous", Truth.UNKNOWN, "NotSearchedYet", "the schedule is being searched for surprises")
    if surprises:
        message = "; ".join(f"{one.message} ({one.hint})" for one in surprises)
        return Condition("Unambiguous", Truth.FALSE, surprises[0].reason, message)
    return Condition("Unambiguous", Truth.TRUE, "NothingFound", "the schedule can be read in one way only")


def _changes(plan: Plan, present: Present, status: Object, now: int) -> Iterator[Notice]:
    before = (status.get("scheduledCapacity") or {}).get("currentValue")
    if before is None or before == present.value:
        return
    ahead = "; no change lies ahead" if present.complete else ""
    if present.upcoming:
        at, value = present.upcoming[0]
        ahead = f"; next is {value} on {date_and_time(at, plan.zone)}"
    why = f"{_who(plan, present)} ({clock_time(now, plan.zone)})"
    yield normal("ValueChanged", f"from {before} to {replicas(present.value)}: {why}{ahead}")
