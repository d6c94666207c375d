"""From a value and its target to a number of replicas.

Ratios are exact fractions, so that a target that is met exactly is met: nothing depends on how floats round.

What several recommendations come to together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

MOST = 2**31 - 1
"""The largest number that the API has a place for."""


@dataclass(frozen=True, slots=True)
class ScalingTolerance:
    """How far a ratio may be from 1 before anything is done about it."""

    down: Fraction = Fraction(0)
    up: Fraction = Fraction(0)

    def holds(self, ratio: Fraction) -> bool:
        """Tell whether a ratio is close enough."""
        return 1 - self.down <= ratio <= 1 + self.up


def proportional_replicas(ratio: Fraction, *, asked: int, present: int, tolerance: ScalingTolerance) -> int:
    """Change replicas as a value relates to its target, supposing that it falls as they grow; never to none.

    The ratio was measured on the replicas that are present. If it is close to 1, those that are asked for may stay,
    also while some of them are still coming. Measured on none it says nothing: they have only just been asked for, or
    nobody can look at them.
    """
    if not present or tolerance.holds(ratio):
        return max(1, asked)
    return min(MOST, max(1, ceil(present * ratio)))


def average_value_replicas(ratio: Fraction, *, current: int, tolerance: ScalingTolerance) -> int:
    """Give every replica its share of a value, or leave it at the current number; of nothing, nobody needs one."""
    if current and tolerance.holds(ratio / current):
        return current
    return min(MOST, max(0, ceil(ratio)))


class PolicySelect(StrEnum):
    """Which of several is taken in a direction."""

    MAX = "Max"
    """Of recommendations the highest; of policies the one that allows most."""
    MIN = "Min"
    """Of recommendations the lowest; of policies the one that allows least."""
    DISABLED = "Disabled"
    """Nothing moves this way."""

    def among(self, numbers: Iterable[int]) -> int:
        """Take one of some recommendations; a direction that is disabled still has a highest one."""
        return min(numbers) if self is PolicySelect.MIN else max(numbers)


@dataclass(frozen=True, slots=True)
class CombinedRecommendation:
    """What is asked for, all in all."""

    replicas: int
    overruled: int | None = None
    """The highest recommendation, where fewer are asked for all the same; None: nobody wants more."""


def combine_recommendations(
    recommendations: Sequence[int], current: int, *, up: PolicySelect, down: PolicySelect, overruled: int | None = None
) -> CombinedRecommendation:
    """Give what is asked for, judged for each direction by its own rule.

    More replicas are asked for if the choice for more says so; else fewer, if the choice for fewer does. A rule for one
    direction never moves anything in the other.

    The highest for more and the lowest for fewer would contradict each other for ever, one undoing what the other did.
    So what was overruled when fewer were asked for asks for more only when it rises.
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
    """Give what is asked for in any case, while some recommendations are not known: never fewer than there are.

    Of the highest it is certain that it is no lower than the highest that is known. Of the lowest nothing is. What was
    overruled before stays so: that another metric is missing is no reason to bring it back.
    """
    if not recommendations or up is PolicySelect.MIN:
        return current
    most = max(recommendations)
    return max(current, most) if overruled is None or most > overruled else current
