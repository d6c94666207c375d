"""Small objects, and servers to store them in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Transport, Write
from springtide.simulator.virtual_time import VirtualClock, run

START = 1_800_000_000
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICES = Resource("", "v1", "services", "Service")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
WIDGETS_BETA = Resource("example.com", "v1beta1", "widgets", "Widget")

WRITE = Write("tester")
DRY = Write("tester", dry_run=True)


def key(name: str) -> Key:
    return Key("default", name)


def make_server(*, now: Callable[[], int] = lambda: START, history: int = 10_000) -> ApiServer:
    return ApiServer(now=now, random=Random(7), history=history)


def run_story(story: Callable[[Transport], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine against a server, through the cluster port only."""

    async def main(clock: VirtualClock) -> None:
        await story(DirectTransport(make_server(now=clock.now)))

    run(main, start=START)


def refused(error: type[ApiError], act: Callable[[], Any]) -> ApiError:
    """Return the error of a call that must fail."""
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error or issubclass(type(caught.value), error)
    return caught.value


def config_map(name: str = "a", *, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "data": data or {"k": "v"}}


def pod(
    name: str = "p", *, requests: dict[str, str] | None = None, spec: Object | None = None, **metadata: Any
) -> Object:
    container = {"name": "main", "image": "app"} | ({"resources": {"requests": requests}} if requests else {})
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [container], **(spec or {})}}


def deployment(name: str = "web", *, replicas: int | None = None) -> Object:
    labels = {"app": name}
    spec: Object = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app"}]}},
    }
    return {"metadata": {"name": name}, "spec": spec | ({} if replicas is None else {"replicas": replicas})}


def definition(*, status: bool = True, selectable: tuple[str, ...] = (), beta: bool = False) -> Object:
    size = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}, "color": {"type": "string"}}}
    state = {"type": "object", "properties": {"ready": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": size, "status": state}}}
    version: Object = {"name": "v1", "served": True, "storage": True, "schema": schema}
    if status:
        version["subresources"] = {"status": {}}
    if selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in selectable]
    older = [{**version, "name": "v1beta1", "storage": False}] if beta else []
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version, *older],
        },
    }


def widget(name: str = "w", *, of: Resource = WIDGETS, **spec: Any) -> Object:
    return {"apiVersion": of.api_version, "kind": of.kind, "metadata": {"name": name}, "spec": spec}


def owner(item: Object, *, block: bool = False, controller: bool = True) -> Object:
    """Return an owner reference to an object."""
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": item["metadata"]["name"],
        "uid": item["metadata"]["uid"],
        "controller": controller,
        "blockOwnerDeletion": block,
    }
