"""From a value and its target to a number of replicas.

Ratios are exact fractions, so that a target that is met exactly is met: nothing depends on how floats round.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

MOST = 2**31 - 1
"""The largest number that the API has a place for."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a ratio may be from 1 before anything is done about it."""

    down: Fraction = Fraction(0)
    up: Fraction = Fraction(0)

    def holds(self, ratio: Fraction) -> bool:
        """Tell whether a ratio is close enough."""
        return 1 - self.down <= ratio <= 1 + self.up


def in_proportion(ratio: Fraction, *, asked: int, present: int, tolerance: Tolerance) -> int:
    """Change replicas as a value relates to its target, supposing that it falls as they grow; never to none.

    The ratio was measured on the replicas that are present. If it is close to 1, those that are asked for may stay,
    also while some of them are still coming. Measured on none it says nothing: they have only just been asked for, or
    nobody can look at them.
    """
    if not present or tolerance.holds(ratio):
        return max(1, asked)
    return min(MOST, max(1, ceil(present * ratio)))


def per_replica(ratio: Fraction, *, current: int, tolerance: Tolerance) -> int:
    """Give every replica its share of a value, or leave it at the current number; of nothing, nobody needs one."""
    if current and tolerance.holds(ratio / current):
        return current
    return min(MOST, max(0, ceil(ratio)))
