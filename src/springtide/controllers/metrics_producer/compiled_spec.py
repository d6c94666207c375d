"""The schedule of a MetricsProducer, compiled: which behaviour is active when, and which value follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

from springtide.almanac import DayCalendar, Timeline, Zone, overlay
from springtide.almanac.search_budget import limit_search
from springtide.almanac.timeline import to_segments
from springtide.apis.scheduled.producer import ScheduleSpec
from springtide.apis.scheduled.schedule import CompiledBehavior, compile_behaviors, zone_of
from springtide.controllers.calendar.state import CompiledCalendar

CalendarsUsed: TypeAlias = tuple[tuple[str, CompiledCalendar | None], ...]
"""Calendars by name; None where there is none of that name."""
LISTED_CHANGES = 5
"""How many upcoming changes the status lists."""
QUICK_BUDGET = 10_000
"""Search steps that a reconcile may take: some milliseconds, and far more than usual schedules need."""
THOROUGH_BUDGET = 2_000_000
"""Search steps that background work may take: some seconds."""
SEARCH_AGAIN = 60 * 60
"""Seconds until a search that was given up is made again; meanwhile nothing is assumed to change."""


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """The value of a schedule at an instant, and how long it holds."""

    since: int
    """The instant."""
    until: int | None
    """When another behaviour may become active, with the same value or another; None: never. Where the search was given
    up, when it is made again."""
    rank: int | None
    """The index of the active behaviour; None while the default holds."""
    value: int
    upcoming: tuple[tuple[int, int], ...]
    """The next changes of the value."""
    certain: bool
    """Whether the search for the active behaviour was completed."""
    complete: bool
    """Whether the search for the upcoming changes was completed, too."""

    def holds(self, now: int) -> bool:
        """Return whether this state holds at an instant."""
        return self.since <= now and (self.until is None or now < self.until)

    def knows_next_change(self, now: int) -> bool:
        """Return whether another search would find no more about upcoming changes."""
        news = self.upcoming[0][0] if self.upcoming else None if self.complete else self.since + SEARCH_AGAIN
        return self.since <= now and (news is None or now < news)


@dataclass(frozen=True, slots=True)
class CompiledSchedule:
    """A schedule as timelines."""

    schedule: ScheduleSpec
    calendars: CalendarsUsed
    """The calendars that it refers to, as they were when it was compiled."""
    zone: Zone
    behaviors: tuple[CompiledBehavior, ...]
    winner: Timeline[int | None]
    """The index of the active behaviour; None while the default holds."""

    @property
    def usable(self) -> dict[str, DayCalendar]:
        """Return the calendars without errors, by name."""
        return _usable(self.calendars)

    @property
    def unusable(self) -> Iterable[tuple[str, CompiledCalendar | None]]:
        """Return the calendars that are ignored, since they do not exist or have errors."""
        return (entry for entry in self.calendars if entry[1] is None or entry[1].calendar is None)

    def at(self, now: int, listed: int, steps: int) -> ScheduleState:
        """Find the state at an instant, with so many upcoming changes, in so many search steps."""
        with limit_search(steps) as budget:
            winners = self.winner.segments(now)
            _, first = next(winners)
            certain = not budget.exhausted
            next_winner = next(winners, None)
            cut_short = budget.exhausted
            upcoming: tuple[tuple[int, int], ...] = ()
            if not cut_short and next_winner is not None and self._has_several_values:
                values = ((at, self._value(rank)) for at, rank in chain(((now, first), next_winner), winners))
                upcoming = tuple(islice(to_segments(values), 1, listed + 1))
        until = self._search_again_at(now, steps) if cut_short else None if next_winner is None else next_winner[0]
        return ScheduleState(now, until, first, self._value(first), upcoming, certain, complete=not budget.exhausted)

    def _search_again_at(self, now: int, steps: int) -> int:
        """Return when a search that was given up is made again.

        That is early enough for every behaviour whose own next change is found quickly.
        """
        soonest = now + SEARCH_AGAIN
        for one in self.behaviors:
            with limit_search(steps // len(self.behaviors)) as budget:
                change = one.active.next_change(now)
                if change is not None and not budget.exhausted:
                    soonest = min(soonest, change[0])
        return soonest

    @property
    def _has_several_values(self) -> bool:
        """Whether there are two values at all: without them a search for a change would never end."""
        return any(one.replicas != self.schedule.default_replicas for one in self.behaviors)

    def _value(self, rank: int | None) -> int:
        return self.schedule.default_replicas if rank is None else self.behaviors[rank].replicas


def compile_with_calendars(schedule: ScheduleSpec, default_zone: str, used: CalendarsUsed) -> CompiledSchedule:
    """Compile a schedule without errors, with these calendars; others count as missing."""
    zone = zone_of(schedule, default_zone)
    behaviors = compile_behaviors(schedule, zone, _usable(used))
    winner: Timeline[int | None] = overlay([(one.active, rank) for rank, one in enumerate(behaviors)], None)
    return CompiledSchedule(schedule, used, zone, behaviors, winner)


def _usable(used: CalendarsUsed) -> dict[str, DayCalendar]:
    return {name: one.calendar for name, one in used if one is not None and one.calendar is not None}


def calendars_used(schedule: ScheduleSpec, find: Callable[[str], CompiledCalendar | None]) -> CalendarsUsed:
    """Look up the calendars that behaviours refer to, each once, in the order of their names."""
    references = (
        reference for behavior in schedule.behaviors if not behavior.suspend for reference in behavior.calendars or ()
    )
    names = sorted({reference.name for reference in references})
    return tuple((name, find(name)) for name in names)
