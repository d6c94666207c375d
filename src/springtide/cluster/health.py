"""The health of controllers and caches in numbers, and the hook for metrics of reconciles.

Gauges (the length of a queue, the age of a cache) are read from `ControllerHealth` and `CacheHealth` when metrics are
collected. Durations and outcomes of reconciles are passed to a `ReconcileMetrics` when they occur; a simulation passes
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from springtide.cluster.client import WriteCounts


class ControllerState(StrEnum):
    """The state of a controller."""

    STANDING_BY = "standing by"
    """Another process leads, or leader election has not finished."""
    SYNCING = "syncing"
    """It waits until its caches and shared states are complete."""
    RUNNING = "running"
    FAILED = "failed"
    """It could not be created; the log says why. The next leadership term tries again."""


@dataclass(frozen=True, slots=True)
class CacheHealth:
    """The current state of a cache."""

    selection: str
    synced: bool
    version: int
    objects: int
    unreadable: int
    """Objects of which no record can be made; the log says why."""
    relists: int
    last_contact: float | None
    """When the server last sent anything, by the monotonic clock."""
    last_error: str
    """The last error; empty if the server has sent something since."""
    last_event: float | None = None
    """When the server last sent an object, by the monotonic clock; in a quiet cluster it sends only bookmarks."""
    not_installed: bool = False
    """Whether the kind is not installed, and optional for all controllers that watch it."""


@dataclass(slots=True)
class ControllerHealth:
    """Counters of one controller since the process started, and gauges."""

    name: str
    state: ControllerState = ControllerState.STANDING_BY
    reconciles: int = 0
    errors: int = 0
    conflicts: int = 0
    """Reconciles that ended with a conflict because the object had changed; not counted as errors."""
    retries: int = 0
    """Keys that were requeued because of a failure, a conflict or a lost lease."""
    queued: int = 0
    delayed: int = 0
    unreadable: int = 0
    """A gauge: objects in its caches of which no record can be made."""
    paused: int = 0
    """A gauge: objects that are paused by their annotation."""
    traffic: WriteCounts = field(default_factory=WriteCounts)
    last_error: str = ""


class ReconcileOutcome(StrEnum):
    """How one reconcile ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """A success with a `Result` that requeues the key."""
    CONFLICT = "conflict"
    """The object had changed meanwhile; the key is requeued."""
    NOT_SENT = "not_sent"
    """A write was withheld: the lease is lost, or everything is paused."""
    ERROR = "error"
    STOPPED = "stopped"
    """It was cancelled because the process stopped or lost the lease."""


class ReconcileMetrics(Protocol):
    """Receives the outcome of every reconcile; methods must be quick and must not raise."""

    def reconciled(self, controller: str, seconds: float, result: ReconcileOutcome) -> None:
        """Note one reconcile; the seconds are real time, whatever clock the controllers use."""
        ...


class NoReconcileMetrics:
    """Ignores everything."""

    def reconciled(self, controller: str, seconds: float, result: ReconcileOutcome) -> None:
        """Ignore it."""


NO_METRICS = NoReconcileMetrics()
