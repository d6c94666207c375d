"""Which series a MetricsProducer exports, and what its status says: one function for each source of a metric.

While the present value is unknown, the last known value stays: a metric that disappeared would stop its autoscalers,
and one that fell to zero would mislead them. Its age says that it is stale. The status keeps it over a restart, without
the upcoming changes of a schedule that cannot be read any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import clock_time, date_and_time, parse_instant
from springtide.apis.scheduled.schedule import ScheduleFinding
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.events import EventContent, normal, warning
from springtide.cluster.resources import Object
from springtide.controllers.decision import Decision, condition_in, with_ready
from springtide.controllers.metrics_producer.compiled_spec import CompiledSchedule, ScheduleState
from springtide.controllers.metrics_producer.occupancy import GroupLabel, GroupTotals
from springtide.metrics.queues import QueueError, QueueLength
from springtide.metrics.series import ObjectSeries, SeriesValue
from springtide.quantity import Quantity

SOURCES = ("pendingCapacity", "queue", "reservedCapacity", "scheduledCapacity")
"""The fields of a status, one for each source; an object has only the one of its own source."""
SCHEDULE_METRICS = ("karpenter_scheduled_capacity", "karpenter_scheduled_replicas_value")
"""The names that the design and the first implementation gave to the same value."""
QUEUE_PERIOD = 15
"""Seconds between two reads of a queue."""
LONGEST_PAUSE = 240
"""The longest backoff, in seconds, after failures that may pass."""
LONG_PAUSE = 300
"""Seconds until a queue is read again after a failure that lasts until a user changes something."""

_LENGTH = "karpenter_queue_length"
_OLDEST_AGE = "karpenter_queue_oldest_message_age_seconds"
_QUEUE_METRICS = {"length": _LENGTH, "oldestMessageAgeSeconds": _OLDEST_AGE}
_BILLION = 10**9
_KIBIBYTE = Quantity.parse("1Ki")


@dataclass(frozen=True, slots=True)
class ExportSeries:
    """Export the series of an object, in place of those it had before."""

    values: Mapping[str, SeriesValue]
    fresh_until: int | None
    """The instant from which on the values are stale; None: they hold as long as nothing changes."""


@dataclass(frozen=True, slots=True)
class DropSeries:
    """Export no series of an object."""


SeriesAction: TypeAlias = ExportSeries | DropSeries


def decide_invalid(errors: str, status: Object, reading: ObjectSeries | None, now: int) -> Decision[SeriesAction]:
    """Decide about a producer with errors."""
    active = Condition("Active", ConditionStatus.FALSE, "Invalid", errors)
    unknown = Condition("Calculable", ConditionStatus.UNKNOWN, "Invalid", "what the metric is made from is not known")
    return decide_last_known(active, unknown, status, reading, now)


def decide_pending_capacity(status: Object) -> Decision[SeriesAction]:
    """Decide about a producer of pending capacity."""
    message = "this version does not compute pending capacity: no metric is exported"
    active = Condition("Active", ConditionStatus.FALSE, "NotComputedYet", message)
    unknown = Condition("Calculable", ConditionStatus.UNKNOWN, "NotComputedYet", "pending pods are not read")
    return _decision(active, unknown, status)


def decide_schedule(
    compiled: CompiledSchedule,
    state: ScheduleState,
    findings: Sequence[ScheduleFinding] | None,
    status: Object,
    now: int,
) -> Decision[SeriesAction]:
    """Decide about a schedule; `findings` is None while the search for ambiguities has not ended.

    `status` is the present one: it says what users know already.
    """
    details = {"Unambiguous": "; ".join(one.dated for one in findings)} if findings else {}
    default = f": the default of {state.value}" if state.rank is None else ""
    return _decision(
        _active(compiled, state),
        _calculable(compiled),
        status,
        fields={"scheduledCapacity": _scheduled_capacity(compiled, state)},
        series=ExportSeries(dict.fromkeys(SCHEDULE_METRICS, state.value), state.until),
        remark=_unambiguous(findings, status),
        reasons=(
            f"{_active_behavior(compiled, state)}{default} ({clock_time(now, compiled.zone)})",
            *(f"{label} is suspended" for label in _suspended(compiled)),
        ),
        events=tuple(_value_changes(compiled, state, status, now)),
        details=details,
        requeue_at=state.until,
    )


def decide_reserved_capacity(label: GroupLabel, totals: GroupTotals, status: Object) -> Decision[SeriesAction]:
    """Decide how much of the nodes with a label is reserved."""
    fields: dict[str, str] = {}
    values: dict[str, SeriesValue] = {}
    for resource, unit, text in _RESOURCES:
        reserved = Fraction(getattr(totals.reserved, resource), unit)
        capacity = Fraction(getattr(totals.capacity, resource), unit)
        utilization = reserved / capacity if capacity else None
        fields[resource] = f"{_percentage(utilization)}, {text(reserved)}/{text(capacity)}"
        values |= {
            f"karpenter_reserved_capacity_{resource}_reserved": reserved,
            f"karpenter_reserved_capacity_{resource}_capacity": capacity,
            f"karpenter_reserved_capacity_{resource}_utilization": utilization,
        }
    return _decision(
        _nodes_counted(label, totals.nodes),
        Condition("Calculable", ConditionStatus.TRUE, "NodesWatched", "nodes and pods are followed as they change"),
        status,
        fields={"reservedCapacity": fields},
        series=ExportSeries(values, None),
    )


def decide_queue_length(length: QueueLength, at: int, status: Object) -> Decision[SeriesAction]:
    """Decide about a queue whose length was read at an instant; the value is stale when the next read is late."""
    values: dict[str, SeriesValue] = {_LENGTH: length.length}
    fields = {"length": length.length}
    if length.oldest_age is not None:
        values[_OLDEST_AGE] = length.oldest_age
        fields["oldestMessageAgeSeconds"] = length.oldest_age
    message = "1 message waits" if length.length == 1 else f"{length.length} messages wait"
    return _decision(
        Condition("Active", ConditionStatus.TRUE, "QueueRead", message),
        Condition("Calculable", ConditionStatus.TRUE, "QueueKnown", "the queue can be asked for its length"),
        status,
        fields={"queue": fields},
        series=ExportSeries(values, at + 2 * QUEUE_PERIOD),
    )


def decide_queue_unreadable(
    failure: QueueError, status: Object, reading: ObjectSeries | None, now: int
) -> Decision[SeriesAction]:
    """Decide about a queue that could not be read: the last length stays, values of another source go."""
    own: Object = {name: status[name] for name in ("queue", "conditions") if name in status}
    last = reading if reading is not None and _LENGTH in reading.values else None
    active = Condition("Active", ConditionStatus.FALSE, failure.reason, str(failure))
    unknown = Condition("Calculable", ConditionStatus.UNKNOWN, failure.reason, "the length of the queue is not known")
    return decide_last_known(active, unknown, own, last, now)


def decide_queue_not_granted(refusal: str, status: Object) -> Decision[SeriesAction]:
    """Decide about a queue that no Grant allows: what was read before is not exported any more either."""
    active = Condition("Active", ConditionStatus.FALSE, "NotGranted", refusal)
    unknown = Condition("Calculable", ConditionStatus.UNKNOWN, "NotGranted", "the queue is not asked")
    return _decision(active, unknown, status)


def queue_pause(failure: QueueError | None, failures: int) -> int:
    """Return the seconds until a queue is read again, after so many failures in a row."""
    if failure is None:
        return QUEUE_PERIOD
    return min(QUEUE_PERIOD << (failures - 1), LONGEST_PAUSE) if failure.retryable else LONG_PAUSE


def decide_last_known(
    active: Condition, calculable: Condition, status: Object, reading: ObjectSeries | None, now: int
) -> Decision[SeriesAction]:
    """Keep the last known value, stale; the conditions say why the present one is unknown."""
    fields = {name: status[name] for name in SOURCES if status.get(name) is not None}
    if "scheduledCapacity" in fields:
        value = (fields["scheduledCapacity"] or {}).get("currentValue")
        fields["scheduledCapacity"] = {"currentValue": value} if value is not None else None
    return _decision(active, calculable, status, fields=fields, series=_last_known_series(status, reading, now))


def _decision(
    active: Condition,
    calculable: Condition,
    status: Object,
    *,
    fields: Mapping[str, Any] | None = None,
    series: ExportSeries | None = None,
    remark: Condition | None = None,
    reasons: tuple[str, ...] = (),
    events: tuple[EventContent, ...] = (),
    details: Mapping[str, str] | None = None,
    requeue_at: int | None = None,
) -> Decision[SeriesAction]:
    """Build a decision; `details` are longer messages of events, by the type of a condition.

    Ready depends on `active` and `calculable`, not on `remark`.
    """
    remarks = () if remark is None else (remark,)
    found, messages = fields or {}, details or {}
    warnings = tuple(
        warning(one.reason, messages.get(one.type, one.message), same=one.message)
        for one in (active, calculable, *remarks)
        if one.status is ConditionStatus.FALSE and not _is_reported(status, one)
    )
    return Decision(
        actions=(DropSeries() if series is None else series,),
        reasons=reasons or (active.message,),
        conditions=(*with_ready(active, calculable), *remarks),
        requeue_at=requeue_at,
        status={name: found.get(name) for name in SOURCES},
        events=(*events, *warnings),
    )


def _is_reported(status: Object, condition: Condition) -> bool:
    entry = condition_in(status, condition.type)
    return entry is not None and all(
        entry.get(name) == value
        for name, value in (("status", condition.status), ("reason", condition.reason), ("message", condition.message))
    )


def _scheduled_capacity(compiled: CompiledSchedule, state: ScheduleState) -> dict[str, Any]:
    shown: dict[str, Any] = {"currentValue": state.value, "timezone": compiled.zone.name}
    if state.rank is not None:
        behavior = compiled.behaviors[state.rank]
        shown["activeBehavior"] = behavior.behavior.name or f"behaviors[{behavior.position}]"
    if state.upcoming:
        upcoming = [{"at": format_instant(at), "value": value} for at, value in state.upcoming]
        shown |= {"upcoming": upcoming, "nextValueTime": upcoming[0]["at"], "nextValue": upcoming[0]["value"]}
    return shown


def _active_behavior(compiled: CompiledSchedule, state: ScheduleState) -> str:
    return "no behaviour is active" if state.rank is None else f"{compiled.behaviors[state.rank].label} is active"


def _suspended(compiled: CompiledSchedule) -> Iterator[str]:
    for position, behavior in enumerate(compiled.schedule.behaviors):
        if behavior.suspend:
            yield f"behaviour `{behavior.name}`" if behavior.name else f"`behaviors[{position}]`"


def _active(compiled: CompiledSchedule, state: ScheduleState) -> Condition:
    # Without the time of day, which would make each restart write the status.
    default = state.rank is None
    amount = f"{replica_count(state.value)}, the default" if default else replica_count(state.value)
    reason = "NoBehaviorActive" if default else "BehaviorActive"
    message = f"{amount}: {_active_behavior(compiled, state)} ({compiled.zone.name})"
    return Condition("Active", ConditionStatus.TRUE, reason, message)


def _calculable(compiled: CompiledSchedule) -> Condition:
    faults = [
        f"calendar `{name}` {'does not exist' if found is None else 'has errors'}" for name, found in compiled.unusable
    ]
    if faults:
        message = f"{', '.join(faults)}: the schedule is read as if it did not refer to it"
        return Condition("Calculable", ConditionStatus.FALSE, "CalendarUnusable", message)
    return Condition("Calculable", ConditionStatus.TRUE, "Compiled", "all that the schedule refers to is there")


def _unambiguous(findings: Sequence[ScheduleFinding] | None, status: Object) -> Condition:
    if findings is None:
        known = condition_in(status, "Unambiguous")
        if known is not None and known.get("status") in tuple(ConditionStatus):
            # Most likely it still holds: it depends on the schedule, and hardly on the present.
            return Condition(
                "Unambiguous", ConditionStatus(known["status"]), known.get("reason", ""), known.get("message", "")
            )
        message = "the schedule is being searched for ambiguities"
        return Condition("Unambiguous", ConditionStatus.UNKNOWN, "NotSearchedYet", message)
    if findings:
        message = "; ".join(f"{one.message} ({one.hint})" for one in findings)
        return Condition("Unambiguous", ConditionStatus.FALSE, findings[0].reason, message)
    return Condition("Unambiguous", ConditionStatus.TRUE, "NothingFound", "the schedule can be read in one way only")


def _value_changes(
    compiled: CompiledSchedule, state: ScheduleState, status: Object, now: int
) -> Iterator[EventContent]:
    before = (status.get("scheduledCapacity") or {}).get("currentValue")
    if before is None or before == state.value:
        return
    ahead = "; no change lies ahead" if state.complete else ""
    if state.upcoming:
        at, value = state.upcoming[0]
        ahead = f"; next is {value} on {date_and_time(at, compiled.zone)}"
    why = f"{_active_behavior(compiled, state)} ({clock_time(now, compiled.zone)})"
    yield normal("ValueChanged", f"from {before} to {replica_count(state.value)}: {why}{ahead}")


def replica_count(count: int) -> str:
    """Write a number of replicas."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _last_known_series(status: Object, reading: ObjectSeries | None, now: int) -> ExportSeries | None:
    if reading is not None:
        until = reading.fresh_until
        return ExportSeries(reading.values, now if until is None else min(until, now))
    values = _reported_values(status)
    return ExportSeries(values, _inactive_since(status, now)) if values else None


