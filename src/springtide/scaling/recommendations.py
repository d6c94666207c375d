"""Recommendations: from a metric's value and target to a number of replicas, and one number from several metrics.

Ratios are exact fractions, so that results do not depend on the rounding of floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

MOST = 2**31 - 1
"""The largest number of replicas that the API can represent."""


@dataclass(frozen=True, slots=True)
class ScalingTolerance:
    """How far a ratio may be from 1 without a change."""

    down: Fraction = Fraction(0)
    up: Fraction = Fraction(0)

    def holds(self, ratio: Fraction) -> bool:
        """Return whether a ratio is within the tolerance."""
        return 1 - self.down <= ratio <= 1 + self.up


def proportional_replicas(ratio: Fraction, *, asked: int, present: int, tolerance: ScalingTolerance) -> int:
    """Multiply the replicas by the ratio of value and target; at least 1.

    The ratio was measured on the present replicas. If it is within the tolerance, the requested number stays, even
    while some replicas are not present yet. A ratio measured on no replicas is ignored: they were only just requested,
    or cannot be observed.
    """
    if not present or tolerance.holds(ratio):
        return max(1, asked)
    return min(MOST, max(1, ceil(present * ratio)))


def average_value_replicas(ratio: Fraction, *, current: int, tolerance: ScalingTolerance) -> int:
    """Divide a total by its target for each replica; within the tolerance, the current number stays; 0 for 0."""
    if current and tolerance.holds(ratio / current):
        return current
    return min(MOST, max(0, ceil(ratio)))


class PolicySelect(StrEnum):
    """How one of several recommendations or policies is selected for a direction."""

    MAX = "Max"
    """The highest recommendation; the policy that allows most."""
    MIN = "Min"
    """The lowest recommendation; the policy that allows least."""
    DISABLED = "Disabled"
    """No change in this direction."""

    def among(self, numbers: Iterable[int]) -> int:
        """Select a recommendation; for a disabled direction the highest."""
        return min(numbers) if self is PolicySelect.MIN else max(numbers)


@dataclass(frozen=True, slots=True)
class CombinedRecommendation:
    """The result of several recommendations."""

    replicas: int
    overruled: int | None = None
    """The highest recommendation, if the result is lower; None: no metric recommends more."""


def combine_recommendations(
    recommendations: Sequence[int], current: int, *, up: PolicySelect, down: PolicySelect, overruled: int | None = None
) -> CombinedRecommendation:
    """Combine recommendations with one selection for each direction.

    The result is the selection for scaling up if that is higher than the current number, else the selection for scaling
    down if that is lower, else the current number.

    Max for up and Min for down could flap: each would undo what the other did. So a recommendation that was overruled
    when scaling down scales up only when it rises.
    """
    more, fewer = up.among(recommendations), down.among(recommendations)
    known = None if overruled is None else min(overruled, more)
    if more > current and (known is None or more > known):
        return CombinedRecommendation(more)
    if fewer < current:
        return CombinedRecommendation(fewer, more if more > fewer else None)
    return CombinedRecommendation(current, known)


def combine_known(
    recommendations: Sequence[int], current: int, *, up: PolicySelect, overruled: int | None = None
) -> int:
    """Combine the known recommendations while others are unknown: never lower than the current number.

    The highest of all is at least the highest known one; nothing is certain about the lowest. A recommendation that was
    overruled stays overruled.
    """
    if not recommendations or up is PolicySelect.MIN:
        return current
    most = max(recommendations)
    return max(current, most) if overruled is None or most > overruled else current
