"""Objects of many kinds: what a server adds on create, and how it answers for missing objects."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import (
    LONG_AGO,
    autoscaler,
    budget,
    config_map,
    container,
    deployment,
    event,
    job,
    lease,
    node,
    pod,
    service,
    template,
)
from tests.conformance.session import Session

_WORKLOAD = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}

_OBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "config map": ("v1/configmaps", config_map()),
    "config map of bytes": ("v1/configmaps", {"metadata": {"name": "b"}, "binaryData": {"x": "aGVsbG8="}}),
    "immutable config map": ("v1/configmaps", config_map() | {"immutable": True}),
    "secret": ("v1/secrets", {"metadata": {"name": "s"}, "data": {"x": "aGVsbG8="}}),
    "secret of strings": ("v1/secrets", {"metadata": {"name": "s"}, "stringData": {"x": "hello"}}),
    "pod": ("v1/pods", pod()),
    "service": ("v1/services", service()),
    "headless service": ("v1/services", service(clusterIP="None")),
    "external name": (
        "v1/services",
        {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "x.io"}},
    ),
    "node port": ("v1/services", service(type="NodePort")),
    "service account": ("v1/serviceaccounts", {"metadata": {"name": "robot"}}),
    "endpoints": (
        "v1/endpoints",
        {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    ),
    "resource quota": ("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "10"}}}),
    "limit range": (
        "v1/limitranges",
        {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}},
    ),
    "pod template": ("v1/podtemplates", {"metadata": {"name": "t"}, "template": template()}),
    "replication controller": (
        "v1/replicationcontrollers",
        {"metadata": {"name": "r"}, "spec": {"template": template()}},
    ),
    "claim": (
        "v1/persistentvolumeclaims",
        {
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    ),
    "deployment": ("apps/v1/deployments", deployment()),
    "recreated deployment": ("apps/v1/deployments", deployment(strategy={"type": "Recreate"})),
    "replica set": ("apps/v1/replicasets", {"metadata": {"name": "r"}, "spec": _WORKLOAD}),
    "stateful set": ("apps/v1/statefulsets", {"metadata": {"name": "s"}, "spec": {"serviceName": "s", **_WORKLOAD}}),
    "daemon set": ("apps/v1/daemonsets", {"metadata": {"name": "d"}, "spec": _WORKLOAD}),
    "job": ("batch/v1/jobs", job()),
    "indexed job": ("batch/v1/jobs", job(completionMode="Indexed", completions=3, parallelism=2)),
    "cron job": (
        "batch/v1/cronjobs",
        {"metadata": {"name": "c"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job()["spec"]}}},
    ),
    "budget": ("policy/v1/poddisruptionbudgets", budget()),
    "autoscaler": ("autoscaling/v2/horizontalpodautoscalers", autoscaler()),
    "autoscaler of version 1": (
        "autoscaling/v1/horizontalpodautoscalers",
        {
            "metadata": {"name": "a"},
            "spec": {**autoscaler()["spec"], "targetCPUUtilizationPercentage": 50},
        },
    ),
    "lease": (
        "coordination.k8s.io/v1/leases",
        lease(holderIdentity="me", leaseDurationSeconds=15, renewTime="2017-03-01T10:00:00.000000Z"),
    ),
    "controller revision": (
        "apps/v1/controllerrevisions",
        {"metadata": {"name": "r"}, "revision": 1, "data": {"any": ["thing"]}},
    ),
}

_OUTSIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "namespace": ("/api/v1/namespaces", {}),
    "node": ("/api/v1/nodes", {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}),
    "persistent volume": (
        "/api/v1/persistentvolumes",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}},
    ),
    "priority class": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 10}),
    "storage class": ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/disk"}),
    "runtime class": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "fast"}),
}


@each(_OBJECTS)
def is_created_with_defaults_and_read(session: Session, what: tuple[str, dict[str, Any]]) -> None:
    path, body = what
    session.create(path, body)
    session.get(f"{path}/{body['metadata']['name']}")


@each(_OUTSIDE)
def is_created_outside_of_namespaces(session: Session, what: tuple[str, dict[str, Any]]) -> None:
    path, body = what
    name = session.unique("x")
    session.create(path, {"metadata": {"name": name}, **body})
    session.get(f"{path}/{name}")


@each({each: _OBJECTS[each][0] for each in ("pod", "deployment", "budget", "lease", "autoscaler")})
def is_not_found_by_its_plural_name(session: Session, path: str) -> None:
    session.get(f"{path}/nobody")
    session.delete(f"{path}/nobody")
    session.patch(f"{path}/nobody", {"metadata": {"labels": {"a": "b"}}})


@case
def a_second_object_of_one_name_already_exists(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.create("v1/configmaps", config_map(data={"b": "2"}))
    session.prepare("apps/v1/deployments", deployment())
    session.create("apps/v1/deployments", deployment())


@case
def another_kind_can_use_the_same_name(session: Session) -> None:
    session.create("v1/configmaps", config_map("same"))
    session.create("v1/secrets", {"metadata": {"name": "same"}})


@case
def an_event(session: Session) -> None:
    session.create("v1/events", event(session))
    session.get("events.k8s.io/v1/events/happened")


@case
def an_event_of_the_new_api(session: Session) -> None:
    body = {
        "metadata": {"name": "noted"},
        "eventTime": "2017-03-01T10:00:00.000000Z",
        "reportingController": "example.com/noter",
        "reportingInstance": "noter-1",
        "action": "Noting",
        "reason": "Noted",
        "type": "Normal",
        "note": "something was noted",
        "regarding": {"kind": "Pod", "name": "web", "namespace": session.namespace},
    }
    session.create("events.k8s.io/v1/events", body)
    session.get("v1/events/noted")


@case
def a_missing_namespace(session: Session) -> None:
    session.create("/api/v1/namespaces/no-such-namespace/configmaps", config_map())
    session.get("/api/v1/namespaces/no-such-namespace/configmaps")


@case
def system_metadata_cannot_be_set(session: Session) -> None:
    given: dict[str, Any] = {"uid": "mine", "generation": 7, "creationTimestamp": LONG_AGO, "selfLink": "/mine"}
    session.create("v1/configmaps", config_map(**given))


@case
def a_resource_version_cannot_be_set_on_create(session: Session) -> None:
    session.create("v1/configmaps", config_map(resourceVersion="5"))


@case
def status_is_dropped_on_create(session: Session) -> None:
    session.create("apps/v1/deployments", deployment() | {"status": {"replicas": 9}})
    session.create("v1/pods", pod() | {"status": {"phase": "Running"}})


@case
def status_of_a_node_is_kept_on_create(session: Session) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Fine", "message": "all is well"}
    body = node(session.unique("n")) | {"status": {"capacity": {"cpu": "4", "memory": "1024Mi"}, "conditions": [ready]}}
    session.create("/api/v1/nodes", body)


@each(
    {
        "requests only": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "limits only": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
        "guaranteed": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}},
        "numbers": {"requests": {"cpu": 0.1, "memory": 1000000, "ephemeral-storage": "1e3"}},
        "extended": {"limits": {"example.com/gpu": "1"}},
        "requests above limits": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        "negative": {"requests": {"cpu": "-1"}},
        "not a quantity": {"requests": {"cpu": "lots"}},
        "invalid resource name": {"requests": {"speed": "1"}},
        "fraction of an extended resource": {
            "limits": {"example.com/gpu": "500m"},
            "requests": {"example.com/gpu": "500m"},
        },
    }
)
def resources_of_a_container(session: Session, resources: dict[str, Any]) -> None:
    session.create("v1/pods", pod(containers=[container(resources=resources)]))


@each(
    {
        "no containers": {"containers": []},
        "no image": {"containers": [{"name": "main"}]},
        "duplicate container": {"containers": [container(), container()]},
        "name in capitals": {"containers": [container("Main")]},
        "unknown restart policy": {"restartPolicy": "Sometimes"},
        "unknown priority class": {"priorityClassName": "nobody"},
        "port out of range": {"containers": [container(ports=[{"containerPort": 70000}])]},
        "mount without volume": {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
        "empty toleration": {"tolerations": [{"operator": "Exists", "value": "x"}]},
        "skew of zero": {
            "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        },
    }
)
def a_pod_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create("v1/pods", pod(**spec))


@case
def a_negative_grace_period_is_one_second(session: Session) -> None:
    session.create("v1/pods", pod(terminationGracePeriodSeconds=-1))


@each(
    {
        "selector does not match": {"selector": {"matchLabels": {"app": "other"}}},
        "no selector": {"selector": None},
        "empty selector": {"selector": {}},
        "negative replicas": {"replicas": -1},
        "replicas of a wrong type": {"replicas": "three"},
        "surge and unavailable of zero": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        "percent without number": {"strategy": {"rollingUpdate": {"maxSurge": "many%"}}},
        "pods that do not restart": {"template": template(restartPolicy="Never")},
        "unknown strategy": {"strategy": {"type": "Sudden"}},
    }
)
def a_deployment_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create("apps/v1/deployments", deployment(**spec))


@each(
    {
        "both bounds": budget(maxUnavailable=1),
        "negative bound": budget(minAvailable=-1),
        "more than 100 percent": budget(minAvailable="110%"),
        "unknown policy": budget(unhealthyPodEvictionPolicy="Never"),
    }
)
def a_disruption_budget_is_rejected(session: Session, body: dict[str, Any]) -> None:
    session.create("policy/v1/poddisruptionbudgets", body)


@each(
    {
        "minimum above maximum": autoscaler(minReplicas=5),
        "maximum of zero": autoscaler(maxReplicas=0),
        "no target": autoscaler(scaleTargetRef={}),
        "metric of no type": autoscaler(metrics=[{"type": "Mood"}]),
    }
)
def an_autoscaler_is_rejected(session: Session, body: dict[str, Any]) -> None:
    session.create("autoscaling/v2/horizontalpodautoscalers", body)


@each(
    {
        "key with a blank": {"a b": "1"},
        "key of dots": {"..": "1"},
        "number": {"a": 1},
        "object": {"a": {"b": "c"}},
    }
)
def a_config_map_is_rejected(session: Session, data: dict[str, Any]) -> None:
    session.create("v1/configmaps", config_map(data=data))


@each(
    {
        "no ports": {"ports": []},
        "unknown type": {"type": "Magic"},
    }
)
def a_service_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create("v1/services", service(**spec))


@each(
    {
        "duration of zero": {"leaseDurationSeconds": 0},
        "negative transitions": {"leaseTransitions": -1},
        "invalid time": {"renewTime": "yesterday"},
    }
)
def a_lease_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create("coordination.k8s.io/v1/leases", lease(**spec))


@each(
    {
        "taint without effect": {"taints": [{"key": "a"}]},
        "taint of unknown effect": {"taints": [{"key": "a", "effect": "Sometimes"}]},
        "taint twice": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
        "network without mask": {"podCIDR": "10.1.2.3"},
    }
)
def a_node_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create("/api/v1/nodes", node(session.unique("n"), **spec))


@each(
    {
        "invalid schedule": {"schedule": "daily at noon"},
        "unknown policy": {"schedule": "0 3 * * *", "concurrencyPolicy": "Maybe"},
    }
)
def a_cron_job_is_rejected(session: Session, spec: dict[str, Any]) -> None:
    session.create(
        "batch/v1/cronjobs", {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": job()["spec"]}, **spec}}
    )
