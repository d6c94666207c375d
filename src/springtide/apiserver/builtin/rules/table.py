"""The validation rules of each kind."""

from __future__ import annotations

from springtide.apiserver.builtin.rules.autoscalers import (
    autoscaler_behavior,
    autoscaler_bounds,
    autoscaler_metrics,
    autoscaler_target,
)
from springtide.apiserver.builtin.rules.core import (
    disruption_budget,
    external_name,
    immutable_claim,
    immutable_if_marked,
    immutable_node_fields,
    lease,
    node_networks,
    node_resources,
    node_taints,
    priority_class,
    resource_quota,
    valid_keys,
    within_size_limit,
)
from springtide.apiserver.builtin.rules.extensions import immutable_definition_fields, webhooks
from springtide.apiserver.builtin.rules.jobs import immutable_completions, immutable_job_template, job_status
from springtide.apiserver.builtin.rules.pods import immutable_pod_spec, valid_pod_spec
from springtide.apiserver.builtin.rules.workloads import (
    counts_within_replicas,
    daemon_set_strategy,
    deployment_strategy,
    map_selector_matches_template,
    never_decreases,
    non_negative_counts,
    pods_always_restart,
    pods_run_to_completion,
    selector_matches_template,
    stateful_set_immutable_fields,
    stateful_set_strategy,
)
from springtide.apiserver.builtin.validation import (
    KindRules,
    ObjectRule,
    immutable,
    not_negative,
)

_TEMPLATE = valid_pod_spec("spec.template.spec")

_MAIN: dict[str, tuple[ObjectRule, ...]] = {
    "ConfigMap": (
        valid_keys("data", "binaryData"),
        within_size_limit("[]", plain="data", encoded="binaryData"),
        immutable_if_marked("data", "binaryData"),
    ),
    "ControllerRevision": (immutable("data"), not_negative("revision")),
    "CronJob": (
        not_negative("spec.startingDeadlineSeconds", "spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit"),
        valid_pod_spec("spec.jobTemplate.spec.template.spec"),
    ),
    "CustomResourceDefinition": (immutable_definition_fields,),
    "DaemonSet": (
        _TEMPLATE,
        selector_matches_template("daemonset"),
        pods_always_restart("DaemonSet"),
        daemon_set_strategy,
        immutable("spec.selector"),
        not_negative("spec.minReadySeconds", "spec.revisionHistoryLimit"),
    ),
    "Deployment": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit"),
        selector_matches_template("deployment"),
        pods_always_restart("ReplicaSet"),
        deployment_strategy,
        immutable("spec.selector"),
    ),
    "HorizontalPodAutoscaler": (autoscaler_bounds, autoscaler_target, autoscaler_metrics, autoscaler_behavior),
    "Job": (
        _TEMPLATE,
        not_negative("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.ttlSecondsAfterFinished"),
        pods_run_to_completion,
        immutable(
            "spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.managedBy", "spec.successPolicy"
        ),
        immutable_completions,
        immutable_job_template,
    ),
    "Lease": (lease,),
    "MutatingWebhookConfiguration": (webhooks,),
    "Node": (node_taints, node_networks, node_resources, immutable_node_fields),
    "PersistentVolumeClaim": (immutable_claim,),
    "Pod": (valid_pod_spec("spec"), immutable_pod_spec),
    "PodDisruptionBudget": (disruption_budget,),
    "PriorityClass": (priority_class,),
    "ReplicaSet": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        # kube-apiserver names the Deployment here, too.
        selector_matches_template("deployment"),
        pods_always_restart("ReplicaSet"),
        immutable("spec.selector"),
    ),
    "ReplicationController": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        map_selector_matches_template,
        pods_always_restart("ReplicationController"),
    ),
    "ResourceQuota": (resource_quota,),
    "Secret": (
        valid_keys("data"),
        within_size_limit("data", encoded="data"),
        immutable_if_marked("data"),
        immutable("type"),
    ),
    "Service": (external_name,),
    "StatefulSet": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        selector_matches_template("statefulset"),
        pods_always_restart("StatefulSet"),
        stateful_set_strategy,
        stateful_set_immutable_fields,
    ),
    "StorageClass": (immutable("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),),
    "ValidatingWebhookConfiguration": (webhooks,),
}

_REPLICAS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

_STATUS: dict[str, tuple[ObjectRule, ...]] = {
    "DaemonSet": (
        non_negative_counts(
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ),
        never_decreases("collisionCount"),
    ),
    "Deployment": (
        non_negative_counts(
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ),
        counts_within_replicas("updatedReplicas", "readyReplicas", "availableReplicas"),
        never_decreases("collisionCount"),
    ),
    "HorizontalPodAutoscaler": (non_negative_counts("currentReplicas", "desiredReplicas"),),
    "Job": (job_status,),
    "Node": (node_resources,),
    "PodDisruptionBudget": (
        non_negative_counts("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
    ),
    "ReplicaSet": (non_negative_counts(*_REPLICAS, "terminatingReplicas"), counts_within_replicas(*_PARTS)),
    "ReplicationController": (non_negative_counts(*_REPLICAS), counts_within_replicas(*_PARTS)),
    "StatefulSet": (
        non_negative_counts(
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ),
        counts_within_replicas(
            "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", ready="status.readyReplicas"
        ),
        never_decreases("collisionCount"),
    ),
}

RULES = {kind: KindRules(_MAIN.get(kind, ()), _STATUS.get(kind, ())) for kind in sorted({*_MAIN, *_STATUS})}
"""The rules, by kind."""
