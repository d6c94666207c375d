"""What every `decide` function returns, and the conditions and events that all kinds build the same way.

A decision is data: `decide` gets objects and the present instant, and does no I/O. The controller carries the decision
out, and `springtide explain` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.events import EventContent, warning
from springtide.cluster.resources import Object

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[A]):
    """What a controller does about one object at one instant, and why."""

    actions: tuple[A, ...] = ()
    """Changes of anything but the object's own status, in the order in which the controller makes them."""
    reasons: tuple[str, ...] = ()
    """Reasons as full sentences; the first one is the most important."""
    conditions: tuple[Condition, ...] = ()
    requeue_at: int | None = None
    """The instant at which the controller decides again although nothing has changed; None: it need not."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the status besides its conditions; None where a field must not be there."""
    events: tuple[EventContent, ...] = ()
    """Events to record once the status is written."""

    def condition(self, type_: str) -> Condition:
        """Return one of the conditions by its type."""
        return next(one for one in self.conditions if one.type == type_)


@dataclass(frozen=True, slots=True)
class ObservedScale:
    """The scale of a target as a controller read it."""

    asked: int
    """`spec.replicas`: how many replicas there should be."""
    present: int
    """`status.replicas`: how many there are."""


def with_ready(*conditions: Condition) -> tuple[Condition, ...]:
    """Put `Ready` in front of other conditions.

    It is True where all of them are. Otherwise it repeats the first that is False, or else the first that is Unknown.
    """
    bad = [one for one in conditions if one.status is ConditionStatus.FALSE] or [
        one for one in conditions if one.status is ConditionStatus.UNKNOWN
    ]
    if bad:
        return Condition("Ready", bad[0].status, bad[0].reason, bad[0].message), *conditions
    return Condition("Ready", ConditionStatus.TRUE, "Ready", "; ".join(one.message for one in conditions)), *conditions


def condition_in(status: Object, type_: str) -> Object | None:
    """Find a condition of a stored status by its type."""
    entries = (entry for entry in status.get("conditions") or () if entry.get("type") == type_)
    return next(entries, None)


def warning_for(condition: Condition) -> EventContent:
    """Make the warning event that repeats a condition."""
    return warning(condition.reason, condition.message)
