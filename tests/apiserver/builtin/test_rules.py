"""Rules of built-in kinds, with the messages of kube-apiserver."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.builtin.samples import defaulted, messages, pod, validated, workload
from tests.apiserver.builtin.samples import other_object as plain_object

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_AT_LEAST_ZERO = "must be greater than or equal to 0"


def _resources(**resources: Any) -> Object:
    return {"containers": [{"name": "main", "image": "web:1", "resources": resources}]}


def _container(**fields: Any) -> Object:
    return {"containers": [{"name": "main", "image": "web:1"} | fields]}


_ASKED = "containers[0].resources"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(_resources(requests={"cpu": "1"}, limits={"cpu": "1"}), [], id="requests-equal-limits"),
        pytest.param(_resources(limits={"nvidia.com/gpu": "1"}, requests={"nvidia.com/gpu": "1"}), [], id="extended"),
        pytest.param(
            _resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
            [f'{_ASKED}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
            id="request-above-limit",
        ),
        pytest.param(
            _resources(requests={"cpu": "-1"}),
            [f'{_ASKED}.requests[cpu]: Invalid value: "-1": {_AT_LEAST_ZERO}'],
            id="negative",
        ),
        pytest.param(
            _resources(requests={"nvidia.com/gpu": "1"}),
            [f"{_ASKED}.limits: Required value: Limit must be set for non overcommitable resources"],
            id="extended-resource-without-limit",
        ),
        pytest.param(
            _resources(limits={"nvidia.com/gpu": "2"}, requests={"nvidia.com/gpu": "1"}),
            [f'{_ASKED}.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
            id="extended-resource-below-limit",
        ),
        pytest.param(
            _resources(limits={"nvidia.com/gpu": "500m"}, requests={"nvidia.com/gpu": "500m"}),
            [
                f'{_ASKED}.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
                f'{_ASKED}.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            ],
            id="fraction-of-an-extended-resource",
        ),
        pytest.param(
            _resources(requests={"gpu": "1"}),
            [
                f'{_ASKED}.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
                f'{_ASKED}.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
            id="unknown-resource",
        ),
        pytest.param(
            _resources(limits={"hugepages-2Mi": "4Mi"}, requests={"hugepages-2Mi": "4Mi"}),
            [f"{_ASKED}: Forbidden: HugePages require cpu or memory"],
            id="huge-pages-without-cpu-or-memory",
        ),
        pytest.param(
            {"containers": [{"name": "main", "image": "a"}, {"name": "main", "image": "b"}]},
            ['containers[1].name: Duplicate value: "main"'],
            id="duplicate-container-name",
        ),
        pytest.param(
            _container(ports=[{"containerPort": 70000, "name": "web"}, {"containerPort": 1, "name": "web"}]),
            [
                "containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                'containers[0].ports[1].name: Duplicate value: "web"',
            ],
            id="ports",
        ),
        pytest.param(
            _container(volumeMounts=[{"name": "nope", "mountPath": "/a"}]),
            ['containers[0].volumeMounts[0].name: Not found: "nope"'],
            id="mount-of-an-unknown-volume",
        ),
        pytest.param(
            _container(imagePullPolicy="Sometimes"),
            [
                'containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
                '"IfNotPresent", "Never"'
            ],
            id="unknown-policy",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            ["tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"],
            id="toleration",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "tolerationSeconds": 3}]},
            ["tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
            id="toleration-seconds-without-no-execute",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "StatefulSet", "DaemonSet"])
def test_pods(kind: str, spec: Object, expected: list[str]) -> None:
    """All pod specs are validated alike, each at its own path."""
    item = pod(**spec)
    path = "spec"
    if kind != "Pod":
        item = workload(kind, template={"metadata": {"labels": {"app": "a"}}, "spec": item["spec"]})
        path = "spec.template.spec"

    assert messages(validated(copy.deepcopy(item))) == [f"{path}.{line}" for line in expected]


def test_a_volume_claim_template_can_be_mounted() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": _container(volumeMounts=[_MOUNT])}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}

    assert messages(validated(workload("StatefulSet", template=template, volumeClaimTemplates=[claim]))) == []


_MOUNT = {"name": "data", "mountPath": "/data"}
_COUNTS = ("replicas", "readyReplicas", "availableReplicas")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize(
    ("numbers", "fields"),
    [
        pytest.param((3, 2, 1), [], id="in-order"),
        pytest.param((1, 2, 0), ["readyReplicas"], id="more-ready-than-replicas"),
        pytest.param((3, 1, 2), ["availableReplicas"], id="more-available-than-ready"),
        pytest.param((3, -1, -1), ["readyReplicas", "availableReplicas"], id="negative"),
    ],
)
def test_status_counters(kind: str, numbers: tuple[int, int, int], fields: list[str]) -> None:
    old = defaulted(workload(kind))
    new = copy.deepcopy(old) | {"status": dict(zip(_COUNTS, numbers, strict=True))}

    assert [cause.field for cause in validated(new, old)] == [f"status.{field}" for field in fields]


def _autoscaler(**spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target} | spec
    return plain_object("HorizontalPodAutoscaler", "autoscaling/v2", spec=spec)


def _cpu(**target: Any) -> Object:
    return {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}


_RESOURCE = "spec.metrics[0].resource"
_LEASE = ("Lease", "coordination.k8s.io/v1")
_CLASS = ("PriorityClass", "scheduling.k8s.io/v1")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(_autoscaler(metrics=[]), [], id="no-metrics"),
        pytest.param(
            _autoscaler(**_cpu(type="Utilization", averageUtilization=0)),
            [f"{_RESOURCE}.target.averageUtilization: Invalid value: 0: must be greater than 0"],
            id="no-utilization",
        ),
        pytest.param(
            _autoscaler(**_cpu(type="Utilization")),
            [
                f"{_RESOURCE}.target.averageUtilization: Required value: must set either a target raw value or a "
                "target utilization"
            ],
            id="no-target",
        ),
        pytest.param(
            _autoscaler(metrics=[{"type": "Pods"}]),
            ["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
            id="no-source",
        ),
        pytest.param(
            _autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 3601, "selectPolicy": "Some"}}),
            [
                'spec.behavior.scaleDown.selectPolicy: Unsupported value: "Some": supported values: "Disabled", '
                '"Max", "Min"',
                "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal "
                "to 3600",
            ],
            id="behavior",
        ),
        pytest.param(
            _autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]}}),
            [
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to "
                "1800",
            ],
            id="policy",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxUnavailable": "150%"}}),
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
            id="more-than-100-percent-unavailable",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": "abc"}}),
            [
                'spec.strategy.rollingUpdate.maxSurge: Invalid value: "abc": a valid percent string must be a numeric '
                "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ],
            id="invalid-percentage",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
            [
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
                "non-zero"
            ],
            id="surge-and-unavailable",
        ),
        pytest.param(
            plain_object("PodDisruptionBudget", "policy/v1", spec={"unhealthyPodEvictionPolicy": "Some"}),
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "Some": supported values: "AlwaysAllow", '
                '"IfHealthyBudget"'
            ],
            id="budget-policy",
        ),
        pytest.param(
            plain_object("ResourceQuota", spec={"hard": {"cpu": "-1", "pods": "1500m", "count/pods": "1"}}),
            [
                f'spec.hard[cpu]: Invalid value: "-1": {_AT_LEAST_ZERO}',
                'spec.hard[pods]: Invalid value: "1500m": must be an integer',
            ],
            id="quota",
        ),
        pytest.param(
            plain_object("Node", spec={"taints": [{"key": "a", "effect": "Some"}]}, status={"capacity": {"cpu": "-1"}}),
            [
                'metadata.taints[0].effect: Unsupported value: "Some": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"',
                f'status.capacity.cpu: Invalid value: "-1": {_AT_LEAST_ZERO}',
                f'status.allocatable.cpu: Invalid value: "-1": {_AT_LEAST_ZERO}',
            ],
            id="node",
        ),
        pytest.param(
            plain_object("ConfigMap", data={"a b": "c"}),
            [
                "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', "
                "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')"
            ],
            id="key",
        ),
        pytest.param(plain_object(*_CLASS, value=1_000_000_000), [], id="highest-priority"),
        pytest.param(
            plain_object(*_CLASS, value=1_000_000_001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="priority-too-high",
        ),
        pytest.param(
            plain_object(*_CLASS, value=1) | {"metadata": {"name": "system-mine"}},
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
                "only. error: system-mine is not a known system priority class"
            ],
            id="reserved-class-name",
        ),
        pytest.param(plain_object(*_LEASE, spec={"renewTime": "2024-01-01T00:00:00.000000Z"}), [], id="lease"),
        pytest.param(
            plain_object(*_LEASE, spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                f"spec.leaseTransitions: Invalid value: -1: {_AT_LEAST_ZERO}",
            ],
            id="lease-numbers",
        ),
        pytest.param(
            plain_object("Node", spec={"taints": [{"key": "a"}]}),
            ["metadata.taints[0].effect: Required value"],
            id="taint-without-effect",
        ),
        pytest.param(plain_object("Node", spec={"podCIDR": "10.1.2.0/24"}), [], id="pod-cidr"),
        pytest.param(
            plain_object("Node", spec={"podCIDR": "10.1.2.3"}),
            [
                'spec.podCIDRs[0]: Invalid value: "10.1.2.3": must be a valid CIDR value, '
                "(e.g. 10.9.8.0/24 or 2001:db8::/64)"
            ],
            id="pod-cidr-without-mask",
        ),
        pytest.param(
            plain_object("Node", spec={"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}),
            [
                'spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: '
                "may specify no more than one CIDR for each IP family"
            ],
            id="two-pod-cidrs-of-a-family",
        ),
        pytest.param(plain_object("ConfigMap", data={"a": "x" * 2**20}), [], id="maximum-size"),
        pytest.param(
            plain_object("ConfigMap", data={"a": "x" * 2**20}, binaryData={"b": "eA=="}),
            ["[]: Too long: may not be more than 1048576 bytes"],
            id="one-byte-above-maximum",
        ),
        pytest.param(
            plain_object("Secret", stringData={"a": "x" * (2**20 + 1)}),
            ["data: Too long: may not be more than 1048576 bytes"],
            id="secret-too-large",
        ),
    ],
)
def test_other_kinds(item: Object, expected: list[str]) -> None:
    assert messages(validated(copy.deepcopy(item))) == expected


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param("junk", 'cannot parse "junk" as "2006"', id="not-a-time"),
        pytest.param("2024-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"', id="seconds"),
        pytest.param("2024-01-01T00:00:00.123Z", 'cannot parse ".123Z" as ".000000"', id="milliseconds"),
        pytest.param("2024-01-01T00:00:00.000000", 'cannot parse "" as "Z07:00"', id="without-zone"),
        pytest.param("2024-13-01T00:00:00.000000Z", "month out of range", id="invalid-month"),
    ],
)
def test_the_times_of_a_lease_have_microseconds(written: str, problem: str) -> None:
    with pytest.raises(BadRequest, match="cannot be handled as a Lease") as refused:
        validated(plain_object(*_LEASE, spec={"renewTime": written}))

    assert refused.value.message.endswith(problem)
