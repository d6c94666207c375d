"""Forecasts of autoscalers that follow schedules only: the replicas that they set, beside those that are asked for.

Stabilization windows, policies, tolerances and bounds are applied by the functions that the controller decides with.
A HorizontalPodAutoscaler evaluates its metrics every 15 seconds, so that its changes come up to that much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from springtide.almanac import Timeline, Zone, combine
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
from springtide.scaling import ProjectedMove, projected_moves

_MOST_STEPS_AHEAD = 10_000
"""How many changes of the metrics after the forecast are searched for the next change of the replicas."""


@dataclass(frozen=True, slots=True)
class _CompiledSchedule:
    """A followed schedule, compiled for the forecast."""

    followed: FollowedSchedule
    claims: tuple[CompiledBehavior, ...]
    values: Timeline[int]
    zone: Zone

    def reason(self, at: int, *, changed: bool) -> str:
        """Say why the schedule has its value at an instant, or changes to it then."""
        reason = change_reason if changed else current_reason
        return reason(self.claims, at, self.zone, self.followed.schedule.default_replicas)


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
    schedules = [_compile(one, query) for one in follower.followed]
    replicas, recommended = _walk(follower, schedules, query)
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
        zones=tuple(dict.fromkeys(one.zone.name for one in schedules)),
        lanes=tuple(lanes),
        problems=loaded.problems,
    )


def _compile(followed: FollowedSchedule, query: ForecastQuery) -> _CompiledSchedule:
    zone = zone_of(followed.schedule, query.default_zone)
    claims = compile_behaviors(followed.schedule, zone, query.calendars)
    values = replicas_over_time(claims, followed.schedule.default_replicas)
    return _CompiledSchedule(followed, claims, values, zone)


def _walk(
    follower: ScheduleFollower, schedules: Sequence[_CompiledSchedule], query: ForecastQuery
) -> tuple[_Level, _Level]:
    """Follow the schedules from some time before the forecast, so that windows and periods are observed in full."""
    behaviour = follower.rules.behaviour
    begins = query.start - behaviour.longest_window - behaviour.longest_period
    ratios = combine(_ratios(schedules), [one.values for one in schedules])
    replicas, recommended = _Level(query), _Level(query)
    changed, latest = begins, ""
    ahead = 0
    for step in projected_moves(ratios.segments(begins), follower.rules):
        if step.at > query.until:
            ahead += 1
            if ahead > _MOST_STEPS_AHEAD or (replicas.next is not None and recommended.next is not None):
                break
        changed = step.at if step.waited is None else changed
        if step.at <= query.start:
            latest = _limits(follower, step)
        reason = partial(_reasons, schedules, changed)
        recommended.take(step.at, step.recommended, reason)
        replicas.take(step.at, step.replicas, partial(_reason_within, follower, step, reason))
    current = "; ".join(one.reason(query.start, changed=False) for one in schedules)
    recommended.because, replicas.because = current, current + latest
    return replicas, recommended


def _ratios(schedules: Sequence[_CompiledSchedule]) -> Callable[[Sequence[int]], tuple[Fraction, ...]]:
    targets = [one.followed.target for one in schedules]
    return lambda values: tuple(value / target for value, target in zip(values, targets, strict=True))


def _reasons(schedules: Sequence[_CompiledSchedule], at: int) -> str:
    """Say which schedules change at an instant, and why."""
    changing = [one for one in schedules if one.values.at(at - 1) != one.values.at(at)]
    several = len(schedules) > 1
    return "; ".join(
        (f"MetricsProducer `{one.followed.name}`: " if several else "") + one.reason(at, changed=True)
        for one in changing
    )


def _reason_within(follower: ScheduleFollower, step: ProjectedMove, reason: Callable[[], str]) -> str:
    return reason() + _limits(follower, step)


def _limits(follower: ScheduleFollower, step: ProjectedMove) -> str:
    """Say what else decides about the replicas of a step: a bound, a window or a policy."""
    bounds, move = follower.rules.bounds, step.move
    if step.recommended > bounds.most and move.replicas == bounds.most:
        return f"; {step.recommended} are asked for, cut to {follower.most_field} {bounds.most}"
    if step.recommended < bounds.least and move.replicas == bounds.least:
        return f"; {step.recommended} are asked for, raised to {follower.least_field} {bounds.least}"
    if move.speed is not None:
        return f"; the policies of {'scaleUp' if move.up else 'scaleDown'} allow no more at once"
    if step.waited is not None and step.waited.window is not None:
        behaviour = follower.rules.behaviour
        window = (behaviour.up if step.waited.up else behaviour.down).window
        return f"; after the stabilization window of {window} s"
    return ""
