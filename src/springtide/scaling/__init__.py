"""How many replicas there should be, and how far and fast their number may move: exact, pure, and knowing no kinds.

A *recommendation* is what a metric asks for. A *window* keeps the number from following recommendations that were
different a moment ago, a *policy* limits how fast it changes, *bounds* limit where it goes.
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
    stabilize,
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
    "MOST",
    "UP_WINDOW",
    "ChangePolicy",
    "CombinedRecommendation",
    "DirectionLimits",
    "PolicySelect",
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
    "proportional_replicas",
    "stabilize",
]
