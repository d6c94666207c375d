"""Updates: preconditions, generations and the status subresource."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import autoscaler, budget, config_map, deployment, job, lease, node, pod, service
from tests.conformance.session import MERGE, STRATEGIC, Object, Session

_PATH = "v1/configmaps/settings"
_WEB = "apps/v1/deployments/web"


@case
def with_the_current_resource_version(session: Session) -> None:
    made = session.create("v1/configmaps", config_map())
    session.update(_PATH, made | {"data": {"a": "2"}})


@case
def with_an_old_resource_version_is_a_conflict(session: Session) -> None:
    made = session.create("v1/configmaps", config_map())
    session.update(_PATH, made | {"data": {"a": "2"}})
    session.update(_PATH, made | {"data": {"a": "3"}})
    session.get(_PATH)


@case
def without_a_resource_version_is_unconditional(session: Session) -> None:
    session.create("v1/configmaps", config_map())
    session.update(_PATH, config_map(data={"b": "2"}))


@case
def equal_update_changes_nothing(session: Session) -> None:
    made = session.create("v1/configmaps", config_map())
    session.update(_PATH, made)
    session.update(_PATH, config_map())


@case
def of_a_missing_object(session: Session) -> None:
    session.update(_PATH, config_map())
    session.update("coordination.k8s.io/v1/leases/leader", lease())


@each(
    {
        "another name": config_map("other"),
        "no name": {"data": {"a": "2"}},
        "another namespace": config_map(namespace="elsewhere"),
        "another uid": config_map(uid="00000000-0000-0000-0000-000000000001"),
        "another kind": config_map() | {"kind": "Secret"},
        "another version of the API": config_map() | {"apiVersion": "v2"},
        "a version that is not a number": config_map(resourceVersion="newest"),
        "a list": [],
        "nothing": None,
    }
)
def is_rejected_with(session: Session, body: Any) -> None:
    session.prepare("v1/configmaps", config_map())
    session.send("PUT", _PATH, b"null" if body is None else body)


_NEEDS_VERSION: dict[str, tuple[str, Object]] = {
    "deployment": ("apps/v1/deployments", deployment()),
    "pod": ("v1/pods", pod()),
    "service": ("v1/services", service()),
    "budget": ("policy/v1/poddisruptionbudgets", budget()),
    "lease": ("coordination.k8s.io/v1/leases", lease()),
    "autoscaler": ("autoscaling/v2/horizontalpodautoscalers", autoscaler()),
}


@each(_NEEDS_VERSION)
def without_a_resource_version_by_kind(session: Session, what: tuple[str, Object]) -> None:
    path, body = what
    session.prepare(path, body)
    labelled = body | {"metadata": body["metadata"] | {"labels": {"a": "b"}}}
    session.update(f"{path}/{body['metadata']['name']}", labelled)


_WISHES: dict[str, tuple[str, Object, Object]] = {
    "deployment": ("apps/v1/deployments", deployment(), {"spec": {"replicas": 3}}),
    "service": ("v1/services", service(), {"spec": {"selector": {"tier": "front"}}}),
    "budget": ("policy/v1/poddisruptionbudgets", budget(), {"spec": {"minAvailable": 2}}),
    "autoscaler": ("autoscaling/v2/horizontalpodautoscalers", autoscaler(), {"spec": {"maxReplicas": 5}}),
    "job": ("batch/v1/jobs", job(), {"spec": {"parallelism": 2}}),
    "lease": ("coordination.k8s.io/v1/leases", lease(), {"spec": {"holderIdentity": "you"}}),
    "pod": ("v1/pods", pod(), {"spec": {"activeDeadlineSeconds": 60}}),
}


@each(_WISHES)
def the_generation_counts_changes_of_the_spec(session: Session, what: tuple[str, Object, Object]) -> None:
    path, body, change = what
    one = f"{path}/{body['metadata']['name']}"
    session.prepare(path, body)
    session.patch(one, {"metadata": {"labels": {"a": "b"}}})
    session.patch(one, change)
    session.patch(one, change)


@case
def the_generation_of_a_deployment_counts_annotations(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch(_WEB, {"metadata": {"annotations": {"a": "b"}}})


@case
def a_node_has_no_generation(session: Session) -> None:
    name = session.unique("n")
    session.create("/api/v1/nodes", node(name))
    session.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})


@case
def status_update_changes_only_status(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    body = {"status": {"replicas": 4}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
    session.patch(f"{_WEB}/status", body)


@case
def update_ignores_status(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch(_WEB, {"status": {"replicas": 4}})


@case
def status_is_replaced(session: Session) -> None:
    made = session.prepare("apps/v1/deployments", deployment())
    session.update(f"{_WEB}/status", made | {"status": {"replicas": 2, "observedGeneration": 1}})
    session.update(f"{_WEB}/status", made | {"status": {"replicas": 3}})
    session.get(f"{_WEB}/status")


@each(
    {
        "negative replicas": {"replicas": -1},
        "more ready than replicas": {"replicas": 1, "readyReplicas": 2},
        "string for a number": {"replicas": "many"},
    }
)
def status_is_validated(session: Session, status: Object) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch(f"{_WEB}/status", {"status": status})


@case
def missing_status_subresource(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.get(f"{_PATH}/status")
    session.patch(f"{_PATH}/status", {"status": {}})


@case
def status_of_a_pod(session: Session) -> None:
    session.prepare("v1/pods", pod())
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.1.2.3"}
    session.patch("v1/pods/web/status", {"status": running}, STRATEGIC)
    session.patch("v1/pods/web/status", {"status": {"phase": "Dancing"}}, MERGE)


@case
def names_in_references_are_immutable(session: Session) -> None:
    made = session.prepare("v1/configmaps", config_map("owner"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}
    session.create("v1/configmaps", config_map(ownerReferences=[owner]))
    session.patch(_PATH, {"metadata": {"ownerReferences": [owner | {"controller": True}]}})
    session.patch(
        _PATH, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}]}}
    )
