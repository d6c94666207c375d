"""Lists, and the representations of objects: whole, metadata, tables, YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.apiserver.http.asgi_client import BEE, BEES, CONFIGS, CRDS, NOW, PODS, AsgiClient, pod

from springtide.apiserver.values import timestamp

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def _filled(count: int = 3) -> AsgiClient:
    client = AsgiClient()
    for number in range(count):
        client.request("POST", CONFIGS, {"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 5000}})
    return client


def test_entries_of_built_in_kinds_omit_their_type() -> None:
    listed = _filled().request("GET", CONFIGS).json

    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [sorted(item) for item in listed["items"]] == [["data", "metadata"]] * 3


def test_a_long_list_is_written_in_chunks() -> None:
    got = _filled(150).request("GET", CONFIGS)

    assert len(got.chunks) > 2
    assert len(got.json["items"]) == 150


def test_pages_show_one_version() -> None:
    client = _filled(5)
    first = client.request("GET", f"{CONFIGS}?limit=2").json
    client.request("POST", CONFIGS, {"metadata": {"name": "late"}})

    second = client.request("GET", f"{CONFIGS}?limit=9&continue={first['metadata']['continue']}").json

    assert first["metadata"]["remainingItemCount"] == 3
    assert [item["metadata"]["name"] for item in second["items"]] == ["c2", "c3", "c4"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_metadata_only() -> None:
    listed = _filled(1).request("GET", CONFIGS, accept=_METADATA).json

    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def test_yaml_where_nothing_else_is_accepted() -> None:
    got = _filled(1).request("GET", CONFIGS, accept="application/yaml")

    assert got.header("content-type") == "application/yaml"
    assert yaml.safe_load(got.body)["kind"] == "ConfigMapList"


@pytest.mark.parametrize(
    ("accept", "expected_text"),
    [
        pytest.param("text/html", "406: Not Acceptable", id="unknown media type"),
        pytest.param("application/vnd.kubernetes.protobuf", "only the following media types", id="protobuf alone"),
        pytest.param(
            "application/json;as=Poem;v=v1;g=meta.k8s.io", "only the following media types", id="unknown projection"
        ),
    ],
)
def test_unsupported_media_types_are_not_acceptable(accept: str, expected_text: str) -> None:
    got = AsgiClient().request("GET", CONFIGS, accept=accept)

    assert (got.status, got.json["reason"]) == (406, "NotAcceptable")
    assert expected_text in got.json["message"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("application/vnd.kubernetes.protobuf,application/json", "ConfigMapList", id="second clause"),
        pytest.param("text/html, */*;q=0.1", "ConfigMapList", id="wildcard"),
        pytest.param(f"{_TABLE},application/json", "Table", id="kubectl"),
        pytest.param(f"application/json;as=Poem;v=v1;g=x,{_TABLE}", "Table", id="first supported"),
    ],
)
def test_the_first_supported_form_is_chosen(accept: str, kind: str) -> None:
    assert AsgiClient().request("GET", CONFIGS, accept=accept).json["kind"] == kind


def test_a_table_of_pods() -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod())
    client.now += 200

    table = client.request("GET", PODS, accept=_TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"] == ["p", "0/1", "Pending", "0", "3m20s", "<none>", "<none>", "<none>", "<none>"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        pytest.param("None", None, id="no object"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "Pod", id="whole object"),
    ],
)
def test_rows_include_the_requested_part_of_the_object(include: str, expected: str | None) -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod())

    row = client.request("GET", f"{PODS}?includeObject={include}", accept=_TABLE).json["rows"][0]

    assert (row["object"] and row["object"]["kind"]) == expected


def test_a_watched_table_defines_its_columns_once() -> None:
    client = _filled(2)

    lines = client.request("GET", f"{CONFIGS}?watch=1&timeoutSeconds=1", accept=_TABLE).lines

    assert [line["object"]["columnDefinitions"] is None for line in lines] == [False, True]
    assert [line["object"]["rows"][0]["cells"] for line in lines] == [["c0", 1, "0s"], ["c1", 1, "0s"]]


def test_printer_columns_of_a_custom_kind() -> None:
    client = AsgiClient()
    client.request("POST", CRDS, BEE)
    spec: dict[str, Any] = {
        "legs": 6,
        "since": timestamp(NOW - 90_000),
        "flights": [{"to": "near", "far": False}, {"to": "away", "far": True}],
    }
    client.request(
        "POST", BEES, {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "a"}, "spec": spec}
    )
    client.request("POST", BEES, {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "b"}})

    table = client.request("GET", BEES, accept=_TABLE).json

    assert [(each["name"], each["priority"]) for each in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Legs", 0),
        ("First", 0),
        ("Since", 1),
    ]
    assert [row["cells"] for row in table["rows"]] == [["a", 6, "away", "25h"], ["b", None, None, None]]


def test_the_table_of_a_scale() -> None:
    client = AsgiClient()
    controllers = "/api/v1/namespaces/default/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"replicas": 3, "selector": {"a": "b"}, "template": template}
    client.request("POST", controllers, {"metadata": {"name": "w"}, "spec": spec})

    table = client.request("GET", f"{controllers}/w/scale", accept=_TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"] == ["w", 3, 0, "0s"]
