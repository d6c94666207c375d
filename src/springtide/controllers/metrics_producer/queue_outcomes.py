"""What a queue comes to: its length, or what is left of it while nobody tells; pure."""

from __future__ import annotations

from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer.outcomes import Outcome, Series
from springtide.controllers.metrics_producer.remains import left_over
from springtide.metrics.queues import QueueError, QueueLength
from springtide.metrics.series import Reading, Value

PERIOD = 15
"""Seconds between two questions."""
LONGEST_PAUSE = 240
"""Seconds between two questions to somebody who keeps failing."""
PATIENCE = 300
"""Seconds to the next question where somebody has to change something first."""

_LENGTH = "karpenter_queue_length"
_OLDEST_AGE = "karpenter_queue_oldest_message_age_seconds"
_REACHABLE = Condition("Calculable", Truth.TRUE, "QueueKnown", "the queue can be asked for its length")


def pause_after(failure: QueueError | None, failures: int) -> int:
    """Tell for how many seconds to wait until the next question, after so many failures in a row."""
    if failure is None:
        return PERIOD
    return min(PERIOD << (failures - 1), LONGEST_PAUSE) if failure.retryable else PATIENCE


def read(length: QueueLength, at: int, again: Again | None) -> Outcome:
    """Tell a length that was read at an instant; it is old when the next reading has not come in time."""
    values: dict[str, Value] = {_LENGTH: length.length}
    shown = {"length": length.length}
    if length.oldest_age is not None:
        values[_OLDEST_AGE] = length.oldest_age
        shown["oldestMessageAgeSeconds"] = length.oldest_age
    words = "1 message waits" if length.length == 1 else f"{length.length} messages wait"
    return Outcome(
        active=Condition("Active", Truth.TRUE, "QueueRead", words),
        calculable=_REACHABLE,
        fields={"queue": shown},
        series=Series(values, at + 2 * PERIOD),
        again=again,
    )


def unreadable(failure: QueueError, status: Object, reading: Reading | None, now: int, again: Again | None) -> Outcome:
    """Tell why the length is not known; the last one stays, and grows old. What was made from another source goes."""
    own: Object = {name: status[name] for name in ("queue", "conditions") if name in status}
    last = reading if reading is not None and _LENGTH in reading.values else None
    active = Condition("Active", Truth.FALSE, failure.reason, str(failure))
    calculable = Condition("Calculable", Truth.UNKNOWN, failure.reason, "the length of the queue is not known")
    return left_over(active, calculable, own, last, now, again)


def not_allowed(refusal: str) -> Outcome:
    """Tell that objects of this namespace may not ask; what they have learnt before is taken back."""
    return Outcome(
        active=Condition("Active", Truth.FALSE, "NotGranted", refusal),
        calculable=Condition("Calculable", Truth.UNKNOWN, "NotGranted", "the queue is not asked"),
    )
