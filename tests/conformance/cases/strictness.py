"""Fields that nobody knows, or that come twice: ignored, warned of or refused."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import STRING, config_map, define, deployment, properties, widget
from tests.conformance.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object, Session

_WAYS = {each: {"fieldValidation": each} for each in ("Ignore", "Warn", "Strict")} | {"nothing said": {}}


def _odd() -> Object:
    body = deployment()
    body["spec"]["colour"] = "red"
    body["spec"]["template"]["spec"]["containers"][0]["taste"] = "sweet"
    return body | {"mood": "fine"}


@each(_WAYS)
def unknown_fields_at_birth(play: Session, query: dict[str, Any]) -> None:
    play.create("apps/v1/deployments", _odd(), **query)


@each(_WAYS)
def a_field_twice_at_birth(play: Session, query: dict[str, Any]) -> None:
    body = b'{"metadata": {"name": "settings"}, "data": {"a": "1"}, "data": {"a": "2", "b": "3", "b": "4"}}'
    play.send("POST", "v1/configmaps", body, headers={"Content-Type": "application/json"}, **query)


@each(_WAYS)
def a_field_twice_in_yaml(play: Session, query: dict[str, Any]) -> None:
    body = b"metadata:\n  name: settings\ndata:\n  a: '1'\n  a: '2'\ncolour: red\n"
    play.send("POST", "v1/configmaps", body, headers={"Content-Type": "application/yaml"}, **query)


@each(_WAYS)
def unknown_fields_of_an_update(play: Session, query: dict[str, Any]) -> None:
    play.prepare("v1/configmaps", config_map())
    play.update("v1/configmaps/settings", config_map() | {"colour": "red"}, **query)


@each({"merge": MERGE, "strategic": STRATEGIC})
def unknown_fields_of_a_patch(play: Session, kind: str) -> None:
    play.prepare("apps/v1/deployments", deployment())
    for way in _WAYS.values():
        play.patch("apps/v1/deployments/web", {"spec": {"colour": "red"}}, kind, **way)


@case
def unknown_fields_of_a_json_patch(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    patch = [{"op": "add", "path": "/spec/colour", "value": "red"}]
    for way in _WAYS.values():
        play.patch("apps/v1/deployments/web", patch, JSON_PATCH, **way)


@case
def unknown_fields_of_an_apply(play: Session) -> None:
    for way in _WAYS.values():
        play.patch("v1/configmaps/settings", config_map() | {"colour": "red"}, APPLY, fieldManager="one", **way)


@case
def unknown_way(play: Session) -> None:
    play.create("v1/configmaps", config_map(), fieldValidation="Sometimes")


@each(_WAYS)
def unknown_fields_of_a_custom_kind(play: Session, query: dict[str, Any]) -> None:
    path = define(play, properties(spec=properties(a=STRING)))
    body = widget(play, spec={"a": "1", "colour": "red"}, mood="fine")
    body["metadata"]["taste"] = "sweet"
    play.create(path, body, **query)


@case
def fields_that_are_kept_are_not_unknown(play: Session) -> None:
    path = define(play, properties(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    play.create(path, widget(play, spec={"a": "1"}), fieldValidation="Strict")


@each(_WAYS)
def a_field_twice_of_a_custom_kind(play: Session, query: dict[str, Any]) -> None:
    path = define(play, properties(spec=properties(a=STRING)))
    head = f'{{"apiVersion": "{play.group}/v1", "kind": "Widget", "metadata": {{"name": "one"}}'
    body = f'{head}, "spec": {{"a": "1", "a": "2"}}}}'.encode()
    play.send("POST", path, body, headers={"Content-Type": "application/json"}, **query)


@case
def capitals_matter(play: Session) -> None:
    play.create(
        "v1/configmaps", {"Metadata": {"name": "settings"}, "metadata": {"name": "settings"}, "Data": {"a": "1"}}
    )
