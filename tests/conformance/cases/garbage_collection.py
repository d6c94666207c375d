"""Garbage collection and namespace deletion, which controllers do beside the server."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, controlled
from tests.conformance.samples import config_map
from tests.conformance.session import Object, Session

_MAPS = "v1/configmaps"


def _owned(owner: Object, child: str = "child", **more: Any) -> Object:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], **more}
    return config_map(child, ownerReferences=[reference])


def _status(session: Session, path: str) -> None:
    """Record only whether an object exists."""
    session.get(path)
    session.steps[-1].pop("body")


@controlled
@case
def a_dependent_is_deleted_with_its_owner(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    session.prepare(_MAPS, _owned(owner))
    session.delete(f"{_MAPS}/owner")
    session.gone(f"{_MAPS}/child")


@controlled
@case
def dependents_of_dependents_are_deleted(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    child = session.prepare(_MAPS, _owned(owner))
    session.prepare(_MAPS, _owned(child, "grandchild", name="child"))
    session.delete(f"{_MAPS}/owner")
    session.gone(f"{_MAPS}/grandchild")
    _status(session, f"{_MAPS}/child")


@controlled
@case
def an_orphan_stays(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    session.prepare(_MAPS, _owned(owner))
    session.delete(f"{_MAPS}/owner", {"propagationPolicy": "Orphan"})
    session.gone(f"{_MAPS}/owner")
    session.get(f"{_MAPS}/child")


@controlled
@case
def foreground_deletion_waits_for_dependents(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    body = _owned(owner, blockOwnerDeletion=True)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    session.prepare(_MAPS, body)
    session.delete(f"{_MAPS}/owner", {"propagationPolicy": "Foreground"})
    session.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{_MAPS}/child")
    _status(session, f"{_MAPS}/owner")
    session.patch(f"{_MAPS}/child", {"metadata": {"finalizers": None}})
    session.gone(f"{_MAPS}/owner")


@controlled
@case
def foreground_deletion_waits_only_for_blocking_dependents(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    body = _owned(owner)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    session.prepare(_MAPS, body)
    session.delete(f"{_MAPS}/owner", {"propagationPolicy": "Foreground"})
    session.gone(f"{_MAPS}/owner")
    session.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{_MAPS}/child")


@controlled
@case
def a_dependent_of_two_owners_stays(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    other = session.prepare(_MAPS, config_map("other"))
    body = _owned(owner)
    second = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    body["metadata"]["ownerReferences"].append(second)
    session.prepare(_MAPS, body)
    session.delete(f"{_MAPS}/owner")
    session.until(lambda answer: len(answer.body["metadata"]["ownerReferences"]) == 1, f"{_MAPS}/child")
    session.get(f"{_MAPS}/child")


@controlled
@case
def a_dependent_of_a_missing_owner_is_deleted(session: Session) -> None:
    owner = session.prepare(_MAPS, config_map("owner"))
    session.delete(f"{_MAPS}/owner")
    session.create(_MAPS, _owned(owner))
    session.gone(f"{_MAPS}/child")


@controlled
@case
def an_owner_is_identified_by_its_uid(session: Session) -> None:
    session.prepare(_MAPS, config_map("owner"))
    stranger = {"metadata": {"uid": "00000000-0000-0000-0000-000000000001"}}
    session.create(_MAPS, _owned(stranger))
    session.gone(f"{_MAPS}/child")


def _namespace(session: Session) -> tuple[str, str]:
    name = session.unique("n")
    session.prepare("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}", f"/api/v1/namespaces/{name}/configmaps"


@controlled
@case
def a_namespace_is_deleted_with_its_contents(session: Session) -> None:
    namespace, maps = _namespace(session)
    session.prepare(maps, config_map())
    session.delete(namespace)
    session.gone(namespace)
    session.get(f"{maps}/settings")


@controlled
@case
def a_terminating_namespace_rejects_new_objects(session: Session) -> None:
    namespace, maps = _namespace(session)
    session.prepare(maps, config_map(finalizers=["example.com/hold"]))
    session.delete(namespace)
    session.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{maps}/settings")
    session.create(maps, config_map("late"))
    session.patch(f"{maps}/settings", {"metadata": {"finalizers": None}})
    session.gone(namespace)


@controlled
@case
def a_namespace_reports_remaining_contents(session: Session) -> None:
    namespace, maps = _namespace(session)
    session.prepare(maps, config_map(finalizers=["example.com/hold"]))
    session.send_unrecorded("DELETE", namespace)

    def holding(answer: Any) -> bool:
        conditions = answer.body.get("status", {}).get("conditions", ())
        return any(each["type"] == "NamespaceFinalizersRemaining" and each["status"] == "True" for each in conditions)

    session.until(holding, namespace)
    answer = session.get(namespace)
    session.steps[-1]["body"] = {"spec": answer["spec"], "status": answer["status"]}
    session.send_unrecorded(
        "PATCH",
        f"{maps}/settings",
        {"metadata": {"finalizers": None}},
        {"Content-Type": "application/merge-patch+json"},
    )
    session.gone(namespace)


@controlled
@case
def a_system_namespace_cannot_be_deleted(session: Session) -> None:
    for name in ("default", "kube-system", "kube-public"):
        session.delete(f"/api/v1/namespaces/{name}")
