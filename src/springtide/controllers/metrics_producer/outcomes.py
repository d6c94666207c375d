"""What a producer comes to at an instant: the metrics, what its status says, and when to look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again
from springtide.cluster.events import Notice, warning
from springtide.cluster.resources import Object
from springtide.controllers.living import with_ready
from springtide.metrics.series import Value

SOURCES = ("pendingCapacity", "queue", "reservedCapacity", "scheduledCapacity")
"""The fields of a status, one for each kind of source; an object has the one of its own."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is exported for an object."""

    values: Mapping[str, Value]
    good_until: int | None
    """The instant from which on it is old; None: it holds as long as nothing changes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a producer comes to."""

    active: Condition
    """Whether a metric is produced."""
    calculable: Condition
    """Whether all is there that it is made from; with `active` this makes an object Ready."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What the status says of the source, under its name."""
    series: Series | None = None
    """None: nothing is exported."""
    remarks: tuple[Condition, ...] = ()
    """Conditions that leave an object Ready."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What events say of a condition where it is more than the condition's own message."""
    notices: tuple[Notice, ...] = ()
    """What is told when the status was written."""
    again: Again | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, Ready first."""
        return *with_ready(self.active, self.calculable), *self.remarks

    @property
    def status(self) -> dict[str, Any]:
        """All fields of the status that are ours; None where one must not be there."""
        return {name: self.fields.get(name) for name in SOURCES}

    def warnings(self, status: Object) -> list[Notice]:
        """Give what people should be warned of that the status does not tell yet; Ready only repeats others."""
        return [
            warning(one.reason, self.words.get(one.type, one.message), same=one.message)
            for one in (self.active, self.calculable, *self.remarks)
            if one.status is Truth.FALSE and not _told(status, one)
        ]


def condition_in(status: Object, type_: str) -> Object | None:
    """Find a condition of a status by its type."""
    entries = (entry for entry in status.get("conditions") or () if entry.get("type") == type_)
    return next(entries, None)


def _told(status: Object, condition: Condition) -> bool:
    entry = condition_in(status, condition.type)
    return entry is not None and all(
        entry.get(name) == value
        for name, value in (("status", condition.status), ("reason", condition.reason), ("message", condition.message))
    )
