"""How many replicas there should be, and how far and fast their number may move: exact, pure, and knowing no kinds.

A *recommendation* is what a metric asks for. A *window* keeps the number from following recommendations that were
different a moment ago, a *policy* limits how fast it changes, *bounds* limit where it goes.
"""

from springtide.scaling.choice import Agreement, Select, agreed, certain
from springtide.scaling.moving import DOWN_WINDOW, UP_WINDOW, Behaviour, Bounds, History, Hold, Move, Rules, move
from springtide.scaling.policies import Changes, Policy, farthest
from springtide.scaling.recommendations import MOST, Tolerance, in_proportion, per_replica
from springtide.scaling.windows import Recommendations, Stable, stabilised

__all__ = [
    "DOWN_WINDOW",
    "MOST",
    "UP_WINDOW",
    "Agreement",
    "Behaviour",
    "Bounds",
    "Changes",
    "History",
    "Hold",
    "Move",
    "Policy",
    "Recommendations",
    "Rules",
    "Select",
    "Stable",
    "Tolerance",
    "agreed",
    "certain",
    "farthest",
    "in_proportion",
    "move",
    "per_replica",
    "stabilised",
]
