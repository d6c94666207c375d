"""Views of workloads, with their replicas and pod templates, and of autoscalers whose bounds cron rules set.

The autoscalers are Kubernetes' HorizontalPodAutoscaler and KEDA's ScaledObject.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from springtide.apis.core.pods import PodTemplateSpec, misplaced_consumer_problems
from springtide.apis.core.volume_sources import VolumeClaimTemplate
from springtide.apis.kinds import Count, PositiveCount, ValidationContext, View, doc
from springtide.apis.meta.scaling import NamedScaleTarget
from springtide.apis.meta.types import LabelSelectorView, Object
from springtide.apis.problems import Problem, error


class ReplicaStatus(View, kw_only=True):
    """How many pods a workload runs now."""

    __opaque__ = (
        "availableReplicas",
        "collisionCount",
        "conditions",
        "currentReplicas",
        "currentRevision",
        "fullyLabeledReplicas",
        "observedGeneration",
        "readyReplicas",
        "terminatingReplicas",
        "unavailableReplicas",
        "updateRevision",
        "updatedReplicas",
    )

    replicas: Annotated[Count | None, doc("How many pods exist.")] = None


class _Selecting(View, kw_only=True):
    """Fields of workloads that select their pods by labels."""

    selector: Annotated[LabelSelectorView, doc("Which pods are the workload's own.")]
    template: Annotated[PodTemplateSpec, doc("The template of the pods.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find templates whose pods the selector does not select."""
        metadata = self.template.metadata
        labels = (metadata.labels if metadata is not None else None) or {}
        for key, value in (self.selector.match_labels or {}).items():
            if labels.get(key) != value:
                yield error(
                    ("selector", "matchLabels", key),
                    f"the template's pods do not have the label `{key}: {value}`",
                    f"add `{key}: {value}` to `template.metadata.labels`",
                )


class _Replicated(_Selecting, kw_only=True):
    """Fields of workloads that run a number of pods."""

    replicas: Annotated[Count, doc("How many pods are wanted.")] = 1


class DaemonSetSpec(_Selecting, kw_only=True):
    """What a DaemonSet keeps running on every node."""

    __opaque__ = ("minReadySeconds", "revisionHistoryLimit", "updateStrategy")
    __mistaken__ = {"replicas": "remove it: a DaemonSet runs one pod on each node"}


class DeploymentSpec(_Replicated, kw_only=True):
    """What a Deployment keeps running."""

    __opaque__ = ("minReadySeconds", "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy")


class ReplicaSetSpec(_Replicated, kw_only=True):
    """What a ReplicaSet keeps running."""

    __opaque__ = ("minReadySeconds",)


class StatefulSetSpec(_Replicated, kw_only=True):
    """What a StatefulSet keeps running."""

    __opaque__ = (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "podManagementPolicy",
        "revisionHistoryLimit",
        "serviceName",
        "updateStrategy",
    )

    volume_claim_templates: Annotated[
        tuple[VolumeClaimTemplate, ...] | None, doc("Claims that each pod gets of its own.")
    ] = None


class ReplicationControllerSpec(View, kw_only=True):
    """What a ReplicationController keeps running."""

    __opaque__ = ("minReadySeconds",)

    replicas: Annotated[Count, doc("How many pods are wanted.")] = 1
    selector: Annotated[dict[str, str] | None, doc("Labels of the pods; the template's if not set.")] = None
    template: Annotated[PodTemplateSpec | None, doc("The template of the pods.")] = None


