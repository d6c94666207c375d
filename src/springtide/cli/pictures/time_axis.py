"""Local times of a zone, its clock changes, and the ticks and labels of a time axis."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from zoneinfo import ZoneInfo

from springtide.almanac import load_zone
from springtide.cli.pictures.formatting import format_span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from springtide.almanac import Zone
    from springtide.apis.forecast import Forecast


WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY: Final = 86400
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_ORDINAL: Final = _EPOCH.toordinal()


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the UTC offset of a zone, and how it is described."""

    at: int
    sentence: str
    forms: tuple[str, ...]
    """The label of its mark, in forms of decreasing length."""


@dataclass(frozen=True, slots=True)
class ZoneClock:
    """Converts instants to the local time of one zone, and formats them."""

    zone: Zone
    names: ZoneInfo
    """For the abbreviations of the zone only."""

    def read(self, at: int) -> datetime.datetime:
        """Return the local date and time of an instant, without a zone."""
        return (_EPOCH + datetime.timedelta(seconds=self.zone.local(at))).replace(tzinfo=None)

    def instant(self, day: datetime.date, seconds: int = 0) -> int:
        """Return the first instant with a local time of a day, or a later one if a clock change skips that time."""
        return self.zone.instant((day.toordinal() - _EPOCH_ORDINAL) * DAY + seconds)

    def shows(self, at: int, seconds: int) -> bool:
        """Return whether an instant has this local time of day."""
        return self.zone.local(at) % DAY == seconds

    def clock_changes(self, start: int, until: int) -> list[ClockChange]:
        """List the clock changes in ``(start, until]``."""
        found: list[ClockChange] = []
        for change in self.zone.transitions(start, until):
            direction = "forward" if change.after > change.before else "back"
            summary = f"clocks go {direction} {format_span(change.after - change.before)}"
            before, after = self.abbreviation(change.at - 1), self.abbreviation(change.at)
            was = (_EPOCH + datetime.timedelta(seconds=change.at + change.before)).strftime("%H:%M")
            sentence = (
                f"{self.date(change.at, year=True)}: {summary}, from {was} {before} to {self.time(change.at)} {after}"
            )
            found.append(ClockChange(change.at, sentence, (summary, f"clocks {direction}", f"{before}→{after}")))
        return found

    def abbreviation(self, at: int) -> str:
        """Return the abbreviation of the zone at an instant: ``PST``, ``CEST``, ``-03``."""
        moment = _EPOCH + datetime.timedelta(seconds=at)
        return moment.astimezone(self.names).tzname() or self.zone.name

    def date(self, at: int, *, year: bool = False, aligned: bool = False) -> str:
        """Write the local day: ``Mon 2 Nov``; aligned, all days have the same width."""
        local = self.read(at)
        day = f"{local.day:2}" if aligned else str(local.day)
        text = f"{WEEKDAYS[local.weekday()]} {day} {MONTHS[local.month - 1]}"
        return f"{text} {local.year}" if year else text

    def time(self, at: int) -> str:
        """Write the local time of day, without seconds if they are 0."""
        local = self.read(at)
        return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"

    def moment(self, at: int, *, year: bool = False, aligned: bool = False) -> str:
        """Write the local day and time with the zone's abbreviation: ``Mon 2 Nov 09:00 PST``."""
        return f"{self.date(at, year=year, aligned=aligned)} {self.time(at)} {self.abbreviation(at)}"

    def moment_near(self, at: int, near: int) -> str:
        """Write a time, with its year only if that differs from the year of another time."""
        return self.moment(at, year=self.read(at).year != self.read(near).year)

    def range(self, start: int, end: int, *, year: bool = False) -> str:
        """Write a period; the day and the year appear twice only where they differ."""
        if self.read(start).date() == self.read(end).date():
            day = self.date(start, year=year)
            return f"{day} {self.time(start)} – {self.time(end)} {self.abbreviation(end)}"
        return f"{self.moment(start, year=year)} – {self.moment_near(end, start)}"


@lru_cache(maxsize=64)
def zone_clock(zone: str) -> ZoneClock:
    """Return the clock of a zone."""
    return ZoneClock(load_zone(zone), ZoneInfo(zone))


def clock_for(forecast: Forecast, zone: str | None) -> ZoneClock:
    """Choose the clock for a forecast: of the requested zone, else of its own."""
    return zone_clock(zone or next(iter(forecast.zones), "UTC"))


_WITHIN_A_DAY: Final = tuple(minutes * 60 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720))

_Day: TypeAlias = tuple[datetime.date, int]
"""A local day and its first instant."""


