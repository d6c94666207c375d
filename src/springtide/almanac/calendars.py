"""Calendars: sets of local days on which an object is inactive, or on which alone it is active.

A day is a local day, from midnight to midnight in the calendar's own zone or, if it names none, in the zone of the
object that refers to it. `Days` holds dates, ranges, yearly days and public holidays; the set is unbounded (New Year
comes every year), so it is computed year by year, only for the years that are searched. Public holidays come from the
optional `holidays` package, which is imported only when a calendar names a country.
"""

import difflib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from types import ModuleType

from springtide.almanac.civil import CYCLE_DAYS, DAY, FIRST_DAY, LAST_DAY, date_of, day_of, is_leap
from springtide.almanac.combining import both, negate
from springtide.almanac.timeline import Timeline, from_spans
from springtide.almanac.zones import Zone


class CalendarError(ValueError):
    """A calendar that cannot be evaluated. `hint` says how to fix it."""

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class PublicHolidays:
    """The public holidays of a country or subdivision; `public_holidays` checks both and creates one."""

    country: str
    subdivision: str | None = None

    def in_year(self, year: int) -> list[int]:
        """Return the holidays of a year as day numbers, ascending."""
        return list(_in_year(self.country, self.subdivision, year))


def public_holidays(country: str, subdivision: str | None = None) -> PublicHolidays:
    """Return the holidays of a country; raises `CalendarError` if it or the package is missing."""
    known = _package().list_supported_countries(include_aliases=True)
    if country not in known:
        message = f"holidays country {country!r} is unknown, expected an ISO 3166 code such as DE"
        raise CalendarError(message, _near(country, list(known)))
    if subdivision is not None and subdivision not in known[country]:
        message = f"holidays subdivision {subdivision!r} of {country} is unknown"
        if not known[country]:
            raise CalendarError(message, f"{country} has no subdivisions: leave the field out")
        raise CalendarError(
            f"{message}, expected a code such as {known[country][0]}", _near(subdivision, known[country])
        )
    return PublicHolidays(country, subdivision)


def _package() -> ModuleType:
    try:
        import holidays
    except ImportError:
        message = "the holidays package is not installed, expected it for a calendar that names a country"
        raise CalendarError(message, "pip install './springtide[holidays]', in the folder with the clone") from None
    package: ModuleType = holidays
    return package


@lru_cache(maxsize=4096)
def _in_year(country: str, subdivision: str | None, year: int) -> tuple[int, ...]:
    found = _package().country_holidays(country, subdiv=subdivision, years=year)
    return tuple(sorted(day_of(day) for day in found if day.year == year))


def _near(name: str, known: list[str]) -> str:
    if name.upper() in known:
        return f"did you mean {name.upper()}?"
    near = difflib.get_close_matches(name.upper(), known, n=3, cutoff=0.5) or sorted(known)[:8]
    return f"did you mean one of {', '.join(near)}?" if len(near) > 1 else f"did you mean {near[0]}?"


_FIRST_YEAR = 1
_LAST_YEAR = 9999
_CYCLE_YEARS = 400


@dataclass(frozen=True, slots=True)
class Days:
    """A set of local days.

    `ranges` include both ends. `yearly` holds (month, day) pairs; (2, 29) comes in leap years only.
    """

    dates: tuple[date, ...] = ()
    ranges: tuple[tuple[date, date], ...] = ()
    yearly: tuple[tuple[int, int], ...] = ()
    holidays: PublicHolidays | None = None

    def __contains__(self, day: int) -> bool:
        """Return whether a day number is in the set."""
        found = self.run_at_or_before(day)
        return found is not None and day <= found[1]

    def runs(self, day: int) -> Iterator[tuple[int, int]]:
        """Yield (first, last) of the unbroken runs of days that end on or after a day, in order.

        The search ends after a whole cycle of the calendar without a run, or with a run that is longer than a cycle.
        """
        opened: tuple[int, int] | None = None
        latest = max(_year_of(day), self._first_year())
        for year in range(latest, self._last_year() + 1):
            for first, last in self._year(year):
                latest = year
                if opened is not None and first <= opened[1] + 1:
                    opened = (opened[0], max(opened[1], last))
                    continue
                if opened is not None and opened[1] >= day:
                    yield opened
                opened = (first, last)
            if year - latest > _CYCLE_YEARS or (opened is not None and opened[1] - opened[0] > CYCLE_DAYS):
                break
        if opened is not None and opened[1] >= day:
            yield opened

    def run_at_or_before(self, day: int) -> tuple[int, int] | None:
        """Return the latest unbroken run within one year that starts on or before a day."""
        year = _year_of(day)
        first_year = max(year - _CYCLE_YEARS, self._first_year())
        for candidate in range(min(year, self._last_year()), first_year - 1, -1):
            runs = self._year(candidate)
            index = bisect_right(runs, day, key=lambda run: run[0]) - 1
            if index >= 0:
                return runs[index]
        return None

    def _recurs(self) -> bool:
        return bool(self.yearly) or self.holidays is not None

    def _first_year(self) -> int:
        if self._recurs():
            return _FIRST_YEAR
        return min([d.year for d in self.dates] + [a.year for a, _ in self.ranges], default=_LAST_YEAR + 1)

    def _last_year(self) -> int:
        if self._recurs():
            return _LAST_YEAR
        return max([d.year for d in self.dates] + [b.year for _, b in self.ranges], default=_FIRST_YEAR - 1)

    def _year(self, year: int) -> list[tuple[int, int]]:
        """Return the unbroken runs of days within one year."""
        new_year, last_day = day_of(date(year, 1, 1)), day_of(date(year, 12, 31))
        single = [day_of(d) for d in self.dates if d.year == year]
        single += [day_of(date(year, m, d)) for m, d in self.yearly if (m, d) != (2, 29) or is_leap(year)]
        if self.holidays is not None:
            single += self.holidays.in_year(year)
        pieces = [(day, day) for day in single]
        pieces += [
            (max(day_of(first), new_year), min(day_of(last), last_day))
            for first, last in self.ranges
            if first.year <= year <= last.year
        ]
        return _merged(sorted(pieces))


