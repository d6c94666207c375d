"""Defaults of built-in kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.builtin.samples import defaulted, job, other_object, pod, pod_spec, workload

from springtide.apiserver import builtin
from springtide.apiserver.builtin.defaulting import default_table
from springtide.apiserver.builtin.derived_defaults import DERIVED_DEFAULTS
from springtide.apiserver.builtin.schema import load_builtin_data
from springtide.apiserver.kinds import ServedKind, ValueType
from springtide.cluster.resources import Object


def _at(item: Any, path: str) -> Any:
    for name in path.split("/"):
        item = item[int(name)] if name.isdecimal() else item.get(name)
    return item


_CONTAINER = "spec/template/spec/containers/0"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            workload(),
            {
                "spec/replicas": 1,
                "spec/revisionHistoryLimit": 10,
                "spec/progressDeadlineSeconds": 600,
                "spec/strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
                "spec/template/spec/restartPolicy": "Always",
                "spec/template/spec/dnsPolicy": "ClusterFirst",
                "spec/template/spec/schedulerName": "default-scheduler",
                "spec/template/spec/terminationGracePeriodSeconds": 30,
                "spec/template/spec/securityContext": {},
                "spec/template/spec/tolerations": None,
                f"{_CONTAINER}/imagePullPolicy": "IfNotPresent",
                f"{_CONTAINER}/terminationMessagePath": "/dev/termination-log",
                f"{_CONTAINER}/terminationMessagePolicy": "File",
                f"{_CONTAINER}/resources": {},
                "status": {},
            },
            id="deployment",
        ),
        pytest.param(workload(replicas=0), {"spec/replicas": 0}, id="zero-is-a-value"),
        pytest.param(
            workload(strategy={"type": "Recreate"}), {"spec/strategy": {"type": "Recreate"}}, id="recreated-deployment"
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": 1}}),
            {"spec/strategy/rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            id="part-of-a-strategy",
        ),
        pytest.param(
            workload("StatefulSet"),
            {
                "spec/podManagementPolicy": "OrderedReady",
                "spec/updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "spec/replicas": 1,
            },
            id="stateful-set",
        ),
        pytest.param(
            workload("StatefulSet", updateStrategy={"type": "RollingUpdate"}),
            {"spec/updateStrategy": {"type": "RollingUpdate"}},
            id="stateful-set-with-strategy",
        ),
        pytest.param(
            workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": {}}]),
            {"spec/volumeClaimTemplates/0/spec/volumeMode": "Filesystem"},
            id="claims-of-a-stateful-set",
        ),
        pytest.param(
            workload("DaemonSet"),
            {
                "spec/updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
                "spec/replicas": None,
            },
            id="daemon-set",
        ),
        pytest.param(workload("ReplicaSet"), {"spec/replicas": 1}, id="replica-set"),
        pytest.param(
            other_object("ReplicationController", spec={"template": {"metadata": {"labels": {"a": "b"}}}}),
            {"spec/replicas": 1, "spec/selector": {"a": "b"}, "metadata/labels": {"a": "b"}},
            id="replication-controller",
        ),
        pytest.param(
            job(),
            {
                "spec/completions": 1,
                "spec/parallelism": 1,
                "spec/backoffLimit": 6,
                "spec/completionMode": "NonIndexed",
                "spec/suspend": False,
                "spec/podReplacementPolicy": "TerminatingOrFailed",
                "spec/selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}},
                "spec/template/metadata/labels": {
                    "batch.kubernetes.io/controller-uid": "u-1",
                    "batch.kubernetes.io/job-name": "j",
                    "controller-uid": "u-1",
                    "job-name": "j",
                },
            },
            id="job",
        ),
        pytest.param(
            job(parallelism=3, backoffLimitPerIndex=1, podFailurePolicy={"rules": []}),
            {
                "spec/completions": None,
                "spec/parallelism": 3,
                "spec/backoffLimit": 2**31 - 1,
                "spec/podReplacementPolicy": "Failed",
            },
            id="work-queue-job",
        ),
        pytest.param(
            other_object("CronJob", "batch/v1", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {}}}),
            {
                "spec/concurrencyPolicy": "Allow",
                "spec/suspend": False,
                "spec/successfulJobsHistoryLimit": 3,
                "spec/failedJobsHistoryLimit": 1,
                "spec/jobTemplate/spec/template/spec/restartPolicy": "Always",
            },
            id="cron-job",
        ),
        pytest.param(
            other_object(
                "HorizontalPodAutoscaler",
                "autoscaling/v2",
                spec={"maxReplicas": 3, "behavior": {"scaleUp": {"policies": []}}},
            ),
            {
                "spec/minReplicas": 1,
                "spec/metrics/0/resource/target": {"type": "Utilization", "averageUtilization": 80},
                "spec/behavior/scaleUp": {"policies": [], "selectPolicy": "Max", "stabilizationWindowSeconds": 0},
                "spec/behavior/scaleDown": {
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    "selectPolicy": "Max",
                },
            },
            id="autoscaler",
        ),
        pytest.param(
            other_object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1}),
            {"spec": {"minAvailable": 1}, "status": {}},
            id="budget",
        ),
        pytest.param(
            other_object("Namespace"),
            {
                "metadata/labels": {"kubernetes.io/metadata.name": "x"},
                "status/phase": "Active",
            },
            id="namespace",
        ),
        pytest.param(
            other_object("Namespace") | {"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
            {"spec": {}},
            id="terminating-namespace",
        ),
        pytest.param(
            other_object("Node", status={"capacity": {"cpu": 4, "memory": "1024Mi"}}),
            {"status/allocatable": {"cpu": "4", "memory": "1Gi"}, "status/capacity": {"cpu": "4", "memory": "1Gi"}},
            id="node",
        ),
        pytest.param(
            other_object("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1024Gi"}}}),
            {
                "status/phase": "Pending",
                "spec/volumeMode": "Filesystem",
                "spec/resources/requests/storage": "1Ti",
            },
            id="claim",
        ),
        pytest.param(
            other_object("Service", spec={"ports": [{"port": 80}]}),
            {
                "spec/type": "ClusterIP",
                "spec/sessionAffinity": "None",
                "spec/internalTrafficPolicy": "Cluster",
                "spec/externalTrafficPolicy": None,
                "spec/ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            },
            id="service",
        ),
        pytest.param(
            other_object("Service", spec={"type": "LoadBalancer", "sessionAffinity": "ClientIP"}),
            {
                "spec/allocateLoadBalancerNodePorts": True,
                "spec/externalTrafficPolicy": "Cluster",
                "spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            id="load-balancer",
        ),
        pytest.param(
            other_object("Secret", data={"a": "YQ=="}, stringData={"b": "b"}),
            {"type": "Opaque", "data": {"a": "YQ==", "b": "Yg=="}, "stringData": None},
            id="secret",
        ),
        pytest.param(
            other_object(
                "LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Ki"}}]}
            ),
            {
                "spec/limits/0/default": {"cpu": "2"},
                "spec/limits/0/defaultRequest": {"cpu": "2", "memory": "1Ki"},
            },
            id="limit-range",
        ),
        pytest.param(
            other_object("StorageClass", "storage.k8s.io/v1", provisioner="p"),
            {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
            id="storage-class",
        ),
        pytest.param(
            other_object("PriorityClass", "scheduling.k8s.io/v1"),
            {"preemptionPolicy": "PreemptLowerPriority"},
            id="priority",
        ),
        pytest.param(other_object("Lease", "coordination.k8s.io/v1"), {"spec": {}}, id="lease"),
        pytest.param(
            other_object(
                "CustomResourceDefinition",
                "apiextensions.k8s.io/v1",
                spec={"names": {"kind": "Tide"}, "versions": [{"name": "v2"}, {"name": "v1", "storage": True}]},
            ),
            {
                "spec/names": {"kind": "Tide", "singular": "tide", "listKind": "TideList"},
                "spec/conversion": {"strategy": "None"},
                "status/storedVersions": ["v1"],
            },
            id="crd",
        ),
        pytest.param(
            other_object(
                "MutatingWebhookConfiguration",
                "admissionregistration.k8s.io/v1",
                webhooks=[{"clientConfig": {"service": {"name": "s"}}, "rules": [{"operations": ["CREATE"]}]}],
            ),
            {
                "webhooks/0/failurePolicy": "Fail",
                "webhooks/0/reinvocationPolicy": "Never",
                "webhooks/0/timeoutSeconds": 10,
                "webhooks/0/rules/0/scope": "*",
                "webhooks/0/clientConfig/service/port": 443,
            },
            id="webhook",
        ),
    ],
)
def test_defaults(item: Object, expected: Object) -> None:
    done = defaulted(item)

    assert {path: _at(done, path) for path in expected} == expected


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("web", "Always", id="no-tag"),
        pytest.param("web:latest", "Always", id="latest"),
        pytest.param("web:1", "IfNotPresent", id="tag"),
        pytest.param("host:5000/web", "Always", id="port-is-no-tag"),
        pytest.param("host:5000/web:1", "IfNotPresent", id="port-and-tag"),
        pytest.param("web@sha256:00", "IfNotPresent", id="digest"),
    ],
)
def test_the_image_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    done = defaulted(pod(containers=[{"name": "c", "image": image}]))

    assert done["spec"]["containers"][0]["imagePullPolicy"] == policy


def _with(*resources: Object) -> Object:
    return pod(
        containers=[{"name": f"c{index}", "image": "i:1", "resources": each} for index, each in enumerate(resources)]
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(_with({}), "BestEffort", id="nothing"),
        pytest.param(_with({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed", id="limits-alone"),
        pytest.param(
            _with({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
            "Guaranteed",
            id="equal-quantities-in-other-form",
        ),
        pytest.param(_with({"limits": {"cpu": "1"}}), "Burstable", id="no-memory"),
        pytest.param(_with({"requests": {"cpu": "1", "memory": "1Gi"}}), "Burstable", id="no-limits"),
        pytest.param(_with({"limits": {"cpu": "1", "memory": "1Gi"}}, {}), "Burstable", id="one-of-two"),
        pytest.param(_with({"limits": {"nvidia.com/gpu": 1}}), "BestEffort", id="only-cpu-and-memory-count"),
        pytest.param(
            pod(resources={"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 1, "memory": "1Gi"}}),
            "Guaranteed",
            id="of-the-pod",
        ),
    ],
)
def test_qos_class(item: Object, expected: str) -> None:
    assert defaulted(item)["status"] == {"phase": "Pending", "qosClass": expected}


def test_requests_default_to_limits() -> None:
    """In pods, but not in pod templates."""
    resources: Object = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    made = defaulted(_with({**resources}))
    template = defaulted(workload(template={"spec": _with({**resources})["spec"]}))["spec"]["template"]

    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert template["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], ["not-ready", "unreachable"], id="none"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], ["unreachable"], id="one"),
        pytest.param([{"operator": "Exists"}], [], id="everything"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}], ["not-ready", "unreachable"], id="another-effect"
        ),
    ],
)
def test_default_tolerations(given: list[Object], added: list[str]) -> None:
    tolerations = defaulted(pod(tolerations=given))["spec"].get("tolerations")

    assert tolerations == given + [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for name in added
    ]


def test_host_ports_of_pods_with_host_network() -> None:
    ports = [{"containerPort": 80}]
    done = defaulted(pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": ports}]))

    assert done["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        pytest.param("1000m", "1", id="milli"),
        pytest.param(2, "2", id="integer"),
        pytest.param(0.5, "500m", id="fraction"),
        pytest.param("1024Mi", "1Gi", id="binary"),
        pytest.param("1u", "1m", id="rounded-up-to-thousandths"),
        pytest.param("much", "much", id="not-a-quantity"),
    ],
)
def test_quantities_are_canonical(amount: object, text: str) -> None:
    done = defaulted(other_object("ResourceQuota", spec={"hard": {"cpu": amount}}))

    assert done["spec"]["hard"] == {"cpu": text}


_EVERYTHING = [
    workload(),
    workload("StatefulSet"),
    job(),
    pod(volumes=[{"name": "v"}, {"name": "h", "hostPath": {"path": "/x"}}]),
    other_object("Namespace"),
    other_object("Service", spec={"ports": [{"port": 80}]}),
    other_object("Secret", stringData={"a": "b"}),
    other_object("HorizontalPodAutoscaler", "autoscaling/v2", spec={"maxReplicas": 1, "behavior": {}}),
]


class _Frozen(dict[str, Any]):
    """A map that cannot be written to."""

    def __setitem__(self, name: str, value: Any) -> None:
        raise AssertionError(f"{name} was written to")


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return _Frozen({name: _frozen(each) for name, each in value.items()})
    return [_frozen(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("item", [pytest.param(item, id=item["kind"]) for item in _EVERYTHING])
def test_a_defaulted_object_is_not_written_to(item: Object) -> None:
    """Objects may share parts with stored ones, so applying defaults again must not write anything."""
    done = defaulted(item)

    assert defaulted(_frozen(done)) == done


def test_defaults_are_not_shared_between_objects() -> None:
    one, other = defaulted(workload()), defaulted(workload())
    one["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = "changed"
    one["spec"]["template"]["spec"]["securityContext"]["changed"] = True

    assert other["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"
    assert other["spec"]["template"]["spec"]["securityContext"] == {}


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind.resource)) for kind in builtin.kinds()])
def test_values_of_wrong_types_are_left_to_validation(kind: ServedKind) -> None:
    """Defaulting comes before validation, so it must accept anything."""
    identity = {"metadata": {"name": "x", "uid": "u"}}
    for wrong in (7, "text", True):
        for name in ("spec", "status", "webhooks", "data", "stringData"):
            assert kind.apply_defaults({**identity, name: wrong})[name] == wrong
        for name, node in kind.structure.child("spec").fields.items():
            done = kind.apply_defaults({**identity, "spec": {"template": {"spec": pod_spec()}} | {name: wrong}})
            if node.type in (ValueType.OBJECT, ValueType.LIST):
                assert done["spec"][name] == wrong
    entries: list[Any] = [7, "text", [], [1], {"a": 1}, None, True]
    for entry in entries:
        template = {"spec": {"containers": [entry], "tolerations": entry}}
        done = kind.apply_defaults({**identity, "spec": {"template": copy.deepcopy(template)}})
        if not isinstance(entry, dict | None):
            assert done["spec"]["template"]["spec"]["containers"] == [entry]


def test_the_default_tables_name_existing_types_and_fields() -> None:
    """A misspelt name would silently set no default."""
    types = load_builtin_data().types
    steps = [(name, step) for name, each in default_table().items() for step in each]

    assert [name for name in (*default_table(), *DERIVED_DEFAULTS) if name not in types] == []
    assert [
        (name, field) for name, step in steps for field in (*step.set, *step.given) if field not in types[name].fields
    ] == []
