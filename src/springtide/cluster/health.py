"""How the controllers of a process are doing, in numbers.

What the runtime tells of its work as it happens, for whoever counts it.

Numbers that are a state (how long a queue is, how old a cache is) are not told: they are read from
`springtide.cluster.health` when somebody asks. What remains are occasions, and those have to be told when they occur.
Nothing may depend on who listens: a simulation tells nobody, and runs the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from springtide.cluster.client import WriteCounts


class ControllerState(StrEnum):
    """What a controller is doing."""

    STANDING_BY = "standing by"
    """Another process leads, or this one has not begun."""
    SYNCING = "syncing"
    """It may act, and waits until its caches are complete."""
    RUNNING = "running"
    FAILED = "failed"
    """It could not be made; the log says why. It is tried again when this process leads the next time."""


@dataclass(frozen=True, slots=True)
class CacheHealth:
    """How a cache is doing now."""

    selection: str
    synced: bool
    version: int
    objects: int
    unreadable: int
    """Objects that are left out, because no record can be made of them; the log says why."""
    relists: int
    last_contact: float | None
    """When the server last told anything, by the monotonic clock."""
    last_error: str
    """What went wrong last; empty when the server has told something since."""
    last_event: float | None = None
    """When the server last told of an object, by the monotonic clock: in a quiet cluster, long before it last told
    anything."""
    not_installed: bool = False
    """Whether the kind is not installed, and everybody who watches it can do without."""


@dataclass(slots=True)
class ControllerHealth:
    """Counts of one controller since the process began; they never fall, but for those of the present."""

    name: str
    state: ControllerState = ControllerState.STANDING_BY
    reconciles: int = 0
    errors: int = 0
    conflicts: int = 0
    """Writes refused because the object had changed: part of life, and no errors."""
    retries: int = 0
    """Keys that come again because of a failure, a conflict or a lease that ran out."""
    queued: int = 0
    delayed: int = 0
    unreadable: int = 0
    """Objects that its caches leave out, because no record can be made of them; it falls when they are mended."""
    paused: int = 0
    """Objects that people have paused one by one."""
    traffic: WriteCounts = field(default_factory=WriteCounts)
    last_error: str = ""


class ReconcileOutcome(StrEnum):
    """How one reconcile ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """A success as well, and the controller has asked to be called again."""
    CONFLICT = "conflict"
    """The object had changed meanwhile: part of life; it is tried again."""
    NOT_SENT = "not_sent"
    """A write was held back: the lease is lost, or everything is paused."""
    ERROR = "error"
    STOPPED = "stopped"
    """It was under way when the process stopped or lost the lease."""


class ReconcileMetrics(Protocol):
    """Whoever wants to know. Methods are called in the middle of the work: they are quick and raise nothing."""

    def reconciled(self, controller: str, seconds: float, result: ReconcileOutcome) -> None:
        """Take note of one reconcile; the seconds are those of the wall, whatever clock the controllers live by."""
        ...


class NoMetrics:
    """Nobody wants to know."""

    def reconciled(self, controller: str, seconds: float, result: ReconcileOutcome) -> None:
        """Forget it."""


NO_METRICS = NoMetrics()
