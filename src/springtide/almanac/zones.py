"""Time zones as sorted stretches of constant offset.

Everything a schedule asks of a zone becomes a search in two sorted lists: which offset holds at an instant,
which instant first shows a wall time, when the clock changes next. Zones come from the pinned tzdata
package and never from the machine, so that the same manifest means the same everywhere.

A gap is wall time that a clock jumps over, a fold is wall time that it shows twice. One definition covers
both: a wall time belongs to the *first instant at which the clock shows it or something later*. That is the
end of the gap in a gap and the first pass in a fold, and it never runs backwards.
"""

import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Lock

from springtide.almanac.civil import BEGINNING, DAY, END, LAST_DAY, date_of
from springtide.almanac.posix_rule import PosixRule
from springtide.almanac.tzif import read_zone_file
from springtide.almanac.zone_names import UnknownZone, known_zones

# Whoever uses zoneinfo in this process reads the same database as we do.
zoneinfo.reset_tzpath(to=())

_LAST_YEAR = 9999
_FIRST_COVERED_YEAR = 2045
_YEARS_AHEAD = 60


def tzdata_version() -> str:
    """Return the release of the time zone database in use, such as `2026a`."""
    return str(import_module("tzdata").IANA_VERSION)


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a clock: the first instant of the new offset, the offset before and the one after."""

    at: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Segments:
    """The stretches of a zone, exact for instants and wall seconds before `until`.

    Stretch `i` runs from `starts[i]` to `starts[i + 1]` at `offsets[i]`. `ceilings[i]` is the wall second
    that no stretch up to `i` reaches: the running maximum of their ends.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    ceilings: tuple[int, ...]
    until: int


class Zone:
    """A named time zone."""

    __slots__ = ("_changes", "_first_offset", "_growth", "_rule", "_segments", "name")

    def __init__(self, name: str, first_offset: int, changes: tuple[tuple[int, int], ...], footer: str) -> None:
        self.name = name
        self._first_offset = first_offset
        self._changes = changes
        self._rule = PosixRule.parse(footer) if footer else None
        self._growth = Lock()
        self._segments = self._covering(_FIRST_COVERED_YEAR)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    @property
    def never_changes(self) -> bool:
        """Whether the clock has had one offset for all time, as UTC's has."""
        return len(self._segments.starts) == 1 and self._segments.until == END

    def through(self, t: int) -> Segments:
        """Return the stretches, known at least as far as an instant or wall second `t`."""
        segments = self._segments
        return segments if t < segments.until else self._grown(t)

    def offset_at(self, t: int) -> int:
        """Return the offset from UTC in seconds at an instant, positive to the east."""
        segments = self.through(t)
        return segments.offsets[bisect_right(segments.starts, t) - 1]

    def local(self, t: int) -> int:
        """Return the wall second that the clock shows at an instant."""
        return t + self.offset_at(t)

    def latest_wall(self, t: int) -> int:
        """Return the latest wall second shown up to an instant; in a second pass that is not `local`."""
        segments = self.through(t)
        i = bisect_right(segments.starts, t) - 1
        wall = t + segments.offsets[i]
        if i and segments.ceilings[i - 1] > wall:
            return segments.ceilings[i - 1] - 1
        return wall

    def instant(self, wall: int) -> int:
        """Return the first instant that shows a wall second, or, in a gap, the first one after the gap."""
        segments = self.through(wall)
        i = bisect_right(segments.ceilings, wall)
        t = wall - segments.offsets[i]
        start = segments.starts[i]
        if t < start:
            return start
        return t

    def day_start(self, day: int) -> int:
        """Return the first instant of a local day (of the day after it, where the whole day is skipped)."""
        return self.instant(day * DAY)

    def stretches(self, wall: int, wall_end: int) -> Iterator[tuple[int, int]]:
        """Yield the disjoint half-open stretches of instants at which the clock shows [wall, wall_end)."""
        segments = self.through(wall_end + 2 * DAY)
        starts, offsets = segments.starts, segments.offsets
        i = bisect_right(starts, wall - 2 * DAY) - 1
        opened = closed = BEGINNING
        while i < len(starts) and starts[i] < wall_end + 2 * DAY:
            offset = offsets[i]
            begins = max(wall - offset, starts[i])
            ends = min(wall_end - offset, starts[i + 1]) if i + 1 < len(starts) else wall_end - offset
            i += 1
            if begins >= ends:
                continue
            if begins > closed:
                if opened < closed:
                    yield opened, closed
                opened = begins
            closed = ends
        if opened < closed:
            yield opened, closed

    def transitions(self, a: int, b: int) -> list[Transition]:
        """Return the changes of the clock in (a, b]."""
        segments = self.through(b)
        starts, offsets = segments.starts, segments.offsets
        found = range(max(bisect_right(starts, a), 1), bisect_right(starts, b))
        return [Transition(starts[i], offsets[i - 1], offsets[i]) for i in found]

    def _grown(self, t: int) -> Segments:
        with self._growth:
            if t >= self._segments.until:
                year = date_of(min(t // DAY, LAST_DAY)).year
                self._segments = self._covering(year + _YEARS_AHEAD)
            return self._segments

    def _covering(self, year: int) -> Segments:
        """Lay out the listed changes, and those of the rule up to the end of a year."""
        starts, offsets, ceilings = [BEGINNING], [self._first_offset], list[int]()
        until = END
        for at, offset in self._all_changes(year):
            # Many listed changes concern only an abbreviation, or what is called daylight saving.
            if offset == offsets[-1]:
                continue
            ceilings.append(max(at + offsets[-1], ceilings[-1] if ceilings else BEGINNING))
            starts.append(at)
            offsets.append(offset)
        if self._rule is not None and self._rule.begins is not None and year < _LAST_YEAR:
            # Two days short of the last change, so that no wall time near the edge is answered too early.
            until = starts[-1] - 2 * DAY
        return Segments(tuple(starts), tuple(offsets), tuple(ceilings), until)

    def _all_changes(self, year: int) -> Iterator[tuple[int, int]]:
        yield from self._changes
        if self._rule is None:
            return
        last = self._changes[-1][0] if self._changes else BEGINNING
        first_year = date_of(last // DAY).year if self._changes else 1
        for following in range(first_year, min(year, _LAST_YEAR) + 1):
            for at, offset in self._rule.changes(following):
                if at > last:
                    yield at, offset


@cache
def load_zone(name: str) -> Zone:
    """Return the zone of an IANA name; raises `UnknownZone`."""
    if name not in known_zones():
        raise UnknownZone(name)
    file = read_zone_file(name)
    return Zone(name, file.first_offset, file.changes, file.footer)


UTC = load_zone("UTC")
