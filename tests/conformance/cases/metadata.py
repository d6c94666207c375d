"""Validation of names, labels, annotations, finalizers and owners."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, lease, node, pod, service
from tests.conformance.session import Object, Session

_UID = "00000000-0000-0000-0000-000000000001"


@each(
    {
        "capitals": "Settings",
        "underscore": "my_settings",
        "dots": "my.settings",
        "two dots": "my..settings",
        "dash at the end": "settings-",
        "slash": "my/settings",
        "percent": "my%settings",
        "empty": "",
        "longest": "x" * 253,
        "too long": "x" * 254,
        "not ascii": "größe",
    }
)
def name(session: Session, name: str) -> None:
    session.create("v1/configmaps", config_map(name))


@each({"dots": "my.web", "digit first": "1web", "too long": "x" * 64})
def name_of_a_service(session: Session, name: str) -> None:
    session.create("v1/services", service(name))


@each({"dots": "x.y", "capitals": "Team"})
def name_of_a_namespace(session: Session, name: str) -> None:
    session.create("/api/v1/namespaces", {"metadata": {"name": name}})


@case
def no_name(session: Session) -> None:
    session.create("v1/configmaps", {"metadata": {}})
    session.create("v1/configmaps", {})


@case
def generated_name(session: Session) -> None:
    session.create("v1/configmaps", {"metadata": {"generateName": "settings-"}})


@case
def a_long_prefix_is_truncated(session: Session) -> None:
    session.create("v1/configmaps", {"metadata": {"generateName": "x" * 70}})


@case
def a_given_name_wins_over_a_generated_one(session: Session) -> None:
    session.create("v1/configmaps", {"metadata": {"generateName": "other-", "name": "settings"}})


@each({"capitals": "Settings-", "underscore": "my_"})
def invalid_prefix(session: Session, prefix: str) -> None:
    answer = session.create("v1/configmaps", {"metadata": {"generateName": prefix}})
    drawn = answer["details"]["name"]
    session.steps[-1]["body"] = json.loads(json.dumps(answer).replace(drawn, "<drawn>"))


@each(
    {
        "plain": {"tier": "front"},
        "prefixed": {"example.com/tier": "front"},
        "empty value": {"tier": ""},
        "dash at the end of the value": {"tier": "front-"},
        "blank in the value": {"tier": "front end"},
        "value too long": {"tier": "x" * 64},
        "key with two slashes": {"a/b/c": "x"},
        "key with an underscore first": {"_tier": "x"},
        "key too long": {"k" * 64: "x"},
        "prefix in capitals": {"Example.com/tier": "x"},
        "several wrong ones": {"-a": "b", "c": "-d"},
        "number": {"tier": 1},
        "null": {"tier": None},
    }
)
def labels(session: Session, labels: dict[str, Any]) -> None:
    session.create("v1/configmaps", config_map(labels=labels))


@each(
    {
        "any text": {"note": "any text, with {braces} and\nlines"},
        "blank in the key": {"my note": "x"},
        "key in capitals": {"Note": "x"},
        "too large": {"note": "x" * 262144},
    }
)
def annotation(session: Session, annotations: dict[str, Any]) -> None:
    session.create("v1/configmaps", config_map(annotations=annotations))


@each(
    {
        "qualified": "example.com/hold",
        "plain": "hold",
        "blank": "my hold",
        "standard": "foregroundDeletion",
        "empty": "",
    }
)
def finalizer(session: Session, finalizer: str) -> None:
    session.create("v1/configmaps", config_map(finalizers=[finalizer]))


@case
def duplicate_finalizers(session: Session) -> None:
    session.create("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/a"]))


def _owner(**members: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": _UID, **members}


@each(
    {
        "complete": [_owner()],
        "without uid": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}],
        "without name": [_owner(name="")],
        "without kind": [_owner(kind="")],
        "without version": [_owner(apiVersion="")],
        "twice controller": [_owner(controller=True), _owner(controller=True, uid=_UID[:-1] + "2", name="other")],
        "event": [_owner(kind="Event")],
        "twice the same": [_owner(), _owner()],
        "strange version": [_owner(apiVersion="a/b/c")],
    }
)
def owners(session: Session, owners: list[Object]) -> None:
    session.create("v1/configmaps", config_map(ownerReferences=owners))


@case
def namespace_in_the_body_must_match_the_path(session: Session) -> None:
    session.create("v1/configmaps", config_map(namespace="elsewhere"))


@case
def namespace_of_a_cluster_scoped_object(session: Session) -> None:
    session.create("/api/v1/nodes", {"metadata": {"name": session.unique("n"), "namespace": "somewhere"}})


@case
def creation_needs_a_namespace(session: Session) -> None:
    session.create("/api/v1/configmaps", config_map(namespace=session.namespace))


@case
def the_deletion_timestamp_cannot_be_set(session: Session) -> None:
    session.create("v1/configmaps", config_map(deletionTimestamp="2017-03-01T10:00:00Z", deletionGracePeriodSeconds=5))
    session.patch("v1/configmaps/settings", {"metadata": {"deletionTimestamp": "2017-03-01T10:00:00Z"}})


@each(
    {
        "labels as a list": {"labels": ["a"]},
        "annotations as a string": {"annotations": "a"},
        "finalizers as a string": {"finalizers": "example.com/a"},
        "generation as a string": {"generation": "one"},
        "name as a number": {"name": 5},
        "owner of a wrong type": {"ownerReferences": {"name": "owner"}},
        "creation timestamp as words": {"creationTimestamp": "yesterday"},
    }
)
def wrong_type(session: Session, metadata: dict[str, Any]) -> None:
    session.create("v1/configmaps", {"metadata": {"name": "settings", **metadata}})


@each(
    {
        "deployment": ("apps/v1/deployments", deployment("Bad_Name")),
        "pod": ("v1/pods", pod("Bad_Name")),
        "lease": ("coordination.k8s.io/v1/leases", lease("Bad_Name")),
        "node": ("/api/v1/nodes", node("Bad_Name")),
    }
)
def invalid_name_by_kind(session: Session, what: tuple[str, Object]) -> None:
    session.create(*what)
