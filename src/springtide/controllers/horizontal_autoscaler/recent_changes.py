"""Changes that still count against policies, as the status keeps them over a restart.

A policy of so much in half an hour would allow it anew at every restart, if only the process knew what was done.
"""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import instant_in
from springtide.cluster.resources import Object
from springtide.scaling import Changes

_MOST_TOLD = 50
"""Entries of a status, of those that are doubtful and of the others. Of more, the oldest are told as one, made when the
last of them was: so they count longer."""


def told(changes: Changes, now: int, *, keep: int) -> list[Object] | None:
    """Write those changes down that are no older than so many seconds; None where there are none."""
    counting = changes.as_of(now, keep=keep)
    entries = [*_entries(counting.made), *({**entry, "doubtful": True} for entry in _entries(counting.doubtful))]
    return sorted(entries, key=lambda entry: str(entry["time"])) or None


def recalled(status: Object, asked: int, now: int, *, keep: int) -> Changes:
    """Read what was changed before we began; nothing where no policy asks about it.

    Where the target is asked for another number than was told last, somebody has changed it since: perhaps we, and the
    process died before it was told. So that counts as made now.
    """
    if not keep:
        return Changes()
    found = [
        (at, int(entry["change"]), bool(entry.get("doubtful")))
        for entry in status.get("recentChanges") or ()
        if (at := instant_in(entry["time"])) is not None
    ]
    made, doubtful = (tuple((at, change) for at, change, doubt in found if doubt is sort) for sort in (False, True))
    last = status.get("desiredReplicas")
    unknown = ((now, asked - last),) if last is not None and last != asked else ()
    return Changes(made, (*doubtful, *unknown))


def _entries(changes: Sequence[tuple[int, int]]) -> list[Object]:
    ordered = sorted(changes)
    older, newer = ordered[:-_MOST_TOLD], ordered[-_MOST_TOLD:]
    if older:
        newer[0] = newer[0][0], newer[0][1] + sum(change for _, change in older)
    return [{"time": format_instant(at), "change": change} for at, change in newer]
