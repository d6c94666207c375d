"""The proleptic Gregorian calendar as plain integers.

Two number lines run through the whole package. An *instant* counts seconds since the Unix epoch in UTC. A
*wall second* counts what a local clock shows, as if that clock had always run at UTC. A *day* is a wall
second divided by `DAY`: whole days since 1970-01-01. Integers keep every comparison exact, and they reach
before the epoch without special cases.
"""

from datetime import date

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: The Gregorian calendar repeats after 400 years, weekdays included: what has not happened by then never
#: will.
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
    """Tell whether a year has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """Return how many days a month has."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31
