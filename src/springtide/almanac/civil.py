"""The proleptic Gregorian calendar as plain integers, and the day rules that cron and patterns share.

The whole package uses two number lines. An *instant* counts seconds since the Unix epoch in UTC. A *wall
second* counts what a local clock shows, as if that clock had always run at UTC. A *day* is a wall second
divided by `DAY`: whole days since 1970-01-01. Integers keep every comparison exact, and need no special
case before the epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: The Gregorian calendar repeats after 400 years, weekdays included. An event that did not occur within one
#: cycle never occurs.
CYCLE_DAYS = 146_097
CYCLE = CYCLE_DAYS * DAY

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

#: The days that a `datetime.date` can name: years 1 to 9999.
FIRST_DAY = date.min.toordinal() - _EPOCH_ORDINAL
LAST_DAY = date.max.toordinal() - _EPOCH_ORDINAL

#: Instants before and after everything that can be named.
BEGINNING = -(1 << 62)
END = 1 << 62


def day_of(value: date) -> int:
    """Return the day number of a date."""
    return value.toordinal() - _EPOCH_ORDINAL


def date_of(day: int) -> date:
    """Return the date of a day number between `FIRST_DAY` and `LAST_DAY`."""
    return date.fromordinal(day + _EPOCH_ORDINAL)


def weekday_of(day: int) -> int:
    """Return the weekday of a day number, 0 for Sunday."""
    return (day + 4) % 7


def is_leap(year: int) -> bool:
    """Return whether a year has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """Return how many days a month has."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


ALL_DAYS = sum(1 << day for day in range(1, 32))
ALL_MONTHS = sum(1 << month for month in range(1, 13))
ALL_WEEKDAYS = sum(1 << weekday for weekday in range(7))

#: Sixteen years that contain every distance between dates: leap years, and the eight years around 1900 without one.
_SAMPLE = (day_of(date(1896, 1, 1)), day_of(date(1911, 12, 31)))


def bits(values: Iterable[int]) -> int:
    """Return the set of small numbers as a bit mask."""
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


def members(mask: int) -> tuple[int, ...]:
    """Return the numbers of a bit mask, ascending."""
    return tuple(value for value in range(mask.bit_length()) if mask >> value & 1)


@dataclass(frozen=True, slots=True)
class DayRule:
    """A set of days given by day of month, month and weekday (0 is Sunday), each as a bit mask.

    A day needs its month, and both of day of month and weekday, or with `either` one of them.
    """

    days: int
    months: int
    weekdays: int
    either: bool = False

    @property
    def daily(self) -> bool:
        """Whether every day matches."""
        any_day, any_weekday = self.days == ALL_DAYS, self.weekdays == ALL_WEEKDAYS
        enough = (any_day or any_weekday) if self.either else (any_day and any_weekday)
        return enough and self.months == ALL_MONTHS

    @property
    def empty(self) -> bool:
        """Whether no day of the whole calendar matches, as for 30 February."""
        # Over 400 years every date that exists, 29 February included, falls on every weekday.
        if self.either and self.weekdays:
            return not self.months
        return not self.weekdays or self._beyond_every_month(2000)

    @property
    def leap_years_only(self) -> bool:
        """Whether 29 February is the only date that matches."""
        if self.empty or (self.either and self.weekdays):
            return False
        return self._beyond_every_month(2001)

    def longest_pause(self) -> int | None:
        """Return a distance in days that neighbouring matches never exceed, or None if no simple one is known."""
        if self.empty:
            return None
        if self.either:
            parts = (DayRule(self.days, self.months, ALL_WEEKDAYS), DayRule(ALL_DAYS, self.months, self.weekdays))
            return min((pause for part in parts if (pause := part.longest_pause()) is not None), default=None)
        by_weekday = self.days == ALL_DAYS and self.months == ALL_MONTHS
        if not by_weekday and self.weekdays != ALL_WEEKDAYS:
            # Dates and weekdays together repeat only after centuries: too long to look through here.
            return None
        return max(b - a for a, b in pairwise(self.layout(*_SAMPLE)))

    def covers(self, other: "DayRule") -> bool:
        """Return whether every day of another rule is one of ours; both must join their parts with "and"."""
        if self.either or other.either:
            return self == other
        mine, theirs = self._dates(), other._dates()
        return theirs.issubset(mine) and other.weekdays & ~self.weekdays == 0

    def layout(self, first: int, last: int) -> tuple[int, ...]:
        """Return the matching days from first to last, both included."""
        found: list[int] = []
        day = first
        while day <= last:
            today = date_of(day)
            before_month = day - today.day
            month_last = min(last, before_month + month_length(today.year, today.month))
            if self.months >> today.month & 1:
                found.extend(self._of_month(before_month, day, month_last))
            day = month_last + 1
        return tuple(found)

    def _of_month(self, before_month: int, first: int, last: int) -> list[int]:
        days, weekdays = self.days, self.weekdays
        if self.either:
            return [
                day
                for day in range(first, last + 1)
                if (days >> (day - before_month) | weekdays >> weekday_of(day)) & 1
            ]
        return [
            day for day in range(first, last + 1) if (days >> (day - before_month) & weekdays >> weekday_of(day)) & 1
        ]

    def _beyond_every_month(self, year: int) -> bool:
        first = (self.days & -self.days).bit_length() - 1
        return not self.days or all(first > month_length(year, month) for month in members(self.months))

    def _dates(self) -> frozenset[tuple[int, int]]:
        return frozenset(
            (month, day)
            for month in members(self.months)
            for day in members(self.days)
            if day <= month_length(2000, month)
        )