class JobSpec(View, kw_only=True):
    """What a Job runs to its end."""

    __opaque__ = (
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "completionMode",
        "managedBy",
        "manualSelector",
        "maxFailedIndexes",
        "podFailurePolicy",
        "podReplacementPolicy",
        "selector",
        "successPolicy",
        "ttlSecondsAfterFinished",
    )

    parallelism: Annotated[Count, doc("How many pods run at a time.")] = 1
    completions: Annotated[Count | None, doc("How many pods must succeed.")] = None
    suspend: Annotated[bool, doc("Whether no pods are created.")] = False
    template: Annotated[PodTemplateSpec, doc("The template of the pods.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find a restart policy that Jobs do not allow."""
        policy = self.template.spec.restart_policy
        if policy not in ("OnFailure", "Never"):
            yield error(
                ("template", "spec", "restartPolicy"),
                f"the pods of a Job cannot have restartPolicy {policy or 'Always, which it is if not set'}",
                "write `restartPolicy: Never` or `OnFailure`",
            )


class JobStatus(View, kw_only=True):
    """The observed state of a Job."""

    __opaque__ = (
        "completedIndexes",
        "completionTime",
        "conditions",
        "failed",
        "failedIndexes",
        "ready",
        "startTime",
        "succeeded",
        "terminating",
        "uncountedTerminatedPods",
    )

    active: Annotated[Count | None, doc("How many pods run.")] = None


class _Workload(Object, kw_only=True):
    """Checks of all workloads."""

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find annotations that have an effect on pods only."""
        yield from misplaced_consumer_problems(self.metadata)


class Deployment(_Workload, kw_only=True):
    """Pods that are kept running and replaced in steps."""

    spec: Annotated[DeploymentSpec, doc("The desired state.")]
    status: Annotated[ReplicaStatus | None, doc("The observed state.")] = None


class DaemonSet(_Workload, kw_only=True):
    """Pods that are kept running, one on each node."""

    __opaque__ = ("status",)

    spec: Annotated[DaemonSetSpec, doc("The desired state.")]


class ReplicaSet(_Workload, kw_only=True):
    """Pods that are kept running."""

    spec: Annotated[ReplicaSetSpec, doc("The desired state.")]
    status: Annotated[ReplicaStatus | None, doc("The observed state.")] = None


class StatefulSet(_Workload, kw_only=True):
    """Pods that keep their name and their storage."""

    spec: Annotated[StatefulSetSpec, doc("The desired state.")]
    status: Annotated[ReplicaStatus | None, doc("The observed state.")] = None


class ReplicationController(_Workload, kw_only=True):
    """The predecessor of ReplicaSets."""

    spec: Annotated[ReplicationControllerSpec, doc("The desired state.")]
    status: Annotated[ReplicaStatus | None, doc("The observed state.")] = None


class Job(_Workload, kw_only=True):
    """Pods that run to their end."""

    spec: Annotated[JobSpec, doc("The observed state.")]
    status: Annotated[JobStatus | None, doc("The observed state.")] = None


class _Bounded(View, kw_only=True):
    """Fields of both versions of a HorizontalPodAutoscaler."""

    scale_target_ref: Annotated[NamedScaleTarget, doc("The workload that is scaled.")]
    min_replicas: Annotated[Count, doc("The minimum number of pods; 0 only if the cluster allows it.")] = 1
    max_replicas: Annotated[PositiveCount, doc("The maximum number of pods.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find a maximum below the minimum."""
        if self.max_replicas < self.min_replicas:
            message = f"`maxReplicas` {self.max_replicas} is below `minReplicas` {self.min_replicas}"
            yield error(("maxReplicas",), message)


class HorizontalPodAutoscalerSpec(_Bounded, kw_only=True):
    """What is scaled, on what, and between which bounds."""

    __opaque__ = ("behavior",)

    metrics: Annotated[tuple[Any, ...] | None, doc("The metrics of the autoscaler.")] = None


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
    status: Annotated[HorizontalPodAutoscalerStatus | None, doc("The last observation and action.")] = None


class HorizontalPodAutoscalerV1(Object, kw_only=True):
    """Kubernetes' own autoscaler of workloads, in its first version."""

    spec: Annotated[HorizontalPodAutoscalerSpecV1, doc("What is scaled, and how.")]
    status: Annotated[HorizontalPodAutoscalerStatus | None, doc("The last observation and action.")] = None


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
    min_replica_count: Annotated[Count, doc("The minimum number of pods.")] = 0
    max_replica_count: Annotated[Count, doc("The maximum number of pods.")] = 100
    idle_replica_count: Annotated[Count | None, doc("The number of pods while no trigger is active.")] = None
    triggers: Annotated[tuple[Any, ...], doc("The metrics and events that scale the workload.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find a maximum below the minimum."""
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
    """KEDA's autoscaler of workloads, which can also scale to zero."""

    __opaque__ = ("status",)

    spec: Annotated[ScaledObjectSpec, doc("What is scaled, and how.")]
