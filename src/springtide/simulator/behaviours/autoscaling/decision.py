"""What an autoscaler decides: pure but for its history, which takes down what it recommends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from springtide.cluster.resources import Object
from springtide.quantity import Quantity
from springtide.simulator.behaviours.autoscaling.limits import History, bound
from springtide.simulator.behaviours.autoscaling.metrics import Metrics
from springtide.simulator.behaviours.autoscaling.proposals import Proposal, Tolerance, Unmeasurable, Workload, propose


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done about a workload, and what the status says."""

    replicas: int | None
    """None: nobody can tell."""
    because: str
    conditions: tuple[Object, ...]
    metrics: tuple[Object, ...] = ()
    failure: str = ""
    """Why the metrics, or some of them, say nothing."""


def decide(spec: Object, workload: Workload, metrics: Metrics, history: History, now: int) -> Decision:
    """Decide how many replicas there should be; takes recommendations down in the history."""
    current, least, most = workload.replicas, spec.get("minReplicas", 1), spec["maxReplicas"]
    if not history.recommendations:
        history.recommend(now, current, keep=0)
    if not current and least:
        message = "scaling is disabled since the replica count of the target is zero"
        return Decision(0, "", (told("ScalingActive", False, "ScalingDisabled", message),))
    if current > most:
        return Decision(most, "Current number of replicas above Spec.MaxReplicas", ())
    if current < least:
        return Decision(least, "Current number of replicas below Spec.MinReplicas", ())
    tolerance = _tolerance(spec.get("behavior") or {})
    best, statuses, failures = _ask(spec["metrics"], workload, metrics, tolerance, now)
    words = f"invalid metrics ({len(failures)} invalid out of {len(spec['metrics'])}), first error is: "
    failure = f"{words}{failures[0]}" if failures else ""
    if best is None or (failures and best.replicas < current):
        message = f"the HPA was unable to compute the replica count: {failures[0]}"
        condition = told("ScalingActive", False, failures[0].reason, message)
        return Decision(None, "", (condition,), statuses, failure)
    bounded = bound(spec, current, best.replicas, history, now)
    because = ""
    if best.replicas > current:
        because = f"{best.metric} above target"
    elif best.replicas < current:
        because = "All metrics below target"
    limited, reason, message = bounded.limited
    found = f"the HPA was able to successfully calculate a replica count from {best.metric}"
    conditions = (
        told("AbleToScale", True, *bounded.able),
        told("ScalingActive", True, "ValidMetricFound", found),
        told("ScalingLimited", limited, reason, message),
    )
    return Decision(bounded.replicas, because, conditions, statuses, failure)


def _ask(
    specs: Sequence[Object], workload: Workload, metrics: Metrics, tolerance: Tolerance, now: int
) -> tuple[Proposal | None, tuple[Object, ...], list[Unmeasurable]]:
    """Ask all metrics; the one that wants most wins, the first of equals."""
    best: Proposal | None = None
    statuses: list[Object] = []
    failures: list[Unmeasurable] = []
    for metric in specs:
        try:
            proposal = propose(metric, workload, metrics, tolerance, now)
        except Unmeasurable as failure:
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


def told(kind: str, holds: bool, reason: str, message: str) -> Object:
    """Write a condition; whoever stores it adds the time."""
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
