"""What the runtime tells of its work as it happens, for whoever counts it.

Numbers that are a state (how long a queue is, how old a cache is) are not told: they are read from
`springtide.cluster.health` when somebody asks. What remains are occasions, and those have to be told when they occur.
Nothing may depend on who listens: a simulation tells nobody, and runs the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Result(StrEnum):
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


class Telemetry(Protocol):
    """Whoever wants to know. Methods are called in the middle of the work: they are quick and raise nothing."""

    def reconciled(self, controller: str, seconds: float, result: Result) -> None:
        """Take note of one reconcile; the seconds are those of the wall, whatever clock the controllers live by."""
        ...


class Untold:
    """Nobody wants to know."""

    def reconciled(self, controller: str, seconds: float, result: Result) -> None:
        """Forget it."""


UNTOLD = Untold()
