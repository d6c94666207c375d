"""What a conversion of one object is, and the words in which it tells what it did.

The objects that conversions make: schedules with the autoscaler that follows them, and cron rules.

Cron expressions as patterns: lists written out, and windows between two expressions.

A pattern has lists only, joins days and weekdays by "and", and cannot say "either". An expression that names both, such
as `0 8 1 * mon`, means either; it becomes two patterns, where a window between such times is the same as the two
windows together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from springtide.almanac.civil import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, DayRule, members
from springtide.almanac.cron_grammar import Schedule
from springtide.almanac.pattern import PATTERN_FIELDS
from springtide.apis.kinds import INT32_MAX
from springtide.apis.problems import Path, Problem, error, has_errors, warning

Tree: TypeAlias = dict[str, Any]

_DIGITS = re.compile(r"-?\d{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConversionSettings:
    """What an object of a peer does not say itself."""

    now: int
    """The present: what happens once, the next time, needs it."""
    zone: str | None = None
    """The zone of the peer's controller, if it was given."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What becomes of one object."""

    kept: Tree | None
    """The object itself, as it stays beside the new ones; None where they take its place."""
    made: tuple[Tree, ...]
    """The new objects."""
    problems: tuple[Problem, ...]
    """What differs from before; with an error the object stays as it was, and nothing is made."""

    @property
    def failed(self) -> bool:
        """Whether the object cannot be converted."""
        return has_errors(self.problems)


Converter: TypeAlias = Callable[[Tree, ConversionSettings], Conversion | None]
"""Converts an object, or gives None where it is no business of the peer; pure, never raises."""


class ConversionNotes:
    """Collects what is found on the way through an object."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def error(self, path: Path, message: str, hint: str = "") -> None:
        """Say why the object cannot be converted."""
        self._found.append(error(path, message, hint))

    def warn(self, path: Path, message: str, hint: str = "") -> None:
        """Say what will be different."""
        self._found.append(warning(path, message, hint))

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return has_errors(self._found)

    def refused(self, value: Tree) -> Conversion:
        """Leave the object as it is."""
        return Conversion(value, (), tuple(self._found))

    def done(self, kept: Tree | None, *made: Tree) -> Conversion:
        """Give the result."""
        return Conversion(kept, made, tuple(self._found))


def mapping_at(value: Any, *path: str) -> Tree:
    """Give the mapping at a path, an empty one where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def group_kind(value: Tree) -> tuple[str, str]:
    """Give the API group and the kind of an object."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def to_int32(value: Any) -> int | None:
    """Read a whole number of 32 bits that may stand in quotes; None for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= INT32_MAX else None


_LONGEST_RULE_NAME = 32
_KARPENTER = "autoscaling.karpenter.sh/v1alpha1"
_KARMADA = "autoscaling.karmada.io/v1alpha1"
SERIES = "karpenter_scheduled_capacity"


def required_name(value: Tree, notes: ConversionNotes) -> str:
    """Read the name of an object, which the new ones are called after."""
    name = mapping_at(value, "metadata").get("name")
    if not isinstance(name, str) or not name:
        notes.error(("metadata",), "the object has no name for the new objects to be called after", "add `name`")
        return ""
    return name


def producer_object(metadata: Tree, zone: str, default: int, behaviors: Sequence[Tree]) -> Tree:
    """Make a MetricsProducer with a schedule."""
    return {
        "apiVersion": _KARPENTER,
        "kind": "MetricsProducer",
        "metadata": metadata,
        "spec": {"schedule": {"timezone": zone, "defaultReplicas": default, "behaviors": list(behaviors)}},
    }


def autoscaler_object(metadata: Tree, target: Tree, bounds: tuple[int, int], producers: Sequence[str]) -> Tree:
    """Make a HorizontalAutoscaler that gives a target the highest of what schedules ask for."""
    return {
        "apiVersion": _KARPENTER,
        "kind": "HorizontalAutoscaler",
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": bounds[0],
            "maxReplicas": bounds[1],
            "metrics": [
                {
                    "prometheus": {
                        "query": _query(name, metadata.get("namespace")),
                        "target": {"type": "AverageValue", "value": 1},
                    }
                }
                for name in producers
            ],
        },
    }


def cron_object(metadata: Tree, target: Tree, rules: Sequence[Tree]) -> Tree:
    """Make a CronFederatedHPA."""
    return {
        "apiVersion": _KARMADA,
        "kind": "CronFederatedHPA",
        "metadata": metadata,
        "spec": {"scaleTargetRef": target, "rules": list(rules)},
    }


def metadata_of(value: Tree, name: str) -> Tree:
    """Give a new object the namespace and labels of the one that it is made from."""
    given = mapping_at(value, "metadata")
    kept: dict[str, Any] = {"name": name}
    for key in ("namespace", "labels"):
        if given.get(key):
            kept[key] = given[key]
    return kept


def free_name(wanted: str, taken: Collection[str], longest: int = _LONGEST_RULE_NAME) -> str:
    """Shorten a name where it is too long, and number it where it is taken."""
    name, number = wanted[:longest], 2
    while name in taken:
        ending = f"-{number}"
        name, number = wanted[: longest - len(ending)] + ending, number + 1
    return name


def renamed(made: Sequence[Tree], position: int, name: str) -> tuple[Tree, ...]:
    """Give one of the objects that are made together another name, also where the others refer to it."""
    item = made[position]
    old, namespace = item["metadata"]["name"], item["metadata"].get("namespace")
    swapped = [*made]
    swapped[position] = {**item, "metadata": {**item["metadata"], "name": name}}
    if item["kind"] == "MetricsProducer":
        return tuple(_replaced(one, _query(old, namespace), _query(name, namespace)) for one in swapped)
    if item["kind"] == "Calendar":
        return tuple(_with_calendar(one, old, name) for one in swapped)
    return tuple(swapped)


def _replaced(value: Any, old: str, new: str) -> Any:
    """Put a text in the place of another one, wherever it is the whole of a value."""
    match value:
        case dict():
            return {key: _replaced(item, old, new) for key, item in value.items()}
        case list():
            return [_replaced(item, old, new) for item in value]
    return new if value == old else value


def _with_calendar(value: Tree, old: str, new: str) -> Tree:
    rules = mapping_at(value, "spec").get("rules")
    if not isinstance(rules, list):
        return value
    named_anew = [
        {**rule, "calendars": _replaced(rule["calendars"], old, new)} if "calendars" in rule else rule for rule in rules
    ]
    return {**value, "spec": {**value["spec"], "rules": named_anew}}


def zone_suffix(zone: str) -> str:
    """Write the name of a zone as a part of an object's name: Europe/Berlin is `europe-berlin`."""
    return re.sub(r"[^a-z0-9]+", "-", zone.lower()).strip("-")


def _query(name: str, namespace: Any) -> str:
    matchers = [f'name="{name}"'] + ([f'namespace="{namespace}"'] if isinstance(namespace, str) else [])
    return f"{SERIES}{{{','.join(matchers)}}}"


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
    field, numbers = PATTERN_FIELDS[name], list(values)
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
