"""Dry runs: the answer of the real thing, and nothing happens."""

from __future__ import annotations

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, pod
from tests.conformance.session import MERGE, Session

_PATH = "v1/configmaps/settings"


@case
def of_a_creation(play: Session) -> None:
    play.create("v1/configmaps", config_map(), dryRun="All").get("metadata", {}).pop("uid", None)
    play.get(_PATH)


@case
def of_a_creation_that_fails(play: Session) -> None:
    play.create("v1/configmaps", config_map("Bad_Name"), dryRun="All")
    play.prepare("v1/configmaps", config_map())
    play.create("v1/configmaps", config_map(), dryRun="All")


@case
def of_an_update(play: Session) -> None:
    play.create("v1/configmaps", config_map())
    play.update(_PATH, config_map(data={"a": "2"}), dryRun="All")
    play.get(_PATH)


@case
def of_a_patch(play: Session) -> None:
    play.create("v1/configmaps", config_map())
    play.patch(_PATH, {"data": {"a": "2"}}, MERGE, dryRun="All")
    play.get(_PATH)


@case
def of_an_apply(play: Session) -> None:
    play.apply(_PATH, config_map(), "one", dryRun="All").get("metadata", {}).pop("uid", None)
    play.get(_PATH)
    play.apply(_PATH, config_map(), "one")
    play.apply(_PATH, config_map(data={"a": "2"}), "two", dryRun="All")


@case
def of_a_deletion(play: Session) -> None:
    play.create("v1/configmaps", config_map())
    play.delete(_PATH, dryRun="All")
    play.delete(_PATH, {"dryRun": ["All"]})
    play.get(_PATH)


@case
def of_the_deletion_of_a_pod(play: Session) -> None:
    play.prepare("v1/pods", pod(nodeName="machine"))
    play.delete("v1/pods/web", dryRun="All")
    play.get("v1/pods/web")


@case
def of_the_deletion_of_a_collection(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(labels={"x": "y"}))
    play.delete("v1/configmaps", labelSelector="x=y", dryRun="All")
    play.get(_PATH)


@case
def of_a_scale(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch("apps/v1/deployments/web/scale", {"spec": {"replicas": 5}}, dryRun="All")
    play.get("apps/v1/deployments/web/scale")


@case
def of_a_status(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch("apps/v1/deployments/web/status", {"status": {"replicas": 5}}, dryRun="All")
    play.get("apps/v1/deployments/web")


@each({"creation": "POST", "patch": "PATCH", "deletion": "DELETE"})
def of_some_only(play: Session, method: str) -> None:
    play.prepare("v1/configmaps", config_map("settings"))
    path, body = {
        "POST": ("v1/configmaps", config_map("other")),
        "PATCH": (_PATH, {"data": {"a": "2"}}),
        "DELETE": (_PATH, None),
    }[method]
    play.send(method, path, body, headers={"Content-Type": MERGE} if method == "PATCH" else {}, dryRun="Some")
