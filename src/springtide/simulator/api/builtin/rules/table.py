"""Which rules each kind obeys."""

from __future__ import annotations

from springtide.simulator.api.builtin.rules.autoscalers import (
    autoscaler_behavior,
    autoscaler_bounds,
    autoscaler_metrics,
    autoscaler_target,
)
from springtide.simulator.api.builtin.rules.cron_jobs import cron_job
from springtide.simulator.api.builtin.rules.definitions import definition_approved, definition_stays
from springtide.simulator.api.builtin.rules.job_status import job_status
from springtide.simulator.api.builtin.rules.jobs import completions_fixed, job_keeps_its_pods
from springtide.simulator.api.builtin.rules.leases import lease
from springtide.simulator.api.builtin.rules.making import Rule, Rules, fixed, not_negative
from springtide.simulator.api.builtin.rules.nodes import node_amounts, node_networks, node_stays, node_taints
from springtide.simulator.api.builtin.rules.others import (
    budget_has_one_bound,
    claim_stays,
    keys,
    not_too_large,
    quota_amounts,
    sealed,
)
from springtide.simulator.api.builtin.rules.pod_specs import describes_pods
from springtide.simulator.api.builtin.rules.pods import pod_keeps_its_spec
from springtide.simulator.api.builtin.rules.priorities import priority_class
from springtide.simulator.api.builtin.rules.services import service
from springtide.simulator.api.builtin.rules.statuses import counts, only_grows, parts_of_replicas
from springtide.simulator.api.builtin.rules.webhooks import webhooks
from springtide.simulator.api.builtin.rules.workloads import (
    controller_selects_its_template,
    daemon_set_rolls_out,
    rolls_out,
    runs_on,
    runs_to_an_end,
    selects_its_template,
    stateful_set_keeps_the_rest,
    stateful_set_rolls_out,
)

_TEMPLATE = describes_pods("spec.template.spec")

_MAIN: dict[str, tuple[Rule, ...]] = {
    "ConfigMap": (
        keys("data", "binaryData"),
        not_too_large("[]", plain="data", encoded="binaryData"),
        sealed("data", "binaryData"),
    ),
    "ControllerRevision": (fixed("data"), not_negative("revision")),
    "CronJob": (
        cron_job,
        not_negative("spec.startingDeadlineSeconds", "spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit"),
        describes_pods("spec.jobTemplate.spec.template.spec"),
    ),
    "CustomResourceDefinition": (definition_approved, definition_stays),
    "DaemonSet": (
        _TEMPLATE,
        selects_its_template("daemonset"),
        runs_on("DaemonSet"),
        daemon_set_rolls_out,
        fixed("spec.selector"),
        not_negative("spec.minReadySeconds", "spec.revisionHistoryLimit"),
    ),
    "Deployment": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit"),
        selects_its_template("deployment"),
        runs_on("ReplicaSet"),
        rolls_out,
        fixed("spec.selector"),
    ),
    "HorizontalPodAutoscaler": (autoscaler_bounds, autoscaler_target, autoscaler_metrics, autoscaler_behavior),
    "Job": (
        _TEMPLATE,
        not_negative("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.ttlSecondsAfterFinished"),
        runs_to_an_end,
        fixed("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.managedBy", "spec.successPolicy"),
        completions_fixed,
        job_keeps_its_pods,
    ),
    "Lease": (lease,),
    "MutatingWebhookConfiguration": (webhooks,),
    "Node": (node_taints, node_networks, node_amounts, node_stays),
    "PersistentVolumeClaim": (claim_stays,),
    "Pod": (describes_pods("spec"), pod_keeps_its_spec),
    "PodDisruptionBudget": (budget_has_one_bound,),
    "PriorityClass": (priority_class,),
    "ReplicaSet": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        # The server's own words: they name the kind that replica sets are made by.
        selects_its_template("deployment"),
        runs_on("ReplicaSet"),
        fixed("spec.selector"),
    ),
    "ReplicationController": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        controller_selects_its_template,
        runs_on("ReplicationController"),
    ),
    "ResourceQuota": (quota_amounts,),
    "Secret": (keys("data"), not_too_large("data", encoded="data"), sealed("data"), fixed("type")),
    "Service": (service,),
    "StatefulSet": (
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        selects_its_template("statefulset"),
        runs_on("StatefulSet"),
        stateful_set_rolls_out,
        stateful_set_keeps_the_rest,
    ),
    "StorageClass": (fixed("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),),
    "ValidatingWebhookConfiguration": (webhooks,),
}

_REPLICAS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

_STATUS: dict[str, tuple[Rule, ...]] = {
    "DaemonSet": (
        counts(
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
        only_grows("collisionCount"),
    ),
    "Deployment": (
        counts(
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ),
        parts_of_replicas("updatedReplicas", "readyReplicas", "availableReplicas"),
        only_grows("collisionCount"),
    ),
    "HorizontalPodAutoscaler": (counts("currentReplicas", "desiredReplicas"),),
    "Job": (job_status,),
    "Node": (node_amounts,),
    "PodDisruptionBudget": (counts("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),),
    "ReplicaSet": (counts(*_REPLICAS, "terminatingReplicas"), parts_of_replicas(*_PARTS)),
    "ReplicationController": (counts(*_REPLICAS), parts_of_replicas(*_PARTS)),
    "StatefulSet": (
        counts(
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ),
        parts_of_replicas(
            "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", ready="status.readyReplicas"
        ),
        only_grows("collisionCount"),
    ),
}

RULES = {kind: Rules(_MAIN.get(kind, ()), _STATUS.get(kind, ())) for kind in sorted({*_MAIN, *_STATUS})}
"""The rules by kind."""
