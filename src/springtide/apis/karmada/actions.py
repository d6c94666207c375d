"""What a cron rule sets, held against what its target can take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from springtide.apis.karmada.targets import TargetKind
from springtide.apis.problems import Problem, error, warning

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPARule

Action = dict[str, int]
"""What is set: any of `replicas`, `min` and `max`."""

_NAMES = {
    TargetKind.FEDERATED_HPA: "FederatedHPA",
    TargetKind.HPA: "HorizontalPodAutoscaler",
    TargetKind.SCALED_OBJECT: "ScaledObject",
}
_USE_BOUNDS = "write `targetMinReplicas`, `targetMaxReplicas`, or both"


def action_of(rule: CronFederatedHPARule, kind: TargetKind) -> Action:
    """Give what a firing of the rule sets on a target of this kind."""
    if not kind.has_bounds:
        chosen = {"replicas": rule.target_replicas}
    else:
        chosen = {"min": rule.target_min_replicas, "max": rule.target_max_replicas}
    return {name: value for name, value in chosen.items() if value is not None}


def action_problems(rule: CronFederatedHPARule, kind: TargetKind) -> Iterator[Problem]:
    """Find numbers that the target cannot take, or that are not there; paths are relative to the rule."""
    if kind.has_bounds:
        yield from _bounds_problems(rule, kind)
    else:
        yield from _replicas_problems(rule)


def _replicas_problems(rule: CronFederatedHPARule) -> Iterator[Problem]:
    bounds = [
        name
        for name, value in (
            ("targetMinReplicas", rule.target_min_replicas),
            ("targetMaxReplicas", rule.target_max_replicas),
        )
        if value is not None
    ]
    if rule.target_replicas is None:
        yield error(
            ("targetReplicas",),
            f"rule `{rule.name}` does not say how many replicas the target gets",
            "write `targetReplicas`, or let `scaleTargetRef` name an autoscaler, which has bounds"
            if bounds
            else "write `targetReplicas`",
        )
        return
    for name in bounds:
        yield warning((name,), f"`{name}` is ignored: only autoscalers have bounds", f"remove `{name}`")


def _bounds_problems(rule: CronFederatedHPARule, kind: TargetKind) -> Iterator[Problem]:
    target = _NAMES[kind]
    low, high = rule.target_min_replicas, rule.target_max_replicas
    if rule.target_replicas is not None:
        if kind is TargetKind.FEDERATED_HPA:
            message = f"`targetReplicas` is ignored: a rule moves the bounds of a {target}"
            yield warning(("targetReplicas",), message, _USE_BOUNDS)
        else:
            message = f"`targetReplicas` cannot be set on a {target}, which would undo it"
            yield error(("targetReplicas",), message, _USE_BOUNDS)
    if low is None and high is None:
        yield error(("targetMaxReplicas",), f"rule `{rule.name}` moves no bound of the {target}", _USE_BOUNDS)
        return
    if low is not None and low < kind.least_minimum:
        yield error(
            ("targetMinReplicas",),
            f"the minimum of a {target} must be at least {kind.least_minimum}, is {low}",
            "write 1; only a ScaledObject of KEDA scales to 0",
        )
    elif low is not None and high is not None and low > high:
        yield error(
            ("targetMinReplicas",),
            f"targetMinReplicas {low} is greater than targetMaxReplicas {high}",
            "swap them",
        )
