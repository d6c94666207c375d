"""From what is recommended to what is done now: windows, then speed limits, all within bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from springtide.scaling.choice import Select
from springtide.scaling.policies import Changes, Policy, SummedChanges, farthest
from springtide.scaling.windows import Recommendations, stabilised

UP_WINDOW = 0
DOWN_WINDOW = 300
"""Seconds in which the highest recommendation counts before anything is taken away, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a number may move in one direction."""

    window: int
    select: Select = Select.MAX
    policies: tuple[Policy, ...] = ()


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a number may move."""

    up: Rules = Rules(UP_WINDOW)
    down: Rules = Rules(DOWN_WINDOW)

    @property
    def longest_window(self) -> int:
        """How far back recommendations count."""
        return max(self.up.window, self.down.window)

    @property
    def longest_period(self) -> int:
        """How far back changes count."""
        return max((policy.period for policy in (*self.up.policies, *self.down.policies)), default=0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers it stays."""

    least: int
    most: int

    def clamp(self, replicas: int) -> int:
        """Give the nearest number within."""
        return max(self.least, min(self.most, replicas))


@dataclass(frozen=True, slots=True)
class History:
    """What was recommended, and what was done."""

    recommendations: Recommendations = field(default_factory=Recommendations)
    changes: Changes = field(default_factory=Changes)
    overruled: int | None = None
    """The highest recommendation that did not keep fewer from being asked for."""

    def changed(self, at: int, before: int, after: int) -> History:
        """Take down that the number was changed."""
        return replace(self, changes=self.changes.then(at, after - before))


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a number back for a while."""

    at: int
    """The number that it does not go beyond."""
    until: int
    unseen: bool = False
    """Whether only because nobody has looked for a whole window."""


@dataclass(frozen=True, slots=True)
class Move:
    """What is done now, and what keeps it from being more."""

    replicas: int
    history: History
    """What was recommended is in it; what is done must be added when it is done."""
    up: bool = False
    """Whether more replicas are asked for."""
    disabled: bool = False
    """Whether it does not move because its direction is disabled."""
    window: Hold | None = None
    speed: Hold | None = None

    @property
    def again(self) -> int | None:
        """The first instant at which more may be done."""
        return min((hold.until for hold in (self.window, self.speed) if hold is not None), default=None)


def move(current: int, wanted: int, behaviour: Behaviour, bounds: Bounds, history: History, now: int) -> Move:
    """Move from the current number towards one that is wanted, as far as is allowed now.

    Bounds come before everything: a number outside is brought in at once, and recommendations beyond them count as the
    bound, in the past as well.
    """
    seen = History(
        history.recommendations.then(now, wanted, keep=behaviour.longest_window),
        history.changes.as_of(now, keep=behaviour.longest_period),
        history.overruled,
    )
    here, there = bounds.clamp(current), bounds.clamp(wanted)
    up = there > here
    rules = behaviour.up if up else behaviour.down
    if there == here:
        return Move(here, seen)
    if rules.select is Select.DISABLED:
        return Move(here, seen, up, disabled=True)
    stable = stabilised(seen.recommendations.within(bounds.clamp), here, rules.window, now)
    window = None if stable.until is None else Hold(stable.replicas, stable.until, stable.unseen)
    # What bringing it within the bounds takes counts as a change, like any other.
    changes = seen.changes.counting(up=up)
    changes = changes.then(now, here - current) if here != current else changes
    limit = farthest(rules.policies, rules.select, changes, here, now, up=up)
    if limit is None or (stable.replicas <= limit if up else stable.replicas >= limit):
        return Move(stable.replicas, seen, up, window=window)
    after = changes.then(now, limit - here)
    return Move(limit, seen, up, window=window, speed=Hold(limit, _further(rules, after, limit, now, up=up)))


def _further(rules: Rules, changes: Changes, current: int, now: int, *, up: bool) -> int:
    """Find when policies that allow no more now allow more; each lets go of a change when its period is over."""
    periods = dict.fromkeys(policy.period for policy in rules.policies)
    instants = dict.fromkeys(at for at, _ in changes.made)
    # Each once: many changes and many policies meet at few instants.
    ends = sorted({at + period: None for at in instants for period in periods if at + period > now})
    past = SummedChanges(changes)
    free = (end for end in ends if farthest(rules.policies, rules.select, past, current, end, up=up) != current)
    return next(free, ends[-1])
