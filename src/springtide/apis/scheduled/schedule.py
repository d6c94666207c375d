"""What a schedule means: a number of replicas for every instant, and the behaviours that claim it.

Behaviours are ranked once, by priority and then by their place in the list. Wherever several are active, the first in
rank wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from springtide.almanac import Calendar, MatchPolicy, Timeline, Zone, led_by, load_zone, overlay
from springtide.apis.meta.windows import on_calendars, open_times

if TYPE_CHECKING:
    from springtide.apis.scheduled.behaviors import ScheduledBehavior, ScheduleSpec


@dataclass(frozen=True, slots=True)
class Claim:
    """A behaviour that is not suspended: what it wants, and when."""

    position: int
    """Its place in the list of behaviours."""
    behavior: ScheduledBehavior
    active: Timeline[bool]
    written_position: int | None = None
    """Where its author finds it, if others were left out of the list."""

    @property
    def label(self) -> str:
        """How sentences call the behaviour: by its name, else by its place."""
        if self.behavior.name:
            return f"behaviour `{self.behavior.name}`"
        return f"`behaviors[{self.position if self.written_position is None else self.written_position}]`"

    @property
    def priority(self) -> int:
        """The higher wins."""
        return self.behavior.priority or 0

    @property
    def replicas(self) -> int:
        """The value while it wins."""
        return self.behavior.replicas


def zone_of(spec: ScheduleSpec, default: str) -> Zone:
    """Give the zone that a schedule is read in."""
    return load_zone(spec.timezone or default)


def active_times(
    behavior: ScheduledBehavior, policy: MatchPolicy, zone: Zone, calendars: Mapping[str, Calendar]
) -> Timeline[bool]:
    """Compile a behaviour without errors: its window, cut by calendars, then begun early."""
    window = open_times(behavior, zone, policy)
    return led_by(on_calendars(window, behavior.calendars or (), calendars, zone), behavior.lead_seconds or 0)


def claims_of(spec: ScheduleSpec, zone: Zone, calendars: Mapping[str, Calendar]) -> tuple[Claim, ...]:
    """Compile the behaviours that take part, ranked: where several are active, the first of them wins."""
    policy = MatchPolicy(spec.match_policy)
    claims = (
        Claim(position, behavior, active_times(behavior, policy, zone, calendars))
        for position, behavior in enumerate(spec.behaviors)
        if not behavior.suspend
    )
    return tuple(sorted(claims, key=lambda claim: (-claim.priority, claim.position)))


def compile_schedule(spec: ScheduleSpec, zone: Zone, calendars: Mapping[str, Calendar]) -> Timeline[int]:
    """Compile a schedule without errors to its number of replicas over time."""
    return replicas_over_time(claims_of(spec, zone, calendars), spec.default_replicas)


def replicas_over_time(claims: Sequence[Claim], default: int) -> Timeline[int]:
    """Give the value of whoever wins, or the default, over time."""
    return overlay([(claim.active, claim.replicas) for claim in claims], default)


def active_behaviors(claims: Sequence[Claim], at: int) -> tuple[Claim, ...]:
    """Give the behaviours that are active at an instant, the one that wins first."""
    return tuple(claim for claim in claims if claim.active.at(at))
