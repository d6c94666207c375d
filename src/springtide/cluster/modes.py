"""Whether a controller acts, or only tells what it would do."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What becomes of the writes that a controller decides on."""

    OBSERVE = "observe"
    """It decides, logs, counts and emits events; nothing else is written."""
    ACT = "act"
