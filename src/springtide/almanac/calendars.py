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
            # A day earlier, for a clock that was turned back over midnight and shows the day before once
            # more.
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
        clock = self.calendar.zone or zone
        while not self.allows(t, zone):
            day = clock.local(t) // DAY
            run = self.calendar.days.run_at_or_before(day)
            if run is None:
                return None
            if self.mode is CalendarMode.ONLY:
                ends = [end for start, end in clock.stretches(run[0] * DAY, (run[1] + 1) * DAY) if end <= t]
                if ends:
                    return ends[-1] - 1
                # A skipped day, or one that the clock has not shown yet: look before it.
                t = min(t, clock.day_start(run[0])) - 1
            else:
                t = max(start for start, _ in clock.stretches(run[0] * DAY, (run[1] + 1) * DAY) if start <= t) - 1
        return t


def allowed(references: Sequence[CalendarReference], zone: Zone) -> Timeline[bool]:
    """Return the timeline that is active where every reference allows it."""
    return both(*(reference.timeline(zone) for reference in references))


def restrict(timeline: Timeline[bool], references: Sequence[CalendarReference], zone: Zone) -> Timeline[bool]:
    """Return a timeline cut at local midnights to the days that every reference allows."""
    return both(timeline, allowed(references, zone)) if references else timeline
