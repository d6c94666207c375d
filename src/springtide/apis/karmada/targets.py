"""Targets of cron rules, and the values that rules set on them.

A rule sets the replicas of a workload. An autoscaler would undo a change of replicas, so a rule sets its bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.scaling import ScaleTargetSpec
from springtide.apis.problems import Problem, error, warning

if TYPE_CHECKING:
    from springtide.apis.karmada.cron import CronFederatedHPARule


API_VERSION = "autoscaling.karmada.io/v1alpha1"


class CronTargetKind(Enum):
    """How rules scale a target."""

    WORKLOAD = "replicas, through the scale subresource"
    FEDERATED_HPA = "bounds of a FederatedHPA"
    HPA = "bounds of a HorizontalPodAutoscaler"
    SCALED_OBJECT = "bounds of a ScaledObject"

    @property
    def has_bounds(self) -> bool:
        """Whether rules set minimum and maximum instead of replicas."""
        return self is not CronTargetKind.WORKLOAD

    @property
    def least_minimum(self) -> int:
        """The smallest minimum that the target accepts: only KEDA scales to zero."""
        return 0 if self is CronTargetKind.SCALED_OBJECT else 1


class CronTarget(ScaleTargetSpec, kw_only=True):
    """The target: any kind with a scale subresource, or an autoscaler whose bounds the rules set."""

    @property
    def target_kind(self) -> CronTargetKind:
        """How rules scale this target."""
        group = (self.api_version or "").partition("/")[0]
        if self.kind == "FederatedHPA" or self.api_version == API_VERSION:
            return CronTargetKind.FEDERATED_HPA
        if self.kind == "HorizontalPodAutoscaler":
            return CronTargetKind.HPA
        if self.kind == "ScaledObject" and group.startswith("keda"):
            return CronTargetKind.SCALED_OBJECT
        return CronTargetKind.WORKLOAD

    @property
    def impossible(self) -> bool:
        """Whether the target cannot be scaled: of this group, only FederatedHPAs can."""
        return self.api_version == API_VERSION and self.kind != "FederatedHPA"

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find references that cannot find an object."""
        if self.impossible:
            yield error(
                ("kind",),
                f"{self.kind} of {API_VERSION} cannot be scaled",
                f"write `kind: FederatedHPA`, or the apiVersion of {self.kind}",
            )
            return
        yield from super().problems(context)


CronAction = dict[str, int]
"""The values to set: any of `replicas`, `min` and `max`."""

_NAMES = {
    CronTargetKind.FEDERATED_HPA: "FederatedHPA",
    CronTargetKind.HPA: "HorizontalPodAutoscaler",
    CronTargetKind.SCALED_OBJECT: "ScaledObject",
}
_USE_BOUNDS = "write `targetMinReplicas`, `targetMaxReplicas`, or both"


def action_of(rule: CronFederatedHPARule, kind: CronTargetKind) -> CronAction:
    """Return the values that a firing of the rule sets on a target of this kind."""
    if not kind.has_bounds:
        chosen = {"replicas": rule.target_replicas}
    else:
        chosen = {"min": rule.target_min_replicas, "max": rule.target_max_replicas}
    return {name: value for name, value in chosen.items() if value is not None}


def action_problems(rule: CronFederatedHPARule, kind: CronTargetKind) -> Iterator[Problem]:
    """Find values that the target does not accept, and missing ones; paths are relative to the rule."""
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
            f"rule `{rule.name}` sets no replicas",
            "write `targetReplicas`, or let `scaleTargetRef` name an autoscaler, which has bounds"
            if bounds
            else "write `targetReplicas`",
        )
        return
    for name in bounds:
        yield warning((name,), f"`{name}` is ignored: only autoscalers have bounds", f"remove `{name}`")


def _bounds_problems(rule: CronFederatedHPARule, kind: CronTargetKind) -> Iterator[Problem]:
    target = _NAMES[kind]
    low, high = rule.target_min_replicas, rule.target_max_replicas
    if rule.target_replicas is not None:
        if kind is CronTargetKind.FEDERATED_HPA:
            message = f"`targetReplicas` is ignored: a rule sets the bounds of a {target}"
            yield warning(("targetReplicas",), message, _USE_BOUNDS)
        else:
            message = f"`targetReplicas` cannot be set on a {target}, which would undo it"
            yield error(("targetReplicas",), message, _USE_BOUNDS)
    if low is None and high is None:
        yield error(("targetMaxReplicas",), f"rule `{rule.name}` sets no bound of the {target}", _USE_BOUNDS)
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
            f"raise `targetMaxReplicas` to {low} or more, or lower `targetMinReplicas`",
        )
