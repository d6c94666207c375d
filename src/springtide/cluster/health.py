"""How the controllers of a process are doing, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from springtide.cluster.client import Traffic


class State(StrEnum):
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
    dispensable: bool = False
    """Whether the kind is not installed, and everybody who watches it can do without."""


@dataclass(slots=True)
class Health:
    """Counts of one controller since the process began; they never fall, but for those of the present."""

    name: str
    state: State = State.STANDING_BY
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
    traffic: Traffic = field(default_factory=Traffic)
    last_error: str = ""
