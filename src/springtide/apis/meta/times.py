"""Times in objects: RFC 3339 instants, local times in messages, and the windows that all time-dependent kinds use.

A window recurs (`start` and `end` are patterns of local time) or happens once (`from` and `until` are instants).
Calendars then exclude days, or leave only theirs.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from springtide import almanac
from springtide.almanac import (
    CalendarMode,
    DayCalendar,
    MatchPolicy,
    Timeline,
    TimePattern,
    TimePatternError,
    Zone,
    recurring,
    restrict,
    span,
)
from springtide.almanac.civil import DAY, FIRST_DAY, LAST_DAY
from springtide.apis.kinds import (
    MAX_SCHEDULE,
    DnsName,
    ValidationContext,
    View,
    ZonedTime,
    at_most,
    doc,
    extension,
    stock,
    stock_required,
)
from springtide.apis.problems import Problem, error, warning

_RFC_3339 = re.compile(
    r"(?P<moment>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,]\d+)?(?P<offset>Z|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WALL_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - local time; messages name the zone
_SECOND = datetime.timedelta(seconds=1)


def parse_instant(text: str) -> int:
    """Parse an RFC 3339 time to whole seconds since the epoch; fractions are cut off. Raises `ValueError`."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        msg = f"`{text}` is not an RFC 3339 time such as 2026-11-27T06:00:00Z"
        raise ValueError(msg)
    offset = "+00:00" if match["offset"] == "Z" else match["offset"]
    try:
        moment = datetime.datetime.fromisoformat(match["moment"] + offset).astimezone(datetime.UTC)
    except (ValueError, OverflowError) as failure:
        msg = f"`{text}` is not a valid time: {failure}"
        raise ValueError(msg) from failure
    return (moment - _EPOCH) // _SECOND


_WRITTEN = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})[Tt ](?P<hours>\d{2}:\d{2})(?P<seconds>:\d{2})?(?P<fraction>\.\d+)?"
    r"(?P<offset>[Zz]|[+-]\d{2}:\d{2})?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class WrittenTime:
    """A date and a time as users write them, and the offset if there is one."""

    text: str
    date: str
    time: str
    """With seconds."""
    offset: str
    wall: int
    """The wall second that the clock shows."""

    @property
    def complete(self) -> bool:
        """Whether it is an RFC 3339 time as API servers accept it."""
        return bool(self.offset) and _RFC_3339.fullmatch(self.text) is not None


def written_time(text: str) -> WrittenTime | None:
    """Parse a date and time with or without seconds and an offset; None if it is no time of any day."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    time = f"{match['hours']}{match['seconds'] or ':00'}"
    try:
        wall = datetime.datetime.fromisoformat(f"{match['date']}T{time}") - _WALL_EPOCH
    except ValueError:
        return None
    return WrittenTime(text, match["date"], time, match["offset"] or "", wall // _SECOND)


def rfc3339_in(at: int, zone: Zone) -> str:
    """Format an instant as RFC 3339 with the offset of a zone; in UTC where that offset is no whole minutes."""
    offset = zone.offset_at(at)
    if offset == 0 or offset % 60:
        return f"{(_WALL_EPOCH + at * _SECOND).isoformat()}Z"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{_wall_time(at, zone).isoformat()}{'+' if offset > 0 else '-'}{hours:02}:{minutes:02}"


def instant_in(text: object) -> int | None:
    """Parse a time of an object, such as of a status; None if it is not a valid time.

    API servers accept some invalid times, such as one with the offset +99:99.
    """
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None


_FIRST, _LAST = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def clock_time(at: int, zone: Zone) -> str:
    """Format the time of day in a zone: `09:00 America/Los_Angeles`; with seconds if they are not 0."""
    return f"{_time_text(_wall_second(at, zone) % DAY)} {zone.name}"


@lru_cache(maxsize=4096)
def _time_text(second: int) -> str:
    return _format_time(_WALL_EPOCH + second * _SECOND)


def date_and_time(at: int, zone: Zone) -> str:
    """Format the day and time in a zone: `Fri 2026-06-05 17:00 America/Los_Angeles`."""
    return dates_and_times([at], zone)


def dates_and_times(instants: Iterable[int], zone: Zone) -> str:
    """Format days and times: `Fri 2026-06-05 17:00, Fri 2026-06-12 17:00 America/Los_Angeles`."""
    walls = [_wall_time(at, zone) for at in instants]
    listed = (f"{_WEEKDAYS[wall.weekday()]} {wall.date().isoformat()} {_format_time(wall)}" for wall in walls)
    return f"{', '.join(listed)} {zone.name}"


def _wall_time(at: int, zone: Zone) -> datetime.datetime:
    return _WALL_EPOCH + datetime.timedelta(seconds=_wall_second(at, zone))


def _wall_second(at: int, zone: Zone) -> int:
    # The last instant of 9999 in UTC, which users write for "forever", is past the last day in zones to the east.
    return min(max(zone.local(at), _FIRST), _LAST)


def _format_time(wall: datetime.datetime) -> str:
    return wall.time().isoformat("seconds" if wall.second else "minutes")


Listed = Annotated[Annotated[str, at_most(MAX_SCHEDULE)] | int, stock(type="string")]


class PatternSpec(View, kw_only=True):
    """Local times: every time that matches all fields; a field is one value or a comma-separated list."""

    __mistaken__ = {
        "minute": "write `minutes`",
        "hour": "write `hours`",
        "day": "write `days`",
        "month": "write `months`",
        "weekday": "write `weekdays`",
        "daysOfWeek": "write `weekdays`",
        "dayOfWeek": "write `weekdays`",
    }

    minutes: Annotated[Listed | None, doc("Minutes of the hour, 0 to 59; 0 if not set.")] = None
    hours: Annotated[Listed | None, doc("Hours of the day, 0 to 23; 0 if not set.")] = None
    days: Annotated[Listed | None, doc("Days of the month, 1 to 31; every day if not set.")] = None
    months: Annotated[Listed | None, doc("Months, by name or 1 to 12; every month if not set.")] = None
    weekdays: Annotated[
        Listed | None, doc("Weekdays, by name or 0 to 7 (0 and 7 are Sunday); every weekday if not set.")
    ] = None

    def parse(self) -> TimePattern:
        """Compile to a time pattern; raises `TimePatternError` for what `problems` reports as errors."""
        return _pattern(self)

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find values that never occur."""
        try:
            pattern = self.parse()
        except TimePatternError as failure:
            for problem in failure.problems:
                yield error((problem.field,), problem.message, problem.hint)
            return
        if pattern.leap_years_only:
            yield warning(("days",), "29 February exists in leap years only: this matches every four years")


