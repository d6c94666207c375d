"""Workloads of a real cluster that something scales; they run nowhere, and nobody minds."""

from __future__ import annotations

from typing import Any

from tests.e2e.objects import read
from tests.e2e.plane import ControlPlane

from springtide.cluster.resources import Object


def deployment(name: str, replicas: int = 1, namespace: str = "default") -> Object:
    """Write a Deployment."""
    labels = {"app": name}
    container = {"name": "main", "image": "registry.invalid/none", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def target(name: str) -> dict[str, str]:
    """Refer to a Deployment."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def external_autoscaler(name: str, metric: str, selector: dict[str, Any] | None = None, **bounds: int) -> Object:
    """Write a stock HorizontalPodAutoscaler that has a Deployment of its name follow an external metric, at once."""
    source: Object = {"name": metric, **({} if selector is None else {"selector": selector})}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": target(name),
            "minReplicas": bounds.get("least", 1),
            "maxReplicas": bounds.get("most", 20),
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": source, "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def replicas_of(plane: ControlPlane, name: str) -> int:
    """Give how many replicas a Deployment shall have."""
    found = read(plane, "deployment", name)
    return -1 if found is None else found["spec"]["replicas"]
