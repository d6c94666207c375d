"""What a producer comes to at an instant: the metrics, what its status says, and when to look again.

What a schedule comes to at an instant; pure.

What is left of a producer while its present value cannot be told: the last one, which grows old.

A metric that vanished would stop those who follow it, and one that fell to nothing would mislead them. So the last
value stays until there is a better one, and its age says how far it can be trusted. The status tells it too, so that
it outlives the process; of a schedule that cannot be read any more, what it once foretold is taken away.

What a queue comes to: its length, or what is left of it while nobody tells; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import clock_time, date_and_time, parse_instant
from springtide.apis.scheduled.schedule import ScheduleFinding
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.controller import Result
from springtide.cluster.events import EventContent, normal, warning
from springtide.cluster.resources import Object
from springtide.controllers.decision import with_ready
from springtide.controllers.metrics_producer.compiled_spec import CompiledSchedule, ScheduleState
from springtide.metrics.queues import QueueError, QueueLength
from springtide.metrics.series import ObjectSeries, SeriesValue

SOURCES = ("pendingCapacity", "queue", "reservedCapacity", "scheduledCapacity")
"""The fields of a status, one for each kind of source; an object has the one of its own."""


@dataclass(frozen=True, slots=True)
class ExportedSeries:
    """What is exported for an object."""

    values: Mapping[str, SeriesValue]
    fresh_until: int | None
    """The instant from which on it is old; None: it holds as long as nothing changes."""


@dataclass(frozen=True, slots=True)
class ProducerDecision:
    """What a producer comes to."""

    active: Condition
    """Whether a metric is produced."""
    calculable: Condition
    """Whether all is there that it is made from; with `active` this makes an object Ready."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What the status says of the source, under its name."""
    series: ExportedSeries | None = None
    """None: nothing is exported."""
    remarks: tuple[Condition, ...] = ()
    """Conditions that leave an object Ready."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What events say of a condition where it is more than the condition's own message."""
    notices: tuple[EventContent, ...] = ()
    """What is told when the status was written."""
    again: Result | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, Ready first."""
        return *with_ready(self.active, self.calculable), *self.remarks

    @property
    def status(self) -> dict[str, Any]:
        """All fields of the status that are ours; None where one must not be there."""
        return {name: self.fields.get(name) for name in SOURCES}

    def warnings(self, status: Object) -> list[EventContent]:
        """Give what people should be warned of that the status does not tell yet; Ready only repeats others."""
        return [
            warning(one.reason, self.words.get(one.type, one.message), same=one.message)
            for one in (self.active, self.calculable, *self.remarks)
            if one.status is ConditionStatus.FALSE and not _is_reported(status, one)
        ]


def condition_in(status: Object, type_: str) -> Object | None:
    """Find a condition of a status by its type."""
    entries = (entry for entry in status.get("conditions") or () if entry.get("type") == type_)
    return next(entries, None)


def _is_reported(status: Object, condition: Condition) -> bool:
    entry = condition_in(status, condition.type)
    return entry is not None and all(
        entry.get(name) == value
        for name, value in (("status", condition.status), ("reason", condition.reason), ("message", condition.message))
    )


SCHEDULE_METRICS = ("karpenter_scheduled_capacity", "karpenter_scheduled_replicas_value")
"""The names that the design and the first implementation have given to the same value."""
LISTED_CHANGES = 5
"""How many changes the status names."""


def decide_schedule(
    plan: CompiledSchedule,
    present: ScheduleState,
    surprises: Sequence[ScheduleFinding] | None,
    status: Object,
    now: int,
) -> ProducerDecision:
    """Tell what a schedule comes to; `surprises` is None while nobody has looked for them yet.

    The status as it stands is what people were told last.
    """
    until = present.until
    return ProducerDecision(
        active=_active(plan, present),
        calculable=_calculable(plan),
        remarks=(_unambiguous(surprises, status),),
        fields={"scheduledCapacity": _shown(plan, present)},
        series=ExportedSeries(dict.fromkeys(SCHEDULE_METRICS, present.value), until),
        words={"Unambiguous": "; ".join(one.dated for one in surprises)} if surprises else {},
        notices=tuple(_value_changes(plan, present, status, now)),
        again=Result(requeue_at=until) if until is not None else None,
    )


def replica_count(count: int) -> str:
    """Write a number of replicas."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _shown(plan: CompiledSchedule, present: ScheduleState) -> dict[str, Any]:
    shown: dict[str, Any] = {"currentValue": present.value, "timezone": plan.zone.name}
    if present.rank is not None:
        claim = plan.claims[present.rank]
        shown["activeBehavior"] = claim.behavior.name or f"behaviors[{claim.position}]"
    if present.upcoming:
        upcoming = [{"at": format_instant(at), "value": value} for at, value in present.upcoming]
        shown |= {"upcoming": upcoming, "nextValueTime": upcoming[0]["at"], "nextValue": upcoming[0]["value"]}
    return shown


