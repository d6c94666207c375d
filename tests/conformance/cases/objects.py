"""Objects of several kinds come and go as they are: what a server adds, and what it answers for those not there."""

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
def comes_with_its_defaults_and_stays_as_it_came(play: Session, what: tuple[str, dict[str, Any]]) -> None:
    path, body = what
    play.create(path, body)
    play.get(f"{path}/{body['metadata']['name']}")


@each(_OUTSIDE)
def comes_outside_of_namespaces(play: Session, what: tuple[str, dict[str, Any]]) -> None:
    path, body = what
    name = play.unique("x")
    play.create(path, {"metadata": {"name": name}, **body})
    play.get(f"{path}/{name}")


@each({each: _OBJECTS[each][0] for each in ("pod", "deployment", "budget", "lease", "autoscaler")})
def is_not_found_by_its_plural_name(play: Session, path: str) -> None:
    play.get(f"{path}/nobody")
    play.delete(f"{path}/nobody")
    play.patch(f"{path}/nobody", {"metadata": {"labels": {"a": "b"}}})


@case
def a_second_one_of_the_same_name_exists_already(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.create("v1/configmaps", config_map(data={"b": "2"}))
    play.prepare("apps/v1/deployments", deployment())
    play.create("apps/v1/deployments", deployment())


@case
def the_same_name_is_free_in_another_kind(play: Session) -> None:
    play.create("v1/configmaps", config_map("same"))
    play.create("v1/secrets", {"metadata": {"name": "same"}})


@case
def an_event_is_kept_as_told(play: Session) -> None:
    play.create("v1/events", event(play))
    play.get("events.k8s.io/v1/events/happened")


@case
def an_event_of_the_new_api_is_seen_in_the_old_one(play: Session) -> None:
    body = {
        "metadata": {"name": "noted"},
        "eventTime": "2017-03-01T10:00:00.000000Z",
        "reportingController": "example.com/noter",
        "reportingInstance": "noter-1",
        "action": "Noting",
        "reason": "Noted",
        "type": "Normal",
        "note": "something was noted",
        "regarding": {"kind": "Pod", "name": "web", "namespace": play.namespace},
    }
    play.create("events.k8s.io/v1/events", body)
    play.get("v1/events/noted")


@case
def a_namespace_that_does_not_exist_takes_nothing(play: Session) -> None:
    play.create("/api/v1/namespaces/no-such-namespace/configmaps", config_map())
    play.get("/api/v1/namespaces/no-such-namespace/configmaps")


@case
def what_the_server_says_of_an_object_cannot_be_given(play: Session) -> None:
    given: dict[str, Any] = {"uid": "mine", "generation": 7, "creationTimestamp": LONG_AGO, "selfLink": "/mine"}
    play.create("v1/configmaps", config_map(**given))


@case
def a_version_cannot_be_given_at_birth(play: Session) -> None:
    play.create("v1/configmaps", config_map(resourceVersion="5"))


@case
def status_given_at_birth_is_dropped(play: Session) -> None:
    play.create("apps/v1/deployments", deployment() | {"status": {"replicas": 9}})
    play.create("v1/pods", pod() | {"status": {"phase": "Running"}})


@case
def status_of_a_node_given_at_birth_is_kept(play: Session) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Fine", "message": "all is well"}
    body = node(play.unique("n")) | {"status": {"capacity": {"cpu": "4", "memory": "1024Mi"}, "conditions": [ready]}}
    play.create("/api/v1/nodes", body)


@each(
    {
        "requests only": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "limits only": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
        "guaranteed": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}},
        "numbers": {"requests": {"cpu": 0.1, "memory": 1000000, "ephemeral-storage": "1e3"}},
        "extended": {"limits": {"example.com/gpu": "1"}},
        "requests above limits": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        "negative": {"requests": {"cpu": "-1"}},
        "no quantity": {"requests": {"cpu": "lots"}},
        "no name of a resource": {"requests": {"speed": "1"}},
        "half an extended one": {"limits": {"example.com/gpu": "500m"}, "requests": {"example.com/gpu": "500m"}},
    }
)
def resources_of_a_container(play: Session, resources: dict[str, Any]) -> None:
    play.create("v1/pods", pod(containers=[container(resources=resources)]))


