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


@dataclass(frozen=True, slots=True)
class ProjectedMove:
    """One evaluation of the metrics: at a change of theirs, or when a window or a policy allows more."""

    at: int
    recommended: int
    """The combined recommendation, which may be beyond the bounds."""
    move: ScalingMove
    waited: ScalingMove | None = None
    """The move before, if the metrics are the same and a window or a policy had delayed it."""

    @property
    def replicas(self) -> int:
        """The number of replicas from now on."""
        return self.move.replicas


def projected_moves(
    values: Iterable[tuple[int, Sequence[Fraction]]], rules: ProjectionRules
) -> Iterator[ProjectedMove]:
    """Yield what an autoscaler does about values that hold from one instant to the next, in order.

    At the first instant it has the replicas that its metrics recommend, and its windows have passed.
    """
    segments = iter(values)
    at, ratios = next(segments)
    current = rules.bounds.clamp(max(rules.recommend(ratios, 0)))
    settled = max(rules.recommend(ratios, current))
    history = ReplicaHistory(RecommendationSteps(((at - rules.behaviour.longest_window, settled),)))
    upcoming = next(segments, None)
    waited: ScalingMove | None = None
    while True:
        recommendations = rules.recommend(ratios, current)
        wanted, moved = move_as_recommended(recommendations, current, rules.behaviour, rules.bounds, history, at)
        history = moved.history if moved.replicas == current else moved.history.changed(at, current, moved.replicas)
        current = moved.replicas
        yield ProjectedMove(at, wanted, moved, waited)
        again = moved.again
        if upcoming is not None and (again is None or upcoming[0] <= again):
            (at, ratios), waited = upcoming, None
            upcoming = next(segments, None)
        elif again is not None:
            at, waited = again, moved
        else:
            return