def _active_behavior(plan: CompiledSchedule, present: ScheduleState) -> str:
    return "no behaviour is active" if present.rank is None else f"{plan.claims[present.rank].label} is active"


def _active(plan: CompiledSchedule, present: ScheduleState) -> Condition:
    # No time of day: it would make a restart write what has not changed.
    default = present.rank is None
    amount = f"{replica_count(present.value)}, the default" if default else replica_count(present.value)
    reason = "NoBehaviorActive" if default else "BehaviorActive"
    return Condition(
        "Active", ConditionStatus.TRUE, reason, f"{amount}: {_active_behavior(plan, present)} ({plan.zone.name})"
    )


def _calculable(plan: CompiledSchedule) -> Condition:
    faults = [
        f"calendar `{name}` {'does not exist' if found is None else 'has errors'}" for name, found in plan.unusable
    ]
    if faults:
        message = f"{', '.join(faults)}: the schedule is read as if it did not refer to it"
        return Condition("Calculable", ConditionStatus.FALSE, "CalendarUnusable", message)
    return Condition("Calculable", ConditionStatus.TRUE, "Compiled", "all that the schedule refers to is there")


def _unambiguous(surprises: Sequence[ScheduleFinding] | None, status: Object) -> Condition:
    if surprises is None:
        known = condition_in(status, "Unambiguous")
        if known is not None and known.get("status") in tuple(ConditionStatus):
            # Most likely it still holds: what it says depends on the schedule, and hardly on the present.
            return Condition(
                "Unambiguous", ConditionStatus(known["status"]), known.get("reason", ""), known.get("message", "")
            )
        return Condition(
            "Unambiguous", ConditionStatus.UNKNOWN, "NotSearchedYet", "the schedule is being searched for surprises"
        )
    if surprises:
        message = "; ".join(f"{one.message} ({one.hint})" for one in surprises)
        return Condition("Unambiguous", ConditionStatus.FALSE, surprises[0].reason, message)
    return Condition("Unambiguous", ConditionStatus.TRUE, "NothingFound", "the schedule can be read in one way only")


def _value_changes(plan: CompiledSchedule, present: ScheduleState, status: Object, now: int) -> Iterator[EventContent]:
    before = (status.get("scheduledCapacity") or {}).get("currentValue")
    if before is None or before == present.value:
        return
    ahead = "; no change lies ahead" if present.complete else ""
    if present.upcoming:
        at, value = present.upcoming[0]
        ahead = f"; next is {value} on {date_and_time(at, plan.zone)}"
    why = f"{_active_behavior(plan, present)} ({clock_time(now, plan.zone)})"
    yield normal("ValueChanged", f"from {before} to {replica_count(present.value)}: {why}{ahead}")


_QUEUE_METRICS = {
    "length": "karpenter_queue_length",
    "oldestMessageAgeSeconds": "karpenter_queue_oldest_message_age_seconds",
}


def decide_last_known(
    active: Condition,
    calculable: Condition,
    status: Object,
    reading: ObjectSeries | None,
    now: int,
    again: Result | None = None,
) -> ProducerDecision:
    """Tell what is left, of what the status says and of what is exported; the conditions say why it is no more."""
    return ProducerDecision(
        active=active,
        calculable=calculable,
        fields=_last_known_fields(status),
        series=_last_known_series(status, reading, now),
        again=again,
    )


