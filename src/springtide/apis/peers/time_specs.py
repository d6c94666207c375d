"""The times of kube-downscaler: `Mon-Fri 08:00-18:00 Europe/Berlin`, spans between two dates, `always` and `never`.

A recurring time holds on each day of its weekdays from one minute up to, and without, another one of the same day: it
never reaches over midnight, and one that ends before it begins never holds. A span between dates includes its last
second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from springtide.almanac import UnknownZone, load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.apis.peers.conversion import Tree
from springtide.apis.peers.times import listed

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
    """A time that cannot be read: what is wrong, and how to fix it."""

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Recurring:
    """The same minutes of the day on some weekdays of a zone; weekdays count from Sunday, 0."""

    text: str
    weekdays: tuple[int, ...]
    opens: int
    closes: int
    zone: str

    @property
    def never(self) -> bool:
        """Whether it ends before it begins: times do not reach over midnight."""
        return self.opens >= self.closes

    @property
    def always(self) -> bool:
        """Whether it leaves no minute out."""
        return self.opens == 0 and self.closes == MINUTES_PER_DAY and len(self.weekdays) == 7

    def patterns(self) -> tuple[Tree, Tree]:
        """Give the patterns of a window that opens and closes; one without an end in the day closes at midnight."""
        if self.closes < MINUTES_PER_DAY:
            return _pattern(self.weekdays, self.opens), _pattern(self.weekdays, self.closes)
        starts = self.weekdays
        ends = tuple((weekday + 1) % 7 for weekday in self.weekdays)
        if self.opens == 0:
            # Whole days in a row are one window.
            starts, ends = starts[:1], ends[-1:]
        return _pattern(starts, self.opens), _pattern(ends, 0)


@dataclass(frozen=True, slots=True)
class Absolute:
    """From one instant up to, and without, another."""

    text: str
    begins: int
    ends: int

    @property
    def never(self) -> bool:
        """Whether it ends before it begins."""
        return self.begins >= self.ends

    @property
    def instants(self) -> Tree:
        """Give it as a behaviour has it."""
        return {"from": format_instant(self.begins), "until": format_instant(self.ends)}


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """Times at any of which something holds."""

    recurring: tuple[Recurring, ...] = ()
    absolute: tuple[Absolute, ...] = ()
    always: bool = False

    @property
    def never(self) -> bool:
        """Whether it never holds."""
        return not (self.always or self.recurring or self.absolute)

    @property
    def idle(self) -> tuple[Recurring | Absolute, ...]:
        """The parts that never hold."""
        parts: tuple[Recurring | Absolute, ...] = (*self.recurring, *self.absolute)
        return tuple(part for part in parts if part.never)

    def effective(self) -> TimeSpec:
        """Leave out parts that never hold, and everything beside one that always does."""
        recurring = tuple(part for part in self.recurring if not part.never)
        if self.always or any(part.always for part in recurring):
            return ALWAYS
        return TimeSpec(recurring, tuple(part for part in self.absolute if not part.never))


ALWAYS = TimeSpec(always=True)
NEVER = TimeSpec()


def parse_time_spec(text: str, default_zone: str | None) -> TimeSpec:
    """Read a list of times; raises `TimeSpecError`."""
    if text.lower() == "always":
        return ALWAYS
    if text.lower() == "never":
        return NEVER
    recurring: list[Recurring] = []
    absolute: list[Absolute] = []
    for element in (element.strip() for element in text.split(",")):
        if (found := _ABSOLUTE.fullmatch(element)) is not None:
            absolute.append(_absolute(element, found))
        elif (found := _RECURRING.fullmatch(element)) is not None:
            recurring.append(_recurring(element, found, default_zone))
        else:
            raise TimeSpecError(f'"{element}" is no time', f"write always, never, or a list such as {_FORMAT}")
    return TimeSpec(tuple(recurring), tuple(absolute))


def _absolute(text: str, found: re.Match[str]) -> Absolute:
    try:
        # The last second belongs to the span.
        return Absolute(text, parse_instant(found["begins"]), parse_instant(found["ends"]) + 1)
    except ValueError as failure:
        raise TimeSpecError(str(failure), f"write it as in {_FORMAT}") from None


def _recurring(text: str, found: re.Match[str], default_zone: str | None) -> Recurring:
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
    return Recurring(text, weekdays, _minute(found["opens"], text), _minute(found["closes"], text), zone)


def _weekday(name: str, text: str) -> int:
    if name.lower() not in _WEEKDAYS:
        raise TimeSpecError(f'"{name}" of "{text}" is no weekday', "names are Mon, Tue, Wed, Thu, Fri, Sat, Sun")
    return (_WEEKDAYS.index(name.lower()) + 1) % 7


def _minute(clock: str, text: str) -> int:
    hours, minutes = int(clock[:2]), int(clock[3:])
    if minutes > 59 or hours * 60 + minutes > MINUTES_PER_DAY:
        raise TimeSpecError(f'{clock} of "{text}" is no time of the day', "choose one from 00:00 to 24:00")
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
