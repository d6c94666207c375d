"""Tables: the columns and cells that `kubectl get` shows."""

from __future__ import annotations

import time
from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import (
    INTEGER,
    STRING,
    autoscaler,
    budget,
    config_map,
    container,
    define,
    deployment,
    event,
    job,
    lease,
    node,
    pod,
    properties,
    service,
    template,
    widget,
)
from tests.conformance.session import TABLE, Object, Session

_WORKLOAD = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}

_NAMESPACED: dict[str, tuple[str, Object]] = {
    "config map": ("v1/configmaps", config_map()),
    "secret": ("v1/secrets", {"metadata": {"name": "s"}, "data": {"x": "aGVsbG8="}}),
    "pod": ("v1/pods", pod()),
    "service": ("v1/services", service(clusterIP="None")),
    "service account": ("v1/serviceaccounts", {"metadata": {"name": "robot"}}),
    "resource quota": ("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "10"}}}),
    "limit range": (
        "v1/limitranges",
        {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}},
    ),
    "claim": (
        "v1/persistentvolumeclaims",
        {
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    ),
    "deployment": ("apps/v1/deployments", deployment(replicas=2)),
    "replica set": ("apps/v1/replicasets", {"metadata": {"name": "r"}, "spec": _WORKLOAD}),
    "stateful set": ("apps/v1/statefulsets", {"metadata": {"name": "s"}, "spec": {"serviceName": "s", **_WORKLOAD}}),
    "daemon set": ("apps/v1/daemonsets", {"metadata": {"name": "d"}, "spec": _WORKLOAD}),
    "job": ("batch/v1/jobs", job()),
    "cron job": (
        "batch/v1/cronjobs",
        {"metadata": {"name": "c"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job()["spec"]}}},
    ),
    "budget": ("policy/v1/poddisruptionbudgets", budget()),
    "autoscaler": ("autoscaling/v2/horizontalpodautoscalers", autoscaler()),
    "lease": ("coordination.k8s.io/v1/leases", lease(holderIdentity="me")),
    "controller revision": ("apps/v1/controllerrevisions", {"metadata": {"name": "r"}, "revision": 1, "data": {}}),
}

_OUTSIDE: dict[str, tuple[str, Object]] = {
    "namespace": ("/api/v1/namespaces", {}),
    "node": ("/api/v1/nodes", {}),
    "persistent volume": (
        "/api/v1/persistentvolumes",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}},
    ),
    "priority class": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 10}),
    "storage class": ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/disk"}),
}


def _table(session: Session, path: str, **query: Any) -> None:
    """Get a table with the ages hidden, because they depend on how fast the run is."""
    answer = session.get(path, accept=TABLE, **query)
    ages = [
        place
        for place, column in enumerate(answer["columnDefinitions"])
        if column["name"] in ("Age", "Duration", "Last Seen", "First Seen", "Created")
    ]
    for row in answer["rows"]:
        for place in ages:
            cell = row["cells"][place]
            row["cells"][place] = "<age>" if isinstance(cell, str) and cell[-1:] == "s" else cell


@each(_NAMESPACED)
def of(session: Session, what: tuple[str, Object]) -> None:
    path, body = what
    session.prepare(path, body)
    _table(session, path, fieldSelector=f"metadata.name={body['metadata']['name']}", includeObject="None")


@each(_OUTSIDE)
def of_a_cluster_scoped_kind(session: Session, what: tuple[str, Object]) -> None:
    path, body = what
    name = session.unique("x")
    session.prepare(path, {"metadata": {"name": name}, **body})
    _table(session, f"{path}/{name}", includeObject="None")


@each({each: {"includeObject": each} for each in ("None", "Metadata", "Object")} | {"default": {}})
def with_objects(session: Session, query: dict[str, str]) -> None:
    session.prepare("v1/configmaps", config_map())
    _table(session, "v1/configmaps", **query)


@case
def with_unknown_include_object(session: Session) -> None:
    session.get("v1/configmaps", accept=TABLE, includeObject="Half")


