"""The progress of each rule of a CronFederatedHPA, in an annotation of the object: the cursor.

A firing is due if it lies after the cursor. Histories are short, or keep nothing at all, so they cannot tell this
alone; and no other field says that a rule was suspended, or had another schedule. Firings from before the object or the
rule existed, while the rule was not in force, or under another schedule are never applied later.

What changed while no controller ran shows only as a difference between cursor and rule. It is taken to have happened
when the spec was changed last, according to the managed fields. Of several changes during one outage only the last is
seen: a rule that was suspended and resumed meanwhile looks as if it had been in force throughout.

A copied or restored object has a copied cursor, so nothing before its own creation counts either. A cursor far in the
future was written under a wrong clock, or by hand: the rule then continues at the present, as it would never fire
otherwise. An execution in the history still counts when its time comes. If the clock was set back a little, what was
handled stays handled.
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
"""Seconds by which a cursor may lie ahead; later ones were written under a wrong clock, and do not count."""
LARGEST_RECORDING_SKEW = 600
"""Seconds by which times in the history may lie ahead, as replicas have different clocks; later ones were written
before the clock was set back, and count when their time comes."""


@dataclass(frozen=True, slots=True)
class RuleProgress:
    """The progress of one rule."""

    handled: int
    """Firings up to this instant are handled."""
    timing: str
    """A fingerprint of `schedule`, `at` and `timeZone`, to detect changes."""
    in_force: bool
    """Whether the rule could fire: it was neither suspended nor invalid."""


@dataclass(frozen=True, slots=True)
class RuleWindow:
    """From when on, and until when, the firings of a rule count."""

    since: int
    """Firings up to this instant are handled, or never count."""
    ended: int | None = None
    """When the rule ceased to be in force; None: it is in force."""


@dataclass(frozen=True, slots=True)
class ObjectAge:
    """When an object was created, and when its spec was changed last."""

    created: int
    edited: int | None
    """None where the managed fields do not say."""


def timing_fingerprint(schedule: str | None, at: str | None, time_zone: str | None) -> str:
    """Return the fingerprint of the fields that decide when a rule fires."""
    return sha256(msgspec.json.encode((schedule, at, time_zone))).hexdigest()[:_DIGITS]


def read_cursor(text: str) -> dict[str, RuleProgress] | None:
    """Read the annotation; None where it is missing or malformed."""
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


def write_cursor(progress: Mapping[str, RuleProgress]) -> str:
    """Write the annotation, compactly and in the order of the rules."""
    entries = {
        name: {"handled": format_instant(mark.handled), "timing": mark.timing}
        | ({} if mark.in_force else {"idle": True})
        for name, mark in progress.items()
    }
    return msgspec.json.encode(entries).decode()


def rule_window(
    before: Mapping[str, RuleProgress] | None,
    name: str,
    *,
    timing: str,
    in_force: bool,
    recorded: int | None,
    age: ObjectAge,
    now: int,
) -> RuleWindow:
    """Decide which firings of a rule count.

    `before` is the stored progress of all rules, None where there is no cursor yet; `recorded` is the newest firing in
    the history of the rule, which counts as handled even if the cursor could not be written after it.
    """
    created = 0 if age.created > now + LARGEST_SKEW else age.created
    done = recorded or 0
    if before is None:
        # The object is new, or another controller has handled it, whose records are in the history.
        begun = max(created, min(age.edited or 0, now), done)
        return RuleWindow(begun, None if in_force else begun)
    changed = now if age.edited is None else min(age.edited, now)
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
