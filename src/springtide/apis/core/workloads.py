"""Workloads of Kubernetes that ours refer to: how many pods they run, and of which shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from springtide.apis.core.consumers import misplaced_consumer_problems
from springtide.apis.core.pods import PodTemplateSpec
from springtide.apis.fields import Context, Count, View, doc
from springtide.apis.meta.types import LabelSelector, Object
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
    """What workloads that select their pods by labels share."""

    replicas: Annotated[Count, doc("How many pods are wanted.")] = 1
    selector: Annotated[LabelSelector, doc("Which pods are the workload's own.")]
    template: Annotated[PodTemplateSpec, doc("The pods that are made.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find templates whose pods the workload would not recognise."""
        metadata = self.template.metadata
        labels = (metadata.labels if metadata is not None else None) or {}
        for key, value in (self.selector.match_labels or {}).items():
            if labels.get(key) != value:
                yield error(
                    ("selector", "matchLabels", key),
                    f"the template's pods do not have the label `{key}: {value}`",
                    f"add `{key}: {value}` to `template.metadata.labels`",
                )


class DeploymentSpec(_Selecting, kw_only=True):
    """What a Deployment keeps running."""

    __opaque__ = ("minReadySeconds", "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy")


class ReplicaSetSpec(_Selecting, kw_only=True):
    """What a ReplicaSet keeps running."""

    __opaque__ = ("minReadySeconds",)


class StatefulSetSpec(_Selecting, kw_only=True):
    """What a StatefulSet keeps running."""

    __opaque__ = (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "podManagementPolicy",
        "revisionHistoryLimit",
        "serviceName",
        "updateStrategy",
        "volumeClaimTemplates",
    )


class ReplicationControllerSpec(View, kw_only=True):
    """What a ReplicationController keeps running."""

    __opaque__ = ("minReadySeconds",)

    replicas: Annotated[Count, doc("How many pods are wanted.")] = 1
    selector: Annotated[dict[str, str] | None, doc("Labels of the pods; the template's if not set.")] = None
    template: Annotated[PodTemplateSpec | None, doc("The pods that are made.")] = None


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
    suspend: Annotated[bool, doc("Whether no pods are made.")] = False
    template: Annotated[PodTemplateSpec, doc("The pods that are made.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find pods that would be started again when they are done."""
        policy = self.template.spec.restart_policy
        if policy not in ("OnFailure", "Never"):
            yield error(
                ("template", "spec", "restartPolicy"),
                f"the pods of a Job cannot have restartPolicy {policy or 'Always, which it is if not set'}",
                "write `restartPolicy: Never` or `OnFailure`",
            )


class JobStatus(View, kw_only=True):
    """How far a Job is."""

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
    """What all workloads share: annotations that belong to their pods are found on them."""

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find annotations that count on pods only."""
        yield from misplaced_consumer_problems(self.metadata)


class Deployment(_Workload, kw_only=True):
    """Pods that are kept running and replaced in steps."""

    spec: Annotated[DeploymentSpec, doc("What is kept running.")]
    status: Annotated[ReplicaStatus | None, doc("What runs.")] = None


class ReplicaSet(_Workload, kw_only=True):
    """Pods that are kept running."""

    spec: Annotated[ReplicaSetSpec, doc("What is kept running.")]
    status: Annotated[ReplicaStatus | None, doc("What runs.")] = None


class StatefulSet(_Workload, kw_only=True):
    """Pods that keep their name and their storage."""

    spec: Annotated[StatefulSetSpec, doc("What is kept running.")]
    status: Annotated[ReplicaStatus | None, doc("What runs.")] = None


class ReplicationController(_Workload, kw_only=True):
    """Pods that are kept running, in the oldest of ways."""

    spec: Annotated[ReplicationControllerSpec, doc("What is kept running.")]
    status: Annotated[ReplicaStatus | None, doc("What runs.")] = None


class Job(_Workload, kw_only=True):
    """Pods that run to their end."""

    spec: Annotated[JobSpec, doc("What runs.")]
    status: Annotated[JobStatus | None, doc("How far it is.")] = None
