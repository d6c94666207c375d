"""Names, labels, annotations, finalizers and owners: what they may be."""

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
def name(play: Session, name: str) -> None:
    play.create("v1/configmaps", config_map(name))


@each({"dots": "my.web", "digit first": "1web", "too long": "x" * 64})
def name_of_a_service(play: Session, name: str) -> None:
    play.create("v1/services", service(name))


@each({"dots": "x.y", "capitals": "Team"})
def name_of_a_namespace(play: Session, name: str) -> None:
    play.create("/api/v1/namespaces", {"metadata": {"name": name}})


@case
def no_name_at_all(play: Session) -> None:
    play.create("v1/configmaps", {"metadata": {}})
    play.create("v1/configmaps", {})


@case
def a_name_is_generated(play: Session) -> None:
    play.create("v1/configmaps", {"metadata": {"generateName": "settings-"}})


@case
def a_long_prefix_of_a_generated_name_is_cut(play: Session) -> None:
    play.create("v1/configmaps", {"metadata": {"generateName": "x" * 70}})


@case
def a_given_name_is_preferred_to_a_generated_one(play: Session) -> None:
    play.create("v1/configmaps", {"metadata": {"generateName": "other-", "name": "settings"}})


@each({"capitals": "Settings-", "underscore": "my_"})
def a_prefix_that_makes_no_name(play: Session, prefix: str) -> None:
    answer = play.create("v1/configmaps", {"metadata": {"generateName": prefix}})
    drawn = answer["details"]["name"]
    play.steps[-1]["body"] = json.loads(json.dumps(answer).replace(drawn, "<drawn>"))


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
def labels(play: Session, labels: dict[str, Any]) -> None:
    play.create("v1/configmaps", config_map(labels=labels))


@each(
    {
        "any text": {"note": "any text, with {braces} and\nlines"},
        "blank in the key": {"my note": "x"},
        "key in capitals": {"Note": "x"},
        "too much": {"note": "x" * 262144},
    }
)
def notes(play: Session, annotations: dict[str, Any]) -> None:
    play.create("v1/configmaps", config_map(annotations=annotations))


@each(
    {
        "qualified": "example.com/hold",
        "plain": "hold",
        "blank": "my hold",
        "standard": "foregroundDeletion",
        "empty": "",
    }
)
def finalizer(play: Session, finalizer: str) -> None:
    play.create("v1/configmaps", config_map(finalizers=[finalizer]))


@case
def finalizers_repeated(play: Session) -> None:
    play.create("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/a"]))


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
def owners(play: Session, owners: list[Object]) -> None:
    play.create("v1/configmaps", config_map(ownerReferences=owners))


@case
def namespace_in_the_body_must_match_the_path(play: Session) -> None:
    play.create("v1/configmaps", config_map(namespace="elsewhere"))


@case
def namespace_on_what_has_none(play: Session) -> None:
    play.create("/api/v1/nodes", {"metadata": {"name": play.unique("n"), "namespace": "somewhere"}})


@case
def creation_across_namespaces_needs_one(play: Session) -> None:
    play.create("/api/v1/configmaps", config_map(namespace=play.namespace))


@case
def deletion_cannot_be_written(play: Session) -> None:
    play.create("v1/configmaps", config_map(deletionTimestamp="2017-03-01T10:00:00Z", deletionGracePeriodSeconds=5))
    play.patch("v1/configmaps/settings", {"metadata": {"deletionTimestamp": "2017-03-01T10:00:00Z"}})


@each(
    {
        "labels of a list": {"labels": ["a"]},
        "annotations of a string": {"annotations": "a"},
        "finalizers of a string": {"finalizers": "example.com/a"},
        "generation in words": {"generation": "one"},
        "name of a number": {"name": 5},
        "metadata of owner": {"ownerReferences": {"name": "owner"}},
        "creation of words": {"creationTimestamp": "yesterday"},
    }
)
def of_a_wrong_type(play: Session, metadata: dict[str, Any]) -> None:
    play.create("v1/configmaps", {"metadata": {"name": "settings", **metadata}})


@each(
    {
        "deployment": ("apps/v1/deployments", deployment("Bad_Name")),
        "pod": ("v1/pods", pod("Bad_Name")),
        "lease": ("coordination.k8s.io/v1/leases", lease("Bad_Name")),
        "node": ("/api/v1/nodes", node("Bad_Name")),
    }
)
def bad_name_by_kind(play: Session, what: tuple[str, Object]) -> None:
    play.create(*what)
