"""Stabilisation: a number follows the best recommendation of a window, not the latest.

To shrink, it goes no lower than the highest recommendation of the last so many seconds; to grow, no higher than the
lowest. A recommendation holds until the next one is made, so how often somebody looks does not matter: what was
recommended until five o'clock counts until a window after five o'clock.

What was recommended before anybody looked is not known, and might have been anything. So nothing moves before a whole
window has been seen.

Speed limits: how much a number may change within a period, seen from where the period began.

From what is recommended to what is done now: windows, then speed limits, all within bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from springtide.scaling.recommendations import PolicySelect


@dataclass(frozen=True, slots=True)
class RecommendationSteps:
    """What was recommended over time."""

    steps: tuple[tuple[int, int], ...] = ()
    """From which instant on, and how many; in order. Several of one instant all count."""

    def then(self, now: int, replicas: int, *, keep: int) -> RecommendationSteps:
        """Add a recommendation, and forget those that ended so many seconds ago.

        Where the clock was set back, what lies in the future now has just been recommended.
        """
        steps = [(min(at, now), each) for at, each in self.steps]
        if not steps or steps[-1][1] != replicas:
            steps.append((now, replicas))
        while len(steps) > 1 and steps[1][0] <= now - keep:
            del steps[0]
        return RecommendationSteps(tuple(steps))

    def ended_after(self, instant: int) -> list[tuple[int, int]]:
        """List those that held until after an instant and have ended: when, and how many."""
        return [(end, replicas) for (_, replicas), (end, _) in pairwise(self.steps) if end > instant]

    def within(self, clamp: Callable[[int], int]) -> RecommendationSteps:
        """Bring all of them within bounds."""
        return RecommendationSteps(tuple((at, clamp(replicas)) for at, replicas in self.steps))


@dataclass(frozen=True, slots=True)
class StabilizedReplicas:
    """How far a number may move."""

    replicas: int
    until: int | None = None
    """When it may move further, if the recommendation stays as it is; None: it is not held back."""
    unseen: bool = False
    """Whether it is held back only because nobody has looked for a whole window."""


def stabilize(history: RecommendationSteps, current: int, window: int, now: int) -> StabilizedReplicas:
    """Move towards the latest recommendation as far as all others of a window allow."""
    (first, _), (_, wanted) = history.steps[0], history.steps[-1]
    # The two directions mirror each other: growing is shrinking with the signs turned around.
    sign = 1 if wanted < current else -1
    before = [(end, sign * replicas) for end, replicas in history.ended_after(now - window)]
    if first > now - window:
        before.append((first, sign * current))
    stable = min(sign * current, max([sign * wanted, *(each for _, each in before)]))
    if stable == sign * wanted:
        return StabilizedReplicas(wanted)
    last = max(end for end, each in before if each >= stable)
    return StabilizedReplicas(sign * stable, last + window, unseen=last == first)


@dataclass(frozen=True, slots=True)
class ChangePolicy:
    """So much within so many seconds."""

    value: int
    period: int
    percent: bool = False
    """Whether `value` is a percentage of the replicas at the beginning of the period, and not a number of them."""
    least: int = 1
    """What a percentage comes to at least: else nothing would ever grow from none."""

    def change(self, start: int) -> int:
        """Tell by how many replicas it may change in a period that began with so many; a part of one counts as one."""
        return max(self.least, -(-start * self.value // 100)) if self.percent else self.value


@dataclass(frozen=True, slots=True)
class ReplicaChanges:
    """What was changed: instants, and by how many replicas; fewer are negative."""

    made: tuple[tuple[int, int], ...] = ()
    doubtful: tuple[tuple[int, int], ...] = ()
    """Those of which nobody knows who made them: they leave less room to go on, and no more room to go back."""

    def as_of(self, now: int, *, keep: int) -> ReplicaChanges:
        """Forget what is older than so many seconds; where the clock was set back, the future has just happened."""
        made, doubtful = (
            tuple((min(at, now), change) for at, change in changes if at > now - keep)
            for changes in (self.made, self.doubtful)
        )
        return ReplicaChanges(made, doubtful)

    def then(self, now: int, change: int) -> ReplicaChanges:
        """Add a change."""
        return ReplicaChanges((*self.made, (now, change)), self.doubtful)

    def counting(self, *, up: bool) -> ReplicaChanges:
        """Give those that count for whoever moves in a direction."""
        return ReplicaChanges((*self.made, *((at, change) for at, change in self.doubtful if (change > 0) == up)))

    def start(self, current: int, period: int, now: int) -> int:
        """Tell how many replicas there would be without the changes of a period that ends now."""
        return current - sum(change for at, change in self.made if at > now - period)


class SummedChanges:
    """The same changes, summed up: for those who ask about very many periods."""

    def __init__(self, changes: ReplicaChanges) -> None:
        made = sorted(changes.made)
        self._times = [at for at, _ in made]
        self._until = list(accumulate((change for _, change in made), initial=0))

    def start(self, current: int, period: int, now: int) -> int:
        """Tell how many replicas there would be without the changes of a period that ends now."""
        return current - (self._until[-1] - self._until[bisect_right(self._times, now - period)])


def furthest_allowed(
    policies: Sequence[ChangePolicy],
    select: PolicySelect,
    changes: ReplicaChanges | SummedChanges,
    current: int,
    now: int,
    *,
    up: bool,
) -> int | None:
    """Tell how far policies let a number move now; None where there are none."""
    if select is PolicySelect.DISABLED:
        return current
    sign = 1 if up else -1
    room = [
        # From where the period began, seen from where we are.
        policy.change(start) - sign * (current - start)
        for policy in policies
        for start in (changes.start(current, policy.period, now),)
    ]
    if not room:
        return None
    return current + sign * max(0, min(room) if select is PolicySelect.MIN else max(room))


UP_WINDOW = 0
DOWN_WINDOW = 300
"""Seconds in which the highest recommendation counts before anything is taken away, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class DirectionLimits:
    """How a number may move in one direction."""

    window: int
    select: PolicySelect = PolicySelect.MAX
    policies: tuple[ChangePolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class ScalingBehavior:
    """How a number may move."""

    up: DirectionLimits = DirectionLimits(UP_WINDOW)
    down: DirectionLimits = DirectionLimits(DOWN_WINDOW)

    @property
    def longest_window(self) -> int:
        """How far back recommendations count."""
        return max(self.up.window, self.down.window)

    @property
    def longest_period(self) -> int:
        """How far back changes count."""
        return max((policy.period for policy in (*self.up.policies, *self.down.policies)), default=0)


@dataclass(frozen=True, slots=True)
class ScalingBounds:
    """Between which numbers it stays."""

    least: int
    most: int

    def clamp(self, replicas: int) -> int:
        """Give the nearest number within."""
        return max(self.least, min(self.most, replicas))


@dataclass(frozen=True, slots=True)
class ReplicaHistory:
    """What was recommended, and what was done."""

    recommendations: RecommendationSteps = field(default_factory=RecommendationSteps)
    changes: ReplicaChanges = field(default_factory=ReplicaChanges)
    overruled: int | None = None
    """The highest recommendation that did not keep fewer from being asked for."""

    def changed(self, at: int, before: int, after: int) -> ReplicaHistory:
        """Take down that the number was changed."""
        return replace(self, changes=self.changes.then(at, after - before))


@dataclass(frozen=True, slots=True)
class ScalingHold:
    """What keeps a number back for a while."""

    at: int
    """The number that it does not go beyond."""
    until: int
    unseen: bool = False
    """Whether only because nobody has looked for a whole window."""


@dataclass(frozen=True, slots=True)
class ScalingMove:
    """What is done now, and what keeps it from being more."""

    replicas: int
    history: ReplicaHistory
    """What was recommended is in it; what is done must be added when it is done."""
    up: bool = False
    """Whether more replicas are asked for."""
    disabled: bool = False
    """Whether it does not move because its direction is disabled."""
    window: ScalingHold | None = None
    speed: ScalingHold | None = None

    @property
    def again(self) -> int | None:
        """The first instant at which more may be done."""
        return min((hold.until for hold in (self.window, self.speed) if hold is not None), default=None)


def move(
    current: int, wanted: int, behaviour: ScalingBehavior, bounds: ScalingBounds, history: ReplicaHistory, now: int
) -> ScalingMove:
    """Move from the current number towards one that is wanted, as far as is allowed now.

    Bounds come before everything: a number outside is brought in at once, and recommendations beyond them count as the
    bound, in the past as well.
    """
    seen = ReplicaHistory(
        history.recommendations.then(now, wanted, keep=behaviour.longest_window),
        history.changes.as_of(now, keep=behaviour.longest_period),
        history.overruled,
    )
    here, there = bounds.clamp(current), bounds.clamp(wanted)
    up = there > here
    rules = behaviour.up if up else behaviour.down
    if there == here:
        return ScalingMove(here, seen)
    if rules.select is PolicySelect.DISABLED:
        return ScalingMove(here, seen, up, disabled=True)
    stable = stabilize(seen.recommendations.within(bounds.clamp), here, rules.window, now)
    window = None if stable.until is None else ScalingHold(stable.replicas, stable.until, stable.unseen)
    # What bringing it within the bounds takes counts as a change, like any other.
    changes = seen.changes.counting(up=up)
    changes = changes.then(now, here - current) if here != current else changes
    limit = furthest_allowed(rules.policies, rules.select, changes, here, now, up=up)
    if limit is None or (stable.replicas <= limit if up else stable.replicas >= limit):
        return ScalingMove(stable.replicas, seen, up, window=window)
    after = changes.then(now, limit - here)
    return ScalingMove(
        limit, seen, up, window=window, speed=ScalingHold(limit, _further(rules, after, limit, now, up=up))
    )


def _further(rules: DirectionLimits, changes: ReplicaChanges, current: int, now: int, *, up: bool) -> int:
    """Find when policies that allow no more now allow more; each lets go of a change when its period is over."""
    periods = dict.fromkeys(policy.period for policy in rules.policies)
    instants = dict.fromkeys(at for at, _ in changes.made)
    # Each once: many changes and many policies meet at few instants.
    ends = sorted({at + period: None for at in instants for period in periods if at + period > now})
    past = SummedChanges(changes)
    free = (end for end in ends if furthest_allowed(rules.policies, rules.select, past, current, end, up=up) != current)
    return next(free, ends[-1])
