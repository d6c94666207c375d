"""What all importers share: the result of a conversion, the objects that it makes, and patterns of cron expressions.

A pattern has lists only, and joins days and weekdays by "and". A cron expression that names both, such as
`0 8 1 * mon`, joins them by "or". It becomes two patterns if the two windows together are the same as the window of the
expression.
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
class ConversionOptions:
    """What a conversion needs to know beside the object."""

    now: int
    """The current time, for the next run of jobs that run once."""
    zone: str | None = None
    """The zone of the other project's controller, if it was given."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of converting one object."""

    kept: Tree | None
    """The object as it remains beside the new ones; None if they replace it."""
    made: tuple[Tree, ...]
    """The new objects."""
    problems: tuple[Problem, ...]
    """The differences in behaviour; with an error, the object is unchanged and there are no new ones."""

    @property
    def failed(self) -> bool:
        """Whether the object cannot be converted."""
        return has_errors(self.problems)


Converter: TypeAlias = Callable[[Tree, ConversionOptions], Conversion | None]
"""Converts an object, or returns None if the importer does not handle it; pure, never raises."""


class ConversionNotes:
    """Collects the problems of a conversion."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def error(self, path: Path, message: str, hint: str = "") -> None:
        """Add a reason why the object cannot be converted."""
        self._found.append(error(path, message, hint))

    def warn(self, path: Path, message: str, hint: str = "") -> None:
        """Add a difference in behaviour."""
        self._found.append(warning(path, message, hint))

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return has_errors(self._found)

    def refused(self, value: Tree) -> Conversion:
        """Return the result for an object that is not converted."""
        return Conversion(value, (), tuple(self._found))

    def done(self, kept: Tree | None, *made: Tree) -> Conversion:
        """Return the result for an object that is converted."""
        return Conversion(kept, made, tuple(self._found))


def mapping_at(value: Any, *path: str) -> Tree:
    """Return the mapping at a path, or an empty one."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def group_kind(value: Tree) -> tuple[str, str]:
    """Return the API group and the kind of an object."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def to_int32(value: Any) -> int | None:
    """Return a 32-bit integer, also from a string, or None for any other value."""
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
    """Return the name of an object, from which the names of the new objects are made."""
    name = mapping_at(value, "metadata").get("name")
    if not isinstance(name, str) or not name:
        notes.error(("metadata",), "the object has no name, from which the new objects could be named", "add `name`")
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
    """Make a HorizontalAutoscaler that scales a target to the highest value of several schedules."""
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
    """Return the metadata of a new object, with the namespace and labels of the converted one."""
    given = mapping_at(value, "metadata")
    kept: dict[str, Any] = {"name": name}
    for key in ("namespace", "labels"):
        if given.get(key):
            kept[key] = given[key]
    return kept


def free_name(wanted: str, taken: Collection[str], longest: int = _LONGEST_RULE_NAME) -> str:
    """Shorten a name that is too long, and add a number to one that is taken."""
    name, number = wanted[:longest], 2
    while name in taken:
        ending = f"-{number}"
        name, number = wanted[: longest - len(ending)] + ending, number + 1
    return name


def renamed(made: Sequence[Tree], position: int, name: str) -> tuple[Tree, ...]:
    """Rename one of the new objects, and the references of the others to it."""
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
    """Replace every value that is equal to `old`."""
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
    """Convert the name of a zone to a part of an object's name: Europe/Berlin becomes `europe-berlin`."""
    return re.sub(r"[^a-z0-9]+", "-", zone.lower()).strip("-")


def _query(name: str, namespace: Any) -> str:
    matchers = [f'name="{name}"'] + ([f'namespace="{namespace}"'] if isinstance(namespace, str) else [])
    return f"{SERIES}{{{','.join(matchers)}}}"


class InexpressibleError(ValueError):
    """The window between two cron expressions cannot be written as windows between patterns."""


def window_patterns(start: Schedule, end: Schedule) -> list[tuple[Tree, Tree]]:
    """Return the start and end patterns of the windows between two cron expressions; raises `InexpressibleError`.

    Where days and weekdays are joined by "or", there is one window for the days and one for the weekdays. Together they
    are the window of the expressions only if every window begins and ends on the same day.
    """
    opens, closes = _simplified(start.days), _simplified(end.days)
    if not opens.either and not closes.either:
        return [(_pattern(start, opens), _pattern(end, closes))]
    if opens != closes or not _within_a_day(start, end):
        raise InexpressibleError
    return [(_pattern(start, half), _pattern(end, half)) for half in _halves(opens)]


def listed(name: str, values: Iterable[int]) -> str | int:
    """Write the values of a list in the usual notation: a single number is not a string."""
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
    """Replace "or" by "and" where one of the fields has all values, so that every day matches."""
    if days.either and (days.days == ALL_DAYS or days.weekdays == ALL_WEEKDAYS):
        return DayRule(ALL_DAYS, days.months, ALL_WEEKDAYS)
    return days


def _halves(days: DayRule) -> list[DayRule]:
    halves = (DayRule(days.days, days.months, ALL_WEEKDAYS), DayRule(ALL_DAYS, days.months, days.weekdays))
    return [half for half in halves if not half.empty]


def _within_a_day(start: Schedule, end: Schedule) -> bool:
    """Return whether on each day a start comes first and an end last, so that no window extends into another day."""
    starts, ends = _times(start), _times(end)
    return min(starts) < min(ends) and max(starts) <= max(ends)


def _times(schedule: Schedule) -> list[tuple[int, int]]:
    return [(hour, minute) for hour in members(schedule.hours) for minute in members(schedule.minutes)]
