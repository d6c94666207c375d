"""The objects that cases create, as small as the API allows, and the definition of `Widget`."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.servers import SERVICE_ACCOUNT
from tests.conformance.session import JSON_PATCH, Object, Session

LONG_AGO = "2017-03-01T10:00:00Z"


def config_map(name: str = "settings", data: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


def container(name: str = "main", **more: Any) -> Object:
    """Return a container."""
    return {"name": name, "image": "example.com/app:1.2", **more}


def pod_spec(**spec: Any) -> Object:
    """Return a pod spec without a token, which not every server can issue."""
    return {
        "containers": [container()],
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        **spec,
    }


def pod(name: str = "web", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a Pod."""
    metadata: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def template(**spec: Any) -> Object:
    """Return a pod template."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(**spec)}


def deployment(name: str = "web", **spec: Any) -> Object:
    """Return a Deployment."""
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def service(name: str = "web", **spec: Any) -> Object:
    """Return a Service."""
    whole = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole}


def budget(name: str = "web", **spec: Any) -> Object:
    """Return a PodDisruptionBudget."""
    whole = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": whole}


def autoscaler(name: str = "web", **spec: Any) -> Object:
    """Return a HorizontalPodAutoscaler."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": target, "maxReplicas": 3, **spec}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": whole,
    }


def job(name: str = "report", **spec: Any) -> Object:
    """Return a Job."""
    whole = {"template": {"spec": pod_spec(restartPolicy="Never")}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def lease(name: str = "leader", **spec: Any) -> Object:
    """Return a Lease."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def node(name: str, **spec: Any) -> Object:
    """Return a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def event(session: Session, name: str = "happened", **more: Any) -> Object:
    """Return an Event about a pod."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": session.namespace},
        "reason": "Happened",
        "message": "something happened",
        "type": "Normal",
        "source": {"component": "conformance"},
        "firstTimestamp": LONG_AGO,
        "lastTimestamp": LONG_AGO,
        "count": 1,
        **more,
    }


def properties(**fields: Object) -> Object:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": fields}


STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}


def version(name: str, schema: Object, *, storage: bool = True, **more: Any) -> Object:
    """Return one version of a definition."""
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(session: Session, schema: Object, *, scope: str = "Namespaced", **more: Any) -> Object:
    """Return the definition of `Widget` with one version, in the group of the session."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{session.group}"},
        "spec": {
            "group": session.group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", schema, **more)],
        },
    }


def widget(session: Session, name: str = "one", version: str = "v1", **members: Any) -> Object:
    """Return a Widget."""
    return {"apiVersion": f"{session.group}/{version}", "kind": "Widget", "metadata": {"name": name}, **members}


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define(session: Session, schema: Object, *, own: bool = False, **more: Any) -> str:
    """Define `Widget` and wait until it is served; returns the short path of its objects.

    Sessions share a definition, unless a case needs its own because it changes or deletes it.
    """
    wanted = json.dumps([schema, more])
    if own:
        return serve(session, definition(session, schema, **more))
    if wanted in session.shared:
        session.group = session.shared[wanted]
        return _path(definition(session, schema, **more))
    path = serve(session, definition(session, schema, **more), keep=True)
    session.shared[wanted] = session.group
    return path


def serve(session: Session, definition: Object, *, keep: bool = False) -> str:
    """Create a definition and wait until all versions are served; returns the path of the first version's objects."""
    session.prepare(DEFINITIONS, definition, keep=keep)
    spec = definition["spec"]
    for each in spec["versions"]:
        if each["served"]:
            path = f"/apis/{spec['group']}/{each['name']}/{spec['names']['plural']}"
            session.until(lambda answer: answer.status == 200, path)
    return _path(definition)


def redefine(session: Session, patch: list[Object], probe: str, body: Object, status: int) -> None:
    """Change the definition of `Widget`, and wait until a dry-run create has the status code that the change causes."""
    path = f"{DEFINITIONS}/widgets.{session.group}"
    answer = session.send_unrecorded("PATCH", path, patch, {"Content-Type": JSON_PATCH})
    assert answer.status == 200, answer.body
    session.until(lambda answer: answer.status == status, probe, body, method="POST", dryRun="All")


def _path(definition: Object) -> str:
    spec = definition["spec"]
    path = f"{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return path if spec["scope"] == "Namespaced" else f"/apis/{path}"
