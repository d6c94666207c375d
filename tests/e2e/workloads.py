"""Workloads of a real cluster that something scales; they run nowhere, as no test needs their pods."""

from __future__ import annotations

import time
from threading import Event, Thread
from typing import Any, Self

from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import read, read_all

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


class Sizes:
    """How many replicas the Deployments of a namespace shall have, looked at all the time while this is open."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._seen: dict[str, list[tuple[float, int]]] = {}
        self._ended = Event()
        self._looking = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ended.set()
        self._looking.join()

    def changes(self, name: str) -> list[tuple[float, int]]:
        """Return the sizes that a Deployment had one after the other, each with the time at which it was first seen."""
        return list(self._seen.get(name, ()))

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            for item in read_all(self._plane, "deployments"):
                seen = self._seen.setdefault(item["metadata"]["name"], [])
                if not seen or seen[-1][1] != item["spec"]["replicas"]:
                    seen.append((time.time(), item["spec"]["replicas"]))


def replicas_of(plane: ControlPlane, name: str) -> int:
    """Return how many replicas a Deployment shall have."""
    found = read(plane, "deployment", name)
    return -1 if found is None else found["spec"]["replicas"]
