"""The moves of an autoscaler whose metrics are known in advance, by the same functions as its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from springtide.scaling.behavior import (
    RecommendationSteps,
    ReplicaHistory,
    ScalingBehavior,
    ScalingBounds,
    ScalingMove,
    move_as_recommended,
)
from springtide.scaling.recommendations import ScalingTolerance, average_value_replicas

EVALUATION_PERIOD = 15
"""Seconds between two evaluations of metrics."""


@dataclass(frozen=True, slots=True)
class ProjectionRules:
    """What turns the values of metrics into replicas."""

    bounds: ScalingBounds
    behaviour: ScalingBehavior
    tolerance: ScalingTolerance
    highest: bool = False
    """Whether the highest recommendation counts, whatever the behaviour selects among policies."""

    def recommend(self, ratios: Sequence[Fraction], current: int) -> list[int]:
        """Return the recommendations of metrics by their values, each divided by its target for one replica."""
        found = [average_value_replicas(ratio, current=current, tolerance=self.tolerance) for ratio in ratios]
        return [max(found)] if self.highest else found

    def select(self, ratios: Sequence[Fraction], current: int) -> int:
        """Return the recommendation that counts for scaling up; the tolerance of 0 replicas is 0."""
        return self.behaviour.up.select.among(self.recommend(ratios, current))


@dataclass(frozen=True, slots=True)
class ProjectionStart:
    """What an autoscaler knows at the first instant: the replicas of its target, and the past."""

    replicas: int
    history: ReplicaHistory


@dataclass(frozen=True, slots=True)
class ProjectedMove:
    """One evaluation of the metrics."""

    at: int
    since: int
    """The last change of the metrics, or the first instant."""
    before: int
    """The number of replicas until now."""
    recommended: int
    """The combined recommendation, which may be beyond the bounds."""
    move: ScalingMove
    waited: ScalingMove | None = None
    """The move before, if the metrics are the same."""

    @property
    def replicas(self) -> int:
        """The number of replicas from now on."""
        return self.move.replicas

    @property
    def changes(self) -> bool:
        """Whether the number of replicas changes."""
        return self.replicas != self.before


def projected_moves(
    values: Iterable[tuple[int, Sequence[Fraction]]], rules: ProjectionRules, start: ProjectionStart | None = None
) -> Iterator[ProjectedMove]:
    """Yield what an autoscaler does about values that hold from one instant to the next, in order.

    It evaluates them at each of their changes, when a window or a policy allows more, and a period after each change of
    the replicas, on which tolerances depend; of the last, only what differs is yielded. Without a start, it has the
    replicas that its metrics recommend at the first instant, and its windows have passed.
    """
    segments = iter(values)
    at, ratios = next(segments)
    start = start or _settled(rules, ratios, at)
    current, history = start.replicas, start.history
    upcoming = next(segments, None)
    since, waited, last = at, None, 0
    while True:
        recommendations = rules.recommend(ratios, current)
        wanted, moved = move_as_recommended(recommendations, current, rules.behaviour, rules.bounds, history, at)
        step = ProjectedMove(at, since, current, wanted, moved, waited)
        if waited is None or step.changes or wanted != last:
            yield step
        current, last = moved.replicas, wanted
        history = moved.history.changed(at, step.before, current) if step.changes else moved.history
        due = [at + EVALUATION_PERIOD] if step.changes else []
        again = min(due if moved.again is None else [*due, moved.again], default=None)
        if upcoming is not None and (again is None or upcoming[0] <= again):
            (at, ratios), waited = upcoming, None
            since = at
            upcoming = next(segments, None)
        elif again is not None:
            at, waited = again, moved
        else:
            return


def _settled(rules: ProjectionRules, ratios: Sequence[Fraction], at: int) -> ProjectionStart:
    current = rules.bounds.clamp(rules.select(ratios, 0))
    steps = RecommendationSteps(((at - rules.behaviour.longest_window, rules.select(ratios, current)),))
    return ProjectionStart(current, ReplicaHistory(steps))
