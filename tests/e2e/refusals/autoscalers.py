"""Mistakes in HorizontalAutoscalers."""

from __future__ import annotations

from typing import Any

from tests.e2e.refusals.rows import DEPLOYMENT, KARPENTER, TARGET, Refused, but, written

from springtide.cluster.resources import Object

_QUERY = 'karpenter_scheduled_capacity{name="shop"}'
_AIM = "spec.metrics[0].prometheus"


def autoscaler(**spec: Any) -> Object:
    """Write a HorizontalAutoscaler that is right but for some fields."""
    metric = {"prometheus": {"query": _QUERY, "target": {"type": "AverageValue", "value": "1"}}}
    right = {"scaleTargetRef": DEPLOYMENT, "minReplicas": 1, "maxReplicas": 9, "metrics": [metric]}
    return written("HorizontalAutoscaler", KARPENTER, but(right, spec))


def aimed(query: str = _QUERY, **target: Any) -> Object:
    """Write a HorizontalAutoscaler with a query and a target."""
    return autoscaler(metrics=[{"prometheus": {"query": query, "target": target}}])


ROWS = (
    Refused(
        "crossed", autoscaler(minReplicas=5, maxReplicas=1), "spec", "Set maxReplicas to at least minReplicas", True
    ),
    Refused("min-below-zero", autoscaler(minReplicas=-1), "spec.minReplicas", "greater than or equal to 0", True),
    Refused("no-max", autoscaler(maxReplicas=None), "spec.maxReplicas", "Required value", True),
    Refused("no-target", autoscaler(scaleTargetRef=None), "spec.scaleTargetRef", "Required value", True),
    Refused(
        "X4",
        autoscaler(scaleTargetRef={**DEPLOYMENT, "apiVersion": "app/v1"}),
        f"{TARGET}.apiVersion",
        "write `apiVersion: apps/v1`",
    ),
    Refused("no-source", autoscaler(metrics=[{}]), "spec.metrics[0]", "Set prometheus", True),
    Refused("not-promql", aimed("max(", type="Value", value="1"), f"{_AIM}.query", "unclosed left parenthesis"),
    Refused(
        "no-number", aimed("up[5m]", type="Value", value="1"), f"{_AIM}.query", "write a query whose result is one"
    ),
    Refused("no-value", aimed(type="Value"), f"{_AIM}.target", "Set value", True),
    Refused(
        "value-of-another-type",
        aimed(type="Utilization", averageValue="1"),
        f"{_AIM}.target.averageValue",
        "write `value`",
    ),
    Refused("zero", aimed(type="Value", value="0"), f"{_AIM}.target.value", "must be positive"),
    Refused(
        "target-type",
        aimed(type="Sum", value="1"),
        f"{_AIM}.target.type",
        'supported values: "AverageValue", "Utilization", "Value"',
        True,
    ),
    Refused(
        "select-policy",
        autoscaler(behavior={"scaleUp": {"selectPolicy": "Best"}}),
        "spec.behavior.scaleUp.selectPolicy",
        'supported values: "Disabled", "Max", "Min"',
        True,
    ),
    Refused(
        "long-window",
        autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 3601}}),
        "spec.behavior.scaleDown.stabilizationWindowSeconds",
        "less than or equal to 3600",
        True,
    ),
    Refused(
        "policy-type",
        autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}),
        "spec.behavior.scaleUp.policies[0].type",
        'supported values: "Count", "Percent"',
        True,
    ),
    Refused(
        "long-period",
        autoscaler(behavior={"scaleUp": {"policies": [{"type": "Count", "value": 1, "periodSeconds": 1801}]}}),
        "spec.behavior.scaleUp.policies[0].periodSeconds",
        "less than or equal to 1800",
        True,
    ),
)
