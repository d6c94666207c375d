"""From the recommended to the next number of replicas: stabilization windows, then policies, all within bounds.

Within the stabilization window, the number goes down at most to the highest recommendation, and up at most to the
lowest. A recommendation holds until the next one, so the result does not depend on how often metrics are read: what
was recommended until 17:00 counts until 17:00 plus the window. Recommendations before the first one are unknown, so
the number does not change before a whole window has been observed.

A policy limits how much the number may change within a period, relative to the number at the start of the period.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from springtide.scaling.recommendations import PolicySelect, combine_recommendations

UP_WINDOW = 0
DOWN_WINDOW = 300
"""The default stabilization windows, in seconds."""


@dataclass(frozen=True, slots=True)
class RecommendationSteps:
    """The recommendations over time, as a step function."""

    steps: tuple[tuple[int, int], ...] = ()
    """Instants and the recommendations that begin there, in order. Several of the same instant all count."""

    def then(self, now: int, replicas: int, *, keep: int) -> RecommendationSteps:
        """Add a recommendation, and drop those that ended more than `keep` seconds ago.

        If the clock was set back, recommendations in the future are moved to now.
        """
        steps = [(min(at, now), each) for at, each in self.steps]
        if not steps or steps[-1][1] != replicas:
            steps.append((now, replicas))
        while len(steps) > 1 and steps[1][0] <= now - keep:
            del steps[0]
        return RecommendationSteps(tuple(steps))

    def ended_after(self, instant: int) -> list[tuple[int, int]]:
        """List the past recommendations that held until after an instant: when they ended, and how many replicas."""
        return [(end, replicas) for (_, replicas), (end, _) in pairwise(self.steps) if end > instant]

    def within(self, clamp: Callable[[int], int]) -> RecommendationSteps:
        """Clamp all recommendations."""
        return RecommendationSteps(tuple((at, clamp(replicas)) for at, replicas in self.steps))


@dataclass(frozen=True, slots=True)
class StabilizedReplicas:
    """The number of replicas that the stabilization window allows."""

    replicas: int
    until: int | None = None
    """When the window allows more, if the recommendation stays the same; None: the window does not limit it."""
    unseen: bool = False
    """Whether the only reason is that a whole window has not been observed yet."""


def stabilize(history: RecommendationSteps, current: int, window: int, now: int) -> StabilizedReplicas:
    """Go towards the latest recommendation as far as all recommendations of the window allow."""
    (first, _), (_, wanted) = history.steps[0], history.steps[-1]
    # Scaling up is scaling down with inverted signs.
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
    """The largest change within a period."""

    value: int
    period: int
    percent: bool = False
    """Whether `value` is a percentage of the replicas at the start of the period, instead of a number."""
    least: int = 1
    """The smallest change that a percentage allows; without it, 0 replicas could never become more."""

    def change(self, start: int) -> int:
        """Return the largest change in a period that started with this number of replicas, rounded up."""
        return max(self.least, -(-start * self.value // 100)) if self.percent else self.value


@dataclass(frozen=True, slots=True)
class ReplicaChanges:
    """Past changes of the number of replicas: instants and differences."""

    made: tuple[tuple[int, int], ...] = ()
    doubtful: tuple[tuple[int, int], ...] = ()
    """Changes that another writer may have made: they count in their own direction, but not in the opposite one."""

    def as_of(self, now: int, *, keep: int) -> ReplicaChanges:
        """Drop changes older than `keep` seconds; if the clock was set back, changes in the future are moved to now."""
        made, doubtful = (
            tuple((min(at, now), change) for at, change in changes if at > now - keep)
            for changes in (self.made, self.doubtful)
        )
        return ReplicaChanges(made, doubtful)

    def then(self, now: int, change: int) -> ReplicaChanges:
        """Add a change."""
        return ReplicaChanges((*self.made, (now, change)), self.doubtful)

    def counting(self, *, up: bool) -> ReplicaChanges:
        """Return the changes that count for scaling in a direction."""
        return ReplicaChanges((*self.made, *((at, change) for at, change in self.doubtful if (change > 0) == up)))

    def start(self, current: int, period: int, now: int) -> int:
        """Return the number of replicas at the start of a period that ends now."""
        return current - sum(change for at, change in self.made if at > now - period)


class SummedChanges:
    """The same changes with their prefix sums, for many lookups."""

    def __init__(self, changes: ReplicaChanges) -> None:
        made = sorted(changes.made)
        self._times = [at for at, _ in made]
        self._until = list(accumulate((change for _, change in made), initial=0))

    def start(self, current: int, period: int, now: int) -> int:
        """Return the number of replicas at the start of a period that ends now."""
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
    """Return the furthest number of replicas that policies allow now; None: there are no policies."""
    if select is PolicySelect.DISABLED:
        return current
    sign = 1 if up else -1
    room = [
        # The change allowed since the start of the period, minus the change made since.
        policy.change(start) - sign * (current - start)
        for policy in policies
        for start in (changes.start(current, policy.period, now),)
    ]
    if not room:
        return None
    return current + sign * max(0, min(room) if select is PolicySelect.MIN else max(room))


@dataclass(frozen=True, slots=True)
class DirectionLimits:
    """The window and the policies of one direction."""

    window: int
    select: PolicySelect = PolicySelect.MAX
    policies: tuple[ChangePolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class ScalingBehavior:
    """The limits of both directions."""

    up: DirectionLimits = DirectionLimits(UP_WINDOW)
    down: DirectionLimits = DirectionLimits(DOWN_WINDOW)

    @property
    def longest_window(self) -> int:
        """The longer stabilization window."""
        return max(self.up.window, self.down.window)

    @property
    def longest_period(self) -> int:
        """The longest period of a policy."""
        return max((policy.period for policy in (*self.up.policies, *self.down.policies)), default=0)


@dataclass(frozen=True, slots=True)
class ScalingBounds:
    """The smallest and the largest number of replicas."""

    least: int
    most: int

    def clamp(self, replicas: int) -> int:
        """Return the nearest number within the bounds."""
        return max(self.least, min(self.most, replicas))


@dataclass(frozen=True, slots=True)
class ReplicaHistory:
    """Past recommendations and changes."""

    recommendations: RecommendationSteps = field(default_factory=RecommendationSteps)
    changes: ReplicaChanges = field(default_factory=ReplicaChanges)
    overruled: int | None = None
    """The highest recommendation at the last decision to scale down against it; see `combine_recommendations`."""

    def changed(self, at: int, before: int, after: int) -> ReplicaHistory:
        """Add a change."""
        return replace(self, changes=self.changes.then(at, after - before))


@dataclass(frozen=True, slots=True)
class ScalingHold:
    """A limit that applies for a while."""

    at: int
    """The number of replicas that it allows."""
    until: int
    unseen: bool = False
    """Whether the only reason is that a whole window has not been observed yet."""


@dataclass(frozen=True, slots=True)
class ScalingMove:
    """The number of replicas to set now, and what limits it."""

    replicas: int
    history: ReplicaHistory
    """Includes the recommendation; the caller adds the change when it is made."""
    up: bool = False
    """Whether the direction is up."""
    disabled: bool = False
    """Whether the direction is disabled."""
    window: ScalingHold | None = None
    speed: ScalingHold | None = None

    @property
    def again(self) -> int | None:
        """The first instant at which a limit may allow more."""
        return min((hold.until for hold in (self.window, self.speed) if hold is not None), default=None)


def move(
    current: int, wanted: int, behaviour: ScalingBehavior, bounds: ScalingBounds, history: ReplicaHistory, now: int
) -> ScalingMove:
    """Go from the current to the wanted number of replicas as far as windows, policies and bounds allow now.

    Bounds take precedence: a number outside is clamped at once, and recommendations beyond the bounds, including past
    ones, count as the bound.
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
    # Clamping the current number to the bounds counts as a change, too.
    changes = seen.changes.counting(up=up)
    changes = changes.then(now, here - current) if here != current else changes
    limit = furthest_allowed(rules.policies, rules.select, changes, here, now, up=up)
    if limit is None or (stable.replicas <= limit if up else stable.replicas >= limit):
        return ScalingMove(stable.replicas, seen, up, window=window)
    after = changes.then(now, limit - here)
    return ScalingMove(
        limit, seen, up, window=window, speed=ScalingHold(limit, _further(rules, after, limit, now, up=up))
    )


def move_as_recommended(
    recommendations: Sequence[int],
    current: int,
    behaviour: ScalingBehavior,
    bounds: ScalingBounds,
    history: ReplicaHistory,
    now: int,
) -> tuple[int, ScalingMove]:
    """Combine the recommendations of all metrics, of which none is missing, and go there; gives both."""
    up, down = behaviour.up.select, behaviour.down.select
    combined = combine_recommendations(recommendations, current, up=up, down=down, overruled=history.overruled)
    history = replace(history, overruled=combined.overruled)
    return combined.replicas, move(current, combined.replicas, behaviour, bounds, history, now)


def _further(rules: DirectionLimits, changes: ReplicaChanges, current: int, now: int, *, up: bool) -> int:
    """Find when the policies allow a further change: when the period after a past change is over."""
    periods = dict.fromkeys(policy.period for policy in rules.policies)
    instants = dict.fromkeys(at for at, _ in changes.made)
    # Deduplicated: many changes and policies share few instants.
    ends = sorted({at + period: None for at in instants for period in periods if at + period > now})
    past = SummedChanges(changes)
    free = (end for end in ends if furthest_allowed(rules.policies, rules.select, past, current, end, up=up) != current)
    return next(free, ends[-1])
