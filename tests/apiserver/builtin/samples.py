"""Minimal objects of built-in kinds."""

from __future__ import annotations

from springtide.apiserver.builtin import kinds
from springtide.apiserver.kinds import ServedKind
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

BY_KIND = {(kind.resource.kind, kind.resource.api_version): kind for kind in kinds()}


def kind_of(item: Object) -> ServedKind:
    """Return the kind of an object."""
    return BY_KIND[item["kind"], item["apiVersion"]]


def defaulted(item: Object) -> Object:
    """Apply the defaults of its kind to an object."""
    return kind_of(item).apply_defaults(item)


def validated(item: Object, old: Object | None = None) -> tuple[StatusCause, ...]:
    """Validate an object after applying defaults."""
    return kind_of(item).validate(defaulted(item), None if old is None else defaulted(old))


def messages(causes: tuple[StatusCause, ...]) -> list[str]:
    """Format causes as clients show them."""
    return [f"{cause.field}: {cause.message}" for cause in causes]


def pod_spec(**fields: object) -> Object:
    return {"containers": [{"name": "main", "image": "web:1"}]} | fields


def pod(**spec: object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": pod_spec(**spec)}


def workload(kind: str = "Deployment", **spec: object) -> Object:
    """Return a Deployment, ReplicaSet, StatefulSet or DaemonSet with one container."""
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


def other_object(kind: str, api_version: str = "v1", **fields: object) -> Object:
    """Return an object of any other kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "d"}} | fields
