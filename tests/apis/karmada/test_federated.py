"""What is said about FederatedHPAs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.crd_server import admit
from tests.apis.karmada.objects import API, DEPLOYMENT
from tests.apis.manifests import problems_of, shown

from springtide.apis.crds import Flavour
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


def metric(type_: str, **source: Any) -> dict[str, Any]:
    return {"type": type_, type_[0].lower() + type_[1:]: source}


def resource(target: dict[str, Any], name: str = "cpu") -> dict[str, Any]:
    return metric("Resource", name=name, target={"type": "Utilization", **target})


def container(target: dict[str, Any], name: str = "cpu", container: str = "web") -> dict[str, Any]:
    return metric("ContainerResource", name=name, container=container, target={"type": "Utilization", **target})


def external(target: dict[str, Any], name: str = "backlog") -> dict[str, Any]:
    return metric("External", metric={"name": name}, target={"type": "Value", **target})


def pods(target: dict[str, Any], name: str = "requests") -> dict[str, Any]:
    return metric("Pods", metric={"name": name}, target={"type": "AverageValue", **target})


def described(target: dict[str, Any], name: str = "requests", **reference: Any) -> dict[str, Any]:
    return metric(
        "Object", metric={"name": name}, describedObject={**DEPLOYMENT, **reference}, target={"type": "Value", **target}
    )


BOTH = {"averageUtilization": 80, "averageValue": "500m"}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        pytest.param(resource({"averageUtilization": 80}), [], id="utilization"),
        pytest.param(resource({"type": "AverageValue", "averageValue": "500m"}), [], id="average-value"),
        pytest.param(resource(BOTH), ["error resource.target.averageValue"], id="both-targets-of-a-resource"),
        pytest.param(
            container(BOTH), ["error containerResource.target.averageValue"], id="both-targets-of-a-container"
        ),
        pytest.param(
            external({"value": "1", "averageValue": "1"}), ["error external.target.value"], id="both-external"
        ),
        pytest.param(described({"value": "1", "averageValue": "1"}), [], id="an-object-may-have-both"),
        pytest.param(
            resource({"averageUtilization": 0}), ["error resource.target.averageUtilization"], id="zero-percent"
        ),
        pytest.param(
            resource({"averageUtilization": -1}), ["error resource.target.averageUtilization"], id="negative-percent"
        ),
        pytest.param(
            resource({"type": "AverageValue", "averageValue": "-500m"}),
            ["error resource.target.averageValue"],
            id="negative-average-value",
        ),
        pytest.param(
            resource({"averageUtilization": 80, "value": "-1"}),
            ["error resource.target.value"],
            id="negative-value-that-is-not-used",
        ),
        pytest.param(external({"value": 0}), ["error external.target.value"], id="value-of-zero"),
        pytest.param(external({"value": "-1"}), ["error external.target.value"], id="negative-value"),
        pytest.param(pods({"averageValue": "-100m"}), ["error pods.target.averageValue"], id="negative-value-of-pods"),
        pytest.param(described({"value": "-3"}), ["error object.target.value"], id="negative-value-of-an-object"),
        pytest.param(resource({"averageUtilization": 80}, name="speed"), [], id="a-resource-may-be-unknown"),
        pytest.param(
            resource({"averageUtilization": 80}, name=""), ["error resource.name"], id="resource-without-a-name"
        ),
        pytest.param(
            container({"averageUtilization": 80}, name="speed"),
            ["error containerResource.name"],
            id="unknown-resource-of-a-container",
        ),
        pytest.param(container({"averageUtilization": 80}, name="hugepages-2Mi"), [], id="huge-pages-of-a-container"),
        pytest.param(container({"averageUtilization": 80}, name="example.com/gpu"), [], id="extended-resource"),
        pytest.param(
            container({"averageUtilization": 80}, container="Web"),
            ["error containerResource.container"],
            id="container-in-capitals",
        ),
        pytest.param(
            container({"averageUtilization": 80}, container="web.first"),
            ["error containerResource.container"],
            id="container-with-a-dot",
        ),
        pytest.param(
            container({"averageUtilization": 80}, container="w" * 64),
            ["error containerResource.container"],
            id="container-with-64-characters",
        ),
        pytest.param(container({"averageUtilization": 80}, container="w" * 63), [], id="container-with-63-characters"),
        pytest.param(external({"value": "1"}, name=".."), ["error external.metric.name"], id="metric-of-two-dots"),
        pytest.param(external({"value": "1"}, name=""), ["error external.metric.name"], id="metric-without-a-name"),
        pytest.param(pods({"averageValue": "1"}, name="http/s"), ["error pods.metric.name"], id="metric-with-a-slash"),
        pytest.param(described({"value": "1"}, name="a%b"), ["error object.metric.name"], id="metric-with-a-percent"),
        pytest.param(pods({"averageValue": "1"}, name="HTTP:requests_total"), [], id="metric-with-capitals-and-colons"),
        pytest.param(
            described({"value": "1"}, kind="a/b"), ["error object.describedObject.kind"], id="kind-with-a-slash"
        ),
    ],
)
def test_metrics_are_judged_as_those_of_a_horizontal_pod_autoscaler(
    metric: dict[str, Any], expected: list[str]
) -> None:
    found = [text.replace(f"{METRIC}.", "") for text in shown(problems_of(federated(metrics=[metric])))]

    assert expected == found


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [
        pytest.param("0", [], id="zero"),
        pytest.param("50m", [], id="a-part"),
        pytest.param(0.05, [], id="a-number"),
        pytest.param("-50m", ["error spec.behavior.scaleUp.tolerance"], id="negative"),
        pytest.param("much", ["error spec.behavior.scaleUp.tolerance"], id="no-quantity"),
    ],
)
def test_a_tolerance_is_not_negative(tolerance: object, expected: list[str]) -> None:
    assert expected == shown(problems_of(federated(behavior={"scaleUp": {"tolerance": tolerance}})))


@pytest.mark.parametrize(
    ("metric", "flavour", "refused"),
    [
        pytest.param(resource(BOTH), Flavour.EXTENDED, True, id="both-targets-of-a-resource"),
        pytest.param(container(BOTH), Flavour.EXTENDED, True, id="both-targets-of-a-container"),
        pytest.param(external({"value": "1", "averageValue": "1"}), Flavour.EXTENDED, True, id="both-external"),
        pytest.param(described({"value": "1", "averageValue": "1"}), Flavour.EXTENDED, False, id="both-of-an-object"),
        pytest.param(resource({"averageUtilization": 80}), Flavour.EXTENDED, False, id="one-target"),
        pytest.param(resource(BOTH), Flavour.STOCK, False, id="upstream-has-no-such-rule"),
    ],
)
def test_the_crd_refuses_two_targets(metric: dict[str, Any], flavour: Flavour, refused: bool) -> None:
    assert bool(admit(federated(metrics=[metric]), flavour)) is refused


def test_default_minimum() -> None:
    filled = with_defaults({"scaleTargetRef": DEPLOYMENT, "maxReplicas": 10}, schema_of(FederatedHPASpec))

    assert filled["minReplicas"] == 1