@each(
    {
        "no containers": {"containers": []},
        "no image": {"containers": [{"name": "main"}]},
        "two of one name": {"containers": [container(), container()]},
        "name in capitals": {"containers": [container("Main")]},
        "unknown restart policy": {"restartPolicy": "Sometimes"},
        "unknown priority class": {"priorityClassName": "nobody"},
        "port out of range": {"containers": [container(ports=[{"containerPort": 70000}])]},
        "mount without volume": {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
        "toleration of nothing": {"tolerations": [{"operator": "Exists", "value": "x"}]},
        "skew of zero": {
            "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        },
    }
)
def a_pod_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create("v1/pods", pod(**spec))


@case
def a_grace_below_zero_is_one_second(play: Session) -> None:
    play.create("v1/pods", pod(terminationGracePeriodSeconds=-1))


@each(
    {
        "selector does not match": {"selector": {"matchLabels": {"app": "other"}}},
        "no selector": {"selector": None},
        "empty selector": {"selector": {}},
        "replicas below zero": {"replicas": -1},
        "replicas in words": {"replicas": "three"},
        "surge and unavailable of zero": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        "percent without number": {"strategy": {"rollingUpdate": {"maxSurge": "many%"}}},
        "pods that do not restart": {"template": template(restartPolicy="Never")},
        "unknown strategy": {"strategy": {"type": "Sudden"}},
    }
)
def a_deployment_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create("apps/v1/deployments", deployment(**spec))


@each(
    {
        "both bounds": budget(maxUnavailable=1),
        "bound below zero": budget(minAvailable=-1),
        "more than all": budget(minAvailable="110%"),
        "unknown policy": budget(unhealthyPodEvictionPolicy="Never"),
    }
)
def a_budget_is_refused(play: Session, body: dict[str, Any]) -> None:
    play.create("policy/v1/poddisruptionbudgets", body)


@each(
    {
        "minimum above maximum": autoscaler(minReplicas=5),
        "maximum of zero": autoscaler(maxReplicas=0),
        "no target": autoscaler(scaleTargetRef={}),
        "metric of no type": autoscaler(metrics=[{"type": "Mood"}]),
    }
)
def an_autoscaler_is_refused(play: Session, body: dict[str, Any]) -> None:
    play.create("autoscaling/v2/horizontalpodautoscalers", body)


@each(
    {
        "key with a blank": {"a b": "1"},
        "key of dots": {"..": "1"},
        "number": {"a": 1},
        "object": {"a": {"b": "c"}},
    }
)
def a_config_map_is_refused(play: Session, data: dict[str, Any]) -> None:
    play.create("v1/configmaps", config_map(data=data))


@each(
    {
        "no ports": {"ports": []},
        "unknown type": {"type": "Magic"},
    }
)
def a_service_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create("v1/services", service(**spec))


@each(
    {
        "duration of zero": {"leaseDurationSeconds": 0},
        "transitions below zero": {"leaseTransitions": -1},
        "no time": {"renewTime": "yesterday"},
    }
)
def a_lease_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create("coordination.k8s.io/v1/leases", lease(**spec))


@each(
    {
        "taint without effect": {"taints": [{"key": "a"}]},
        "taint of unknown effect": {"taints": [{"key": "a", "effect": "Sometimes"}]},
        "taint twice": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
        "network without mask": {"podCIDR": "10.1.2.3"},
    }
)
def a_node_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create("/api/v1/nodes", node(play.unique("n"), **spec))


@each(
    {
        "schedule of words": {"schedule": "daily at noon"},
        "unknown policy": {"schedule": "0 3 * * *", "concurrencyPolicy": "Maybe"},
    }
)
def a_cron_job_is_refused(play: Session, spec: dict[str, Any]) -> None:
    play.create(
        "batch/v1/cronjobs", {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": job()["spec"]}, **spec}}
    )
