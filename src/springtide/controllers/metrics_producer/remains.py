"""What is left of a producer while its present value cannot be told: the last one, which grows old.

A metric that vanished would stop those who follow it, and one that fell to nothing would mislead them. So the last
value stays until there is a better one, and its age says how far it can be trusted. The status tells it too, so that
it outlives the process; of a schedule that cannot be read any more, what it once foretold is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from springtide.apis.meta.instants import parse_instant
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer.outcomes import SOURCES, Outcome, Series, condition_in
from springtide.controllers.metrics_producer.schedule_outcomes import METRICS
from springtide.metrics.series import Reading, Value

_QUEUE_METRICS = {
    "length": "karpenter_queue_length",
    "oldestMessageAgeSeconds": "karpenter_queue_oldest_message_age_seconds",
}


def left_over(
    active: Condition,
    calculable: Condition,
    status: Object,
    reading: Reading | None,
    now: int,
    again: Again | None = None,
) -> Outcome:
    """Tell what is left, of what the status says and of what is exported; the conditions say why it is no more."""
    return Outcome(
        active=active,
        calculable=calculable,
        fields=_fields(status),
        series=_series(status, reading, now),
        again=again,
    )


def _fields(status: Object) -> dict[str, Any]:
    fields = {name: status[name] for name in SOURCES if status.get(name) is not None}
    value = (fields.get("scheduledCapacity") or {}).get("currentValue")
    if "scheduledCapacity" in fields:
        fields["scheduledCapacity"] = {"currentValue": value} if value is not None else None
    return fields


def _series(status: Object, reading: Reading | None, now: int) -> Series | None:
    if reading is not None:
        until = reading.good_until
        return Series(reading.values, now if until is None else min(until, now))
    values = _told(status)
    return Series(values, _inactive_since(status, now)) if values else None


def _told(status: Object) -> Mapping[str, Value]:
    """Read from the status what an earlier process has exported."""
    value = (status.get("scheduledCapacity") or {}).get("currentValue")
    if isinstance(value, int):
        return dict.fromkeys(METRICS, value)
    queue = status.get("queue") or {}
    return {metric: queue[name] for name, metric in _QUEUE_METRICS.items() if isinstance(queue.get(name), int)}


def _inactive_since(status: Object, now: int) -> int:
    entry = condition_in(status, "Active")
    if entry is None or entry.get("status") == Truth.TRUE or not entry.get("lastTransitionTime"):
        return now
    return min(now, parse_instant(entry["lastTransitionTime"]))
