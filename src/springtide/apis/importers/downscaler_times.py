"""The times of kube-downscaler: `Mon-Fri 08:00-18:00 Europe/Berlin`, spans between two dates, `always` and `never`.

A weekly time is active on each of its weekdays from one minute up to another of the same day, which is excluded. It
does not cross midnight, and one that ends before it begins is never active. A span between dates includes its last
second.

Where a schedule cannot be used, the changes of a week become cron rules (`change_rules`, `begin_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from springtide.almanac import UnknownZone, load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.importers.conversion import Tree, free_name, listed
from springtide.apis.meta.times import parse_instant

MINUTES_PER_DAY = 24 * 60
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_RECURRING = re.compile(
    r"(?:(?P<first>[A-Za-z]{3})-(?P<last>[A-Za-z]{3}) )?(?P<opens>\d\d:\d\d)-(?P<closes>\d\d:\d\d)"
    r"(?: (?P<zone>[A-Za-z/_]+))?",
    re.ASCII,
)
_MOMENT = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[-+]\d{2}:\d{2}"
_ABSOLUTE = re.compile(rf"(?P<begins>{_MOMENT})-(?P<ends>{_MOMENT})", re.ASCII)
_FORMAT = '"Mon-Fri 06:30-20:30 Europe/Berlin" or "2019-01-01T00:00:00+00:00-2019-01-02T12:34:56+00:00"'


class TimeSpecError(ValueError):
    """A time that cannot be parsed: what is wrong, and how to fix it."""

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class WeeklyTime:
    """The same minutes of the day on some weekdays of a zone; weekdays count from Sunday, 0."""

    text: str
    weekdays: tuple[int, ...]
    opens: int
    closes: int
    zone: str

    @property
    def never(self) -> bool:
        """Whether it ends before it begins: times do not cross midnight."""
        return self.opens >= self.closes

    @property
    def always(self) -> bool:
        """Whether it includes every minute."""
        return self.opens == 0 and self.closes == MINUTES_PER_DAY and len(self.weekdays) == 7

    def patterns(self) -> tuple[Tree, Tree]:
        """Return the start and end patterns of the window; a time up to 24:00 ends at the midnight of the next day."""
        if self.closes < MINUTES_PER_DAY:
            return _pattern(self.weekdays, self.opens), _pattern(self.weekdays, self.closes)
        starts = self.weekdays
        ends = tuple((weekday + 1) % 7 for weekday in self.weekdays)
        if self.opens == 0:
            # Consecutive whole days are one window.
            starts, ends = starts[:1], ends[-1:]
        return _pattern(starts, self.opens), _pattern(ends, 0)


@dataclass(frozen=True, slots=True)
class AbsoluteTime:
    """From one instant up to another, which is excluded."""

    text: str
    begins: int
    ends: int

    @property
    def never(self) -> bool:
        """Whether it ends before it begins."""
        return self.begins >= self.ends

    @property
    def instants(self) -> Tree:
        """The fields `from` and `until` of a behaviour."""
        return {"from": format_instant(self.begins), "until": format_instant(self.ends)}


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The union of several times."""

    recurring: tuple[WeeklyTime, ...] = ()
    absolute: tuple[AbsoluteTime, ...] = ()
    always: bool = False

    @property
    def never(self) -> bool:
        """Whether it is never active."""
        return not (self.always or self.recurring or self.absolute)

    @property
    def idle(self) -> tuple[WeeklyTime | AbsoluteTime, ...]:
        """The parts that are never active."""
        parts: tuple[WeeklyTime | AbsoluteTime, ...] = (*self.recurring, *self.absolute)
        return tuple(part for part in parts if part.never)

    def effective(self) -> TimeSpec:
        """Drop the parts that are never active, and all others if one is always active."""
        recurring = tuple(part for part in self.recurring if not part.never)
        if self.always or any(part.always for part in recurring):
            return ALWAYS
        return TimeSpec(recurring, tuple(part for part in self.absolute if not part.never))


