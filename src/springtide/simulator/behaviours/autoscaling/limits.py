"""How far and how fast the number of replicas may move: windows, policies and bounds.

Recommendations and changes of the past are kept in memory, as Kubernetes keeps them: after a restart of the controller
they are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from springtide.cluster.resources import Object
from springtide.scaling import DOWN_WINDOW, MOST, Changes, Policy, Select, farthest


@dataclass(slots=True)
class History:
    """What was recommended and done for one autoscaler: instants, and numbers of replicas."""

    recommendations: list[tuple[int, int]] = field(default_factory=list)
    added: list[tuple[int, int]] = field(default_factory=list)
    removed: list[tuple[int, int]] = field(default_factory=list)

    def recommend(self, now: int, replicas: int, *, keep: int) -> None:
        """Take a recommendation down, and forget those that are older than the longest window."""
        self.recommendations = [entry for entry in self.recommendations if entry[0] >= now - keep]
        self.recommendations.append((now, replicas))

    def rescale(self, now: int, before: int, after: int, *, keep: int) -> None:
        """Take a change down, and forget those that no policy looks back to."""
        changes = self.added if after > before else self.removed
        changes[:] = [entry for entry in changes if entry[0] >= now - keep]
        changes.append((now, abs(after - before)))

    @property
    def changes(self) -> Changes:
        """All changes; those that took something away are negative."""
        return Changes((*self.added, *((at, -change) for at, change in self.removed)))


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number of replicas, and what the conditions say of it."""

    replicas: int
    able: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: tuple[bool, str, str]
    """Status, reason and message of ScalingLimited."""


_MATCHES = ("ReadyForNewScale", "recommended size matches current size")
_DOWN_HELD = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_HELD = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_IN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def bound(spec: Object, current: int, desired: int, history: History, now: int) -> Bounded:
    """Bring a recommendation within windows, rates and bounds, and take it down."""
    least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
    behavior = spec.get("behavior")
    if behavior is None:
        stable, able = _stabilised_by_default(desired, history, now)
        replicas, why = _limited_by_default(current, stable, least, most)
    else:
        stable, able = _stabilised(behavior, current, desired, history, now)
        replicas, why = _limited(behavior, current, stable, (least, most), history, now)
    return Bounded(replicas, able, (replicas != stable, *why))


def longest_period(spec: Object, *, up: bool) -> int:
    """Tell how far back the policies of a direction look."""
    rules = (spec.get("behavior") or {}).get("scaleUp" if up else "scaleDown") or {}
    return max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)


def _stabilised_by_default(desired: int, history: History, now: int) -> tuple[int, tuple[str, str]]:
    recent = [replicas for at, replicas in history.recommendations if at >= now - DOWN_WINDOW]
    stable = max([desired, *recent])
    history.recommend(now, desired, keep=DOWN_WINDOW)
    return stable, _MATCHES if stable == desired else _DOWN_HELD


def _limited_by_default(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    """Double at most, or go to four; no limit on the way down but the bound."""
    fastest = max(2 * current, 4)
    ceiling, why = (fastest, _TOO_FAST_UP) if most > fastest else (most, _TOO_MANY)
    if desired < least:
        return least, _TOO_FEW
    if desired > ceiling:
        return ceiling, why
    return desired, _IN_RANGE


def _stabilised(
    behavior: Object, current: int, desired: int, history: History, now: int
) -> tuple[int, tuple[str, str]]:
    """Grow no further than the lowest recent recommendation, and shrink no further than the highest."""
    up = (behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds") or 0
    down_given = (behavior.get("scaleDown") or {}).get("stabilizationWindowSeconds")
    down = DOWN_WINDOW if down_given is None else down_given
    lowest = min([desired, *(replicas for at, replicas in history.recommendations if at > now - up)])
    highest = max([desired, *(replicas for at, replicas in history.recommendations if at > now - down)])
    stable = min(max(current, lowest), highest)
    history.recommend(now, desired, keep=max(up, down))
    held = _UP_HELD if desired >= current else _DOWN_HELD
    return stable, _MATCHES if stable == desired else held


def _limited(
    behavior: Object, current: int, desired: int, bounds: tuple[int, int], history: History, now: int
) -> tuple[int, tuple[str, str]]:
    least, most = bounds
    if desired > current:
        fastest = _fastest(behavior["scaleUp"], current, history, now, up=True)
        ceiling, why = (fastest, _TOO_FAST_UP) if most > fastest else (most, _TOO_MANY)
        if desired > ceiling:
            return ceiling, why
    elif desired < current:
        fastest = _fastest(behavior["scaleDown"], current, history, now, up=False)
        floor, why = (fastest, _TOO_FAST_DOWN) if least < fastest else (least, _TOO_FEW)
        if desired < floor:
            return floor, why
    return desired, _IN_RANGE


def _fastest(rules: Object, current: int, history: History, now: int, *, up: bool) -> int:
    """Tell how far the policies of a direction go from where their periods began."""
    select = Select(rules.get("selectPolicy", "Max"))
    policies = [
        # Unlike ours, a percentage of none comes to none.
        Policy(policy["value"], policy["periodSeconds"], percent=policy["type"] != "Pods", least=0)
        for policy in rules.get("policies") or ()
    ]
    limit = farthest(policies, select, history.changes, current, now, up=up)
    if limit is not None:
        return limit
    # Without policies, which the API does not allow, the one that allows most is none at all.
    return current if select is Select.MAX else MOST if up else -MOST
