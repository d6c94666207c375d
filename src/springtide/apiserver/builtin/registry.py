"""The built-in kinds as the API server serves them: schema, defaulting, validation and the table of rules joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from springtide.apiserver.builtin.defaulting import Defaulter, defaulters
from springtide.apiserver.builtin.rules.access import network_policy, role_binding, role_rules
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
from springtide.apiserver.builtin.rules.jobs import (
    generated_selector,
    immutable_completions,
    immutable_job_template,
    indexes,
    job_status,
)
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
    template_metadata,
)
from springtide.apiserver.builtin.schema import KindData, TypeNode, TypeTrees, load_builtin_data
from springtide.apiserver.builtin.validation import KindRules, ObjectRule, immutable, not_negative, validate_fields
from springtide.apiserver.kinds import ScalePaths, ServedKind
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object, Resource

_WITHOUT_GENERATION = (
    "APIService",
    "CSINode",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "Event",
    "HorizontalPodAutoscaler",
    "Lease",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StorageClass",
    "VolumeAttachment",
)
"""Kinds whose objects have no `metadata.generation`."""

_SCALE = {
    "Deployment": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "ReplicaSet": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "ReplicationController": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "StatefulSet": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
}
"""The paths of the scale subresource. The selector is the one of the spec, which is a plain map for replication
controllers."""

_REQUIRED = "FieldValueRequired"
_NOT_ABOUT_TYPES = (_REQUIRED, "FieldValueNotSupported")
"""Reasons of causes that do not mean a wrong type."""

_STORED_VERSION = {"HorizontalPodAutoscaler": "v2"}


@cache
def kinds() -> tuple[ServedKind, ...]:
    """Return all built-in kinds, ordered by group, plural and version."""
    data = load_builtin_data()
    forest = TypeTrees(data.types)
    apply_defaults = defaulters(data.types)
    return tuple(_served(kind, forest.type(kind.type), apply_defaults(kind.type)) for kind in data.kinds)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that the kinds were taken from."""
    return load_builtin_data().kubernetes


def _served(kind: KindData, structure: TypeNode, apply_defaults: Defaulter) -> ServedKind:
    return ServedKind(
        resource=Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced),
        structure=structure,
        singular=kind.singular,
        list_kind=f"{kind.kind}List",
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources=kind.subresources,
        scale=_SCALE.get(kind.kind),
        generation=kind.kind not in _WITHOUT_GENERATION,
        apply_defaults=apply_defaults,
        validate=_validator(structure, _RULES.get(kind.kind, KindRules())),
        stored_version=_STORED_VERSION.get(kind.kind, ""),
    )


def _validator(structure: TypeNode, rules: KindRules) -> Callable[[Object, Object | None], tuple[StatusCause, ...]]:
    """Return the validation of a kind: declared types first, then the rules, which may rely on the types."""

    def validate(value: Object, old: Object | None) -> tuple[StatusCause, ...]:
        found = validate_fields(value, old, structure)
        if any(cause.reason not in _NOT_ABOUT_TYPES for cause in found):
            return found
        if rules.main and (old is None or "spec" not in value or value["spec"] != old.get("spec")):
            causes = tuple(cause for rule in rules.main for cause in rule(value, old))
            # If a rule reports a missing field, its cause replaces the general one.
            reported = {cause.field for cause in causes} if found else ()
            found = tuple(each for each in found if each.reason != _REQUIRED or each.field not in reported) + causes
        if rules.status and old is not None and value.get("status") != old.get("status"):
            found += tuple(cause for rule in rules.status for cause in rule(value, old))
        return found

    return validate


_TEMPLATE = valid_pod_spec("spec.template.spec")
_TEMPLATE_METADATA = template_metadata("spec.template")

_MAIN: dict[str, tuple[ObjectRule, ...]] = {
    "ClusterRole": (role_rules,),
    "ClusterRoleBinding": (role_binding("ClusterRole"),),
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
        _TEMPLATE_METADATA,
        _TEMPLATE,
        selector_matches_template("daemonset"),
        pods_always_restart("DaemonSet"),
        daemon_set_strategy,
        immutable("spec.selector"),
        not_negative("spec.minReadySeconds", "spec.revisionHistoryLimit"),
    ),
    "Deployment": (
        _TEMPLATE_METADATA,
        _TEMPLATE,
        not_negative(
            "spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.progressDeadlineSeconds"
        ),
        selector_matches_template("deployment"),
        pods_always_restart("ReplicaSet"),
        deployment_strategy,
        immutable("spec.selector"),
    ),
    "HorizontalPodAutoscaler": (autoscaler_bounds, autoscaler_target, autoscaler_metrics, autoscaler_behavior),
    "Job": (
        _TEMPLATE_METADATA,
        _TEMPLATE,
        not_negative(
            "spec.parallelism",
            "spec.completions",
            "spec.backoffLimit",
            "spec.ttlSecondsAfterFinished",
            "spec.activeDeadlineSeconds",
        ),
        generated_selector,
        indexes,
        pods_run_to_completion,
        immutable(
            "spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.managedBy", "spec.successPolicy"
        ),
        immutable_completions,
        immutable_job_template,
    ),
    "Lease": (lease,),
    "MutatingWebhookConfiguration": (webhooks,),
    "NetworkPolicy": (network_policy,),
    "Node": (node_taints, node_networks, node_resources, immutable_node_fields),
    "PersistentVolumeClaim": (immutable_claim,),
    "Pod": (valid_pod_spec("spec"), immutable_pod_spec),
    "PodDisruptionBudget": (disruption_budget,),
    "PodTemplate": (template_metadata("template"), valid_pod_spec("template.spec")),
    "PriorityClass": (priority_class,),
    "ReplicaSet": (
        _TEMPLATE_METADATA,
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        # kube-apiserver names the Deployment here, too.
        selector_matches_template("deployment"),
        pods_always_restart("ReplicaSet"),
        immutable("spec.selector"),
    ),
    "ReplicationController": (
        _TEMPLATE_METADATA,
        _TEMPLATE,
        not_negative("spec.replicas", "spec.minReadySeconds"),
        map_selector_matches_template,
        pods_always_restart("ReplicationController"),
    ),
    "ResourceQuota": (resource_quota,),
    "Role": (role_rules,),
    "RoleBinding": (role_binding("Role", "ClusterRole"),),
    "Secret": (
        valid_keys("data"),
        within_size_limit("data", encoded="data"),
        immutable_if_marked("data"),
        immutable("type"),
    ),
    "Service": (external_name,),
    "StatefulSet": (
        _TEMPLATE_METADATA,
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

_RULES = {kind: KindRules(_MAIN.get(kind, ()), _STATUS.get(kind, ())) for kind in sorted({*_MAIN, *_STATUS})}
"""The rules, by kind."""
