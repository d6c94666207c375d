"""What a cron rule scales, and which numbers it may set there.

A workload has replicas. An autoscaler has bounds, and would undo a change of replicas; so for one of those a rule moves
the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from springtide.apis.fields import Context
from springtide.apis.meta.scale_targets import ScaleTarget
from springtide.apis.problems import Problem, error

API_VERSION = "autoscaling.karmada.io/v1alpha1"


class TargetKind(Enum):
    """How a target is scaled."""

    WORKLOAD = "replicas, through the scale subresource"
    FEDERATED_HPA = "bounds of a FederatedHPA"
    HPA = "bounds of a HorizontalPodAutoscaler"
    SCALED_OBJECT = "bounds of a ScaledObject"

    @property
    def has_bounds(self) -> bool:
        """Whether rules set minimum and maximum instead of replicas."""
        return self is not TargetKind.WORKLOAD

    @property
    def least_minimum(self) -> int:
        """The smallest minimum that the target accepts: only KEDA scales to nothing."""
        return 0 if self is TargetKind.SCALED_OBJECT else 1


class CronTarget(ScaleTarget, kw_only=True):
    """What the rules scale: any kind with a scale subresource, or an autoscaler whose bounds they move."""

    @property
    def target_kind(self) -> TargetKind:
        """How this target is scaled."""
        group = (self.api_version or "").partition("/")[0]
        if self.kind == "FederatedHPA" or self.api_version == API_VERSION:
            return TargetKind.FEDERATED_HPA
        if self.kind == "HorizontalPodAutoscaler":
            return TargetKind.HPA
        if self.kind == "ScaledObject" and group.startswith("keda"):
            return TargetKind.SCALED_OBJECT
        return TargetKind.WORKLOAD

    @property
    def impossible(self) -> bool:
        """Whether there can be no such target: of this group only FederatedHPAs can be scaled."""
        return self.api_version == API_VERSION and self.kind != "FederatedHPA"

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find references that lead nowhere."""
        if self.impossible:
            yield error(
                ("kind",),
                f"{self.kind} of {API_VERSION} cannot be scaled",
                f"write `kind: FederatedHPA`, or the apiVersion of {self.kind}",
            )
            return
        yield from super().problems(context)
