"""Metadata: what each kind of write may change, what is invalid, and the generation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    BUDGETS,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    QUOTAS,
    REPLICA_SETS,
    SERVICES,
    WIDGETS,
    WRITE,
    config_map,
    definition,
    deployment,
    key,
    make_server,
    pod,
    widget,
)

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import BadRequest, Conflict, Invalid
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Write

_LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)
_JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}}
_ALL = ("annotations", "finalizers", "labels", "ownerReferences")


@pytest.fixture
def server() -> ApiServer:
    return make_server()


def _make(server: ApiServer, resource: Resource, body: Object) -> Key:
    made = server.create(resource, body, WRITE, namespace="default" if resource.namespaced else "")
    return Key("default" if resource.namespaced else "", made["metadata"]["name"])


_THROUGH_STATUS = [
    pytest.param(NODES, {"metadata": {"name": "n"}}, _ALL, id="node"),
    pytest.param(NAMESPACES, {"metadata": {"name": "n"}}, _ALL, id="namespace"),
    pytest.param(REPLICA_SETS, deployment(), _ALL, id="replica set"),
    pytest.param(JOBS, {"metadata": {"name": "j"}, "spec": {"template": _JOB_TEMPLATE}}, _ALL, id="job"),
    pytest.param(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, _ALL, id="service"),
    pytest.param(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}}, _ALL, id="quota"),
    pytest.param(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}, _ALL, id="budget"),
    pytest.param(DEPLOYMENTS, deployment(), ("annotations", "finalizers", "ownerReferences"), id="deployment"),
    pytest.param(PODS, pod(), ("annotations", "finalizers", "labels"), id="pod"),
    pytest.param(
        _ATTACHMENTS,
        {
            "metadata": {"name": "v"},
            "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
        },
        (),
        id="volume attachment",
    ),
    pytest.param(WIDGETS, widget(), (), id="custom"),
]


@pytest.mark.parametrize(("resource", "body", "expected"), _THROUGH_STATUS)
def test_writes_to_the_status_change_metadata_too(
    server: ApiServer, resource: Resource, body: Object, expected: tuple[str, ...]
) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    at = _make(server, resource, body)
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
    wanted = {
        "annotations": {"a": "b"},
        "finalizers": ["example.com/a"],
        "labels": {"a": "b"},
        "ownerReferences": [owner],
    }
    before = server.get(resource, at)["metadata"]
    written = server.patch(resource, at, Patch.merge({"metadata": wanted}), WRITE, subresource="status")
    # Some samples have labels already.
    labels = {name: value for name, value in written["metadata"].get("labels", {}).items() if name == "a"}
    after = written["metadata"] | {"labels": labels}
    assert tuple(name for name in _ALL if after.get(name) == wanted[name]) == expected
    assert after.get("generation") == before.get("generation")


@pytest.mark.parametrize(
    ("resource", "body", "change", "counts"),
    [
        pytest.param(DEPLOYMENTS, deployment(), {"metadata": {"annotations": {"a": "b"}}}, True, id="annotations"),
        pytest.param(DEPLOYMENTS, deployment(), {"metadata": {"labels": {"a": "b"}}}, False, id="labels"),
        pytest.param(
            REPLICA_SETS, deployment(), {"metadata": {"annotations": {"a": "b"}}}, False, id="labels of others"
        ),
        pytest.param(
            PRIORITY_CLASSES, {"metadata": {"name": "p"}, "value": 1}, {"description": "x"}, False, id="no generation"
        ),
    ],
)
def test_generation(server: ApiServer, resource: Resource, body: Object, change: Object, counts: bool) -> None:
    at = _make(server, resource, body)
    assert server.patch(resource, at, Patch.merge(change), WRITE)["metadata"]["generation"] == 1 + counts


_LONG = "m" * 129
_REFUSED = [
    pytest.param(
        CONFIG_MAPS,
        config_map(finalizers=["bare"]),
        'metadata.finalizers[0]: Invalid value: "bare": name is neither a standard finalizer name nor is it fully',
        id="finalizer without a domain",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"}]),
        'Invalid value: {"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}: /v1, Kind=Event is disallowed from',
        id="an event as owner",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(ownerReferences=[{"apiVersion": "a/b/c", "kind": "Pod", "name": "x", "uid": "u"}]),
        'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
        id="owner with an invalid version",
    ),
    pytest.param(
        CONFIG_MAPS,
        {"metadata": {"generateName": "No_"}},
        'metadata.generateName: Invalid value: "No_": a lowercase RFC 1123 subdomain',
        id="prefix that makes an invalid name",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(labels={"a/b/c": "x"}),
        'metadata.labels: Invalid value: "a/b/c": a valid label key must consist of',
        id="a label with two slashes",
    ),
    pytest.param(
        SERVICES,
        {"metadata": {"name": "1.s"}, "spec": {"ports": [{"port": 80}]}},
        'metadata.name: Invalid value: "1.s": must not contain dots',
        id="dots in the name of a service",
    ),
]


@pytest.mark.parametrize(("resource", "body", "text"), _REFUSED)
def test_refuses_metadata(server: ApiServer, resource: Resource, body: Object, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        _make(server, resource, body)
    assert text in caught.value.message


_TAKEN = [
    pytest.param(CONFIG_MAPS, config_map(finalizers=["kubernetes"]), id="a standard finalizer"),
    pytest.param(_LEASES, {"metadata": {"name": "l", "finalizers": ["bare"]}}, id="any finalizer of a lease"),
    pytest.param(
        WIDGETS, widget() | {"metadata": {"name": "w", "finalizers": ["bare"]}}, id="finalizer of a custom object"
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(ownerReferences=[{"apiVersion": "events.k8s.io/v1", "kind": "Event", "name": "x", "uid": "u"}]),
        id="an event of the other group as owner",
    ),
    pytest.param(SERVICES, {"metadata": {"name": "1s"}, "spec": {"ports": [{"port": 80}]}}, id="a digit first"),
]


@pytest.mark.parametrize(("resource", "body"), _TAKEN)
def test_accepts_metadata(server: ApiServer, resource: Resource, body: Object) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    _make(server, resource, body)


def test_null_labels_and_annotations_are_empty(server: ApiServer) -> None:
    at = _make(server, CONFIG_MAPS, config_map(labels={"a": None, "b": "c"}, annotations={"d": None}))
    metadata = server.get(CONFIG_MAPS, at)["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "", "b": "c"}, {"d": ""})


_IMMUTABLE = [
    pytest.param({"uid": "other"}, 'metadata.uid: Invalid value: "other": field is immutable', id="uid"),
    pytest.param(
        {"deletionTimestamp": "2001-01-01T00:00:00Z"},
        'metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable',
        id="deletion timestamp",
    ),
    pytest.param(
        {"deletionGracePeriodSeconds": 5},
        "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        id="grace",
    ),
    pytest.param({"finalizers": ["bare"]}, "metadata.finalizers[0]: Invalid value", id="finalizer"),
]


@pytest.mark.parametrize(("metadata", "text"), _IMMUTABLE)
@pytest.mark.parametrize("applied", [False, True], ids=["merged", "applied"])
def test_refuses_changes_of_metadata(server: ApiServer, metadata: dict[str, Any], text: str, applied: bool) -> None:
    at = _make(server, CONFIG_MAPS, config_map())
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    with pytest.raises(Invalid) as caught:
        server.patch(CONFIG_MAPS, at, Patch.apply(body) if applied else Patch.merge(body), WRITE)
    assert text in caught.value.message


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        pytest.param(
            {"data": {}}, BadRequest, r"\(a based on URL\) was undeterminable: name must be provided", id="no name"
        ),
        pytest.param(config_map(uid="other owner"), Conflict, "UID in precondition: other", id="another uid"),
    ],
)
def test_refuses_updates(server: ApiServer, body: Object, error: type[Exception], text: str) -> None:
    at = _make(server, CONFIG_MAPS, config_map())
    with pytest.raises(error, match=text):
        server.update(CONFIG_MAPS, at, body, WRITE)


@pytest.mark.parametrize(
    ("manager", "text"),
    [
        pytest.param(_LONG, "fieldManager: Too long: may not be more than 128 bytes", id="too long"),
        pytest.param("é" * 65, "fieldManager: Too long: may not be more than 128 bytes", id="too long in bytes"),
        pytest.param(
            "é\n", r'fieldManager: Invalid value: "é\n": invalid character U+000A (at position 2)', id="unprintable"
        ),
    ],
)
def test_refuses_field_managers(server: ApiServer, manager: str, text: str) -> None:
    at = _make(server, CONFIG_MAPS, config_map())
    write = Write(manager)
    with pytest.raises(Invalid) as created:
        server.create(CONFIG_MAPS, config_map("b"), write, namespace="default")
    with pytest.raises(Invalid) as patched:
        server.patch(CONFIG_MAPS, at, Patch.merge({}), write)
    assert created.value.message == f'CreateOptions.meta.k8s.io "" is invalid: {text}'
    assert patched.value.message == f'PatchOptions.meta.k8s.io "" is invalid: {text}'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param({"apiVersion": "example.com/v1"}, "must be of type Widget.*Object 'Kind' is missing", id="kind"),
        pytest.param({"kind": "Widget"}, r"the API version in the data \(\) does not match the expected", id="version"),
    ],
)
def test_custom_objects_need_a_kind_and_a_version(server: ApiServer, body: Object, text: str) -> None:
    server.create(DEFINITIONS, definition(), WRITE)
    with pytest.raises(BadRequest, match=text):
        server.create(WIDGETS, body | {"metadata": {"name": "w"}}, WRITE, namespace="default")


def test_a_status_update_owns_only_what_it_can_change(server: ApiServer) -> None:
    _make(server, DEPLOYMENTS, deployment())
    metadata = {"name": "web", "labels": {"x": "y"}, "annotations": {"q": "r"}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": {"replicas": 9}}
    after = server.patch(DEPLOYMENTS, key("web"), Patch.apply(body), Write("st"), subresource="status")["metadata"]
    (entry,) = [entry for entry in after["managedFields"] if entry["manager"] == "st"]
    assert entry["fieldsV1"] == {"f:metadata": {"f:annotations": {"f:q": {}}}, "f:status": {"f:replicas": {}}}
    assert "labels" not in after
