"""Deletion: what stays for a while, what it waits for, and under which conditions it happens at all."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, pod
from tests.conformance.session import JSON_PATCH, Object, Session

_PATH = "v1/configmaps/settings"
_SOME_UID = "00000000-0000-0000-0000-000000000001"


@case
def of_a_config_map_answers_with_a_status(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.delete(_PATH)
    play.get(_PATH)


@case
def of_a_deployment_answers_with_a_status(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.delete("apps/v1/deployments/web")


@case
def of_a_pod_on_no_node_is_at_once(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.delete("v1/pods/web")
    play.get("v1/pods/web")


@case
def of_a_pod_on_a_node_gives_it_time(play: Session) -> None:
    play.prepare("v1/pods", pod(nodeName="machine"))
    play.delete("v1/pods/web")
    play.delete("v1/pods/web", {"gracePeriodSeconds": 5})
    play.delete("v1/pods/web", {"gracePeriodSeconds": 60})
    play.delete("v1/pods/web", {"gracePeriodSeconds": 0})
    play.get("v1/pods/web")


@case
def grace_is_read_from_the_query_too(play: Session) -> None:
    play.prepare("v1/pods", pod(nodeName="machine"))
    play.delete("v1/pods/web", gracePeriodSeconds=7)


@case
def of_a_pod_that_has_ended_is_at_once(play: Session) -> None:
    play.prepare("v1/pods", pod(nodeName="machine"))
    play.patch("v1/pods/web/status", {"status": {"phase": "Succeeded"}})
    play.delete("v1/pods/web")
    play.get("v1/pods/web")


@case
def waits_for_finalizers(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/b"]))
    play.delete(_PATH)
    play.patch(_PATH, [{"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH)
    play.patch(_PATH, {"metadata": {"finalizers": None}})
    play.get(_PATH)


@case
def twice_is_once(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    play.delete(_PATH)
    play.delete(_PATH)


@case
def allows_no_new_finalizers(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    play.delete(_PATH)
    play.patch(_PATH, {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})


@case
def still_allows_other_changes(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    play.delete(_PATH)
    play.patch(_PATH, {"data": {"a": "2"}})


@case
def cannot_be_taken_back(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    play.delete(_PATH)
    play.patch(_PATH, {"metadata": {"deletionTimestamp": None}})


@case
def raises_the_generation_of_what_has_one(play: Session) -> None:
    body = deployment()
    body["metadata"]["finalizers"] = ["example.com/a"]
    play.prepare("apps/v1/deployments", body)
    play.delete("apps/v1/deployments/web")
    play.get("apps/v1/deployments/web")


@case
def with_the_right_uid_and_version(play: Session) -> None:
    made = play.create("v1/configmaps", config_map())
    meta = made["metadata"]
    play.delete(_PATH, {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}})


@case
def with_another_uid_is_a_conflict(play: Session) -> None:
    play.create("v1/configmaps", config_map())
    play.delete(_PATH, {"preconditions": {"uid": _SOME_UID}})


@case
def with_an_old_version_is_a_conflict(play: Session) -> None:
    made = play.create("v1/configmaps", config_map())
    play.patch(_PATH, {"data": {"a": "2"}})
    play.delete(_PATH, {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}})


@each({each: {"propagationPolicy": each} for each in ("Foreground", "Orphan", "Background", "Sideways")})
def policy(play: Session, options: Object) -> None:
    play.prepare("v1/configmaps", config_map())
    play.delete(_PATH, options)
    play.get(_PATH)


@case
def policy_from_the_query(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.delete(_PATH, propagationPolicy="Foreground")


@case
def policy_and_its_old_spelling_exclude_each_other(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.delete(_PATH, {"propagationPolicy": "Background", "orphanDependents": True})


@case
def the_old_spelling_orphans(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.delete(_PATH, {"orphanDependents": True})


@each(
    {
        "grace below zero": {"gracePeriodSeconds": -1},
        "grace in words": {"gracePeriodSeconds": "soon"},
        "another kind": {"kind": "Pod", "apiVersion": "v1"},
        "unknown trial": {"dryRun": ["Some"]},
        "a list": [],
    }
)
def with_options_of(play: Session, options: Any) -> None:
    play.prepare("v1/pods", pod(nodeName="machine"))
    play.delete("v1/pods/web", options)


@case
def of_a_collection_answers_with_the_list(play: Session) -> None:
    for name in ("a", "b", "c"):
        play.prepare("v1/configmaps", config_map(name, labels={"keep": str(name == "b").lower()}))
    play.delete("v1/configmaps", labelSelector="keep=false")
    play.get("v1/configmaps", labelSelector="keep")


@case
def of_a_collection_by_name(play: Session) -> None:
    for name in ("a", "b"):
        play.prepare("v1/configmaps", config_map(name))
    play.delete("v1/configmaps", fieldSelector="metadata.name=a")
    play.get("v1/configmaps/a")
    play.get("v1/configmaps/b")


@case
def of_a_collection_leaves_what_is_held(play: Session) -> None:
    play.prepare("v1/configmaps", config_map("held", finalizers=["example.com/a"], labels={"x": "y"}))
    play.delete("v1/configmaps", labelSelector="x=y")
    play.get("v1/configmaps/held")


@case
def of_a_namespace_only_begins(play: Session) -> None:
    name = play.unique("n")
    play.prepare("/api/v1/namespaces", {"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
    play.delete(f"/api/v1/namespaces/{name}")


@case
def of_all_services_is_allowed_and_of_all_namespaces_is_not(play: Session) -> None:
    play.delete("/api/v1/namespaces")
    play.delete("v1/services")
