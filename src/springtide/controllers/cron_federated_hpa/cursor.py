"""How far each rule has come: the cursor, an annotation of the object.

A firing is due once it lies after the cursor. Histories are short and may keep nothing at all, so they cannot tell
this alone; and that a rule was suspended, or had another schedule, stands nowhere else. What happened before the object
or the rule was there, while the rule was not in force, or under another schedule, is never made up for.

What changed while no controller ran shows only as a difference between cursor and rule. It is taken to have happened
when the spec was last changed, which the managed fields tell. Of several changes during one outage only the last is
seen: a rule that was suspended and resumed meanwhile looks as if it had been in force throughout.

Whoever copies an object, or restores it from a backup, copies its cursor too; so nothing before its own creation counts
either. And a cursor far in the future was written under a wrong clock, or by hand: the rule begins anew at the present,
as it would be dead otherwise. Where a clock was only set back a little, what was handled stays so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from springtide.almanac.civil import DAY
from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant

ANNOTATION = "springtide.dev/cron-cursor"

_DIGITS = 8
LARGEST_SKEW = DAY
"""From how many seconds on a time that lies ahead is not believed."""


@dataclass(frozen=True, slots=True)
class RuleProgress:
    """How far one rule has come."""

    handled: int
    """Everything up to this instant is settled."""
    timing: str
    """Tells `schedule`, `at` and `timeZone` from what they were before."""
    in_force: bool
    """Whether the rule could fire: it is suspended otherwise, or wrong."""


@dataclass(frozen=True, slots=True)
class RuleWindow:
    """From when on, and until when, the firings of a rule count."""

    since: int
    """Firings up to this instant are settled, or never count."""
    ended: int | None = None
    """When the rule ceased to be in force; None: it is."""


@dataclass(frozen=True, slots=True)
class ObjectAge:
    """What is known of the past of an object."""

    created: int
    edited: int | None
    """When its spec was last changed; None where nothing tells."""


def timing_fingerprint(schedule: str | None, at: str | None, time_zone: str | None) -> str:
    """Give the fingerprint of what makes the times of a rule."""
    return sha256(msgspec.json.encode((schedule, at, time_zone))).hexdigest()[:_DIGITS]


def read_cursor(text: str) -> dict[str, RuleProgress] | None:
    """Read the annotation; None where there is none, or where somebody has made it unreadable."""
    try:
        found = msgspec.json.decode(text or "null", type=dict[str, dict[str, Any]] | None)
        if found is None:
            return None
        return {
            name: RuleProgress(parse_instant(entry["handled"]), entry["timing"], not entry.get("idle"))
            for name, entry in found.items()
        }
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def write_cursor(marks: Mapping[str, RuleProgress]) -> str:
    """Write the annotation, compactly and in the order of the rules."""
    entries = {
        name: {"handled": format_instant(mark.handled), "timing": mark.timing}
        | ({} if mark.in_force else {"idle": True})
        for name, mark in marks.items()
    }
    return msgspec.json.encode(entries).decode()


def rule_window(
    before: Mapping[str, RuleProgress] | None,
    name: str,
    *,
    timing: str,
    in_force: bool,
    recorded: int | None,
    life: ObjectAge,
    now: int,
) -> RuleWindow:
    """Tell which firings of a rule count.

    `before` are the marks of the object, None where it has none yet; `recorded` is the newest firing in the history of
    the rule, which counts as handled even where the cursor could not be written any more.
    """
    created = 0 if life.created > now + LARGEST_SKEW else life.created
    done = recorded or 0
    if before is None:
        # Nobody has looked after the object yet, or somebody else did, whose records are in the history.
        begun = max(created, min(life.edited or 0, now), done)
        return RuleWindow(begun, None if in_force else begun)
    changed = now if life.edited is None else min(life.edited, now)
    mark = before.get(name)
    if mark is None:
        begun = max(changed, done)
        return RuleWindow(begun, None if in_force else begun)
    since = max(mark.handled if mark.handled <= now + LARGEST_SKEW else now, created, done)
    if not in_force:
        return RuleWindow(since, max(since, changed) if mark.in_force and mark.timing == timing else since)
    if mark.in_force and mark.timing == timing:
        return RuleWindow(since)
    return RuleWindow(max(since, changed))