def _last_known_fields(status: Object) -> dict[str, Any]:
    fields = {name: status[name] for name in SOURCES if status.get(name) is not None}
    value = (fields.get("scheduledCapacity") or {}).get("currentValue")
    if "scheduledCapacity" in fields:
        fields["scheduledCapacity"] = {"currentValue": value} if value is not None else None
    return fields


def _last_known_series(status: Object, reading: ObjectSeries | None, now: int) -> ExportedSeries | None:
    if reading is not None:
        until = reading.fresh_until
        return ExportedSeries(reading.values, now if until is None else min(until, now))
    values = _reported_values(status)
    return ExportedSeries(values, _inactive_since(status, now)) if values else None


def _reported_values(status: Object) -> Mapping[str, SeriesValue]:
    """Read from the status what an earlier process has exported."""
    value = (status.get("scheduledCapacity") or {}).get("currentValue")
    if isinstance(value, int):
        return dict.fromkeys(SCHEDULE_METRICS, value)
    queue = status.get("queue") or {}
    return {metric: queue[name] for name, metric in _QUEUE_METRICS.items() if isinstance(queue.get(name), int)}


def _inactive_since(status: Object, now: int) -> int:
    entry = condition_in(status, "Active")
    if entry is None or entry.get("status") == ConditionStatus.TRUE or not entry.get("lastTransitionTime"):
        return now
    return min(now, parse_instant(entry["lastTransitionTime"]))


QUEUE_PERIOD = 15
"""Seconds between two questions."""
LONGEST_PAUSE = 240
"""Seconds between two questions to somebody who keeps failing."""
LONG_PAUSE = 300
"""Seconds to the next question where somebody has to change something first."""

_LENGTH = "karpenter_queue_length"
_OLDEST_AGE = "karpenter_queue_oldest_message_age_seconds"
_REACHABLE = Condition("Calculable", ConditionStatus.TRUE, "QueueKnown", "the queue can be asked for its length")


def pause_after(failure: QueueError | None, failures: int) -> int:
    """Tell for how many seconds to wait until the next question, after so many failures in a row."""
    if failure is None:
        return QUEUE_PERIOD
    return min(QUEUE_PERIOD << (failures - 1), LONGEST_PAUSE) if failure.retryable else LONG_PAUSE


def decide_queue_length(length: QueueLength, at: int, again: Result | None) -> ProducerDecision:
    """Tell a length that was read at an instant; it is old when the next reading has not come in time."""
    values: dict[str, SeriesValue] = {_LENGTH: length.length}
    shown = {"length": length.length}
    if length.oldest_age is not None:
        values[_OLDEST_AGE] = length.oldest_age
        shown["oldestMessageAgeSeconds"] = length.oldest_age
    words = "1 message waits" if length.length == 1 else f"{length.length} messages wait"
    return ProducerDecision(
        active=Condition("Active", ConditionStatus.TRUE, "QueueRead", words),
        calculable=_REACHABLE,
        fields={"queue": shown},
        series=ExportedSeries(values, at + 2 * QUEUE_PERIOD),
        again=again,
    )


def decide_queue_unreadable(
    failure: QueueError, status: Object, reading: ObjectSeries | None, now: int, again: Result | None
) -> ProducerDecision:
    """Tell why the length is not known; the last one stays, and grows old. What was made from another source goes."""
    own: Object = {name: status[name] for name in ("queue", "conditions") if name in status}
    last = reading if reading is not None and _LENGTH in reading.values else None
    active = Condition("Active", ConditionStatus.FALSE, failure.reason, str(failure))
    calculable = Condition(
        "Calculable", ConditionStatus.UNKNOWN, failure.reason, "the length of the queue is not known"
    )
    return decide_last_known(active, calculable, own, last, now, again)


def decide_queue_not_granted(refusal: str) -> ProducerDecision:
    """Tell that objects of this namespace may not ask; what they have learnt before is taken back."""
    return ProducerDecision(
        active=Condition("Active", ConditionStatus.FALSE, "NotGranted", refusal),
        calculable=Condition("Calculable", ConditionStatus.UNKNOWN, "NotGranted", "the queue is not asked"),
    )