def _year_of(day: int) -> int:
    return date_of(min(max(day, FIRST_DAY), LAST_DAY)).year


def _merged(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for first, last in pieces:
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(runs[-1][1], last))
        else:
            runs.append((first, last))
    return runs


class CalendarMode(StrEnum):
    """Whether a calendar's days are excluded, or all other days are."""

    EXCLUDE = "Exclude"
    ONLY = "Only"


@dataclass(frozen=True, slots=True)
class DayCalendar:
    """A set of days, in a zone of its own if it has one."""

    days: Days
    zone: Zone | None = None

    def timeline(self, zone: Zone) -> Timeline[bool]:
        """Return the timeline that is active on the calendar's days."""
        clock = self.zone or zone

        def stretches(t: int) -> Iterator[tuple[int, int | None]]:
            # Start a day earlier: a clock turned back over midnight shows that day twice.
            for first, last in self.days.runs(clock.local(t) // DAY - 1):
                for start, end in clock.stretches(first * DAY, (last + 1) * DAY):
                    if end > t:
                        yield start, end

        return from_spans(stretches)


@dataclass(frozen=True, slots=True)
class CalendarFilter:
    """How an object uses a calendar."""

    calendar: DayCalendar
    mode: CalendarMode = CalendarMode.EXCLUDE

    def allows(self, t: int, zone: Zone) -> bool:
        """Return whether the reference allows the local day of an instant."""
        clock = self.calendar.zone or zone
        listed = clock.local(t) // DAY in self.calendar.days
        return listed is (self.mode is CalendarMode.ONLY)

    def timeline(self, zone: Zone) -> Timeline[bool]:
        """Return the timeline that is active at the instants that the reference allows."""
        listed = self.calendar.timeline(zone)
        return listed if self.mode is CalendarMode.ONLY else negate(listed)

    def latest_allowed(self, t: int, zone: Zone) -> int | None:
        """Return the latest allowed instant not later than another, or None if there is none."""
        clock, days = self.calendar.zone or zone, self.calendar.days
        if self.mode is CalendarMode.ONLY:
            return _latest_listed(days, t, clock)
        while (day := clock.local(t) // DAY) in days and (run := days.run_at_or_before(day)) is not None:
            stretches = clock.stretches(run[0] * DAY, (run[1] + 1) * DAY)
            t = max(start for start, _ in stretches if start <= t) - 1
        return t


def _latest_listed(days: Days, t: int, clock: Zone) -> int | None:
    # Before a clock was turned back over midnight it may have shown the next day already.
    day = clock.local(t) // DAY + 1
    while (run := days.run_at_or_before(day)) is not None:
        shown = [min(t, end - 1) for start, end in clock.stretches(run[0] * DAY, (run[1] + 1) * DAY) if start <= t]
        if shown:
            return shown[-1]
        day = run[0] - 1
    return None


def allowed(references: Sequence[CalendarFilter], zone: Zone) -> Timeline[bool]:
    """Return the timeline that is active where every reference allows it."""
    return both(*(reference.timeline(zone) for reference in references))


def restrict(timeline: Timeline[bool], references: Sequence[CalendarFilter], zone: Zone) -> Timeline[bool]:
    """Return a timeline cut at local midnights to the days that every reference allows."""
    return both(timeline, allowed(references, zone)) if references else timeline
