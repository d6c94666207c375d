"""Pods as a large cluster has them, of about 4 KB each, and what a controller keeps of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from springtide.apis.core.interning import intern_labels
from springtide.cluster.resources import Object, Resource

PODS = Resource("", "v1", "pods", "Pod")
NODES = 5_000
APPS = 400


def pod(n: int) -> Object:
    """Make the n-th pod, as its controller would write it."""
    app = f"app-{n % APPS}"
    environment = [{"name": f"SETTING_{i}", "value": f"value-{i}-of-{app}"} for i in range(12)]
    container = {
        "name": "main",
        "image": f"registry.example.com/team-{n % 50}/{app}:v{n % 7}",
        "env": environment,
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{n % APPS:010x}-{n:06x}",
            "namespace": "default",
            "labels": {"app": app, "team": f"team-{n % 50}", "pod-template-hash": f"{n % APPS:010x}"},
            "annotations": {"example.com/checksum": f"{n * 2654435761 % 2**64:064x}"},
        },
        "spec": {
            "nodeName": f"node-{n % NODES}",
            "containers": [container],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": app, "effect": "NoSchedule"}],
        },
    }


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What is read of a pod's metadata."""

    name: str
    resource_version: str
    uid: str
    namespace: str = ""
    labels: dict[str, str] = {}


class Requests(msgspec.Struct, frozen=True, gc=False):
    """What a container asks for."""

    requests: dict[str, str] = {}


class Container(msgspec.Struct, frozen=True, gc=False):
    """What is read of a container."""

    resources: Requests


class Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What is read of a pod's spec."""

    containers: list[Container]
    node_name: str = ""


class PodView(msgspec.Struct, frozen=True, gc=False):
    """What is read of a pod."""

    metadata: Metadata
    spec: Spec


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """What a packer keeps of a pod."""

    node: str
    requests: tuple[tuple[str, str], ...]
    labels: Mapping[str, str]


_REQUESTS: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}


def record(view: Any) -> PodRecord:
    """Make the record of a pod; what many pods have in common is kept once."""
    requests = tuple(item for container in view.spec.containers for item in container.resources.requests.items())
    return PodRecord(view.spec.node_name, _REQUESTS.setdefault(requests, requests), intern_labels(view.metadata.labels))
