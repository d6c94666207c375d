"""Autoscalers of others whose bounds cron rules move: HorizontalPodAutoscaler and KEDA's ScaledObject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from springtide.apis.fields import Context, Count, PositiveCount, View, doc
from springtide.apis.meta.types import Object, ScaleTargetReference
from springtide.apis.problems import Problem, error


class _Bounded(View, kw_only=True):
    """What both versions of a HorizontalPodAutoscaler share: a workload, and the bounds of its replicas."""

    scale_target_ref: Annotated[ScaleTargetReference, doc("The workload that is scaled.")]
    min_replicas: Annotated[Count, doc("As few pods as there may be; 0 only where the cluster allows it.")] = 1
    max_replicas: Annotated[PositiveCount, doc("As many pods as there may be.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find bounds that leave no number of pods."""
        if self.max_replicas < self.min_replicas:
            message = f"`maxReplicas` {self.max_replicas} is below `minReplicas` {self.min_replicas}"
            yield error(("maxReplicas",), message)


class HorizontalPodAutoscalerSpec(_Bounded, kw_only=True):
    """What is scaled, on what, and between which bounds."""

    __opaque__ = ("behavior",)

    metrics: Annotated[tuple[Any, ...] | None, doc("What the number of pods follows.")] = None


class HorizontalPodAutoscalerSpecV1(_Bounded, kw_only=True):
    """What is scaled, and between which bounds; it follows the use of CPU alone."""

    __opaque__ = ("targetCPUUtilizationPercentage",)
    __mistaken__ = {
        "metrics": "write `apiVersion: autoscaling/v2`: v1 has no metrics",
        "behavior": "write `apiVersion: autoscaling/v2`: v1 has no behavior",
    }


class HorizontalPodAutoscalerStatus(View, kw_only=True):
    """What the autoscaler did last."""

    __opaque__ = (
        "conditions",
        "currentCPUUtilizationPercentage",
        "currentMetrics",
        "lastScaleTime",
        "observedGeneration",
    )

    current_replicas: Annotated[Count | None, doc("How many pods there are.")] = None
    desired_replicas: Annotated[Count | None, doc("How many pods are wanted.")] = None


class HorizontalPodAutoscaler(Object, kw_only=True):
    """Kubernetes' own autoscaler of workloads."""

    spec: Annotated[HorizontalPodAutoscalerSpec, doc("What is scaled, and how.")]
    status: Annotated[HorizontalPodAutoscalerStatus | None, doc("What was done last.")] = None


class HorizontalPodAutoscalerV1(Object, kw_only=True):
    """Kubernetes' own autoscaler of workloads, in its first version."""

    spec: Annotated[HorizontalPodAutoscalerSpecV1, doc("What is scaled, and how.")]
    status: Annotated[HorizontalPodAutoscalerStatus | None, doc("What was done last.")] = None


class ScaledObjectTarget(View, kw_only=True):
    """The workload that KEDA scales."""

    __opaque__ = ("envSourceContainerName",)

    name: Annotated[str, doc("Name of the workload.")]
    kind: Annotated[str, doc("Kind of the workload.")] = "Deployment"
    api_version: Annotated[str, doc("Group and version of the workload.")] = "apps/v1"


class ScaledObjectSpec(View, kw_only=True):
    """What KEDA scales, on what, and between which bounds."""

    __opaque__ = ("advanced", "cooldownPeriod", "fallback", "initialCooldownPeriod", "pollingInterval")
    __mistaken__ = {
        "minReplicas": "write `minReplicaCount`",
        "maxReplicas": "write `maxReplicaCount`",
    }

    scale_target_ref: Annotated[ScaledObjectTarget, doc("The workload that is scaled.")]
    min_replica_count: Annotated[Count, doc("As few pods as there may be.")] = 0
    max_replica_count: Annotated[Count, doc("As many pods as there may be.")] = 100
    idle_replica_count: Annotated[Count | None, doc("How many pods there are while nothing happens.")] = None
    triggers: Annotated[tuple[Any, ...], doc("What the number of pods follows.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find bounds that leave no number of pods."""
        if self.max_replica_count < self.min_replica_count:
            yield error(
                ("maxReplicaCount",),
                f"`maxReplicaCount` {self.max_replica_count} is below `minReplicaCount` {self.min_replica_count}",
            )
        if self.idle_replica_count is not None and self.idle_replica_count >= self.min_replica_count:
            yield error(
                ("idleReplicaCount",),
                f"`idleReplicaCount` {self.idle_replica_count} is not below `minReplicaCount` {self.min_replica_count}",
            )


class ScaledObject(Object, kw_only=True):
    """KEDA's autoscaler of workloads, which can also scale to nothing."""

    __opaque__ = ("status",)

    spec: Annotated[ScaledObjectSpec, doc("What is scaled, and how.")]