ALWAYS = TimeSpec(always=True)
NEVER = TimeSpec()


def parse_time_spec(text: str, default_zone: str | None) -> TimeSpec:
    """Parse a list of times; raises `TimeSpecError`."""
    if text.lower() == "always":
        return ALWAYS
    if text.lower() == "never":
        return NEVER
    recurring: list[WeeklyTime] = []
    absolute: list[AbsoluteTime] = []
    for element in (element.strip() for element in text.split(",")):
        if (found := _ABSOLUTE.fullmatch(element)) is not None:
            absolute.append(_absolute(element, found))
        elif (found := _RECURRING.fullmatch(element)) is not None:
            recurring.append(_recurring(element, found, default_zone))
        else:
            raise TimeSpecError(f'"{element}" is not a time', f"write always, never, or a list such as {_FORMAT}")
    return TimeSpec(tuple(recurring), tuple(absolute))


def _absolute(text: str, found: re.Match[str]) -> AbsoluteTime:
    try:
        # The span includes its last second.
        return AbsoluteTime(text, parse_instant(found["begins"]), parse_instant(found["ends"]) + 1)
    except ValueError as failure:
        raise TimeSpecError(str(failure), f"write it as in {_FORMAT}") from None


def _recurring(text: str, found: re.Match[str], default_zone: str | None) -> WeeklyTime:
    if found["first"] is None:
        hint = f"write Mon-Sun {text} for every day"
        raise TimeSpecError(f'"{text}" names no weekdays: those of DEFAULT_WEEKFRAME are not known here', hint)
    zone = found["zone"] or default_zone
    if zone is None:
        hint = "add one, such as Europe/Berlin, or give that of the controller with `--timezone`"
        raise TimeSpecError(f'"{text}" names no zone', hint)
    try:
        load_zone(zone)
    except UnknownZone as failure:
        raise TimeSpecError(failure.message, failure.hint) from None
    first, last = (_weekday(found[end], text) for end in ("first", "last"))
    weekdays = tuple((first + step) % 7 for step in range((last - first) % 7 + 1))
    return WeeklyTime(text, weekdays, _minute(found["opens"], text), _minute(found["closes"], text), zone)


def _weekday(name: str, text: str) -> int:
    if name.lower() not in _WEEKDAYS:
        raise TimeSpecError(f'"{name}" of "{text}" is not a weekday', "names are Mon, Tue, Wed, Thu, Fri, Sat, Sun")
    return (_WEEKDAYS.index(name.lower()) + 1) % 7


def _minute(clock: str, text: str) -> int:
    hours, minutes = int(clock[:2]), int(clock[3:])
    if minutes > 59 or hours * 60 + minutes > MINUTES_PER_DAY:
        raise TimeSpecError(f'{clock} of "{text}" is not a time of the day', "choose one from 00:00 to 24:00")
    return hours * 60 + minutes


def _pattern(weekdays: tuple[int, ...], minute: int) -> Tree:
    pattern: Tree = {}
    if len(weekdays) < 7:
        pattern["weekdays"] = listed("weekdays", weekdays)
    hours, minutes = divmod(minute, 60)
    pattern["hours"] = hours
    if minutes:
        pattern["minutes"] = minutes
    return pattern


_MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

Action = Callable[[bool], Tree]
"""Returns the fields that a rule sets when it scales up (True) or down (False)."""


def change_rules(uptime: TimeSpec, downtime: TimeSpec, zone: str, action: Action) -> list[Tree]:
    """Make a rule for each time of the day at which "uptime and not downtime" changes on some weekdays."""
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
    """Make a rule for the beginning of each part of a time, with names that the given rules do not use."""
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


def _within(part: WeeklyTime, weekday: int, time: int) -> bool:
    return weekday in part.weekdays and part.opens <= time < part.closes


def _direction(is_up: bool) -> str:
    return "up" if is_up else "down"


def _free(name: str, rules: Sequence[Tree]) -> str:
    return free_name(name, [rule["name"] for rule in rules])
