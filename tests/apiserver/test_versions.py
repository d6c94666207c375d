"""Objects stored under an earlier definition, or in another version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import DEFINITIONS, WIDGETS, WIDGETS_BETA, WRITE, definition, key, make_server, widget

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Invalid
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Patch

_KEY = Key("", "widgets.example.com")


@pytest.fixture
def server() -> ApiServer:
    made = make_server()
    made.create(DEFINITIONS, definition(), WRITE)
    made.create(WIDGETS, widget(color="red"), WRITE, namespace="default")
    return made


def _properties(crd: Object) -> dict[str, Any]:
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


def _redefine(server: ApiServer, **properties: Any) -> None:
    crd = definition()
    _properties(crd).update(properties)
    server.patch(DEFINITIONS, _KEY, Patch.merge({"spec": crd["spec"]}), WRITE)


def test_reads_add_new_defaults(server: ApiServer) -> None:
    before = server.get(WIDGETS, key("w"))["metadata"]["resourceVersion"]
    _redefine(server, shape={"type": "string", "default": "round"})
    expected = {"size": 3, "color": "red", "shape": "round"}
    assert server.get(WIDGETS, key("w"))["spec"] == expected
    assert [item["spec"] for item in server.list(Selection(WIDGETS)).items] == [expected]
    assert server.watch(Selection(WIDGETS)).events[0].object["spec"] == expected
    assert server.get(WIDGETS, key("w"))["metadata"]["resourceVersion"] == before
    assert server.get(WIDGETS, key("w")) is server.get(WIDGETS, key("w"))


def test_a_write_stores_the_new_default(server: ApiServer) -> None:
    _redefine(server, shape={"type": "string", "default": "round"})
    server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"size": 4}}), WRITE)
    _redefine(server, shape={"type": "string", "default": "flat"})
    assert server.get(WIDGETS, key("w"))["spec"]["shape"] == "round"


def test_an_update_without_changes_stores_the_new_default(server: ApiServer) -> None:
    before = server.get(WIDGETS, key("w"))["metadata"]["resourceVersion"]
    _redefine(server, shape={"type": "string", "default": "round"})
    written = server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE)
    assert written["metadata"]["resourceVersion"] != before
    again = server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE)
    assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


def test_a_deletion_timestamp_stores_the_new_default(server: ApiServer) -> None:
    server.patch(WIDGETS, key("w"), Patch.merge({"metadata": {"finalizers": ["example.com/a"]}}), WRITE)
    _redefine(server, shape={"type": "string", "default": "round"})
    server.delete(WIDGETS, key("w"), WRITE)
    assert server.get(WIDGETS, key("w"))["spec"]["shape"] == "round"


def test_an_irrelevant_change_of_the_definition_keeps_objects(server: ApiServer) -> None:
    before = server.get(WIDGETS, key("w"))
    _redefine(server, shape={"type": "string"})
    assert server.get(WIDGETS, key("w")) is before
    assert server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE) is before


def test_a_new_default_is_not_a_change_of_the_writer(server: ApiServer) -> None:
    """A default that the schema itself refuses existed before the write, which does not concern it."""
    _redefine(server, shape={"type": "string", "default": "round"})
    unchangeable = [{"rule": "self == oldSelf"}]
    _redefine(server, shape={"type": "string", "default": "round", "x-kubernetes-validations": unchangeable})
    assert server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"size": 4}}), WRITE)["spec"]["shape"] == "round"
    with pytest.raises(Invalid):
        server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"shape": "flat"}}), WRITE)


def test_fields_unknown_to_the_storage_version_are_dropped() -> None:
    server = make_server()
    crd = definition(beta=True)
    crd["spec"]["versions"][1] = {
        **crd["spec"]["versions"][1],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"color": {"type": "string"}, "extra": {"type": "string"}},
                    }
                },
            }
        },
    }
    server.create(DEFINITIONS, crd, WRITE)
    made = server.create(WIDGETS_BETA, widget(of=WIDGETS_BETA, color="red", extra="x"), WRITE, namespace="default")
    assert made["spec"] == {"color": "red"}
    assert server.get(WIDGETS, key("w"))["spec"] == {"color": "red", "size": 3}
    assert server.get(WIDGETS_BETA, key("w"))["spec"] == {"color": "red"}
    again = server.patch(WIDGETS_BETA, key("w"), Patch.merge({"spec": {"extra": "x"}}), WRITE)
    assert again["spec"] == {"color": "red"}


def _in_two_versions() -> ApiServer:
    """Serve widgets in one version with a size, and in one with a taste and no size."""
    server = make_server()
    crd = definition(beta=True)
    fields = {"color": {"type": "string"}, "taste": {"type": "string", "default": "sweet"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    crd["spec"]["versions"][1] = {**crd["spec"]["versions"][1], "schema": {"openAPIV3Schema": schema}}
    server.create(DEFINITIONS, crd, WRITE)
    return server


def test_defaults_come_from_the_storage_version() -> None:
    """Another version drops unknown fields, and adds no defaults."""
    server = _in_two_versions()
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    assert server.get(WIDGETS, key("w"))["spec"] == {"color": "red", "size": 3}
    assert server.get(WIDGETS_BETA, key("w"))["spec"] == {"color": "red"}
    assert [item["spec"] for item in server.list(Selection(WIDGETS_BETA)).items] == [{"color": "red"}]
    assert server.watch(Selection(WIDGETS_BETA)).events[0].object["spec"] == {"color": "red"}
    assert server.get(WIDGETS_BETA, key("w")) is server.get(WIDGETS_BETA, key("w"))


def test_a_field_unknown_to_a_managers_version_drops_all_managers() -> None:
    """The write sets a default that the version of the first manager does not have."""
    server = _in_two_versions()
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    assert "managedFields" not in server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]


def test_managers_in_one_version_are_kept() -> None:
    server = _in_two_versions()
    server.create(WIDGETS_BETA, widget(of=WIDGETS_BETA, color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    (entry,) = server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:color": {}, "f:taste": {}}}


def test_managers_in_compatible_versions_are_kept() -> None:
    server = make_server()
    server.create(DEFINITIONS, definition(beta=True), WRITE)
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    entries = server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]["managedFields"]

    assert [(entry["apiVersion"], entry["fieldsV1"]["f:spec"]) for entry in entries] == [
        ("example.com/v1", {".": {}, "f:size": {}}),
        ("example.com/v1beta1", {"f:color": {}}),
    ]
