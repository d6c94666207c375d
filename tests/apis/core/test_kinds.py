"""Validation of other projects' kinds: misspelt fields are found, valid fields are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.core import KINDS
from springtide.apis.core.pods import CLASS_ANNOTATION, CONSUME_ANNOTATION, OLD_CONSUME_ANNOTATION, PodSpec
from springtide.apis.schema import schema_of

LABELS = {"app": "web"}


def pod_template(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": LABELS}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "web"}], **spec}}


def manifest(api_version: str, kind: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, **parts}


def template(**spec: Any) -> dict[str, Any]:
    return manifest("v1", "PodTemplate", template=pod_template(**spec))


def deployment(**spec: Any) -> dict[str, Any]:
    return manifest(
        "apps/v1",
        "Deployment",
        spec={"replicas": 2, "selector": {"matchLabels": LABELS}, "template": pod_template(), **spec},
    )


def resources(**given: Any) -> dict[str, Any]:
    return template(containers=[{"name": "main", "resources": given}])


WELL_FORMED = [
    manifest("v1", "Namespace", spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"}),
    manifest("v1", "Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "4"}}),
    manifest("v1", "Pod", spec=pod_template()["spec"], status={"phase": "Running"}),
    template(),
    manifest("v1", "LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}),
    manifest("v1", "PersistentVolume", spec={"csi": {"driver": "d", "volumeHandle": "v"}}, status={"phase": "Bound"}),
    manifest("v1", "PersistentVolumeClaim", spec={"storageClassName": "fast"}, status={"phase": "Bound"}),
    manifest("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 1}),
    manifest("scheduling.k8s.io/v1", "PriorityClass", value=7, description="high"),
    manifest("storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "d", "nodeID": "n"}]}),
    manifest("storage.k8s.io/v1", "StorageClass", provisioner="d", parameters={"type": "fast"}),
    manifest("v1", "ReplicationController", spec={"selector": LABELS, "template": pod_template()}),
    deployment(strategy={"type": "Recreate"}, revisionHistoryLimit=3),
    manifest("apps/v1", "DaemonSet", spec={"selector": {"matchLabels": LABELS}, "template": pod_template()}),
    manifest("apps/v1", "ReplicaSet", spec={"selector": {"matchLabels": LABELS}, "template": pod_template()}),
    manifest(
        "apps/v1",
        "StatefulSet",
        spec={"serviceName": "db", "selector": {"matchLabels": LABELS}, "template": pod_template()},
    ),
    manifest("batch/v1", "Job", spec={"parallelism": 3, "template": pod_template(restartPolicy="Never")}),
    manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource"}],
            "behavior": {"scaleDown": {}},
        },
    ),
    manifest(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
            "targetCPUUtilizationPercentage": 80,
        },
    ),
    manifest(
        "keda.sh/v1alpha1",
        "ScaledObject",
        spec={"scaleTargetRef": {"name": "web"}, "minReplicaCount": 0, "triggers": [{"type": "cron"}]},
    ),
]


@pytest.mark.parametrize("value", [pytest.param(v, id=f"{v['kind']}-{v['apiVersion']}") for v in WELL_FORMED])
def test_valid_objects_have_no_problems(value: dict[str, Any]) -> None:
    """Well-formed objects of others have no problems."""
    assert problems_of(value) == []


def test_every_kind_has_a_well_formed_example() -> None:
    """The table above leaves no kind and version out."""
    declared = {(kind.api_version(version), kind.kind) for kind in KINDS for version in kind.versions}

    assert declared == {(value["apiVersion"], value["kind"]) for value in WELL_FORMED}
    assert all(kind.builtin for kind in KINDS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            resources(requests={"cpu": "8"}, nodeSelector={"a": "b"}),
            ["error template.spec.containers[0].resources.nodeSelector"],
            id="field-in-the-wrong-place",
        ),
        pytest.param(
            template(containers=[{"image": "web"}]),
            ["error template.spec.containers[0].name"],
            id="container-without-name",
        ),
        pytest.param(template(containers=[]), ["error template.spec.containers"], id="no-containers"),
        pytest.param(
            template(containers=[{"name": "a"}, {"name": "a"}]),
            ["error template.spec.containers[1].name"],
            id="container-twice",
        ),
        pytest.param(
            template(initContainers=[{"name": "main"}]),
            ["error template.spec.initContainers[0].name"],
            id="init-container-named-like-a-container",
        ),
        pytest.param(
            resources(requests={"cpu": 2}, limits={"cpu": 1}),
            ["error template.spec.containers[0].resources.requests.cpu"],
            id="request-above-limit",
        ),
        pytest.param(
            resources(requests={"mem": "1Gi"}),
            ["error template.spec.containers[0].resources.requests.mem"],
            id="unknown-resource",
        ),
        pytest.param(
            resources(limits={"cpi": 1}),
            ["error template.spec.containers[0].resources.limits.cpi"],
            id="unknown-resource-in-limits",
        ),
        pytest.param(
            resources(requests={"cpu": -1}),
            ["error template.spec.containers[0].resources.requests.cpu"],
            id="negative-request",
        ),
        pytest.param(
            resources(requests={"memory": "5GB"}),
            ["error template.spec.containers[0].resources.requests.memory"],
            id="not-a-quantity",
        ),
        pytest.param(
            resources(requests={"nvidia.com/gpu": 1}),
            ["error template.spec.containers[0].resources.requests[nvidia.com/gpu]"],
            id="devices-need-a-limit",
        ),
        pytest.param(resources(limits={"nvidia.com/gpu": 1}), [], id="devices-by-limit-alone"),
        pytest.param(
            resources(requests={"nvidia.com/gpu": "500m"}, limits={"nvidia.com/gpu": "500m"}),
            [
                "error template.spec.containers[0].resources.limits[nvidia.com/gpu]",
                "error template.spec.containers[0].resources.requests[nvidia.com/gpu]",
            ],
            id="half-a-device",
        ),
        pytest.param(
            template(tolerations=[{"operator": "Equal", "value": "x"}]),
            ["error template.spec.tolerations[0].operator"],
            id="toleration-without-key",
        ),
        pytest.param(
            template(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
            ["error template.spec.tolerations[0].value"],
            id="toleration-with-needless-value",
        ),
        pytest.param(
            manifest("v1", "PodTemplate", spec={"containers": []}), ["error spec"], id="spec-without-template"
        ),
        pytest.param(template(nodeSelectors={"a": "b"}), ["error template.spec.nodeSelectors"], id="misspelt-field"),
        pytest.param(template(fromTheFuture=1), ["warning template.spec.fromTheFuture"], id="field-newer-than-we-are"),
        pytest.param(
            deployment(selector={"matchLabels": {"app": "other"}}),
            ["error spec.selector.matchLabels.app"],
            id="selector-misses-template",
        ),
        pytest.param(deployment(replicas="2"), ["error spec.replicas"], id="count-in-quotes"),
        pytest.param(
            manifest("batch/v1", "Job", spec={"template": pod_template()}),
            ["error spec.template.spec.restartPolicy"],
            id="job-that-never-ends",
        ),
        pytest.param(
            manifest(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 5, "maxReplicas": 2},
            ),
            ["error spec.maxReplicas"],
            id="bounds-the-wrong-way-round",
        ),
        pytest.param(
            manifest(
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 2, "metrics": []},
            ),
            ["error spec.metrics"],
            id="metrics-in-v1",
        ),
        pytest.param(
            manifest(
                "keda.sh/v1alpha1",
                "ScaledObject",
                spec={
                    "scaleTargetRef": {"name": "web"},
                    "minReplicaCount": 3,
                    "maxReplicaCount": 2,
                    "idleReplicaCount": 3,
                    "triggers": [],
                },
            ),
            ["error spec.idleReplicaCount", "error spec.maxReplicaCount"],
            id="scaled-object-bounds",
        ),
    ],
)
def test_problems(value: dict[str, Any], expected: list[str]) -> None:
    """Each object has exactly these problems."""
    assert expected == shown(problems_of(value))


def test_a_misplaced_node_selector_names_its_home() -> None:
    """The hint says where the field belongs."""
    (problem,) = problems_of(resources(requests={"cpu": "8"}, nodeSelector={"a": "b"}))

    assert problem.hint == "`nodeSelector` belongs under `template.spec`"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({CONSUME_ANNOTATION: "batch", CLASS_ANNOTATION: "c"}, [], id="both"),
        pytest.param({CONSUME_ANNOTATION: "batch"}, ["warning template.metadata.annotations"], id="no-class"),
        pytest.param({CLASS_ANNOTATION: "c"}, ["warning template.metadata.annotations"], id="no-request"),
        pytest.param(
            {OLD_CONSUME_ANNOTATION: "batch", CLASS_ANNOTATION: "c"},
            [f"warning template.metadata.annotations[{OLD_CONSUME_ANNOTATION}]"],
            id="former-name",
        ),
    ],
)
def test_consumers_of_requests(annotations: dict[str, str], expected: list[str]) -> None:
    """A pod that consumes a ProvisioningRequest names it and its class, under today's names."""
    value = manifest("v1", "PodTemplate", template=pod_template(annotations))

    assert expected == shown(problems_of(value))


def test_consumer_annotations_on_the_workload() -> None:
    """They count on pods only, so on a Deployment they are a warning that says where they belong."""
    value = deployment()
    value["metadata"]["annotations"] = {CONSUME_ANNOTATION: "batch"}

    (problem,) = problems_of(value)

    assert (problem.severity, problem.hint) == ("warning", "move it to `spec.template.metadata.annotations`")


def test_pod_fields_are_complete() -> None:
    """The names of a pod's fields are those of Kubernetes, each once."""
    known = schema_of(PodSpec).known

    assert len(known) == len(set(known))
    assert {"affinity", "volumes", "hostNetwork", "hostPID", "ephemeralContainers", "securityContext"} <= set(known)
