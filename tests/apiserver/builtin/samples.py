"""Objects of built-in kinds for tests: as little as a server accepts."""

from __future__ import annotations

from springtide.apiserver.builtin import kinds
from springtide.apiserver.kinds import ServedKind
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

BY_KIND = {(kind.resource.kind, kind.resource.api_version): kind for kind in kinds()}


def served(item: Object) -> ServedKind:
    """Find the kind of an object."""
    return BY_KIND[item["kind"], item["apiVersion"]]


def completed(item: Object) -> Object:
    """Complete an object as the server does."""
    return served(item).apply_defaults(item)


def judged(item: Object, old: Object | None = None) -> tuple[StatusCause, ...]:
    """Judge an object as the server does, after completing it."""
    return served(item).validate(completed(item), None if old is None else completed(old))


def lines(causes: tuple[StatusCause, ...]) -> list[str]:
    """Write causes as users see them."""
    return [f"{cause.field}: {cause.message}" for cause in causes]


def pod_spec(**fields: object) -> Object:
    return {"containers": [{"name": "main", "image": "web:1"}]} | fields


def pod(**spec: object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": pod_spec(**spec)}


def workload(kind: str = "Deployment", **spec: object) -> Object:
    """Make a Deployment, ReplicaSet, StatefulSet or DaemonSet that runs one container."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec()}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template} | spec,
    }


def job(**spec: object) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "d", "uid": "u-1"},
        "spec": {"template": {"spec": pod_spec(restartPolicy="Never")}} | spec,
    }


def thing(kind: str, api_version: str = "v1", **fields: object) -> Object:
    """Make any other object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "d"}} | fields
