"""Forecasts of autoscalers that follow schedules only: the replicas that they set, beside those that are asked for.

Stabilization windows, policies, tolerances and bounds are applied by the functions that the controller decides with.
A HorizontalPodAutoscaler evaluates its metrics every 15 seconds, so that its changes come up to that much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from springtide.almanac import DayCalendar, Timeline, Zone, combine
from springtide.apis.forecast import Forecast, ForecastQuery, Lane, LaneChange, LaneStyle
from springtide.apis.scheduled.followers import FollowedSchedule, ScheduleFollower
from springtide.apis.scheduled.schedule import (
    CompiledBehavior,
    change_reason,
    compile_behaviors,
    current_reason,
    replicas_over_time,
    zone_of,
)
from springtide.scaling import ProjectedMove, ProjectionRules, ProjectionStart, ScalingMove, projected_moves

_MOST_STEPS_AHEAD = 10_000
"""How many changes of the metrics after the forecast are searched for the next change of the replicas."""


@dataclass(frozen=True, slots=True)
class CompiledSchedule:
    """A followed schedule, compiled."""

    followed: FollowedSchedule
    claims: tuple[CompiledBehavior, ...]
    values: Timeline[int]
    zone: Zone

    @classmethod
    def of(
        cls, followed: FollowedSchedule, default_zone: str, calendars: Mapping[str, DayCalendar]
    ) -> CompiledSchedule:
        """Compile a schedule."""
        zone = zone_of(followed.schedule, default_zone)
        claims = compile_behaviors(followed.schedule, zone, calendars)
        return cls(followed, claims, replicas_over_time(claims, followed.schedule.default_replicas), zone)

    def changes_at(self, at: int) -> bool:
        """Return whether the value changes at an instant."""
        return self.values.at(at - 1) != self.values.at(at)

    def reason(self, at: int) -> str:
        """Say why the schedule changes at an instant, or else why it has its value then."""
        if not self.changes_at(at):
            return self.current_reason(at)
        return change_reason(self.claims, at, self.zone, self.followed.schedule.default_replicas)

    def current_reason(self, at: int) -> str:
        """Say why the schedule has its value at an instant."""
        return current_reason(self.claims, at, self.zone, self.followed.schedule.default_replicas)


@dataclass(frozen=True, slots=True)
class CompiledFollower:
    """An autoscaler all of whose metrics are schedules, with their values over time."""

    follower: ScheduleFollower
    schedules: tuple[CompiledSchedule, ...]

    @classmethod
    def of(
        cls, follower: ScheduleFollower, default_zone: str, calendars: Mapping[str, DayCalendar]
    ) -> CompiledFollower:
        """Compile the schedules of a follower that is complete."""
        return cls(follower, tuple(CompiledSchedule.of(one, default_zone, calendars) for one in follower.followed))

    @property
    def ratios(self) -> Timeline[tuple[Fraction, ...]]:
        """The values of all schedules over time, each divided by its target for one replica."""
        targets = [one.followed.target for one in self.schedules]
        return combine(
            lambda values: tuple(value / target for value, target in zip(values, targets, strict=True)),
            [one.values for one in self.schedules],
        )

    def moves(self, at: int, start: ProjectionStart | None = None) -> Iterator[ProjectedMove]:
        """Yield what the autoscaler does from an instant on."""
        return projected_moves(self.ratios.segments(at), self.follower.rules, start)

    def deciding(self, at: int) -> Sequence[CompiledSchedule]:
        """Return the schedules that change at an instant, or all if none does."""
        return [one for one in self.schedules if one.changes_at(at)] or self.schedules

    def schedule_reason(self, at: int) -> str:
        """Say which schedules change at an instant, and why; or why they have their values then."""
        return "; ".join(self._named(one, one.reason(at)) for one in self.deciding(at))

    def current_reason(self, at: int) -> str:
        """Say why all schedules have their values at an instant."""
        return "; ".join(self._named(one, one.current_reason(at)) for one in self.schedules)

    def _named(self, schedule: CompiledSchedule, reason: str) -> str:
        return f"MetricsProducer `{schedule.followed.name}`: {reason}" if len(self.schedules) > 1 else reason

    def reason(self, step: ProjectedMove) -> str:
        """Say why the autoscaler has the replicas of a step."""
        return "; ".join([self.schedule_reason(step.since), *self.limits(step)])

    def limits(self, step: ProjectedMove) -> Iterator[str]:
        """Say what else decides about the replicas of a step: a bound, a window or a policy."""
        rules, move, waited = self.follower.rules, step.move, step.waited
        bounds = rules.bounds
        if waited is not None and waited.window is not None and move.window is None:
            yield f"after the stabilization window of {_window(rules, waited)} s"
        if waited is not None and waited.speed is not None and move.speed is None:
            yield f"once the policies of {_direction(waited)} allow it"
        if step.recommended > bounds.most and move.replicas == bounds.most:
            yield f"{step.recommended} are asked for, cut to {self.follower.most_field} {bounds.most}"
        if step.recommended < bounds.least and move.replicas == bounds.least:
            yield f"{step.recommended} are asked for, raised to {self.follower.least_field} {bounds.least}"
        if move.speed is not None:
            yield f"the policies of {_direction(move)} allow no more at once"
        if move.window is not None:
            yield f"limited by the stabilization window of {_window(rules, move)} s"


def _direction(move: ScalingMove) -> str:
    return "scaleUp" if move.up else "scaleDown"


def _window(rules: ProjectionRules, move: ScalingMove) -> int:
    return (rules.behaviour.up if move.up else rules.behaviour.down).window


@dataclass(slots=True)
class _Level:
    """A number over time, as a lane needs it."""

    query: ForecastQuery
    current: int = 0
    because: str = ""
    changes: list[LaneChange] = field(default_factory=list)
    next: LaneChange | None = None
    _value: int | None = None

    def take(self, at: int, value: int, because: Callable[[], str]) -> None:
        """Take the value that holds from an instant on; instants are in order."""
        if value == self._value:
            return
        self._value = value
        if at <= self.query.start:
            self.current = value
            return
        change = LaneChange(at, value, because())
        self.next = self.next or change
        if at <= self.query.until:
            self.changes.append(change)

    @property
    def values(self) -> Iterator[int]:
        """All values in the time of the forecast."""
        yield self.current
        for change in self.changes:
            assert isinstance(change.value, int)  # noqa: S101 - as taken
            yield change.value

    def lane(self, name: str, most: int) -> Lane:
        """Return the lane."""
        return Lane(name, LaneStyle.LEVEL, self.current, tuple(self.changes), self.next, self.because, most)


def forecast_follower(follower: ScheduleFollower, query: ForecastQuery, *, always: bool = False) -> Forecast | None:
    """Forecast an autoscaler; None where its metrics are not all known, or its bounds never cut them in this time.

    Without a cut, the replicas are those of the schedule; `always` forecasts them nevertheless.
    """
    if not follower.complete:
        return None
    compiled = CompiledFollower.of(follower, query.default_zone, query.calendars)
    replicas, recommended = _walk(compiled, query)
    loaded, bounds = follower.loaded, follower.rules.bounds
    cut = any(bounds.clamp(value) != value for value in recommended.values)
    if not cut and not always:
        return None
    most = max(*replicas.values, *recommended.values)
    lanes = [replicas.lane("replicas", most)]
    if cut:
        lanes.append(recommended.lane("schedule", most))
    return Forecast(
        api_version=loaded.api_version,
        kind=loaded.kind.kind,
        namespace=loaded.namespace,
        name=loaded.name,
        start=query.start,
        until=query.until,
        zones=tuple(dict.fromkeys(one.zone.name for one in compiled.schedules)),
        lanes=tuple(lanes),
        problems=loaded.problems,
    )


def _walk(compiled: CompiledFollower, query: ForecastQuery) -> tuple[_Level, _Level]:
    """Follow the schedules from some time before the forecast, so that windows and periods are observed in full."""
    behaviour = compiled.follower.rules.behaviour
    begins = query.start - behaviour.longest_window - behaviour.longest_period
    replicas, recommended = _Level(query), _Level(query)
    limits: Sequence[str] = ()
    ahead = 0
    for step in compiled.moves(begins):
        if step.at > query.until:
            ahead += 1
            if ahead > _MOST_STEPS_AHEAD or (replicas.next is not None and recommended.next is not None):
                break
        if step.at <= query.start:
            limits = list(compiled.limits(step))
        if step.at == step.since:  # later, it depends on the replicas reached meanwhile
            recommended.take(step.at, step.recommended, partial(compiled.schedule_reason, step.since))
        replicas.take(step.at, step.replicas, partial(compiled.reason, step))
    current = compiled.current_reason(query.start)
    recommended.because, replicas.because = current, "; ".join([current, *limits])
    return replicas, recommended
