"""Garbage collection and the end of namespaces: what the controllers beside a server do."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, controlled
from tests.conformance.samples import config_map
from tests.conformance.session import Object, Session

_MAPS = "v1/configmaps"


def _owned(owner: Object, child: str = "child", **more: Any) -> Object:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], **more}
    return config_map(child, ownerReferences=[reference])


def _status(play: Session, path: str) -> None:
    """Tell only whether something is there."""
    play.get(path)
    play.steps[-1].pop("body")


@controlled
@case
def a_child_goes_with_its_owner(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    play.prepare(_MAPS, _owned(owner))
    play.delete(f"{_MAPS}/owner")
    play.gone(f"{_MAPS}/child")


@controlled
@case
def a_grandchild_goes_too(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    child = play.prepare(_MAPS, _owned(owner))
    play.prepare(_MAPS, _owned(child, "grandchild", name="child"))
    play.delete(f"{_MAPS}/owner")
    play.gone(f"{_MAPS}/grandchild")
    _status(play, f"{_MAPS}/child")


@controlled
@case
def an_orphan_stays_without_its_owner(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    play.prepare(_MAPS, _owned(owner))
    play.delete(f"{_MAPS}/owner", {"propagationPolicy": "Orphan"})
    play.gone(f"{_MAPS}/owner")
    play.get(f"{_MAPS}/child")


@controlled
@case
def an_owner_in_the_foreground_waits_for_its_child(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    body = _owned(owner, blockOwnerDeletion=True)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    play.prepare(_MAPS, body)
    play.delete(f"{_MAPS}/owner", {"propagationPolicy": "Foreground"})
    play.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{_MAPS}/child")
    _status(play, f"{_MAPS}/owner")
    play.patch(f"{_MAPS}/child", {"metadata": {"finalizers": None}})
    play.gone(f"{_MAPS}/owner")


@controlled
@case
def an_owner_in_the_foreground_does_not_wait_for_who_does_not_block(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    body = _owned(owner)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    play.prepare(_MAPS, body)
    play.delete(f"{_MAPS}/owner", {"propagationPolicy": "Foreground"})
    play.gone(f"{_MAPS}/owner")
    play.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{_MAPS}/child")


@controlled
@case
def a_child_of_two_stays_with_the_other(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    other = play.prepare(_MAPS, config_map("other"))
    body = _owned(owner)
    second = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    body["metadata"]["ownerReferences"].append(second)
    play.prepare(_MAPS, body)
    play.delete(f"{_MAPS}/owner")
    play.until(lambda answer: len(answer.body["metadata"]["ownerReferences"]) == 1, f"{_MAPS}/child")
    play.get(f"{_MAPS}/child")


@controlled
@case
def a_child_of_nobody_goes(play: Session) -> None:
    owner = play.prepare(_MAPS, config_map("owner"))
    play.delete(f"{_MAPS}/owner")
    play.create(_MAPS, _owned(owner))
    play.gone(f"{_MAPS}/child")


@controlled
@case
def an_owner_of_the_same_name_is_another(play: Session) -> None:
    play.prepare(_MAPS, config_map("owner"))
    stranger = {"metadata": {"uid": "00000000-0000-0000-0000-000000000001"}}
    play.create(_MAPS, _owned(stranger))
    play.gone(f"{_MAPS}/child")


def _namespace(play: Session) -> tuple[str, str]:
    name = play.unique("n")
    play.prepare("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}", f"/api/v1/namespaces/{name}/configmaps"


@controlled
@case
def a_namespace_goes_with_what_is_in_it(play: Session) -> None:
    namespace, maps = _namespace(play)
    play.prepare(maps, config_map())
    play.delete(namespace)
    play.gone(namespace)
    play.get(f"{maps}/settings")


@controlled
@case
def a_namespace_that_goes_takes_nothing_new(play: Session) -> None:
    namespace, maps = _namespace(play)
    play.prepare(maps, config_map(finalizers=["example.com/hold"]))
    play.delete(namespace)
    play.until(lambda answer: "deletionTimestamp" in answer.body["metadata"], f"{maps}/settings")
    play.create(maps, config_map("late"))
    play.patch(f"{maps}/settings", {"metadata": {"finalizers": None}})
    play.gone(namespace)


@controlled
@case
def a_namespace_tells_what_holds_it(play: Session) -> None:
    namespace, maps = _namespace(play)
    play.prepare(maps, config_map(finalizers=["example.com/hold"]))
    play.quietly("DELETE", namespace)

    def holding(answer: Any) -> bool:
        conditions = answer.body.get("status", {}).get("conditions", ())
        return any(each["type"] == "NamespaceFinalizersRemaining" and each["status"] == "True" for each in conditions)

    play.until(holding, namespace)
    answer = play.get(namespace)
    play.steps[-1]["body"] = {"spec": answer["spec"], "status": answer["status"]}
    play.quietly(
        "PATCH",
        f"{maps}/settings",
        {"metadata": {"finalizers": None}},
        {"Content-Type": "application/merge-patch+json"},
    )
    play.gone(namespace)


@controlled
@case
def a_namespace_of_the_system_stays(play: Session) -> None:
    for name in ("default", "kube-system", "kube-public"):
        play.delete(f"/api/v1/namespaces/{name}")
