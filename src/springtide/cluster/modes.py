"""Whether a controller acts, or only tells what it would do.

A process all of whose controllers observe takes part in an election of its own: its Lease is that of the acting ones
with `-observe` at the end of its name. So several observers do not tell everything several times, and none of them
ever keeps a process out that acts. Besides events that Lease is all that is written.
"""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What becomes of the writes that a controller decides on."""

    OBSERVE = "observe"
    """It decides, logs, counts and emits events; nothing else is written to what it looks after."""
    ACT = "act"
