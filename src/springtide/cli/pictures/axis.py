"""Where the ticks of a time axis stand: days and hours, weeks or months, as the range and the room allow."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from springtide.cli.pictures.clock import DAY, MONTHS, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from springtide.cli.pictures.clock import WallClock

_WITHIN_A_DAY: Final = tuple(minutes * 60 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720))

_Day: TypeAlias = tuple[datetime.date, int]
"""A local day and its first instant."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A day, month or year of the axis, cut to its range; labels from the longest to the shortest."""

    start: int
    end: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A lesser division of the axis."""

    at: int
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Everything that is drawn along the time axis of one range."""

    cells: tuple[Cell, ...]
    ticks: tuple[Tick, ...]
    weekends: tuple[tuple[int, int], ...]


def lay_out_axis(clock: WallClock, start: int, until: int, *, room: int) -> Axis:
    """Divide a range so that no more than about ``room`` short labels (an hour, a month) stand in it."""
    length = max(1, until - start)
    days = _local_days(clock, start, until)
    weekends = tuple(_weekends(days, until))
    within = next((step for step in _WITHIN_A_DAY if length <= step * room), None)
    if within is not None:
        ticks = _times_of_day(clock, days, start, until, within)
        return Axis(_cells(days, until, lambda day: day, _day_labels), tuple(ticks), weekends)
    if length <= 7 * DAY * room:
        ticks = _day_ticks(days[1:], length, room)
        return Axis(_cells(days, until, lambda day: (day.year, day.month), _month_labels), tuple(ticks), weekends)
    ticks = _month_ticks(days[1:], length, room)
    return Axis(_cells(days, until, lambda day: day.year, _year_labels), tuple(ticks), weekends)


def _day_ticks(days: list[_Day], length: int, room: int) -> list[Tick]:
    if length > DAY * room * 3 // 2:  # the number of a day is shorter than an hour
        return [Tick(at, f"{day.day} {MONTHS[day.month - 1]}") for day, at in days if day.weekday() == 0]
    if length * 7 > DAY * room * 4:  # but with its weekday it is longer
        return [Tick(at, str(day.day)) for day, at in days]
    return [Tick(at, f"{WEEKDAYS[day.weekday()]} {day.day}") for day, at in days]


def _month_ticks(days: list[_Day], length: int, room: int) -> list[Tick]:
    every = next((months for months in (1, 2, 3, 6) if length <= months * 31 * DAY * room), 12)
    firsts = ((day, at) for day, at in days if day.day == 1 and (day.month - 1) % every == 0)
    return [Tick(at, MONTHS[day.month - 1]) for day, at in firsts]


def _local_days(clock: WallClock, start: int, until: int) -> list[_Day]:
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


def _times_of_day(clock: WallClock, days: list[_Day], start: int, until: int, step: int) -> list[Tick]:
    ticks: list[Tick] = []
    for day, _ in days:
        for seconds in range(step, DAY, step):
            at = clock.instant(day, seconds)
            if start < at < until and clock.shows(at, seconds):
                ticks.append(Tick(at, clock.time(at)))
    return ticks


def _cells(
    days: list[_Day],
    until: int,
    together: Callable[[datetime.date], object],
    labels: Callable[[datetime.date], tuple[str, ...]],
) -> tuple[Cell, ...]:
    starts = [
        (day, at) for place, (day, at) in enumerate(days) if place == 0 or together(day) != together(days[place - 1][0])
    ]
    ends = [at for _, at in starts[1:]] + [until]
    return tuple(Cell(at, end, labels(day)) for (day, at), end in zip(starts, ends, strict=True))


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
