"""Lists, and the forms in which objects are shown."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.apiserver.http.asgi_client import BEE, BEES, CONFIGS, CRDS, NOW, PODS, Asker, pod

from springtide.apiserver.values import timestamp

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def _filled(count: int = 3) -> Asker:
    asker = Asker()
    for number in range(count):
        asker.ask("POST", CONFIGS, {"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 5000}})
    return asker


def test_entries_of_built_in_kinds_do_not_repeat_what_the_list_says() -> None:
    listed = _filled().ask("GET", CONFIGS).json

    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [sorted(item) for item in listed["items"]] == [["data", "metadata"]] * 3


def test_a_long_list_comes_in_chunks_and_is_whole() -> None:
    got = _filled(150).ask("GET", CONFIGS)

    assert len(got.chunks) > 2
    assert len(got.json["items"]) == 150


def test_pages_show_one_version() -> None:
    asker = _filled(5)
    first = asker.ask("GET", f"{CONFIGS}?limit=2").json
    asker.ask("POST", CONFIGS, {"metadata": {"name": "late"}})

    second = asker.ask("GET", f"{CONFIGS}?limit=9&continue={first['metadata']['continue']}").json

    assert first["metadata"]["remainingItemCount"] == 3
    assert [item["metadata"]["name"] for item in second["items"]] == ["c2", "c3", "c4"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_metadata_alone() -> None:
    listed = _filled(1).ask("GET", CONFIGS, accept=_METADATA).json

    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def test_yaml_for_those_who_ask_for_nothing_else() -> None:
    got = _filled(1).ask("GET", CONFIGS, accept="application/yaml")

    assert got.header("content-type") == "application/yaml"
    assert yaml.safe_load(got.body)["kind"] == "ConfigMapList"


@pytest.mark.parametrize(
    ("accept", "told"),
    [
        pytest.param("text/html", "406: Not Acceptable", id="another language"),
        pytest.param("application/vnd.kubernetes.protobuf", "only the following media types", id="protobuf alone"),
        pytest.param(
            "application/json;as=Poem;v=v1;g=meta.k8s.io", "only the following media types", id="another form"
        ),
    ],
)
def test_what_cannot_be_written_is_not_acceptable(accept: str, told: str) -> None:
    got = Asker().ask("GET", CONFIGS, accept=accept)

    assert (got.status, got.json["reason"]) == (406, "NotAcceptable")
    assert told in got.json["message"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("application/vnd.kubernetes.protobuf,application/json", "ConfigMapList", id="second choice"),
        pytest.param("text/html, */*;q=0.1", "ConfigMapList", id="anything"),
        pytest.param(f"{_TABLE},application/json", "Table", id="kubectl"),
        pytest.param(f"application/json;as=Poem;v=v1;g=x,{_TABLE}", "Table", id="first that is known"),
    ],
)
def test_the_first_form_that_can_be_written_is(accept: str, kind: str) -> None:
    assert Asker().ask("GET", CONFIGS, accept=accept).json["kind"] == kind


def test_a_table_of_pods() -> None:
    asker = Asker()
    asker.ask("POST", PODS, pod())
    asker.now += 200

    table = asker.ask("GET", PODS, accept=_TABLE).json

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
        pytest.param("None", None, id="nothing"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "Pod", id="everything"),
    ],
)
def test_rows_bring_as_much_of_the_object_as_is_asked_for(include: str, expected: str | None) -> None:
    asker = Asker()
    asker.ask("POST", PODS, pod())

    row = asker.ask("GET", f"{PODS}?includeObject={include}", accept=_TABLE).json["rows"][0]

    assert (row["object"] and row["object"]["kind"]) == expected


def test_a_watched_table_tells_its_columns_once() -> None:
    asker = _filled(2)

    lines = asker.ask("GET", f"{CONFIGS}?watch=1&timeoutSeconds=1", accept=_TABLE).lines

    assert [line["object"]["columnDefinitions"] is None for line in lines] == [False, True]
    assert [line["object"]["rows"][0]["cells"] for line in lines] == [["c0", 1, "0s"], ["c1", 1, "0s"]]


def test_the_columns_of_a_custom_kind() -> None:
    asker = Asker()
    asker.ask("POST", CRDS, BEE)
    spec: dict[str, Any] = {
        "legs": 6,
        "since": timestamp(NOW - 90_000),
        "flights": [{"to": "near", "far": False}, {"to": "away", "far": True}],
    }
    asker.ask("POST", BEES, {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "a"}, "spec": spec})
    asker.ask("POST", BEES, {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "b"}})

    table = asker.ask("GET", BEES, accept=_TABLE).json

    assert [(each["name"], each["priority"]) for each in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Legs", 0),
        ("First", 0),
        ("Since", 1),
    ]
    assert [row["cells"] for row in table["rows"]] == [["a", 6, "away", "25h"], ["b", None, None, None]]


def test_a_scale_is_a_table_of_its_own() -> None:
    asker = Asker()
    controllers = "/api/v1/namespaces/default/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"replicas": 3, "selector": {"a": "b"}, "template": template}
    asker.ask("POST", controllers, {"metadata": {"name": "w"}, "spec": spec})

    table = asker.ask("GET", f"{controllers}/w/scale", accept=_TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"] == ["w", 3, 0, "0s"]
