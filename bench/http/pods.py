"""Typical pods of a large cluster, of about 4 KB each, and a small record of them.

The record has few fields, so the rates are those of the transport and the caches. The record that controllers share
(`springtide.apis.core.pod_record`) is measured in a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from springtide.apis.core.interning import intern_labels
from springtide.cluster.resources import Object

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


class SmallMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The decoded fields of the metadata."""

    name: str
    resource_version: str
    uid: str
    namespace: str = ""
    labels: dict[str, str] = {}


class SmallResources(msgspec.Struct, frozen=True, gc=False):
    """The requests of a container."""

    requests: dict[str, str] = {}


class SmallContainer(msgspec.Struct, frozen=True, gc=False):
    """The decoded fields of a container."""

    resources: SmallResources


class SmallSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The decoded fields of the spec."""

    containers: list[SmallContainer]
    node_name: str = ""


class SmallPodView(msgspec.Struct, frozen=True, gc=False):
    """The decoded fields of a pod."""

    metadata: SmallMetadata
    spec: SmallSpec


class SmallPodRecord(msgspec.Struct, frozen=True, gc=False):
    """Node, requests and labels of a pod."""

    node: str
    requests: tuple[tuple[str, str], ...]
    labels: Mapping[str, str]


_REQUESTS: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}


def small_pod_record(view: Any) -> SmallPodRecord:
    """Make the record of a pod; equal parts of several pods are shared."""
    requests = tuple(item for container in view.spec.containers for item in container.resources.requests.items())
    return SmallPodRecord(
        view.spec.node_name, _REQUESTS.setdefault(requests, requests), intern_labels(view.metadata.labels)
    )
