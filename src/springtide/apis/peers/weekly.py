"""A week of ups and downs as cron rules: what has no level to follow gets a rule for every change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from springtide.apis.peers.conversion import Tree
from springtide.apis.peers.making import free_name
from springtide.apis.peers.time_specs import MINUTES_PER_DAY, Recurring, TimeSpec

_MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

Action = Callable[[bool], Tree]
"""What a rule sets when it goes up, or down."""


def change_rules(uptime: TimeSpec, downtime: TimeSpec, zone: str, action: Action) -> list[Tree]:
    """Give a rule for each time of the day at which "in uptime and not in downtime" changes on some weekdays."""
    up = [
        _holds(uptime, minute) and not _holds(downtime, minute) for minute in range(_MINUTES_PER_WEEK)
    ]  # from Sunday, 00:00
    changes: dict[tuple[int, bool], list[int]] = {}
    for minute in range(_MINUTES_PER_WEEK):
        if up[minute] != up[minute - 1]:
            weekday, time = divmod(minute, MINUTES_PER_DAY)
            changes.setdefault((time, up[minute]), []).append(weekday)
    rules: list[Tree] = []
    for (time, is_up), weekdays in sorted(changes.items()):
        rules.append(edge_rule(is_up, time, weekdays, zone, action, rules))
    return rules


def begin_rules(spec: TimeSpec, action: Action, *, is_up: bool, rules: Sequence[Tree]) -> list[Tree]:
    """Give a rule for the beginning of each part of a time; names differ from those of the rules there are."""
    made: list[Tree] = []
    for part in spec.recurring:
        made.append(edge_rule(is_up, part.opens, part.weekdays, part.zone, action, [*rules, *made]))
    for span in spec.absolute:
        at = span.instants["from"]
        name = _free(f"{_direction(is_up)}-{at[:10].replace('-', '')}", [*rules, *made])
        made.append({"name": name, "at": at, **action(is_up)})
    return made


def edge_rule(
    is_up: bool, time: int, weekdays: Sequence[int], zone: str, action: Action, rules: Sequence[Tree]
) -> Tree:
    """Make a rule that fires at a time of the day."""
    hours, minutes = divmod(time, 60)
    days = "*" if len(weekdays) == 7 else ",".join(_DAYS[weekday] for weekday in weekdays)
    return {
        "name": _free(f"{_direction(is_up)}-{hours:02}{minutes:02}", rules),
        "schedule": f"{minutes} {hours} * * {days}",
        "timeZone": zone,
        **action(is_up),
    }


def _holds(spec: TimeSpec, minute: int) -> bool:
    weekday, time = divmod(minute, MINUTES_PER_DAY)
    return spec.always or any(_within(part, weekday, time) for part in spec.recurring)


def _within(part: Recurring, weekday: int, time: int) -> bool:
    return weekday in part.weekdays and part.opens <= time < part.closes


def _direction(is_up: bool) -> str:
    return "up" if is_up else "down"


def _free(name: str, rules: Sequence[Tree]) -> str:
    return free_name(name, [rule["name"] for rule in rules])
