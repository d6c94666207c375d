"""Requests as such: who asks, in which form, and what cannot be understood."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map
from tests.conformance.session import JSON_PATCH, MERGE, STRATEGIC, Session

_JSON = {"Content-Type": "application/json"}


@each({"get": "GET", "post": "POST", "delete": "DELETE"})
def with_a_token_that_nobody_was_given(play: Session, method: str) -> None:
    play.send(method, "v1/configmaps", headers={"Authorization": "Bearer wrong"})


_TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"metadata": {',
    "a list": b"[]",
    "a string": b'"settings"',
    "null": b"null",
    "words": b"hello",
    "not utf-8": b'{"metadata": {"name": "\xff\xfe"}}',
    "more than one": b'{"metadata": {"name": "a"}} {"metadata": {"name": "b"}}',
    "a number that is none": b'{"metadata": {"name": "a", "generation": NaN}}',
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
def creation_from(play: Session, text: bytes) -> None:
    play.send("POST", "v1/configmaps", text, headers=_JSON)


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
def creation_from_yaml(play: Session, text: bytes) -> None:
    play.send("POST", "v1/configmaps", text, headers={"Content-Type": "application/yaml"})


@each({"xml": "application/xml", "text": "text/plain", "form": "application/x-www-form-urlencoded", "none": ""})
def creation_in_the_form_of(play: Session, kind: str) -> None:
    play.send("POST", "v1/configmaps", b'{"metadata": {"name": "settings"}}', headers={"Content-Type": kind})


@case
def creation_with_a_parameter_of_the_form(play: Session) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    play.send("POST", "v1/configmaps", b'{"metadata": {"name": "settings"}}', headers=headers)


@each({"merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC})
def patch_from_what_is_broken(play: Session, kind: str) -> None:
    play.prepare("v1/configmaps", config_map())
    for text in (b"{", b"", b"null"):
        play.send("PATCH", "v1/configmaps/settings", text, headers={"Content-Type": kind})


@each(
    {
        "put of a collection": ("PUT", "v1/configmaps"),
        "patch of a collection": ("PATCH", "v1/configmaps"),
        "post of an object": ("POST", "v1/configmaps/settings"),
    }
)
def method_that_does_not_fit(play: Session, what: tuple[str, str]) -> None:
    method, path = what
    play.send(method, path, b"{}", headers={"Content-Type": MERGE if method == "PATCH" else "application/json"})


@each(
    {
        "unknown kind": "v1/poems",
        "unknown kind of a group": "apps/v1/poems",
        "unknown group": "example.com/v1/poems",
        "unknown version": "apps/v9/deployments",
        "too deep": "v1/configmaps/settings/a/b/c",
        "namespaced kind outside": "/api/v1/configmaps/settings",
        "kind outside in a namespace": "v1/nodes/one",
        "nothing": "/",
    }
)
def path_of(play: Session, path: str) -> None:
    answer: Any = play.get(path)
    if isinstance(answer, dict) and "paths" in answer:
        play.steps[-1]["body"] = {"paths": "…"}


@case
def an_object_that_is_too_large(play: Session) -> None:
    text = b'{"metadata": {"name": "settings"}, "data": {"a": "' + b"x" * ((1 << 20) + 1) + b'"}}'
    play.send("POST", "v1/configmaps", text, headers=_JSON)


@case
def a_body_that_is_too_large(play: Session) -> None:
    text = b'{"metadata": {"name": "settings"}, "data": {"a": "' + b"x" * (3 << 20) + b'"}}'
    play.send("POST", "v1/configmaps", text, headers=_JSON)


@case
def json_that_is_too_deep(play: Session) -> None:
    play.send("POST", "v1/configmaps", b'{"a":' * 10_001 + b"1" + b"}" * 10_001, headers=_JSON)


@case
def a_manager_from_the_user_agent(play: Session) -> None:
    play.send("POST", "v1/configmaps", config_map(), headers={"User-Agent": "my-tool/v1.2 (linux)"})


@case
def a_manager_from_the_query(play: Session) -> None:
    play.create("v1/configmaps", config_map(), fieldManager="somebody")
    play.create("v1/configmaps", config_map("other"), fieldManager="x" * 129)


@case
def pretty_is_the_same(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.get("v1/configmaps/settings", pretty=True)