class CalendarReference(View, kw_only=True):
    """A calendar, and whether its days are excluded or the only ones."""

    name: Annotated[DnsName, doc("Name of the Calendar.")]
    mode: Annotated[
        Literal["Exclude", "Only"],
        doc("Exclude removes the calendar's days; Only keeps nothing but them."),
    ] = "Exclude"


class Window(View, kw_only=True):
    """A window of time: a recurring one, from `start` to `end`, or a single one, from `from` to `until`."""

    start: Annotated[PatternSpec | None, doc("Local times at which the window opens."), stock_required] = None
    end: Annotated[PatternSpec | None, doc("Local times at which the window closes."), stock_required] = None
    from_: Annotated[ZonedTime | None, doc("Instant at which a window that happens once opens."), extension] = None
    until: Annotated[ZonedTime | None, doc("Instant at which a window that happens once closes."), extension] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find windows that are neither recurring nor single, that are both, or that are never or always open."""
        recurs = self.start is not None or self.end is not None
        once = self.from_ is not None or self.until is not None
        if recurs and once:
            yield error(
                ("from",) if self.from_ is not None else ("until",),
                "a window cannot recur and happen once",
                "keep either `start` and `end`, or `from` and `until`",
            )
        elif recurs:
            yield from self._recurring_problems()
        elif once:
            yield from self._single_problems(context)
        else:
            yield error(
                (),
                "the window has no times",
                "add `start` and `end` (it recurs), or `from` and `until` (it happens once)",
            )

    def _recurring_problems(self) -> Iterator[Problem]:
        if self.start is None:
            yield error((), "the window never opens: `start` is not set", "add `start`, such as `start: {hours: 9}`")
        elif self.end is None:
            yield error((), "the window never closes: `end` is not set", "add `end`, such as `end: {hours: 17}`")
        elif _parsed(self.start) is not None and _parsed(self.start) == _parsed(self.end):
            yield warning(("end",), "`start` and `end` are the same times: the window is always open")

    def _single_problems(self, context: ValidationContext) -> Iterator[Problem]:
        if self.from_ is None:
            yield error((), "the window never opens: `from` is not set", "add `from`, an RFC 3339 time")
            return
        if self.until is None:
            yield error((), "the window never closes: `until` is not set", "add `until`, an RFC 3339 time")
            return
        opens, closes = parse_instant(self.from_), parse_instant(self.until)
        if closes <= opens:
            yield error(("until",), f"`until` {self.until} is not after `from` {self.from_}", "write a later `until`")
        elif closes <= context.now:
            yield warning(("until",), f"the window has been over since {self.until}", "remove it")


def open_times(window: Window, zone: Zone, policy: MatchPolicy) -> Timeline[bool]:
    """Compile a window without errors to the times at which it is open."""
    if window.start is not None and window.end is not None:
        return recurring(window.start.parse(), window.end.parse(), zone, policy)
    if window.from_ is not None and window.until is not None:
        return span(parse_instant(window.from_), parse_instant(window.until))
    msg = "the window has neither `start` and `end` nor `from` and `until`"
    raise ValueError(msg)


def on_calendars(
    timeline: Timeline[bool],
    references: Iterable[CalendarReference],
    calendars: Mapping[str, DayCalendar],
    zone: Zone,
) -> Timeline[bool]:
    """Restrict a timeline to the days that all referenced calendars leave; missing calendars are ignored."""
    return restrict(timeline, calendar_filters(references, calendars), zone)


@dataclass(frozen=True, slots=True)
class KnownCalendars:
    """The calendars that are known to a check."""

    by_name: Mapping[str, DayCalendar]
    complete: bool = False
    """Whether all existing calendars are known, so that references to others have no effect."""

    def resolves(self, references: Iterable[CalendarReference] | None) -> bool:
        """Return whether the effect of these references is known."""
        return self.complete or all(reference.name in self.by_name for reference in references or ())


def calendar_filters(
    references: Iterable[CalendarReference], calendars: Mapping[str, DayCalendar]
) -> list[almanac.CalendarFilter]:
    """Look up referenced calendars; missing ones are left out."""
    return [
        almanac.CalendarFilter(calendars[reference.name], CalendarMode(reference.mode))
        for reference in references
        if reference.name in calendars
    ]


@lru_cache(maxsize=256)
def _pattern(spec: PatternSpec) -> TimePattern:
    """Parse a pattern: each is read several times, and many objects have the same ones."""
    return TimePattern.parse(
        minutes=spec.minutes, hours=spec.hours, days=spec.days, months=spec.months, weekdays=spec.weekdays
    )


def _parsed(spec: PatternSpec) -> TimePattern | None:
    try:
        return spec.parse()
    except TimePatternError:
        return None
