"""Requests: authentication, media types, sizes and malformed bodies."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map
from tests.conformance.session import JSON_PATCH, MERGE, STRATEGIC, Session

_JSON = {"Content-Type": "application/json"}


@each({"get": "GET", "post": "POST", "delete": "DELETE"})
def with_an_unknown_token(session: Session, method: str) -> None:
    session.send(method, "v1/configmaps", headers={"Authorization": "Bearer wrong"})


_TEXTS: dict[str, bytes] = {
    "an empty body": b"",
    "an incomplete body": b'{"metadata": {',
    "a list": b"[]",
    "a string": b'"settings"',
    "null": b"null",
    "words": b"hello",
    "not utf-8": b'{"metadata": {"name": "\xff\xfe"}}',
    "more than one": b'{"metadata": {"name": "a"}} {"metadata": {"name": "b"}}',
    "an invalid number": b'{"metadata": {"name": "a", "generation": NaN}}',
    "a string for an object": b'{"metadata": "settings"}',
    "another kind": b'{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}',
    "an unknown kind": b'{"apiVersion": "v1", "kind": "Poem", "metadata": {"name": "a"}}',
    "an unknown group": b'{"apiVersion": "example.com/v1", "kind": "ConfigMap", "metadata": {"name": "a"}}',
    "another version": b'{"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "a"}}',
    "a strange version": b'{"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "a"}}',
    "no kind": b'{"apiVersion": "v1", "metadata": {"name": "a"}}',
    "no version": b'{"kind": "ConfigMap", "metadata": {"name": "a"}}',
    "a kind of a number": b'{"apiVersion": "v1", "kind": 5, "metadata": {"name": "a"}}',
}


@each(_TEXTS)
def creation_from(session: Session, text: bytes) -> None:
    session.send("POST", "v1/configmaps", text, headers=_JSON)


@each(
    {
        "block": b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: '1'\n",
        "flow": b"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: 'yes'}}",
        "json": b'{"metadata": {"name": "settings"}}',
        "broken": b"metadata: [name",
        "a tab": b"metadata:\n\tname: settings\n",
        "two documents": b"metadata:\n  name: a\n---\nmetadata:\n  name: b\n",
        "a number as text": b"metadata: {name: settings}\ndata: {a: 1}\n",
        "anchors": b"metadata: {name: settings}\ndata: &d {a: '1'}\n",
    }
)
def creation_from_yaml(session: Session, text: bytes) -> None:
    session.send("POST", "v1/configmaps", text, headers={"Content-Type": "application/yaml"})


@each({"xml": "application/xml", "text": "text/plain", "form": "application/x-www-form-urlencoded", "none": ""})
def creation_with_media_type(session: Session, kind: str) -> None:
    session.send("POST", "v1/configmaps", b'{"metadata": {"name": "settings"}}', headers={"Content-Type": kind})


@case
def creation_with_a_media_type_parameter(session: Session) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    session.send("POST", "v1/configmaps", b'{"metadata": {"name": "settings"}}', headers=headers)


@each({"merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC})
def patch_with_a_malformed_body(session: Session, kind: str) -> None:
    session.prepare("v1/configmaps", config_map())
    for text in (b"{", b"", b"null"):
        session.send("PATCH", "v1/configmaps/settings", text, headers={"Content-Type": kind})


@each(
    {
        "put of a collection": ("PUT", "v1/configmaps"),
        "patch of a collection": ("PATCH", "v1/configmaps"),
        "post of an object": ("POST", "v1/configmaps/settings"),
    }
)
def method_not_allowed(session: Session, what: tuple[str, str]) -> None:
    method, path = what
    session.send(method, path, b"{}", headers={"Content-Type": MERGE if method == "PATCH" else "application/json"})


@each(
    {
        "unknown kind": "v1/poems",
        "unknown kind of a group": "apps/v1/poems",
        "unknown group": "example.com/v1/poems",
        "unknown version": "apps/v9/deployments",
        "too deep": "v1/configmaps/settings/a/b/c",
        "namespaced kind outside": "/api/v1/configmaps/settings",
        "kind outside in a namespace": "v1/nodes/one",
        "an empty body": "/",
    }
)
def path_of(session: Session, path: str) -> None:
    answer: Any = session.get(path)
    if isinstance(answer, dict) and "paths" in answer:
        session.steps[-1]["body"] = {"paths": "…"}


@case
def object_too_large(session: Session) -> None:
    text = b'{"metadata": {"name": "settings"}, "data": {"a": "' + b"x" * ((1 << 20) + 1) + b'"}}'
    session.send("POST", "v1/configmaps", text, headers=_JSON)


@case
def body_too_large(session: Session) -> None:
    text = b'{"metadata": {"name": "settings"}, "data": {"a": "' + b"x" * (3 << 20) + b'"}}'
    session.send("POST", "v1/configmaps", text, headers=_JSON)


@case
def json_too_deep(session: Session) -> None:
    session.send("POST", "v1/configmaps", b'{"a":' * 10_001 + b"1" + b"}" * 10_001, headers=_JSON)


@case
def field_manager_from_the_user_agent(session: Session) -> None:
    session.send("POST", "v1/configmaps", config_map(), headers={"User-Agent": "my-tool/v1.2 (linux)"})


@case
def field_manager_from_the_query(session: Session) -> None:
    session.create("v1/configmaps", config_map(), fieldManager="somebody")
    session.create("v1/configmaps", config_map("other"), fieldManager="x" * 129)


@case
def pretty(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.get("v1/configmaps/settings", pretty=True)
