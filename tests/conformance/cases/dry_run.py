"""Dry runs: the answer of the real request, without an effect."""

from __future__ import annotations

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, pod
from tests.conformance.session import MERGE, Session

_PATH = "v1/configmaps/settings"


@case
def of_a_creation(session: Session) -> None:
    session.create("v1/configmaps", config_map(), dryRun="All").get("metadata", {}).pop("uid", None)
    session.get(_PATH)


@case
def of_a_failing_creation(session: Session) -> None:
    session.create("v1/configmaps", config_map("Bad_Name"), dryRun="All")
    session.prepare("v1/configmaps", config_map())
    session.create("v1/configmaps", config_map(), dryRun="All")


@case
def of_an_update(session: Session) -> None:
    session.create("v1/configmaps", config_map())
    session.update(_PATH, config_map(data={"a": "2"}), dryRun="All")
    session.get(_PATH)


@case
def of_a_patch(session: Session) -> None:
    session.create("v1/configmaps", config_map())
    session.patch(_PATH, {"data": {"a": "2"}}, MERGE, dryRun="All")
    session.get(_PATH)


@case
def of_an_apply(session: Session) -> None:
    session.apply(_PATH, config_map(), "one", dryRun="All").get("metadata", {}).pop("uid", None)
    session.get(_PATH)
    session.apply(_PATH, config_map(), "one")
    session.apply(_PATH, config_map(data={"a": "2"}), "two", dryRun="All")


@case
def of_a_deletion(session: Session) -> None:
    session.create("v1/configmaps", config_map())
    session.delete(_PATH, dryRun="All")
    session.delete(_PATH, {"dryRun": ["All"]})
    session.get(_PATH)


@case
def of_the_deletion_of_a_pod(session: Session) -> None:
    session.prepare("v1/pods", pod(nodeName="machine"))
    session.delete("v1/pods/web", dryRun="All")
    session.get("v1/pods/web")


@case
def of_the_deletion_of_a_collection(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(labels={"x": "y"}))
    session.delete("v1/configmaps", labelSelector="x=y", dryRun="All")
    session.get(_PATH)


@case
def of_a_scale(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch("apps/v1/deployments/web/scale", {"spec": {"replicas": 5}}, dryRun="All")
    session.get("apps/v1/deployments/web/scale")


@case
def of_a_status(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch("apps/v1/deployments/web/status", {"status": {"replicas": 5}}, dryRun="All")
    session.get("apps/v1/deployments/web")


@each({"creation": "POST", "patch": "PATCH", "deletion": "DELETE"})
def with_an_unknown_directive(session: Session, method: str) -> None:
    session.prepare("v1/configmaps", config_map("settings"))
    path, body = {
        "POST": ("v1/configmaps", config_map("other")),
        "PATCH": (_PATH, {"data": {"a": "2"}}),
        "DELETE": (_PATH, None),
    }[method]
    session.send(method, path, body, headers={"Content-Type": MERGE} if method == "PATCH" else {}, dryRun="Some")
