"""Autoscalers in both of their versions."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.conversion import convert


def _cpu(share: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


_CPU = _cpu(60)
_JOBS: Object = {
    "type": "External",
    "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "5"}},
}


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
        pytest.param({}, [_cpu(80)], id="none"),
    ],
)
def test_the_newer_version_says_it_with_metrics(target: Object, metrics: list[Object]) -> None:
    newer = convert(_autoscaler("v1", **target), "autoscaling/v2")

    assert (newer["apiVersion"], newer["spec"]["metrics"]) == ("autoscaling/v2", metrics)
    assert "targetCPUUtilizationPercentage" not in newer["spec"]


def test_the_older_version_keeps_the_rest_in_annotations() -> None:
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
        pytest.param({"metrics": [_CPU, _JOBS], "behavior": {"scaleUp": {"selectPolicy": "Min"}}}, id="everything"),
    ],
)
def test_there_and_back(spec: Object) -> None:
    item = _autoscaler("v2", **spec)
    item["status"] |= {"conditions": [{"type": "AbleToScale", "status": "True"}]}

    assert convert(convert(item, "autoscaling/v1"), "autoscaling/v2") == item


def test_other_kinds_only_change_their_version() -> None:
    assert convert({"apiVersion": "a/v1", "kind": "A"}, "a/v2") == {"apiVersion": "a/v2", "kind": "A"}
