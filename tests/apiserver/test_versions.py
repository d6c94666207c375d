"""Objects that are older than the definition of their kind, or were written in another version of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import DEFINITIONS, WIDGETS, WIDGETS_BETA, WRITE, a_server, definition, key, widget

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Invalid
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Patch

_KEY = Key("", "widgets.example.com")


@pytest.fixture
def server() -> ApiServer:
    made = a_server()
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


def test_a_new_default_shows_in_old_objects(server: ApiServer) -> None:
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


def test_even_a_write_of_nothing_stores_the_new_default(server: ApiServer) -> None:
    before = server.get(WIDGETS, key("w"))["metadata"]["resourceVersion"]
    _redefine(server, shape={"type": "string", "default": "round"})
    written = server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE)
    assert written["metadata"]["resourceVersion"] != before
    again = server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE)
    assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


def test_an_object_that_is_marked_gets_the_new_default(server: ApiServer) -> None:
    server.patch(WIDGETS, key("w"), Patch.merge({"metadata": {"finalizers": ["example.com/a"]}}), WRITE)
    _redefine(server, shape={"type": "string", "default": "round"})
    server.delete(WIDGETS, key("w"), WRITE)
    assert server.get(WIDGETS, key("w"))["spec"]["shape"] == "round"


def test_a_definition_that_changes_nothing_for_an_object_leaves_it(server: ApiServer) -> None:
    before = server.get(WIDGETS, key("w"))
    _redefine(server, shape={"type": "string"})
    assert server.get(WIDGETS, key("w")) is before
    assert server.patch(WIDGETS, key("w"), Patch.merge({}), WRITE) is before


def test_a_new_default_is_no_change_of_the_writer(server: ApiServer) -> None:
    """A default that the schema itself would refuse was there before the write, which is about something else."""
    _redefine(server, shape={"type": "string", "default": "round"})
    unchangeable = [{"rule": "self == oldSelf"}]
    _redefine(server, shape={"type": "string", "default": "round", "x-kubernetes-validations": unchangeable})
    assert server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"size": 4}}), WRITE)["spec"]["shape"] == "round"
    with pytest.raises(Invalid):
        server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"shape": "flat"}}), WRITE)


def test_fields_that_the_stored_version_does_not_have_are_not_stored() -> None:
    server = a_server()
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
    """Serve widgets in a version that gives them a size, and in one that gives them a taste and knows no size."""
    server = a_server()
    crd = definition(beta=True)
    fields = {"color": {"type": "string"}, "taste": {"type": "string", "default": "sweet"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    crd["spec"]["versions"][1] = {**crd["spec"]["versions"][1], "schema": {"openAPIV3Schema": schema}}
    server.create(DEFINITIONS, crd, WRITE)
    return server


def test_defaults_are_those_of_the_stored_version() -> None:
    """Another version leaves out what it does not have, and adds nothing."""
    server = _in_two_versions()
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    assert server.get(WIDGETS, key("w"))["spec"] == {"color": "red", "size": 3}
    assert server.get(WIDGETS_BETA, key("w"))["spec"] == {"color": "red"}
    assert [item["spec"] for item in server.list(Selection(WIDGETS_BETA)).items] == [{"color": "red"}]
    assert server.watch(Selection(WIDGETS_BETA)).events[0].object["spec"] == {"color": "red"}
    assert server.get(WIDGETS_BETA, key("w")) is server.get(WIDGETS_BETA, key("w"))


def test_what_the_version_of_an_owner_does_not_have_costs_all_owners() -> None:
    """The write fills in a taste, of which the version that the first owner wrote in knows nothing."""
    server = _in_two_versions()
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    assert "managedFields" not in server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]


def test_owners_in_one_version_stay() -> None:
    server = _in_two_versions()
    server.create(WIDGETS_BETA, widget(of=WIDGETS_BETA, color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    (entry,) = server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:color": {}, "f:taste": {}}}


def test_owners_in_two_versions_that_know_the_same_stay() -> None:
    server = a_server()
    server.create(DEFINITIONS, definition(beta=True), WRITE)
    server.create(WIDGETS, widget(color="red"), WRITE, namespace="default")

    blue = Patch.merge({"spec": {"color": "blue"}})
    entries = server.patch(WIDGETS_BETA, key("w"), blue, WRITE)["metadata"]["managedFields"]

    assert [(entry["apiVersion"], entry["fieldsV1"]["f:spec"]) for entry in entries] == [
        ("example.com/v1", {".": {}, "f:size": {}}),
        ("example.com/v1beta1", {"f:color": {}}),
    ]
