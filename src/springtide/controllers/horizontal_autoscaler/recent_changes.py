"""Changes that still count against policies, as the status keeps them over a restart.

A policy of so much in half an hour would allow it anew at every restart, if only the process knew what was done.
"""

from __future__ import annotations

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.cluster.resources import Object
from springtide.scaling import Changes

_MOST_TOLD = 50
"""Entries of a status. Of more, the oldest are told as one, made when the last of them was: so they count longer."""


def told(changes: Changes, now: int, *, keep: int) -> list[Object] | None:
    """Write those changes down that are no older than so many seconds; None where there are none."""
    counting = changes.as_of(now, keep=keep)
    made = sorted((*counting.made, *counting.doubtful))
    older, newer = made[:-_MOST_TOLD], made[-_MOST_TOLD:]
    if older:
        newer[0] = newer[0][0], newer[0][1] + sum(change for _, change in older)
    return [{"time": format_instant(at), "change": change} for at, change in newer] or None


def recalled(status: Object, asked: int, now: int, *, keep: int) -> Changes:
    """Read what was changed before we began; nothing where no policy asks about it.

    Where the target is asked for another number than was told last, somebody has changed it since: perhaps we, and the
    process died before it was told. So that counts as made now.
    """
    if not keep:
        return Changes()
    made = tuple((parse_instant(one["time"]), int(one["change"])) for one in status.get("recentChanges") or ())
    last = status.get("desiredReplicas")
    unknown = ((now, asked - last),) if last is not None and last != asked else ()
    return Changes(made, unknown)
