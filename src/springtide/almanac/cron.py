"""Cron schedules in time zones.

The two dialects differ in how they treat clock changes. A schedule that *follows the clock* fires whenever the clock
shows a matching minute: never for a minute that is skipped, twice for one that is repeated. A *fixed time* schedule (a
rule that names minute and hour) fires once for every matching wall time: right after a gap, or in the first pass of a
fold.

There is one deliberate difference from the cron library that Kubernetes uses: on a day without a midnight, a hit at
00:00 fires at the first instant of the day, and the day's later hits fire too. That library skips such a day in some
zones, which a daily schedule must not do.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from springtide.almanac.civil import DAY, END, HOUR, MINUTE, DayRule, members
from springtide.almanac.cron_grammar import Dialect, parse_schedule
from springtide.almanac.wall_times import WallTimes, describe_days, describe_times
from springtide.almanac.zones import OffsetSegments, Zone

_MOST_PARSED = 256
"""How many schedules are kept parsed: each is read several times, and many objects have the same ones."""


@lru_cache(maxsize=_MOST_PARSED)
def _parsed(text: str, dialect: Dialect) -> tuple[WallTimes, bool]:
    """Read a schedule: its times, and whether it names a fixed time of day."""
    schedule = parse_schedule(text, dialect)
    minutes = members(schedule.minutes)
    times = tuple(hour * HOUR + minute * MINUTE for hour in members(schedule.hours) for minute in minutes)
    return WallTimes(schedule.days, times), dialect is Dialect.RULE and schedule.names_time_of_day


class Cron:
    """A parsed schedule. A hit is the instant at which a local clock shows second 0 of a matching minute."""

    __slots__ = ("dialect", "fixed_time", "text", "walls")

    def __init__(self, text: str, dialect: Dialect, walls: WallTimes, *, fixed_time: bool) -> None:
        self.text = text
        self.dialect = dialect
        self.walls = walls
        self.fixed_time = fixed_time

    @classmethod
    def parse(cls, text: str, dialect: Dialect) -> "Cron":
        """Read a schedule; raises `CronError`."""
        walls, fixed_time = _parsed(text, dialect)
        return cls(text, dialect, walls, fixed_time=fixed_time)

    def __repr__(self) -> str:
        return f"Cron({self.text!r}, {self.dialect})"

    @property
    def days(self) -> DayRule:
        """Return the days on which the schedule fires."""
        return self.walls.days.rule

    def after(self, t: int, zone: Zone) -> int | None:
        """Return the first hit strictly later than an instant, or None if none lies ahead."""
        if self.fixed_time:
            wall = self.walls.after(zone.latest_wall(t))
            return None if wall is None else zone.instant(wall)
        segments = zone.through(t)
        i = bisect_right(segments.starts, t) - 1
        wall = self.walls.after(t + segments.offsets[i])
        while wall is not None:
            segments = zone.through(wall)
            if wall < wall_end(segments, i):
                return wall - segments.offsets[i]
            i += 1
            low, opens_with_hit = self.opening(segments, i)
            if opens_with_hit:
                return segments.starts[i]
            wall = self.walls.after(low)
        return None

    def at_or_before(self, t: int, zone: Zone) -> int | None:
        """Return the latest hit that is not later than an instant, or None if there is none."""
        if self.fixed_time:
            wall = self.walls.at_or_before(zone.latest_wall(t))
            return None if wall is None else zone.instant(wall)
        segments = zone.through(t)
        i = bisect_right(segments.starts, t) - 1
        wall = self.walls.at_or_before(t + segments.offsets[i])
        while True:
            if wall is not None and wall >= segments.starts[i] + segments.offsets[i]:
                return wall - segments.offsets[i]
            if i == 0:
                return None
            if self.opening(segments, i)[1]:
                return segments.starts[i]
            i -= 1
            wall = self.walls.at_or_before(wall_end(segments, i) - 1)

    def between(self, a: int, b: int, zone: Zone) -> Iterator[int]:
        """Yield the hits in (a, b], ascending."""
        for opening, low, high, offset in self._stretches(a, b, zone):
            if opening is not None:
                yield opening
            for wall in self.walls.between(low, high):
                yield wall - offset

    def count(self, a: int, b: int, zone: Zone) -> int:
        """Count the hits in (a, b], without going through them."""
        return sum(
            (opening is not None) + self.walls.count(low, high) for opening, low, high, _ in self._stretches(a, b, zone)
        )

    def _stretches(self, a: int, b: int, zone: Zone) -> Iterator[tuple[int | None, int, int, int]]:
        """Yield the segments of a zone that (a, b] touches, and where their hits are.

        Each has the hit at its first instant, if there is one; the wall seconds (low, high] of its ordinary hits; and
        the offset of its clock.
        """
        segments = zone.through(b)
        starts, offsets = segments.starts, segments.offsets
        for i in range(bisect_right(starts, a) - 1, bisect_right(starts, b)):
            offset = offsets[i]
            opening = None
            if a < starts[i]:
                low, opens_with_hit = self.opening(segments, i)
                opening = starts[i] if opens_with_hit else None
            else:
                low = zone.latest_wall(a) if self.fixed_time else a + offset
            yield opening, low, min(b + offset, wall_end(segments, i) - 1), offset

    def describe(self) -> str:
        """Describe when the schedule fires, such as `at 09:00 on mon-fri`."""
        when, days = describe_times(self.walls.times), describe_days(self.days)
        return f"{when} {days}".rstrip()

    def opening(self, segments: OffsetSegments, i: int) -> tuple[int, bool]:
        """Return the wall second after which ordinary hits of segment `i` begin, and whether it opens with a hit."""
        shown = segments.starts[i] + segments.offsets[i]
        if self.fixed_time:
            # Wall times below the ceiling were shown before; those between it and the clock were skipped.
            unseen = segments.ceilings[i - 1]
            jumped = self.walls.after(unseen - 1) if unseen < shown else None
            hit = jumped is not None and jumped < shown
            return (shown if hit else max(shown, unseen) - 1), hit
        hit = self._repairs_midnight(segments, i)
        return (shown if hit else shown - 1), hit

    def _repairs_midnight(self, segments: OffsetSegments, i: int) -> bool:
        """Return whether segment `i` begins on a day whose midnight was skipped and at which the schedule fires."""
        day, late = divmod(segments.starts[i] + segments.offsets[i], DAY)
        skipped = late > 0 and wall_end(segments, i - 1) <= day * DAY
        return skipped and self.walls.times[0] == 0 and self.walls.days.at_or_after(day) == day


def wall_end(segments: OffsetSegments, i: int) -> int:
    """Return the wall second at which segment `i` ends."""
    if i + 1 < len(segments.starts):
        return segments.starts[i + 1] + segments.offsets[i]
    return END