def _reported_values(status: Object) -> Mapping[str, SeriesValue]:
    """Read from the status what a former process exported."""
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


def _nodes_counted(label: GroupLabel, nodes: int) -> Condition:
    group = f"the label {label[0]}={label[1]}"
    if not nodes:
        return Condition("Active", ConditionStatus.TRUE, "NoNodes", f"no node with {group} is ready and takes pods")
    amount = "1 node" if nodes == 1 else f"{nodes} nodes"
    message = f"{amount} with {group} {'is' if nodes == 1 else 'are'} counted"
    return Condition("Active", ConditionStatus.TRUE, "NodesCounted", message)


def _percentage(part: Fraction | None) -> str:
    if part is None:
        return "NaN%"
    whole, hundredths = divmod(round(part * 10_000), 100)
    return f"{whole}.{hundredths:02d}%"


def _cores(amount: Fraction) -> str:
    return str(Quantity(int(amount * _BILLION)))


def _bytes(amount: Fraction) -> str:
    """Write an amount of memory in binary units if it is a multiple of them, whatever units the pods used."""
    kibibytes = amount / 1024
    return str(_KIBIBYTE * int(kibibytes)) if kibibytes.denominator == 1 else _cores(amount)


_RESOURCES: tuple[tuple[str, int, Callable[[Fraction], str]], ...] = (
    ("cpu", _BILLION, _cores),
    ("memory", _BILLION, _bytes),
    ("pods", 1, _cores),
)
