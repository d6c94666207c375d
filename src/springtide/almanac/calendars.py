"""Calendars: days on which something does not happen, or on which alone it does.

A day is a local day, from midnight to midnight of the calendar's own zone or, if it names none, of the zone
of whatever refers to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from springtide.almanac.civil import DAY
from springtide.almanac.combining import both, negate
from springtide.almanac.days import Days
from springtide.almanac.timeline import Timeline, from_spans
from springtide.almanac.zones import Zone


class CalendarMode(StrEnum):
    """Whether a calendar's days are left out, or everything else is."""

    EXCLUDE = "Exclude"
    ONLY = "Only"


@dataclass(frozen=True, slots=True)
class Calendar:
    """A set of days, in a zone of its own if it has one."""

    days: Days
    zone: Zone | None = None

    def timeline(self, zone: Zone) -> Timeline[bool]:
        """Return the timeline that is active on the calendar's days."""
        clock = self.zone or zone

        def stretches(t: int) -> Iterator[tuple[int, int | None]]:
            # From a day earlier: a clock turned back over midnight will show that day once more.
            for first, last in self.days.runs(clock.local(t) // DAY - 1):
                for start, end in clock.stretches(first * DAY, (last + 1) * DAY):
                    if end > t:
                        yield start, end

        return from_spans(stretches)


@dataclass(frozen=True, slots=True)
class CalendarReference:
    """How an object uses a calendar."""

    calendar: Calendar
    mode: CalendarMode = CalendarMode.EXCLUDE

    def allows(self, t: int, zone: Zone) -> bool:
        """Tell whether the local day of an instant is one on which things happen."""
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
    # A clock turned back over midnight may have shown the next day already.
    day = clock.local(t) // DAY + 1
    while (run := days.run_at_or_before(day)) is not None:
        shown = [min(t, end - 1) for start, end in clock.stretches(run[0] * DAY, (run[1] + 1) * DAY) if start <= t]
        if shown:
            return shown[-1]
        day = run[0] - 1
    return None


def allowed(references: Sequence[CalendarReference], zone: Zone) -> Timeline[bool]:
    """Return the timeline that is active where every reference allows it."""
    return both(*(reference.timeline(zone) for reference in references))


def restrict(timeline: Timeline[bool], references: Sequence[CalendarReference], zone: Zone) -> Timeline[bool]:
    """Return a timeline cut at local midnights to the days that every reference allows."""
    return both(timeline, allowed(references, zone)) if references else timeline
