"""Unknown and duplicate fields: ignored, warned of or rejected."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import STRING, config_map, define, deployment, properties, widget
from tests.conformance.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object, Session

_WAYS = {each: {"fieldValidation": each} for each in ("Ignore", "Warn", "Strict")} | {"default": {}}


def _odd() -> Object:
    body = deployment()
    body["spec"]["colour"] = "red"
    body["spec"]["template"]["spec"]["containers"][0]["taste"] = "sweet"
    return body | {"mood": "fine"}


@each(_WAYS)
def unknown_fields_on_create(session: Session, query: dict[str, Any]) -> None:
    session.create("apps/v1/deployments", _odd(), **query)


@each(_WAYS)
def duplicate_field_on_create(session: Session, query: dict[str, Any]) -> None:
    body = b'{"metadata": {"name": "settings"}, "data": {"a": "1"}, "data": {"a": "2", "b": "3", "b": "4"}}'
    session.send("POST", "v1/configmaps", body, headers={"Content-Type": "application/json"}, **query)


@each(_WAYS)
def duplicate_field_in_yaml(session: Session, query: dict[str, Any]) -> None:
    body = b"metadata:\n  name: settings\ndata:\n  a: '1'\n  a: '2'\ncolour: red\n"
    session.send("POST", "v1/configmaps", body, headers={"Content-Type": "application/yaml"}, **query)


@each(_WAYS)
def unknown_fields_of_an_update(session: Session, query: dict[str, Any]) -> None:
    session.prepare("v1/configmaps", config_map())
    session.update("v1/configmaps/settings", config_map() | {"colour": "red"}, **query)


@each({"merge": MERGE, "strategic": STRATEGIC})
def unknown_fields_of_a_patch(session: Session, kind: str) -> None:
    session.prepare("apps/v1/deployments", deployment())
    for way in _WAYS.values():
        session.patch("apps/v1/deployments/web", {"spec": {"colour": "red"}}, kind, **way)


@case
def unknown_fields_of_a_json_patch(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    patch = [{"op": "add", "path": "/spec/colour", "value": "red"}]
    for way in _WAYS.values():
        session.patch("apps/v1/deployments/web", patch, JSON_PATCH, **way)


@case
def unknown_fields_of_an_apply(session: Session) -> None:
    for way in _WAYS.values():
        session.patch("v1/configmaps/settings", config_map() | {"colour": "red"}, APPLY, fieldManager="one", **way)


@case
def unknown_directive(session: Session) -> None:
    session.create("v1/configmaps", config_map(), fieldValidation="Sometimes")


@each(_WAYS)
def unknown_fields_of_a_custom_kind(session: Session, query: dict[str, Any]) -> None:
    path = define(session, properties(spec=properties(a=STRING)))
    body = widget(session, spec={"a": "1", "colour": "red"}, mood="fine")
    body["metadata"]["taste"] = "sweet"
    session.create(path, body, **query)


@case
def preserved_unknown_fields(session: Session) -> None:
    path = define(session, properties(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    session.create(path, widget(session, spec={"a": "1"}), fieldValidation="Strict")


@each(_WAYS)
def duplicate_field_of_a_custom_kind(session: Session, query: dict[str, Any]) -> None:
    path = define(session, properties(spec=properties(a=STRING)))
    head = f'{{"apiVersion": "{session.group}/v1", "kind": "Widget", "metadata": {{"name": "one"}}'
    body = f'{head}, "spec": {{"a": "1", "a": "2"}}}}'.encode()
    session.send("POST", path, body, headers={"Content-Type": "application/json"}, **query)


@case
def field_names_are_case_sensitive(session: Session) -> None:
    session.create(
        "v1/configmaps", {"Metadata": {"name": "settings"}, "metadata": {"name": "settings"}, "Data": {"a": "1"}}
    )
