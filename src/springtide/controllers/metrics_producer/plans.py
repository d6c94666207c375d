"""A schedule, compiled: who claims when, who wins, and which value that gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

from springtide.almanac import Calendar, Timeline, Zone, overlay
from springtide.almanac.timeline import settle
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.schedule import Claim, claims_of, zone_of
from springtide.cluster.resources import Key
from springtide.cluster.store import Store
from springtide.controllers.calendars import CompiledCalendar

CalendarsUsed: TypeAlias = tuple[tuple[str, CompiledCalendar | None], ...]
"""Calendars by name; None where there is none of that name."""


@dataclass(frozen=True, slots=True)
class Present:
    """What a schedule says now, and for how long."""

    since: int
    """When this was found out."""
    until: int | None
    """When somebody else sets the value, the same one or another; None where that never happens."""
    claim: Claim | None
    """Who sets it; None while it is the default."""
    value: int
    upcoming: tuple[tuple[int, int], ...]
    """The next changes of the value."""

    def holds(self, now: int) -> bool:
        """Tell whether this is still, or already, what the schedule says."""
        return self.since <= now and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a schedule says for every instant."""

    schedule: ScheduleSpec
    calendars: CalendarsUsed
    """The calendars that it refers to, as they were."""
    zone: Zone
    claims: tuple[Claim, ...]
    winner: Timeline[int | None]
    """The place among the claims of whoever sets the value; None while it is the default."""

    @property
    def usable(self) -> dict[str, Calendar]:
        """Give the calendars that count, by name."""
        return _usable(self.calendars)

    @property
    def unusable(self) -> Iterable[tuple[str, CompiledCalendar | None]]:
        """Give the calendars that count as absent: those that do not exist, and those that have errors."""
        return (entry for entry in self.calendars if entry[1] is None or entry[1].calendar is None)

    def at(self, now: int, listed: int) -> Present:
        """Look at an instant, and ahead until so many changes of the value are known."""
        winners = self.winner.segments(now)
        _, first = next(winners)
        handover = next(winners, None)
        upcoming: tuple[tuple[int, int], ...] = ()
        if handover is not None and self._varies:
            values = ((at, self._value(rank)) for at, rank in chain(((now, first), handover), winners))
            upcoming = tuple(islice(settle(values), 1, listed + 1))
        return Present(
            since=now,
            until=handover[0] if handover is not None else None,
            claim=self.claims[first] if first is not None else None,
            value=self._value(first),
            upcoming=upcoming,
        )

    @property
    def _varies(self) -> bool:
        """Whether there are two values at all: else one would look for a change for ever."""
        return any(claim.replicas != self.schedule.default_replicas for claim in self.claims)

    def _value(self, rank: int | None) -> int:
        return self.schedule.default_replicas if rank is None else self.claims[rank].replicas


def compile_plan(schedule: ScheduleSpec, default_zone: str, store: Store[CompiledCalendar]) -> Plan:
    """Compile a schedule without errors, with the calendars that there are now."""
    used = calendars_used(schedule, store)
    zone = zone_of(schedule, default_zone)
    claims = claims_of(schedule, zone, _usable(used))
    winner: Timeline[int | None] = overlay([(claim.active, rank) for rank, claim in enumerate(claims)], None)
    return Plan(schedule, used, zone, claims, winner)


def _usable(used: CalendarsUsed) -> dict[str, Calendar]:
    return {name: one.calendar for name, one in used if one is not None and one.calendar is not None}


def calendars_used(schedule: ScheduleSpec, store: Store[CompiledCalendar]) -> CalendarsUsed:
    """Look up the calendars that behaviours refer to, each once, in the order of their names."""
    references = (
        reference for behavior in schedule.behaviors if not behavior.suspend for reference in behavior.calendars or ()
    )
    names = sorted({reference.name for reference in references})
    return tuple((name, store.get(Key("", name))) for name in names)
