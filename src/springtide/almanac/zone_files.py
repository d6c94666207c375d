"""Time zone files (RFC 9636) of the tzdata package, and the POSIX rule at their end.

`zoneinfo` gives the offset at an instant, but not the next change; searching for it by probing is slow and can miss
short-lived changes. The files list every change, so they are parsed here. Changes after the last listed one follow a
rule, a POSIX `TZ` value such as `CET-1CEST,M3.5.0,M10.5.0/3`, in which offsets are positive to the west.
"""

import pkgutil
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from springtide.almanac.civil import DAY, HOUR, MINUTE, day_of, is_leap, month_length, weekday_of

_HEADER = struct.Struct(">4sc15x6l")
_TYPE = struct.Struct(">lbb")


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """The content of a time zone file: the offset before all changes, the changes, and the rule after them."""

    first_offset: int
    changes: tuple[tuple[int, int], ...]
    footer: str


def zone_names() -> tuple[str, ...]:
    """Return the names of all zones in the tzdata package, sorted."""
    return tuple(sorted(_read("zones").decode("ascii").split()))


def read_zone_file(name: str) -> ZoneFile:
    """Read a zone of the tzdata package; the name must be one of `zone_names`."""
    return parse_zone_file(_read(f"zoneinfo/{name}"))


def parse_zone_file(data: bytes) -> ZoneFile:
    """Read the 64-bit block and the footer of a time zone file."""
    # The first block, with 32-bit times, is for old readers; the 64-bit block follows it.
    magic, version, utc_marks, standard_marks, leaps, times, types, letters = _HEADER.unpack_from(data, 0)
    if magic != b"TZif" or version < b"2":
        msg = f"time zone file starts with {data[:5]!r}, expected TZif of version 2 or later"
        raise ValueError(msg)
    at = _HEADER.size + times * 5 + types * 6 + letters + leaps * 8 + standard_marks + utc_marks
    _, _, utc_marks, standard_marks, leaps, times, types, letters = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    instants = struct.unpack_from(f">{times}q", data, at)
    at += times * 8
    kinds = data[at : at + times]
    at += times
    # A type is (offset, is daylight saving, index of its abbreviation).
    offsets = [_TYPE.unpack_from(data, at + i * _TYPE.size)[:2] for i in range(types)]
    at += types * _TYPE.size + letters + leaps * 12 + standard_marks + utc_marks
    footer = data[at:].strip(b"\n").decode("ascii")
    return ZoneFile(
        # Before the first change clocks show the first offset that is not daylight saving, as zoneinfo
        # reads it.
        first_offset=next((offset for offset, daylight in offsets if not daylight), offsets[0][0]),
        changes=tuple((at, offsets[kind][0]) for at, kind in zip(instants, kinds, strict=True)),
        footer=footer,
    )


def _read(resource: str) -> bytes:
    # importlib.resources would be the slowest import of every command.
    data = pkgutil.get_data("tzdata", resource)
    if data is None:
        msg = f"the tzdata package has no {resource}, expected it to be installed whole"
        raise FileNotFoundError(msg)
    return data


_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_CLOCK = r"[+-]?\d{1,3}(?::\d{2}(?::\d{2})?)?"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_CLOCK})"
    rf"(?:{_NAME}(?P<summer>{_CLOCK})?,(?P<begins>[^,]+),(?P<ends>[^,]+))?"
)
_YEARLY = re.compile(
    rf"(?:M(?P<month>\d{{1,2}})\.(?P<week>\d)\.(?P<weekday>\d)|(?P<julian>J?)(?P<day>\d{{1,3}}))"
    rf"(?:/(?P<clock>{_CLOCK}))?"
)


@dataclass(frozen=True, slots=True)
class YearlyChange:
    """A change of the clock that occurs every year, in the wall time that applies before it."""

    month: int
    week: int
    weekday: int
    day: int
    skips_leap_day: bool
    clock: int

    def wall(self, year: int) -> int:
        """Return the wall second of the change in a year."""
        return self._day(year) * DAY + self.clock

    def _day(self, year: int) -> int:
        if not self.month:
            first = day_of(date(year, 1, 1))
            if not self.skips_leap_day:
                return first + self.day
            return first + self.day - 1 + (1 if is_leap(year) and self.day >= 60 else 0)
        first = day_of(date(year, self.month, 1))
        day = first + (self.weekday - weekday_of(first)) % 7 + 7 * (self.week - 1)
        # Week 5 means the last such weekday of the month.
        return day if day < first + month_length(year, self.month) else day - 7


@dataclass(frozen=True, slots=True)
class PosixRule:
    """A standard offset and, where the clock changes, the summer offset and its two yearly changes."""

    standard: int
    summer: int
    begins: YearlyChange | None
    ends: YearlyChange | None

    @classmethod
    def parse(cls, text: str) -> "PosixRule":
        """Read the footer of a time zone file."""
        found = _RULE.fullmatch(text)
        if found is None:
            msg = f"time zone rule {text!r} is not a POSIX TZ value"
            raise ValueError(msg)
        standard = -_seconds(found["standard"])
        if found["begins"] is None:
            return cls(standard, standard, None, None)
        summer = -_seconds(found["summer"]) if found["summer"] else standard + HOUR
        return cls(standard, summer, _yearly(found["begins"]), _yearly(found["ends"]))

    def changes(self, year: int) -> Iterator[tuple[int, int]]:
        """Yield (instant, new offset) of a year's changes, in order."""
        if self.begins is None or self.ends is None:
            return
        begins = (self.begins.wall(year) - self.standard, self.summer)
        ends = (self.ends.wall(year) - self.summer, self.standard)
        yield from sorted((begins, ends))


def _seconds(clock: str) -> int:
    parts = [int(part) for part in clock.lstrip("+-").split(":")]
    total = sum(part * unit for part, unit in zip(parts, (HOUR, MINUTE, 1), strict=False))
    return -total if clock.startswith("-") else total


def _yearly(text: str) -> YearlyChange:
    found = _YEARLY.fullmatch(text)
    if found is None:
        msg = f"yearly change {text!r} of a time zone rule is not of the form Mm.w.d, Jn or n"
        raise ValueError(msg)
    return YearlyChange(
        month=int(found["month"] or 0),
        week=int(found["week"] or 0),
        weekday=int(found["weekday"] or 0),
        day=int(found["day"] or 0),
        skips_leap_day=found["julian"] == "J",
        clock=_seconds(found["clock"]) if found["clock"] else 2 * HOUR,
    )
