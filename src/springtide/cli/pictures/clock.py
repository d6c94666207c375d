"""Moments as a clock on the wall of a zone shows them, and the moments at which that clock is changed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from springtide.almanac import load_zone
from springtide.cli.pictures.words import format_span

if TYPE_CHECKING:
    from springtide.almanac import Zone
    from springtide.apis.forecast import Forecast

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY: Final = 86400
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_ORDINAL: Final = _EPOCH.toordinal()


@dataclass(frozen=True, slots=True)
class Shift:
    """An instant at which the clocks of a zone are put forward or back, and how it is told."""

    at: int
    sentence: str
    forms: tuple[str, ...]
    """The same in ever fewer words, for a mark in a picture."""


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clock of one zone."""

    zone: Zone
    names: ZoneInfo
    """What the zone is called at an instant; everything else is read from the zone."""

    def read(self, at: int) -> datetime.datetime:
        """Give the local date and time of an instant, without a zone."""
        return (_EPOCH + datetime.timedelta(seconds=self.zone.local(at))).replace(tzinfo=None)

    def instant(self, day: datetime.date, seconds: int = 0) -> int:
        """Give the first instant at which the clock shows a time of a day, or something later if that is skipped."""
        return self.zone.instant((day.toordinal() - _EPOCH_ORDINAL) * DAY + seconds)

    def shows(self, at: int, seconds: int) -> bool:
        """Tell whether the clock shows this time of day at an instant."""
        return self.zone.local(at) % DAY == seconds

    def shifts(self, start: int, until: int) -> list[Shift]:
        """Find the changes of the clocks in ``(start, until]``."""
        found: list[Shift] = []
        for change in self.zone.transitions(start, until):
            direction = "forward" if change.after > change.before else "back"
            told = f"clocks go {direction} {format_span(change.after - change.before)}"
            before, after = self.abbreviation(change.at - 1), self.abbreviation(change.at)
            was = (_EPOCH + datetime.timedelta(seconds=change.at + change.before)).strftime("%H:%M")
            sentence = (
                f"{self.date(change.at, year=True)}: {told}, from {was} {before} to {self.time(change.at)} {after}"
            )
            found.append(Shift(change.at, sentence, (told, f"clocks {direction}", f"{before}→{after}")))
        return found

    def abbreviation(self, at: int) -> str:
        """Name the zone as it is called at an instant: ``PST``, ``CEST``, ``-03``."""
        moment = _EPOCH + datetime.timedelta(seconds=at)
        return moment.astimezone(self.names).tzname() or self.zone.name

    def date(self, at: int, *, year: bool = False, aligned: bool = False) -> str:
        """Write the local day: ``Mon 2 Nov``; aligned, all days are equally wide."""
        local = self.read(at)
        day = f"{local.day:2}" if aligned else str(local.day)
        text = f"{WEEKDAYS[local.weekday()]} {day} {MONTHS[local.month - 1]}"
        return f"{text} {local.year}" if year else text

    def time(self, at: int) -> str:
        """Write the local time of day; seconds only where there are any."""
        local = self.read(at)
        return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"

    def moment(self, at: int, *, year: bool = False, aligned: bool = False) -> str:
        """Write the local day and time with the zone's abbreviation: ``Mon 2 Nov 09:00 PST``."""
        return f"{self.date(at, year=year, aligned=aligned)} {self.time(at)} {self.abbreviation(at)}"

    def moment_near(self, at: int, near: int) -> str:
        """Write a moment with its year only if that differs from the year of another one."""
        return self.moment(at, year=self.read(at).year != self.read(near).year)

    def range(self, start: int, end: int, *, year: bool = False) -> str:
        """Write a stretch of time, naming day and year twice only where they are not the same."""
        if self.read(start).date() == self.read(end).date():
            day = self.date(start, year=year)
            return f"{day} {self.time(start)} – {self.time(end)} {self.abbreviation(end)}"
        return f"{self.moment(start, year=year)} – {self.moment_near(end, start)}"


@lru_cache(maxsize=64)
def wall_clock(zone: str) -> WallClock:
    """Give the clock of a zone by its name."""
    return WallClock(load_zone(zone), ZoneInfo(zone))


def clock_for(forecast: Forecast, zone: str | None) -> WallClock:
    """Choose the clock to draw a forecast by: the zone that was asked for, else its own."""
    return wall_clock(zone or next(iter(forecast.zones), "UTC"))
