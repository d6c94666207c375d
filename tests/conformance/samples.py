"""The objects that cases write: as small as the API allows, so that a case says only what it is about.

Definitions that come and change while a case is played: a server takes a moment to serve what it has accepted.
"""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.servers import SERVICE_ACCOUNT
from tests.conformance.session import JSON_PATCH, Object, Session

LONG_AGO = "2017-03-01T10:00:00Z"


def config_map(name: str = "settings", data: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """Write a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


def container(name: str = "main", **more: Any) -> Object:
    """Write a container."""
    return {"name": name, "image": "example.com/app:1.2", **more}


def pod_spec(**spec: Any) -> Object:
    """Write what a pod is to be; it asks for no token, which not every server could give it."""
    return {
        "containers": [container()],
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        **spec,
    }


def pod(name: str = "web", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Write a Pod."""
    metadata: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def template(**spec: Any) -> Object:
    """Write the template of the pods of a workload."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(**spec)}


def deployment(name: str = "web", **spec: Any) -> Object:
    """Write a Deployment."""
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def service(name: str = "web", **spec: Any) -> Object:
    """Write a Service."""
    whole = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole}


def budget(name: str = "web", **spec: Any) -> Object:
    """Write a PodDisruptionBudget."""
    whole = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": whole}


def autoscaler(name: str = "web", **spec: Any) -> Object:
    """Write a HorizontalPodAutoscaler."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": target, "maxReplicas": 3, **spec}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": whole,
    }


def job(name: str = "report", **spec: Any) -> Object:
    """Write a Job."""
    whole = {"template": {"spec": pod_spec(restartPolicy="Never")}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def lease(name: str = "leader", **spec: Any) -> Object:
    """Write a Lease."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def node(name: str, **spec: Any) -> Object:
    """Write a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def event(play: Session, name: str = "happened", **more: Any) -> Object:
    """Write an Event about a pod."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": play.namespace},
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
    """Write the schema of an object with these members."""
    return {"type": "object", "properties": fields}


STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}


def version(name: str, schema: Object, *, storage: bool = True, **more: Any) -> Object:
    """Write one version of a definition."""
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(play: Session, schema: Object, *, scope: str = "Namespaced", **more: Any) -> Object:
    """Write the definition of `Widget`, with one version, in the group of the play."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{play.group}"},
        "spec": {
            "group": play.group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", schema, **more)],
        },
    }


def widget(play: Session, name: str = "one", version: str = "v1", **members: Any) -> Object:
    """Write a Widget."""
    return {"apiVersion": f"{play.group}/{version}", "kind": "Widget", "metadata": {"name": name}, **members}


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define(play: Session, schema: Object, *, own: bool = False, **more: Any) -> str:
    """Have `Widget` defined with one version, and served; gives the short path of its objects.

    Plays share a definition, unless one wants its own because it changes or deletes it.
    """
    wanted = json.dumps([schema, more])
    if own:
        return serve(play, definition(play, schema, **more))
    if wanted in play.shared:
        play.group = play.shared[wanted]
        return _path(definition(play, schema, **more))
    path = serve(play, definition(play, schema, **more), stays=True)
    play.shared[wanted] = play.group
    return path


def serve(play: Session, definition: Object, *, stays: bool = False) -> str:
    """Create a definition, and wait until all its versions are served; gives the path of the first one's objects."""
    play.prepare(DEFINITIONS, definition, stays=stays)
    spec = definition["spec"]
    for each in spec["versions"]:
        if each["served"]:
            path = f"/apis/{spec['group']}/{each['name']}/{spec['names']['plural']}"
            play.until(lambda answer: answer.status == 200, path)
    return _path(definition)


def redefine(play: Session, patch: list[Object], probe: str, body: Object, status: int) -> None:
    """Change the definition of `Widget`, and wait until a trial creation has the status that the change brings."""
    path = f"{DEFINITIONS}/widgets.{play.group}"
    answer = play.quietly("PATCH", path, patch, {"Content-Type": JSON_PATCH})
    assert answer.status == 200, answer.body
    play.until(lambda answer: answer.status == status, probe, body, method="POST", dryRun="All")


def _path(definition: Object) -> str:
    spec = definition["spec"]
    path = f"{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return path if spec["scope"] == "Namespaced" else f"/apis/{path}"
