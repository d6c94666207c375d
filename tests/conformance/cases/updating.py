"""Updates: versions that must match, generations that count changes of the wish, and status on its own."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import autoscaler, budget, config_map, deployment, job, lease, node, pod, service
from tests.conformance.session import MERGE, STRATEGIC, Object, Session

_PATH = "v1/configmaps/settings"
_WEB = "apps/v1/deployments/web"


@case
def with_the_present_version_takes_effect(play: Session) -> None:
    made = play.create("v1/configmaps", config_map())
    play.update(_PATH, made | {"data": {"a": "2"}})


@case
def with_an_old_version_is_a_conflict(play: Session) -> None:
    made = play.create("v1/configmaps", config_map())
    play.update(_PATH, made | {"data": {"a": "2"}})
    play.update(_PATH, made | {"data": {"a": "3"}})
    play.get(_PATH)


@case
def without_a_version_is_unconditional(play: Session) -> None:
    play.create("v1/configmaps", config_map())
    play.update(_PATH, config_map(data={"b": "2"}))


@case
def of_what_is_equal_changes_nothing(play: Session) -> None:
    made = play.create("v1/configmaps", config_map())
    play.update(_PATH, made)
    play.update(_PATH, config_map())


@case
def of_what_is_not_there_is_not_found(play: Session) -> None:
    play.update(_PATH, config_map())
    play.update("coordination.k8s.io/v1/leases/leader", lease())


@each(
    {
        "another name": config_map("other"),
        "no name": {"data": {"a": "2"}},
        "another namespace": config_map(namespace="elsewhere"),
        "another uid": config_map(uid="00000000-0000-0000-0000-000000000001"),
        "another kind": config_map() | {"kind": "Secret"},
        "another version of the API": config_map() | {"apiVersion": "v2"},
        "a version that is no number": config_map(resourceVersion="newest"),
        "a list": [],
        "nothing": None,
    }
)
def is_refused_with(play: Session, body: Any) -> None:
    play.prepare("v1/configmaps", config_map())
    play.send("PUT", _PATH, b"null" if body is None else body)


_NEEDS_VERSION: dict[str, tuple[str, Object]] = {
    "deployment": ("apps/v1/deployments", deployment()),
    "pod": ("v1/pods", pod()),
    "service": ("v1/services", service()),
    "budget": ("policy/v1/poddisruptionbudgets", budget()),
    "lease": ("coordination.k8s.io/v1/leases", lease()),
    "autoscaler": ("autoscaling/v2/horizontalpodautoscalers", autoscaler()),
}


@each(_NEEDS_VERSION)
def without_a_version_by_kind(play: Session, what: tuple[str, Object]) -> None:
    path, body = what
    play.prepare(path, body)
    labelled = body | {"metadata": body["metadata"] | {"labels": {"a": "b"}}}
    play.update(f"{path}/{body['metadata']['name']}", labelled)


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
def the_generation_counts_changes_of_the_spec(play: Session, what: tuple[str, Object, Object]) -> None:
    path, body, change = what
    one = f"{path}/{body['metadata']['name']}"
    play.prepare(path, body)
    play.patch(one, {"metadata": {"labels": {"a": "b"}}})
    play.patch(one, change)
    play.patch(one, change)


@case
def the_generation_of_a_deployment_counts_annotations(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch(_WEB, {"metadata": {"annotations": {"a": "b"}}})


@case
def a_node_has_no_generation(play: Session) -> None:
    name = play.unique("n")
    play.create("/api/v1/nodes", node(name))
    play.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})


@case
def status_changes_status_only(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    body = {"status": {"replicas": 4}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
    play.patch(f"{_WEB}/status", body)


@case
def the_object_itself_leaves_status_alone(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch(_WEB, {"status": {"replicas": 4}})


@case
def status_is_replaced(play: Session) -> None:
    made = play.prepare("apps/v1/deployments", deployment())
    play.update(f"{_WEB}/status", made | {"status": {"replicas": 2, "observedGeneration": 1}})
    play.update(f"{_WEB}/status", made | {"status": {"replicas": 3}})
    play.get(f"{_WEB}/status")


@each(
    {
        "replicas below zero": {"replicas": -1},
        "more ready than there are": {"replicas": 1, "readyReplicas": 2},
        "words for a number": {"replicas": "many"},
    }
)
def status_is_judged_too(play: Session, status: Object) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch(f"{_WEB}/status", {"status": status})


@case
def a_config_map_has_no_status(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.get(f"{_PATH}/status")
    play.patch(f"{_PATH}/status", {"status": {}})


@case
def status_of_a_pod(play: Session) -> None:
    play.prepare("v1/pods", pod())
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.1.2.3"}
    play.patch("v1/pods/web/status", {"status": running}, STRATEGIC)
    play.patch("v1/pods/web/status", {"status": {"phase": "Dancing"}}, MERGE)


@case
def labels_change_but_not_names_in_references(play: Session) -> None:
    made = play.prepare("v1/configmaps", config_map("owner"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}
    play.create("v1/configmaps", config_map(ownerReferences=[owner]))
    play.patch(_PATH, {"metadata": {"ownerReferences": [owner | {"controller": True}]}})
    play.patch(_PATH, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}]}})
