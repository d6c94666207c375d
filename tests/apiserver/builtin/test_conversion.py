"""Conversion of HorizontalPodAutoscalers between v1 and v2."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apiserver.builtin.conversion import convert
from springtide.cluster.resources import Object


def _cpu(share: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


_CPU = _cpu(60)
_JOBS: Object = {
    "type": "External",
    "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "5"}},
}


_MEMORY: Object = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
_OTHERS: list[Object] = [
    _JOBS,
    _MEMORY,
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "q"},
            "target": {"type": "Value", "value": "3"},
        },
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 3},
        },
    },
]


def _autoscaler(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x", "annotations": {"a": "b"}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "w"}, **spec},
        "status": {"currentReplicas": 1, "desiredReplicas": 2},
    }


@pytest.mark.parametrize(
    ("target", "metrics"),
    [
        pytest.param({"targetCPUUtilizationPercentage": 60}, [_CPU], id="target"),
        pytest.param({}, [_cpu(80)], id="no metrics"),
    ],
)
def test_v2_has_the_cpu_target_as_a_metric(target: Object, metrics: list[Object]) -> None:
    newer = convert(_autoscaler("v1", **target), "autoscaling/v2")

    assert (newer["apiVersion"], newer["spec"]["metrics"]) == ("autoscaling/v2", metrics)
    assert "targetCPUUtilizationPercentage" not in newer["spec"]


def test_v1_keeps_other_fields_in_annotations() -> None:
    older = convert(_autoscaler("v2", metrics=[_CPU, _JOBS]), "autoscaling/v1")

    assert (older["apiVersion"], older["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 60)
    assert set(older["metadata"]["annotations"]) == {"a", "autoscaling.alpha.kubernetes.io/metrics"}
    assert "metrics" not in older["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"metrics": [_CPU]}, id="cpu"),
        pytest.param({"metrics": [_JOBS]}, id="other"),
        pytest.param({"metrics": [_JOBS, _CPU]}, id="any-order"),
        pytest.param({"metrics": [_JOBS, _CPU], "behavior": {"scaleUp": {"selectPolicy": "Min"}}}, id="everything"),
        pytest.param({"metrics": [*_OTHERS, _CPU]}, id="all-sources"),
    ],
)
def test_a_round_trip_loses_nothing(spec: Object) -> None:
    item = _autoscaler("v2", **spec)
    item["status"] |= {"conditions": [{"type": "AbleToScale", "status": "True"}]}

    assert convert(convert(item, "autoscaling/v1"), "autoscaling/v2") == item


_PREFIX = "autoscaling.alpha.kubernetes.io/"


def test_annotations_have_the_format_of_kube_apiserver() -> None:
    """Other programs read the annotations: metrics are flat, and behavior has the field names of the Go type."""
    behavior = {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}}
    older = convert(_autoscaler("v2", metrics=[_MEMORY, _CPU], behavior=behavior), "autoscaling/v1")

    assert older["metadata"]["annotations"] == {
        "a": "b",
        f"{_PREFIX}metrics": '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]',
        f"{_PREFIX}behavior": '{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":'
        '[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}',
    }


def test_the_target_of_v1_replaces_the_cpu_metric() -> None:
    older = convert(_autoscaler("v2", metrics=[_MEMORY, _cpu(70)]), "autoscaling/v1")
    older["spec"]["targetCPUUtilizationPercentage"] = 50

    assert convert(older, "autoscaling/v2")["spec"]["metrics"] == [_MEMORY, _cpu(50)]


def test_the_cpu_metric_comes_last_after_a_round_trip() -> None:
    older = convert(_autoscaler("v2", metrics=[_CPU, _MEMORY]), "autoscaling/v1")

    assert convert(older, "autoscaling/v2")["spec"]["metrics"] == [_MEMORY, _CPU]


def test_current_metrics_are_kept() -> None:
    current = {"averageUtilization": 44, "averageValue": "5m"}
    item = _autoscaler("v2", metrics=[_CPU])
    item["status"]["currentMetrics"] = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    older = convert(item, "autoscaling/v1")

    assert older["status"]["currentCPUUtilizationPercentage"] == 44
    assert convert(older, "autoscaling/v2") == item


def test_an_invalid_annotation_is_ignored() -> None:
    item = _autoscaler("v1")
    item["metadata"]["annotations"] = {f"{_PREFIX}metrics": "junk"}

    assert convert(item, "autoscaling/v2")["spec"]["metrics"] == [_cpu(80)]


def test_other_kinds_only_change_their_version() -> None:
    assert convert({"apiVersion": "a/v1", "kind": "A"}, "a/v2") == {"apiVersion": "a/v2", "kind": "A"}
