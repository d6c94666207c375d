"""What is said about HorizontalAutoscalers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

GROUP = {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "ScalableNodeGroup", "name": "workers"}
METRIC = "spec.metrics[0].prometheus"


def metric(query: str = "up", **target: Any) -> dict[str, Any]:
    return {"prometheus": {"query": query, "target": target or {"type": "AverageValue", "value": 1}}}


def autoscaler(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": "test"},
        "spec": {"scaleTargetRef": GROUP, "minReplicas": 0, "maxReplicas": 10, "metrics": [metric()], **spec},
    }


def rules(**fields: Any) -> dict[str, Any]:
    return {"behavior": {"scaleUp": fields}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="complete"),
        pytest.param({"minReplicas": 3, "maxReplicas": 3}, [], id="fixed"),
        pytest.param({"minReplicas": 11}, ["error spec.maxReplicas"], id="minimum-above-maximum"),
        pytest.param({"minReplicas": -1}, ["error spec.minReplicas"], id="negative"),
        pytest.param({"metrics": []}, ["warning spec.metrics"], id="no-metrics"),
        pytest.param({"metrics": [metric()] * 32}, [], id="many-metrics"),
        pytest.param({"metrics": [metric()] * 33}, ["error spec.metrics"], id="too-many-metrics"),
        pytest.param({"metrics": [metric()] * 33 + [{}]}, ["error spec.metrics"], id="no-checks-beyond-maximum"),
        pytest.param(
            rules(policies=[{"type": "Count", "value": 1, "periodSeconds": 60}] * 33),
            ["error spec.behavior.scaleUp.policies"],
            id="too-many-policies",
        ),
        pytest.param({"metrics": None}, ["warning spec.metrics"], id="metrics-not-set"),
        pytest.param({"metrics": [{}]}, ["error spec.metrics[0].prometheus"], id="metric-without-source"),
        pytest.param(
            {"metrics": [{"prometeus": {}}]},
            [
                "error spec.metrics[0].prometeus",
                "error spec.metrics[0].prometeus.query",
                "error spec.metrics[0].prometeus.target",
            ],
            id="misspelt-source",
        ),
        pytest.param(
            {"scaleTargetRef": {**GROUP, "apiVersion": "autoscaling.karpenter.sh/v1"}},
            ["error spec.scaleTargetRef.apiVersion"],
            id="wrong-version",
        ),
        pytest.param(
            {"scaleTargetRef": {"kind": "ScalableNodeGroup", "name": "a"}},
            ["error spec.scaleTargetRef.apiVersion"],
            id="no-version",
        ),
        pytest.param({"scaleTargetRef": {"name": "a"}}, ["error spec.scaleTargetRef.kind"], id="no-kind"),
        pytest.param(rules(stabilizationWindowSeconds=3600), [], id="longest-window"),
        pytest.param(
            rules(stabilizationWindowSeconds=3601),
            ["error spec.behavior.scaleUp.stabilizationWindowSeconds"],
            id="window",
        ),
        pytest.param(
            rules(stabilizationWindowSeconds=-1),
            ["error spec.behavior.scaleUp.stabilizationWindowSeconds"],
            id="negative-window",
        ),
        pytest.param(rules(selectPolicy="Most"), ["error spec.behavior.scaleUp.selectPolicy"], id="select"),
        pytest.param(rules(selectPolicy="Disabled"), [], id="one-direction-disabled"),
        pytest.param(
            {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}},
            ["warning spec.behavior"],
            id="both-directions-disabled",
        ),
        pytest.param(rules(policies=[{"type": "Count", "value": 4, "periodSeconds": 1800}]), [], id="policy"),
        pytest.param(
            rules(policies=[{"type": "Pods", "value": 0, "periodSeconds": 1801}]),
            [
                "error spec.behavior.scaleUp.policies[0].periodSeconds",
                "error spec.behavior.scaleUp.policies[0].type",
                "error spec.behavior.scaleUp.policies[0].value",
            ],
            id="policy-out-of-bounds",
        ),
        pytest.param(rules(tolerance=0.1), [], id="tolerance"),
        pytest.param(rules(tolerance="-1m"), ["error spec.behavior.scaleUp.tolerance"], id="tolerance-negative"),
        pytest.param(rules(tolerance="10%"), ["error spec.behavior.scaleUp.tolerance"], id="tolerance-as-a-percentage"),
        pytest.param(
            {"behavior": {"scaleDown": {"tolerance": 1}}},
            ["warning spec.behavior.scaleDown.tolerance"],
            id="tolerance-of-everything",
        ),
    ],
)
def test_autoscalers(spec: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(autoscaler(**spec)))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param({"type": "Value", "value": "4"}, [], id="value"),
        pytest.param({"type": "AverageValue", "value": 4}, [], id="value-goes-with-every-type"),
        pytest.param({"type": "Utilization", "value": "60"}, [], id="percentage-as-value"),
        pytest.param({"type": "AverageValue", "averageValue": "500m"}, [], id="average-value"),
        pytest.param({"type": "Utilization", "averageUtilization": 60}, [], id="utilization"),
        pytest.param({"type": "Value"}, [f"error {METRIC}.target.value"], id="none"),
        pytest.param(
            {"type": "Value", "averageUtilization": 60},
            [f"error {METRIC}.target.averageUtilization"],
            id="of-another-type",
        ),
        pytest.param(
            {"type": "AverageValue", "value": 4, "averageValue": 5},
            [f"warning {METRIC}.target.averageValue"],
            id="two-targets",
        ),
        pytest.param({"type": "Value", "value": 0}, [f"error {METRIC}.target.value"], id="zero"),
        pytest.param({"type": "Value", "value": "4 cores"}, [f"error {METRIC}.target.value"], id="not-a-quantity"),
        pytest.param({"type": "Ratio", "value": 1}, [f"error {METRIC}.target.type"], id="unknown-type"),
    ],
)
def test_targets(target: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(autoscaler(metrics=[metric(**target)])))


def test_query_of_the_design_is_explained() -> None:
    """`max(a, b)` is not PromQL; the hint shows the valid form."""
    (found,) = problems_of(autoscaler(metrics=[metric('max(a{name="q"},b{name="s"})')]))

    assert (found.severity, found.path[-1]) == ("warning", "query")
    assert 'max(a{name="q"} or b{name="s"})' in found.hint


@pytest.mark.parametrize(
    ("version", "kind"),
    [("autoscaling/v2", "HorizontalPodAutoscaler"), ("apps/v1", "DaemonSet"), ("keda.sh/v1alpha1", "ScaledObject")],
)
def test_what_has_no_replicas_is_no_target(version: str, kind: str) -> None:
    """An autoscaler that scales an autoscaler reads like a way to move its bounds, and is none."""
    problems = problems_of(autoscaler(scaleTargetRef={"apiVersion": version, "kind": kind, "name": "web"}))
    assert shown(problems) == ["error spec.scaleTargetRef.kind"]
    assert problems[0].message == f"a {kind} has no replicas to set"


def test_a_kind_of_the_same_name_may_have_replicas() -> None:
    """A kind of an unknown group is not reported."""
    assert (
        problems_of(autoscaler(scaleTargetRef={"apiVersion": "batch.example.com/v1", "kind": "Job", "name": "web"}))
        == []
    )