@case
def of_one_object(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    _table(session, "v1/configmaps/settings")


@case
def empty(session: Session) -> None:
    _table(session, "v1/configmaps")


@case
def errors_are_not_tables(session: Session) -> None:
    session.get("v1/configmaps/nobody", accept=TABLE)


@case
def json_as_fallback(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.get("v1/configmaps/settings", accept=f"{TABLE},application/json")
    session.get("v1/configmaps/settings", accept="application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json")


@case
def pages(session: Session) -> None:
    for name in ("a", "b", "c"):
        session.prepare("v1/configmaps", config_map(name))
    _table(session, "v1/configmaps", limit=2)


def _running(**status: Any) -> Object:
    state: Object = {"running": {"startedAt": "2017-03-01T10:00:00Z"}}
    return {
        "name": "main",
        "image": "example.com/app:1.2",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": state,
        **status,
    }


@each(
    {
        "running": {"phase": "Running", "podIP": "10.1.2.3", "containerStatuses": [_running()]},
        "restarted": {
            "phase": "Running",
            "containerStatuses": [
                _running(
                    restartCount=3, lastState={"terminated": {"exitCode": 1, "finishedAt": "2017-03-01T10:00:00Z"}}
                )
            ],
        },
        "crashing": {
            "phase": "Running",
            "containerStatuses": [_running(ready=False, state={"waiting": {"reason": "CrashLoopBackOff"}})],
        },
        "completed": {
            "phase": "Succeeded",
            "containerStatuses": [_running(ready=False, state={"terminated": {"exitCode": 0, "reason": "Completed"}})],
        },
        "killed": {
            "phase": "Failed",
            "containerStatuses": [_running(ready=False, state={"terminated": {"exitCode": 137, "signal": 9}})],
        },
        "evicted": {"phase": "Failed", "reason": "Evicted"},
        "unready": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [_running(ready=False)],
        },
    }
)
def of_a_pod(session: Session, status: Object) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    assert (
        session.send_unrecorded(
            "PATCH", "v1/pods/web/status", {"status": status}, {"Content-Type": "application/merge-patch+json"}
        ).status
        == 200
    )
    answer = session.get("v1/pods/web", accept=TABLE, includeObject="None")
    for row in answer["rows"]:
        row["cells"] = [cell.split(" (")[0] if isinstance(cell, str) else cell for cell in row["cells"]]
        row["cells"][4] = "<age>"


@case
def of_a_terminating_pod(session: Session) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.send_unrecorded("DELETE", "v1/pods/web")
    _table(session, "v1/pods", includeObject="None")


@case
def of_a_pod_with_gates_and_init_containers(session: Session) -> None:
    session.prepare("v1/pods", pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    session.prepare("v1/pods", pod("begun", initContainers=[container("first"), container("second")]))
    _table(session, "v1/pods", includeObject="None")


@each(
    {
        "ready": ({}, {"conditions": [{"type": "Ready", "status": "True"}]}),
        "not ready and cordoned": ({"unschedulable": True}, {"conditions": [{"type": "Ready", "status": "False"}]}),
        "unknown": ({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        "described": (
            {},
            {
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.1"},
                    {"type": "ExternalIP", "address": "1.2.3.4"},
                ],
                "nodeInfo": {
                    "kubeletVersion": "v1.30.0",
                    "osImage": "Plan 9",
                    "kernelVersion": "4",
                    "containerRuntimeVersion": "x://1",
                },
            },
        ),
    }
)
def of_a_node(session: Session, what: tuple[Object, Object]) -> None:
    spec, status = what
    name = session.unique("n")
    body = node(name, **spec)
    body["metadata"]["labels"] = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "main"}
    session.prepare("/api/v1/nodes", body | {"status": status})
    _table(session, f"/api/v1/nodes/{name}", includeObject="None")


@case
def of_an_event(session: Session) -> None:
    session.prepare("v1/events", event(session))
    answer = session.get("v1/events", accept=TABLE, includeObject="None")
    answer["rows"][0]["cells"] = answer["rows"][0]["cells"][1:6]


@case
def of_a_progressing_deployment(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment(replicas=3))
    status = {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1}
    session.send_unrecorded(
        "PATCH", "apps/v1/deployments/web/status", {"status": status}, {"Content-Type": "application/merge-patch+json"}
    )
    _table(session, "apps/v1/deployments", includeObject="None")


_COLUMNS: list[Object] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Mood", "type": "string", "jsonPath": ".status.mood", "priority": 1},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "All", "type": "string", "jsonPath": ".spec.names[*]"},
    {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.tier", "description": "the tier"},
    {"name": "Odd", "type": "boolean", "jsonPath": ".spec.odd"},
    {"name": "Whole", "type": "string", "jsonPath": ".spec"},
]


def _widgets(session: Session, columns: list[Object] | None) -> str:
    condition = properties(type=STRING, status=STRING)
    schema = properties(
        spec=properties(size=INTEGER, odd={"type": "boolean"}, names={"type": "array", "items": STRING}),
        status=properties(mood=STRING, conditions={"type": "array", "items": condition}),
    )
    more: dict[str, Any] = {"additionalPrinterColumns": columns} if columns is not None else {}
    return define(session, schema, **more)


@case
def of_a_custom_kind_with_columns(session: Session) -> None:
    path = _widgets(session, _COLUMNS)
    full = widget(session, "full", spec={"size": 3, "odd": True, "names": ["a", "b"]})
    full["metadata"]["labels"] = {"tier": "front"}
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    session.prepare(path, full | {"status": {"mood": "fine", "conditions": conditions}})
    session.prepare(path, widget(session, "empty"))
    _table(session, path, includeObject="None")


@case
def of_a_custom_kind_without_columns(session: Session) -> None:
    path = _widgets(session, None)
    session.prepare(path, widget(session))
    _table(session, path, includeObject="None")


@case
def of_a_custom_kind_with_dates(session: Session) -> None:
    columns = [
        {"name": "Born", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Wished", "type": "date", "jsonPath": ".spec.when"},
    ]
    schema = properties(spec=properties(when={"type": "string"}))
    path = define(session, schema, additionalPrinterColumns=columns)
    hour = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600 * 30))
    session.prepare(path, widget(session, spec={"when": hour}))
    session.prepare(path, widget(session, "nonsense", spec={"when": "soon"}))
    answer = session.get(path, accept=TABLE, includeObject="None")
    for row in answer["rows"]:
        row["cells"][1] = "<age>"
