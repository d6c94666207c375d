"""A schedule, compiled: who claims when, who wins, and which value that gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

from springtide.almanac import DayCalendar, Timeline, Zone, overlay
from springtide.almanac.search_budget import limit_search
from springtide.almanac.timeline import to_segments
from springtide.apis.scheduled.producer import ScheduleSpec
from springtide.apis.scheduled.schedule import CompiledBehavior, compile_behaviors, zone_of
from springtide.cluster.resources import Key
from springtide.cluster.store import Store
from springtide.controllers.calendar.state import CompiledCalendar

CalendarsUsed: TypeAlias = tuple[tuple[str, CompiledCalendar | None], ...]
"""Calendars by name; None where there is none of that name."""
QUICK_BUDGET = 10_000
"""Steps of a look that does not keep others waiting: some milliseconds, and far more than people's schedules need."""
THOROUGH_BUDGET = 2_000_000
"""Steps of a look that nobody waits for: some seconds."""
SEARCH_AGAIN = 60 * 60
"""Seconds for which it is believed that nothing changes where the search for a change was given up."""


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """What a schedule says now, and for how long."""

    since: int
    """When this was found out."""
    until: int | None
    """When somebody else may set the value, the same one or another; None where that never happens. Where the search
    was cut short, when to look again."""
    rank: int | None
    """The place among the claims of whoever sets it; None while it is the default."""
    value: int
    upcoming: tuple[tuple[int, int], ...]
    """The next changes of the value."""
    certain: bool
    """Whether the search for who sets the value came to an end."""
    complete: bool
    """Whether the search for what comes next did, too."""

    def holds(self, now: int) -> bool:
        """Tell whether this is still, or already, what the schedule says."""
        return self.since <= now and (self.until is None or now < self.until)

    def says_what_comes(self, now: int) -> bool:
        """Tell whether no more could be known of what comes next."""
        news = self.upcoming[0][0] if self.upcoming else None if self.complete else self.since + SEARCH_AGAIN
        return self.since <= now and (news is None or now < news)


@dataclass(frozen=True, slots=True)
class CompiledSchedule:
    """What a schedule says for every instant."""

    schedule: ScheduleSpec
    calendars: CalendarsUsed
    """The calendars that it refers to, as they were."""
    zone: Zone
    claims: tuple[CompiledBehavior, ...]
    winner: Timeline[int | None]
    """The place among the claims of whoever sets the value; None while it is the default."""

    @property
    def usable(self) -> dict[str, DayCalendar]:
        """Give the calendars that count, by name."""
        return _usable(self.calendars)

    @property
    def unusable(self) -> Iterable[tuple[str, CompiledCalendar | None]]:
        """Give the calendars that count as absent: those that do not exist, and those that have errors."""
        return (entry for entry in self.calendars if entry[1] is None or entry[1].calendar is None)

    def at(self, now: int, listed: int, steps: int) -> ScheduleState:
        """Look at an instant, and ahead until so many changes of the value are known, or the steps are used up."""
        with limit_search(steps) as effort:
            winners = self.winner.segments(now)
            _, first = next(winners)
            certain = not effort.exhausted
            handover = next(winners, None)
            cut_short = effort.exhausted
            upcoming: tuple[tuple[int, int], ...] = ()
            if not cut_short and handover is not None and self._varies:
                values = ((at, self._value(rank)) for at, rank in chain(((now, first), handover), winners))
                upcoming = tuple(islice(to_segments(values), 1, listed + 1))
        until = self._look_again(now, steps) if cut_short else None if handover is None else handover[0]
        return ScheduleState(now, until, first, self._value(first), upcoming, certain, complete=not effort.exhausted)

    def _look_again(self, now: int, steps: int) -> int:
        """Give the next change of a claim, of those that tell it without a long search: they must not be late.

        All others are believed to stay as they are for a while.
        """
        soonest = now + SEARCH_AGAIN
        for claim in self.claims:
            with limit_search(steps // len(self.claims)) as effort:
                change = claim.active.next_change(now)
                if change is not None and not effort.exhausted:
                    soonest = min(soonest, change[0])
        return soonest

    @property
    def _varies(self) -> bool:
        """Whether there are two values at all: else one would look for a change for ever."""
        return any(claim.replicas != self.schedule.default_replicas for claim in self.claims)

    def _value(self, rank: int | None) -> int:
        return self.schedule.default_replicas if rank is None else self.claims[rank].replicas


def compile_with_store(schedule: ScheduleSpec, default_zone: str, store: Store[CompiledCalendar]) -> CompiledSchedule:
    """Compile a schedule without errors, with the calendars that there are now."""
    return compile_with_calendars(schedule, default_zone, calendars_used(schedule, store))


def compile_with_calendars(schedule: ScheduleSpec, default_zone: str, used: CalendarsUsed) -> CompiledSchedule:
    """Compile a schedule without errors, with these calendars."""
    zone = zone_of(schedule, default_zone)
    claims = compile_behaviors(schedule, zone, _usable(used))
    winner: Timeline[int | None] = overlay([(claim.active, rank) for rank, claim in enumerate(claims)], None)
    return CompiledSchedule(schedule, used, zone, claims, winner)


def _usable(used: CalendarsUsed) -> dict[str, DayCalendar]:
    return {name: one.calendar for name, one in used if one is not None and one.calendar is not None}


def calendars_used(schedule: ScheduleSpec, store: Store[CompiledCalendar]) -> CalendarsUsed:
    """Look up the calendars that behaviours refer to, each once, in the order of their names."""
    references = (
        reference for behavior in schedule.behaviors if not behavior.suspend for reference in behavior.calendars or ()
    )
    names = sorted({reference.name for reference in references})
    return tuple((name, store.get(Key("", name))) for name in names)
