"""The arithmetic of horizontal autoscaling, as exact and pure functions that are independent of kinds.

A *recommendation* is the number of replicas that a metric asks for. A *stabilization window* delays a change that
recent recommendations contradict, a *policy* limits how fast the number changes, *bounds* limit the number itself.
"""

from springtide.scaling.behavior import (
    DOWN_WINDOW,
    UP_WINDOW,
    ChangePolicy,
    DirectionLimits,
    RecommendationSteps,
    ReplicaChanges,
    ReplicaHistory,
    ScalingBehavior,
    ScalingBounds,
    ScalingHold,
    ScalingMove,
    StabilizedReplicas,
    furthest_allowed,
    move,
    move_as_recommended,
    stabilize,
)
from springtide.scaling.projection import (
    EVALUATION_PERIOD,
    ProjectedMove,
    ProjectionRules,
    ProjectionStart,
    projected_moves,
)
from springtide.scaling.recommendations import (
    MOST,
    CombinedRecommendation,
    PolicySelect,
    ScalingTolerance,
    average_value_replicas,
    combine_known,
    combine_recommendations,
    proportional_replicas,
)

__all__ = [
    "DOWN_WINDOW",
    "EVALUATION_PERIOD",
    "MOST",
    "UP_WINDOW",
    "ChangePolicy",
    "CombinedRecommendation",
    "DirectionLimits",
    "PolicySelect",
    "ProjectedMove",
    "ProjectionRules",
    "ProjectionStart",
    "RecommendationSteps",
    "ReplicaChanges",
    "ReplicaHistory",
    "ScalingBehavior",
    "ScalingBounds",
    "ScalingHold",
    "ScalingMove",
    "ScalingTolerance",
    "StabilizedReplicas",
    "average_value_replicas",
    "combine_known",
    "combine_recommendations",
    "furthest_allowed",
    "move",
    "move_as_recommended",
    "projected_moves",
    "proportional_replicas",
    "stabilize",
]
