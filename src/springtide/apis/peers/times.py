"""Cron expressions as patterns: lists written out, and windows between two expressions.

A pattern has lists only, joins days and weekdays by "and", and cannot say "either". An expression that names both, such
as `0 8 1 * mon`, means either; it becomes two patterns, where a window between such times is the same as the two
windows together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from springtide.almanac.cron_grammar import Schedule
from springtide.almanac.day_rule import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, DayRule, members
from springtide.almanac.pattern_fields import FIELDS
from springtide.apis.peers.conversion import Tree


class InexpressibleError(ValueError):
    """A window between two cron expressions that no patterns describe."""


def window_patterns(start: Schedule, end: Schedule) -> list[tuple[Tree, Tree]]:
    """Give the start and end patterns of the windows between two cron expressions; raises `InexpressibleError`.

    Where days and weekdays are joined by "or", there is a window for each half. Together they are the window of the
    whole only if every window opens and closes on one and the same day.
    """
    opens, closes = _simplified(start.days), _simplified(end.days)
    if not opens.either and not closes.either:
        return [(_pattern(start, opens), _pattern(end, closes))]
    if opens != closes or not _within_a_day(start, end):
        raise InexpressibleError
    return [(_pattern(start, half), _pattern(end, half)) for half in _halves(opens)]


def listed(name: str, values: Iterable[int]) -> str | int:
    """Write the values of a list as a person would: a single number as itself."""
    field, numbers = FIELDS[name], list(values)
    if len(numbers) == 1 and not field.names:
        return numbers[0]
    return ",".join(field.word(number) for number in numbers)


def _pattern(schedule: Schedule, days: DayRule) -> Tree:
    pattern: dict[str, Any] = {}
    if days.months != ALL_MONTHS:
        pattern["months"] = listed("months", members(days.months))
    if days.days != ALL_DAYS:
        pattern["days"] = listed("days", members(days.days))
    if days.weekdays != ALL_WEEKDAYS:
        pattern["weekdays"] = listed("weekdays", _week_from_monday(days.weekdays))
    pattern["hours"] = listed("hours", members(schedule.hours))
    if schedule.minutes != 1:
        pattern["minutes"] = listed("minutes", members(schedule.minutes))
    return pattern


def _week_from_monday(weekdays: int) -> list[int]:
    return sorted(members(weekdays), key=lambda weekday: (weekday - 1) % 7)


def _simplified(days: DayRule) -> DayRule:
    """Say "and" where "or" makes no difference: with a field that names every value, every day is meant."""
    if days.either and (days.days == ALL_DAYS or days.weekdays == ALL_WEEKDAYS):
        return DayRule(ALL_DAYS, days.months, ALL_WEEKDAYS)
    return days


def _halves(days: DayRule) -> list[DayRule]:
    halves = (DayRule(days.days, days.months, ALL_WEEKDAYS), DayRule(ALL_DAYS, days.months, days.weekdays))
    return [half for half in halves if not half.empty]


def _within_a_day(start: Schedule, end: Schedule) -> bool:
    """Tell whether each day begins with a start and ends with an end, so that no window reaches into another day."""
    starts, ends = _times(start), _times(end)
    return min(starts) < min(ends) and max(starts) <= max(ends)


def _times(schedule: Schedule) -> list[tuple[int, int]]:
    return [(hour, minute) for hour in members(schedule.hours) for minute in members(schedule.minutes)]
