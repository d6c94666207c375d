"""Stabilisation: a number follows the best recommendation of a window, not the latest.

To shrink, it goes no lower than the highest recommendation of the last so many seconds; to grow, no higher than the
lowest. A recommendation holds until the next one is made, so how often somebody looks does not matter: what was
recommended until five o'clock counts until a window after five o'clock.

What was recommended before anybody looked is not known, and might have been anything. So nothing moves before a whole
window has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Recommendations:
    """What was recommended over time."""

    steps: tuple[tuple[int, int], ...] = ()
    """From which instant on, and how many; in order. Several of one instant all count."""

    def then(self, now: int, replicas: int, *, keep: int) -> Recommendations:
        """Add a recommendation, and forget those that ended so many seconds ago.

        Where the clock was set back, what lies in the future now has just been recommended.
        """
        steps = [(min(at, now), each) for at, each in self.steps]
        if not steps or steps[-1][1] != replicas:
            steps.append((now, replicas))
        while len(steps) > 1 and steps[1][0] <= now - keep:
            del steps[0]
        return Recommendations(tuple(steps))

    def ended_after(self, instant: int) -> list[tuple[int, int]]:
        """List those that held until after an instant and have ended: when, and how many."""
        return [(end, replicas) for (_, replicas), (end, _) in pairwise(self.steps) if end > instant]

    def within(self, clamp: Callable[[int], int]) -> Recommendations:
        """Bring all of them within bounds."""
        return Recommendations(tuple((at, clamp(replicas)) for at, replicas in self.steps))


@dataclass(frozen=True, slots=True)
class Stable:
    """How far a number may move."""

    replicas: int
    until: int | None = None
    """When it may move further, if the recommendation stays as it is; None: it is not held back."""
    unseen: bool = False
    """Whether it is held back only because nobody has looked for a whole window."""


def stabilised(history: Recommendations, current: int, window: int, now: int) -> Stable:
    """Move towards the latest recommendation as far as all others of a window allow."""
    (first, _), (_, wanted) = history.steps[0], history.steps[-1]
    # The two directions mirror each other: growing is shrinking with the signs turned around.
    sign = 1 if wanted < current else -1
    before = [(end, sign * replicas) for end, replicas in history.ended_after(now - window)]
    if first > now - window:
        before.append((first, sign * current))
    stable = min(sign * current, max([sign * wanted, *(each for _, each in before)]))
    if stable == sign * wanted:
        return Stable(wanted)
    last = max(end for end, each in before if each >= stable)
    return Stable(sign * stable, last + window, unseen=last == first)