@dataclass(frozen=True, slots=True)
class AxisCell:
    """A day, month or year of the axis within its range; labels from the longest to the shortest."""

    start: int
    end: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A subdivision of the axis."""

    at: int
    label: str


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Everything on the time axis of one range."""

    cells: tuple[AxisCell, ...]
    ticks: tuple[AxisTick, ...]
    weekends: tuple[tuple[int, int], ...]


def lay_out_axis(clock: ZoneClock, start: int, until: int, *, room: int) -> TimeAxis:
    """Divide a range so that it has at most about ``room`` short labels (an hour, a month)."""
    length = max(1, until - start)
    days = _local_days(clock, start, until)
    weekends = tuple(_weekends(days, until))
    within = next((step for step in _WITHIN_A_DAY if length <= step * room), None)
    if within is not None:
        ticks = _times_of_day(clock, days, start, until, within)
        return TimeAxis(_cells(days, until, lambda day: day, _day_labels), tuple(ticks), weekends)
    if length <= 7 * DAY * room:
        ticks = _day_ticks(days[1:], length, room)
        return TimeAxis(_cells(days, until, lambda day: (day.year, day.month), _month_labels), tuple(ticks), weekends)
    ticks = _month_ticks(days[1:], length, room)
    return TimeAxis(_cells(days, until, lambda day: day.year, _year_labels), tuple(ticks), weekends)


def _day_ticks(days: list[_Day], length: int, room: int) -> list[AxisTick]:
    if length > DAY * room * 3 // 2:  # the number of a day is shorter than an hour
        return [AxisTick(at, f"{day.day} {MONTHS[day.month - 1]}") for day, at in days if day.weekday() == 0]
    if length * 7 > DAY * room * 4:  # but with its weekday it is longer
        return [AxisTick(at, str(day.day)) for day, at in days]
    return [AxisTick(at, f"{WEEKDAYS[day.weekday()]} {day.day}") for day, at in days]


def _month_ticks(days: list[_Day], length: int, room: int) -> list[AxisTick]:
    every = next((months for months in (1, 2, 3, 6) if length <= months * 31 * DAY * room), 12)
    firsts = ((day, at) for day, at in days if day.day == 1 and (day.month - 1) % every == 0)
    return [AxisTick(at, MONTHS[day.month - 1]) for day, at in firsts]


def _local_days(clock: ZoneClock, start: int, until: int) -> list[_Day]:
    """List the local days of a range with their first instants, the first cut at the start of the range."""
    day = clock.read(start).date()
    days = [(day, start)]
    while True:
        day += datetime.timedelta(days=1)
        at = clock.instant(day)
        if at >= until:
            return days
        if at > start and clock.read(at).date() == day:  # a zone that crosses the date line skips a day
            days.append((day, at))


def _times_of_day(clock: ZoneClock, days: list[_Day], start: int, until: int, step: int) -> list[AxisTick]:
    ticks: list[AxisTick] = []
    for day, _ in days:
        for seconds in range(step, DAY, step):
            at = clock.instant(day, seconds)
            if start < at < until and clock.shows(at, seconds):
                ticks.append(AxisTick(at, clock.time(at)))
    return ticks


def _cells(
    days: list[_Day],
    until: int,
    key: Callable[[datetime.date], object],
    labels: Callable[[datetime.date], tuple[str, ...]],
) -> tuple[AxisCell, ...]:
    starts = [(day, at) for place, (day, at) in enumerate(days) if place == 0 or key(day) != key(days[place - 1][0])]
    ends = [at for _, at in starts[1:]] + [until]
    return tuple(AxisCell(at, end, labels(day)) for (day, at), end in zip(starts, ends, strict=True))


def _weekends(days: list[_Day], until: int) -> Iterator[tuple[int, int]]:
    ends = [at for _, at in days[1:]] + [until]
    opened: int | None = None
    for (day, at), end in zip(days, ends, strict=True):
        if day.weekday() >= 5:
            opened = at if opened is None else opened
        elif opened is not None:
            yield opened, at
            opened = None
        if opened is not None and end == until:
            yield opened, until


def _day_labels(day: datetime.date) -> tuple[str, ...]:
    weekday, month = WEEKDAYS[day.weekday()], MONTHS[day.month - 1]
    return (f"{weekday} {day.day} {month}", f"{weekday} {day.day}", weekday)


def _month_labels(day: datetime.date) -> tuple[str, ...]:
    month = MONTHS[day.month - 1]
    return (f"{month} {day.year}", month)


def _year_labels(day: datetime.date) -> tuple[str, ...]:
    return (str(day.year),)
