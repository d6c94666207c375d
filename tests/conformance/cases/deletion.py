"""Deletion: grace periods, finalizers, preconditions and propagation."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, pod
from tests.conformance.session import JSON_PATCH, Object, Session

_PATH = "v1/configmaps/settings"
_SOME_UID = "00000000-0000-0000-0000-000000000001"


@case
def of_a_config_map_answers_with_a_status(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.delete(_PATH)
    session.get(_PATH)


@case
def of_a_deployment_answers_with_a_status(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.delete("apps/v1/deployments/web")


@case
def of_an_unscheduled_pod_is_immediate(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.delete("v1/pods/web")
    session.get("v1/pods/web")


@case
def of_a_scheduled_pod_has_a_grace_period(session: Session) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.delete("v1/pods/web")
    session.delete("v1/pods/web", {"gracePeriodSeconds": 5})
    session.delete("v1/pods/web", {"gracePeriodSeconds": 60})
    session.delete("v1/pods/web", {"gracePeriodSeconds": 0})
    session.get("v1/pods/web")


@case
def the_grace_period_can_be_a_query_parameter(session: Session) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.delete("v1/pods/web", gracePeriodSeconds=7)


@case
def of_a_finished_pod_is_immediate(session: Session) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.patch("v1/pods/web/status", {"status": {"phase": "Succeeded"}})
    session.delete("v1/pods/web")
    session.get("v1/pods/web")


@case
def waits_for_finalizers(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/b"]))
    session.delete(_PATH)
    session.patch(_PATH, [{"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH)
    session.patch(_PATH, {"metadata": {"finalizers": None}})
    session.get(_PATH)


@case
def a_second_deletion_changes_nothing(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    session.delete(_PATH)
    session.delete(_PATH)


@case
def rejects_new_finalizers(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    session.delete(_PATH)
    session.patch(_PATH, {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})


@case
def allows_other_updates(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    session.delete(_PATH)
    session.patch(_PATH, {"data": {"a": "2"}})


@case
def cannot_be_cancelled(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a"]))
    session.delete(_PATH)
    session.patch(_PATH, {"metadata": {"deletionTimestamp": None}})


@case
def raises_the_generation(session: Session) -> None:
    body = deployment()
    body["metadata"]["finalizers"] = ["example.com/a"]
    session.prepare("apps/v1/deployments", body)
    session.delete("apps/v1/deployments/web")
    session.get("apps/v1/deployments/web")


@case
def with_matching_preconditions(session: Session) -> None:
    made = session.create("v1/configmaps", config_map())
    meta = made["metadata"]
    session.delete(_PATH, {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}})


@case
def with_another_uid_is_a_conflict(session: Session) -> None:
    session.create("v1/configmaps", config_map())
    session.delete(_PATH, {"preconditions": {"uid": _SOME_UID}})


@case
def with_an_old_resource_version_is_a_conflict(session: Session) -> None:
    made = session.create("v1/configmaps", config_map())
    session.patch(_PATH, {"data": {"a": "2"}})
    session.delete(_PATH, {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}})


@each({each: {"propagationPolicy": each} for each in ("Foreground", "Orphan", "Background", "Sideways")})
def propagation_policy(session: Session, options: Object) -> None:
    session.prepare("v1/configmaps", config_map())
    session.delete(_PATH, options)
    session.get(_PATH)


@case
def propagation_policy_from_the_query(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.delete(_PATH, propagationPolicy="Foreground")


@case
def propagation_policy_and_orphan_dependents_exclude_each_other(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.delete(_PATH, {"propagationPolicy": "Background", "orphanDependents": True})


@case
def orphan_dependents(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.delete(_PATH, {"orphanDependents": True})


@each(
    {
        "negative grace period": {"gracePeriodSeconds": -1},
        "grace period of a wrong type": {"gracePeriodSeconds": "soon"},
        "another kind": {"kind": "Pod", "apiVersion": "v1"},
        "unknown dryRun": {"dryRun": ["Some"]},
        "a list": [],
    }
)
def with_options_of(session: Session, options: Any) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.delete("v1/pods/web", options)


@case
def of_a_collection_returns_the_list(session: Session) -> None:
    for name in ("a", "b", "c"):
        session.prepare("v1/configmaps", config_map(name, labels={"keep": str(name == "b").lower()}))
    session.delete("v1/configmaps", labelSelector="keep=false")
    session.get("v1/configmaps", labelSelector="keep")


@case
def of_a_collection_by_name(session: Session) -> None:
    for name in ("a", "b"):
        session.prepare("v1/configmaps", config_map(name))
    session.delete("v1/configmaps", fieldSelector="metadata.name=a")
    session.get("v1/configmaps/a")
    session.get("v1/configmaps/b")


@case
def of_a_collection_keeps_objects_with_finalizers(session: Session) -> None:
    session.prepare("v1/configmaps", config_map("held", finalizers=["example.com/a"], labels={"x": "y"}))
    session.delete("v1/configmaps", labelSelector="x=y")
    session.get("v1/configmaps/held")


@case
def of_a_namespace_starts_termination(session: Session) -> None:
    name = session.unique("n")
    session.prepare("/api/v1/namespaces", {"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
    session.delete(f"/api/v1/namespaces/{name}")


@case
def collections_that_cannot_be_deleted(session: Session) -> None:
    session.delete("/api/v1/namespaces")
    session.delete("v1/services")
