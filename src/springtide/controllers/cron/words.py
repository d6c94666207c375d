"""What is said about CronFederatedHPAs: conditions and events, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.almanac import Zone
from springtide.apis.forecast import format_instant
from springtide.apis.meta.clock_times import clock_time
from springtide.cluster.conditions import Condition, Truth
from springtide.controllers.cron.history import MISSED, Failure
from springtide.controllers.cron.meaning import Meaning
from springtide.controllers.cron.plan import Action, Execution

_WORTH_TELLING = 10
"""Seconds from which on a firing is called late."""
_FIELDS = {"replicas": "{} replica{}", "min": "a minimum of {}", "max": "a maximum of {}"}


def in_force(meaning: Meaning, missing_calendars: Sequence[str]) -> Condition:
    """Say which rules are in force, and why others are not."""
    sound = [rule.name for rule in meaning.rules]
    if meaning.target is None:
        return Condition("Ready", Truth.FALSE, "Invalid", f"no rule is in force: {meaning.wrong}")
    if meaning.wrong:
        left_out = [name for name in meaning.written or () if name not in sound]
        names = ", ".join(f"`{name}`" for name in left_out)
        message = f"{f'left out: {names}; ' if names else ''}{meaning.wrong}"
        return Condition("Ready", Truth.FALSE, "RulesInvalid", message)
    if missing_calendars:
        names = ", ".join(f"`{name}`" for name in missing_calendars)
        message = f"there is no usable Calendar {names}: rules fire as if they did not name it"
        return Condition("Ready", Truth.FALSE, "CalendarMissing", message)
    suspended = [rule.name for rule in meaning.rules if rule.view.suspend]
    names = f", suspended: {', '.join(f'`{name}`' for name in suspended)}" if suspended else ""
    return Condition("Ready", Truth.TRUE, "InForce", f"rules in force: {len(sound) - len(suspended)}{names}")


def firing_in_words(execution: Execution, zone: Zone) -> str:
    """Say which firing it is that changes something."""
    return f"rule `{execution.rule}` fires ({clock_time(execution.at, zone)})"


def scaled_in_words(target: str, rule: str, values: Action, late: int) -> str:
    """Say what a firing has set."""
    what = " and ".join(_FIELDS[field].format(value, "" if value == 1 else "s") for field, value in values.items())
    return f"rule `{rule}` has given {target} {what}{f', {late} s late' if late >= _WORTH_TELLING else ''}"


def failed_in_words(rule: str, failure: Failure) -> str:
    """Say which firing was not applied, and why."""
    verb = "has missed" if failure.missed else "could not do"
    return f"rule `{rule}` {verb} its firing of {format_instant(failure.at)}: {failure.message.removeprefix(MISSED)}"
