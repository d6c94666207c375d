"""The decision of the HorizontalPodAutoscaler: metrics, then stabilization windows, policies and bounds.

It is pure except for the history of recommendations and changes, which is kept in memory and lost at a restart, as in
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from springtide.cluster.resources import Object
from springtide.quantity import Quantity
from springtide.scaling import DOWN_WINDOW, MOST, ChangePolicy, PolicySelect, ReplicaChanges, furthest_allowed
from springtide.simulator.behaviours.autoscaling.metrics import Metrics
from springtide.simulator.behaviours.autoscaling.proposals import (
    MetricUnavailable,
    ReplicaProposal,
    ScaledWorkload,
    Tolerance,
    propose,
)


@dataclass(slots=True)
class RecommendationHistory:
    """Past recommendations and changes of one autoscaler, with their times."""

    recommendations: list[tuple[int, int]] = field(default_factory=list)
    added: list[tuple[int, int]] = field(default_factory=list)
    removed: list[tuple[int, int]] = field(default_factory=list)

    def recommend(self, now: int, replicas: int, *, keep: int) -> None:
        """Record a recommendation, and drop those older than the longest window."""
        self.recommendations = [entry for entry in self.recommendations if entry[0] >= now - keep]
        self.recommendations.append((now, replicas))

    def rescale(self, now: int, before: int, after: int, *, keep: int) -> None:
        """Record a change, and drop those older than the longest policy period."""
        changes = self.added if after > before else self.removed
        changes[:] = [entry for entry in changes if entry[0] >= now - keep]
        changes.append((now, abs(after - before)))

    @property
    def changes(self) -> ReplicaChanges:
        """All changes; scale-downs are negative."""
        return ReplicaChanges((*self.added, *((at, -change) for at, change in self.removed)))


@dataclass(frozen=True, slots=True)
class BoundedReplicas:
    """A number of replicas, and the contents of the conditions."""

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


def bound(spec: Object, current: int, desired: int, history: RecommendationHistory, now: int) -> BoundedReplicas:
    """Apply windows, policies and bounds to a recommendation, and record it."""
    least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
    behavior = spec.get("behavior")
    if behavior is None:
        stable, able = _stabilised_by_default(desired, history, now)
        replicas, why = _limited_by_default(current, stable, least, most)
    else:
        stable, able = _stabilised(behavior, current, desired, history, now)
        replicas, why = _limited(behavior, current, stable, (least, most), history, now)
    return BoundedReplicas(replicas, able, (replicas != stable, *why))


def longest_period(spec: Object, *, up: bool) -> int:
    """Return the longest policy period of a direction."""
    rules = (spec.get("behavior") or {}).get("scaleUp" if up else "scaleDown") or {}
    return max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)


def _stabilised_by_default(desired: int, history: RecommendationHistory, now: int) -> tuple[int, tuple[str, str]]:
    recent = [replicas for at, replicas in history.recommendations if at >= now - DOWN_WINDOW]
    stable = max([desired, *recent])
    history.recommend(now, desired, keep=DOWN_WINDOW)
    return stable, _MATCHES if stable == desired else _DOWN_HELD


def _limited_by_default(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    """At most double, or four; no limit for scale-down but the bound."""
    fastest = max(2 * current, 4)
    ceiling, why = (fastest, _TOO_FAST_UP) if most > fastest else (most, _TOO_MANY)
    if desired < least:
        return least, _TOO_FEW
    if desired > ceiling:
        return ceiling, why
    return desired, _IN_RANGE


def _stabilised(
    behavior: Object, current: int, desired: int, history: RecommendationHistory, now: int
) -> tuple[int, tuple[str, str]]:
    """Scale up at most to the lowest recent recommendation, and down at least to the highest."""
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
    behavior: Object, current: int, desired: int, bounds: tuple[int, int], history: RecommendationHistory, now: int
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


def _fastest(rules: Object, current: int, history: RecommendationHistory, now: int, *, up: bool) -> int:
    """Return the limit that the policies of a direction allow."""
    select = PolicySelect(rules.get("selectPolicy", "Max"))
    policies = [
        # Unlike in our scaling package, a percentage of 0 is 0.
        ChangePolicy(policy["value"], policy["periodSeconds"], percent=policy["type"] != "Pods", least=0)
        for policy in rules.get("policies") or ()
    ]
    limit = furthest_allowed(policies, select, history.changes, current, now, up=up)
    if limit is not None:
        return limit
    # The API requires a policy; without one there is no limit.
    return current if select is PolicySelect.MAX else MOST if up else -MOST


@dataclass(frozen=True, slots=True)
class HpaDecision:
    """The number of replicas, and the status."""

    replicas: int | None
    """None: it cannot be computed."""
    because: str
    conditions: tuple[Object, ...]
    metrics: tuple[Object, ...] = ()
    failure: str = ""
    """Why some of the metrics are unavailable."""


def decide(
    spec: Object, workload: ScaledWorkload, metrics: Metrics, history: RecommendationHistory, now: int
) -> HpaDecision:
    """Return the number of replicas; records the recommendation in the history."""
    current, least, most = workload.replicas, spec.get("minReplicas", 1), spec["maxReplicas"]
    if not history.recommendations:
        history.recommend(now, current, keep=0)
    if not current and least:
        message = "scaling is disabled since the replica count of the target is zero"
        return HpaDecision(0, "", (condition_message("ScalingActive", False, "ScalingDisabled", message),))
    if current > most:
        return HpaDecision(most, "Current number of replicas above Spec.MaxReplicas", ())
    if current < least:
        return HpaDecision(least, "Current number of replicas below Spec.MinReplicas", ())
    tolerance = _tolerance(spec.get("behavior") or {})
    best, statuses, failures = _ask(spec["metrics"], workload, metrics, tolerance, now)
    words = f"invalid metrics ({len(failures)} invalid out of {len(spec['metrics'])}), first error is: "
    failure = f"{words}{failures[0]}" if failures else ""
    if best is None or (failures and best.replicas < current):
        message = f"the HPA was unable to compute the replica count: {failures[0]}"
        condition = condition_message("ScalingActive", False, failures[0].reason, message)
        return HpaDecision(None, "", (condition,), statuses, failure)
    bounded = bound(spec, current, best.replicas, history, now)
    because = ""
    if best.replicas > current:
        because = f"{best.metric} above target"
    elif best.replicas < current:
        because = "All metrics below target"
    limited, reason, message = bounded.limited
    found = f"the HPA was able to successfully calculate a replica count from {best.metric}"
    conditions = (
        condition_message("AbleToScale", True, *bounded.able),
        condition_message("ScalingActive", True, "ValidMetricFound", found),
        condition_message("ScalingLimited", limited, reason, message),
    )
    return HpaDecision(bounded.replicas, because, conditions, statuses, failure)


def _ask(
    specs: Sequence[Object], workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> tuple[ReplicaProposal | None, tuple[Object, ...], list[MetricUnavailable]]:
    """Evaluate all metrics; the highest proposal wins, the first of equals."""
    best: ReplicaProposal | None = None
    statuses: list[Object] = []
    failures: list[MetricUnavailable] = []
    for metric in specs:
        try:
            proposal = propose(metric, workload, metrics, tolerance, now)
        except MetricUnavailable as failure:
            failures.append(failure)
            continue
        statuses.append(proposal.status)
        if best is None or proposal.replicas > best.replicas:
            best = proposal
    return best, tuple(statuses), failures


def _tolerance(behavior: Object) -> Tolerance:
    def given(direction: str) -> Fraction:
        value = (behavior.get(direction) or {}).get("tolerance")
        return Fraction(1, 10) if value is None else Fraction(Quantity.parse(value).nano, 10**9)

    return Tolerance(given("scaleDown"), given("scaleUp"))


def condition_message(kind: str, holds: bool, reason: str, message: str) -> Object:
    """Return a condition without a transition time."""
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
