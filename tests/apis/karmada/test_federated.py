"""What is said about FederatedHPAs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karmada.objects import API, DEPLOYMENT
from tests.apis.manifests import problems_of, shown

from springtide.apis.karmada.federated import FederatedHPASpec
from springtide.apis.schema import schema_of, with_defaults

METRIC = "spec.metrics[0]"
CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
REQUESTS = {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "100m"}}


def federated(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "FederatedHPA",
        "metadata": {"name": "test"},
        "spec": {"scaleTargetRef": DEPLOYMENT, "maxReplicas": 10, **spec},
    }


def policy(**fields: Any) -> dict[str, Any]:
    return {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15, **fields}]}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="least"),
        pytest.param({"minReplicas": 10}, [], id="fixed"),
        pytest.param({"minReplicas": 11}, ["error spec.maxReplicas"], id="minimum-above-maximum"),
        pytest.param({"minReplicas": 0}, ["error spec.minReplicas"], id="no-scale-to-zero"),
        pytest.param({"maxReplicas": 0}, ["error spec.maxReplicas"], id="maximum-zero"),
        pytest.param(
            {"scaleTargetRef": {**DEPLOYMENT, "apiVersion": "app/v1"}},
            ["error spec.scaleTargetRef.apiVersion"],
            id="misspelt-group",
        ),
        pytest.param(policy(), [], id="policy"),
        pytest.param(
            policy(periodSeconds=1801), ["error spec.behavior.scaleDown.policies[0].periodSeconds"], id="period"
        ),
        pytest.param(policy(value=0), ["error spec.behavior.scaleDown.policies[0].value"], id="value"),
        pytest.param(policy(type="Count"), ["error spec.behavior.scaleDown.policies[0].type"], id="type"),
        pytest.param(
            {"behavior": {"scaleUp": {"policies": []}}}, ["error spec.behavior.scaleUp.policies"], id="no-policies"
        ),
        pytest.param({"metrics": [{"type": "Resource", "resource": CPU}]}, [], id="resource"),
        pytest.param({"metrics": [{"type": "Pods", "pods": REQUESTS}]}, [], id="pods"),
        pytest.param({"metrics": [{"type": "External", "external": REQUESTS}]}, [], id="external"),
        pytest.param(
            {"metrics": [{"type": "Object", "object": {**REQUESTS, "describedObject": DEPLOYMENT}}]}, [], id="object"
        ),
        pytest.param(
            {"metrics": [{"type": "ContainerResource", "containerResource": {**CPU, "container": "web"}}]},
            [],
            id="container",
        ),
        pytest.param(
            {"metrics": [{"type": "Pods", "resource": CPU}]},
            [f"error {METRIC}.pods", f"error {METRIC}.resource"],
            id="source-of-another-type",
        ),
        pytest.param(
            {
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "value": 1}}}
                ]
            },
            [f"error {METRIC}.resource.target.averageUtilization"],
            id="target-of-another-type",
        ),
    ],
)
def test_federated(spec: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(federated(**spec)))


def test_default_minimum() -> None:
    filled = with_defaults({"scaleTargetRef": DEPLOYMENT, "maxReplicas": 10}, schema_of(FederatedHPASpec))

    assert filled["minReplicas"] == 1
