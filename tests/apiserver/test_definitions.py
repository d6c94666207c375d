"""CRDs take effect at once when they are created, changed and deleted."""

from __future__ import annotations

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRY,
    WIDGETS,
    WIDGETS_BETA,
    WRITE,
    config_map,
    definition,
    key,
    make_server,
    widget,
)

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Invalid, MethodNotAllowed, NotFound
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Patch

_KEY = Key("", "widgets.example.com")


@pytest.fixture
def server() -> ApiServer:
    return make_server()


def _make(server: ApiServer, body: Object) -> Object:
    return server.create(WIDGETS, body, WRITE, namespace="default")


def test_a_definition_is_served_at_once(server: ApiServer) -> None:
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        _make(server, widget())
    server.create(DEFINITIONS, definition(), DRY)
    with pytest.raises(NotFound):
        _make(server, widget())
    made = server.create(DEFINITIONS, definition(), WRITE)
    message = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert message == {"NamesAccepted": "True", "Established": "True"}
    assert _make(server, widget())["spec"] == {"size": 3}


def test_a_bad_definition_is_refused_and_changes_nothing(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    before = server.revision
    worse = Patch.merge({"spec": {"versions": []}})
    with pytest.raises(Invalid):
        server.patch(DEFINITIONS, _KEY, worse, WRITE)
    assert server.revision == before
    assert _make(server, widget())["spec"] == {"size": 3}


def test_a_changed_definition_takes_effect_at_once(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    changed = definition()["spec"]
    changed["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = 5
    server.patch(DEFINITIONS, _KEY, Patch.merge({"spec": changed}), WRITE)
    with pytest.raises(Invalid, match=r"spec\.size"):
        _make(server, widget(size=6))


def test_versions_are_added_and_removed(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    _make(server, widget())
    with pytest.raises(NotFound):
        server.get(WIDGETS_BETA, key("w"))
    server.patch(DEFINITIONS, _KEY, Patch.merge({"spec": definition(beta=True)["spec"]}), WRITE)
    assert server.get(WIDGETS_BETA, key("w"))["apiVersion"] == "example.com/v1beta1"
    server.patch(DEFINITIONS, _KEY, Patch.merge({"spec": definition()["spec"]}), WRITE)
    with pytest.raises(NotFound):
        server.get(WIDGETS_BETA, key("w"))


def test_deleting_a_definition_deletes_its_objects(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    for name in ("a", "b"):
        _make(server, widget(name))
    subscription = server.watch(Selection(WIDGETS), version=str(server.revision))
    server.delete(DEFINITIONS, _KEY, WRITE)
    assert [event.change.value for event in subscription.events] == ["DELETED", "DELETED"]
    assert subscription.ended
    with pytest.raises(NotFound):
        server.get(DEFINITIONS, _KEY)
    with pytest.raises(NotFound):
        server.list(Selection(WIDGETS))
    server.create(DEFINITIONS, definition(), WRITE)
    assert list(server.list(Selection(WIDGETS)).items) == []


def test_a_definition_stays_until_its_last_object_is_gone(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/a"]
    _make(server, held)
    server.delete(DEFINITIONS, _KEY, WRITE)
    assert "deletionTimestamp" in server.get(WIDGETS, key("w"))["metadata"]
    with pytest.raises(MethodNotAllowed, match="create not allowed while custom resource definition is terminating"):
        _make(server, widget("late"))
    server.patch(WIDGETS, key("w"), Patch.merge({"metadata": {"finalizers": None}}), WRITE)
    with pytest.raises(NotFound):
        server.get(DEFINITIONS, _KEY)


def test_a_definition_gets_its_finalizer_on_deletion(server: ApiServer) -> None:
    assert "finalizers" not in server.create(DEFINITIONS, definition(), WRITE)["metadata"]
    _make(server, widget() | {"metadata": {"name": "w", "finalizers": ["example.com/a"]}})
    going = server.delete(DEFINITIONS, _KEY, WRITE)["metadata"]
    assert going["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert (going["generation"], "deletionGracePeriodSeconds" in going) == (1, False)


def test_discovery_follows(server: ApiServer) -> None:
    names = [kind.resource.plural for kind in server.catalogue.all()]
    assert "widgets" not in names
    server.create(DEFINITIONS, definition(beta=True), WRITE)
    served = [kind.resource.version for kind in server.catalogue.all() if kind.resource.plural == "widgets"]
    assert served == ["v1", "v1beta1"]
    assert [kind.resource.version for kind in server.catalogue.stored() if kind.resource.kind == "Widget"] == ["v1"]
    found = server.catalogue.of_kind("example.com/v1beta1", "Widget")
    assert found is not None
    assert found.resource == WIDGETS_BETA
    server.delete(DEFINITIONS, _KEY, WRITE)
    assert [kind.resource.plural for kind in server.catalogue.all()] == names


def test_updates_of_custom_objects_need_a_version(server: ApiServer) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    made = _make(server, widget())
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"):
        server.update(WIDGETS, key("w"), widget(size=9), WRITE)
    replaced = server.update(WIDGETS, key("w"), {**made, "spec": {"size": 9}}, WRITE)
    assert replaced["spec"] == {"size": 9}
    server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
    assert server.update(CONFIG_MAPS, key("a"), config_map(data={"x": "y"}), WRITE)["data"] == {"x": "y"}
