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


@dataclass(slots=True)
class Health:
    """Counts of one controller since the process began; they never fall, but for the depth of the queue."""

    name: str
    state: State = State.STANDING_BY
    reconciles: int = 0
    errors: int = 0
    conflicts: int = 0
    """Writes refused because the object had changed: part of life, and no errors."""
    queued: int = 0
    delayed: int = 0
    traffic: Traffic = field(default_factory=Traffic)
    last_error: str = ""
