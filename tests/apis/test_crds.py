"""CRDs: structural as the API server demands, never stale, and in agreement with our own validation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft4Validator
from tests.apis.crd_server import admit, plain_schema, schemas

from springtide.apis.crds import Flavour, all_crds, crd_files
from springtide.apis.yaml import Document, read

ROOT = Path(__file__).parents[2]
KEYWORDS = {
    "additionalProperties", "anyOf", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "pattern", "properties",
    "required", "type", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
}  # fmt: skip


def places(flavour: Flavour) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every place of every schema."""

    def walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        yield path, schema
        for name, part in schema.get("properties", {}).items():
            yield from walk(part, f"{path}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from walk(schema[key], f"{path}[]")

    for (api_version, kind), schema in schemas(flavour).items():
        yield from walk(schema, f"{api_version}/{kind}")


@pytest.mark.parametrize("flavour", list(Flavour))
def test_schemas_are_structural(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        assert set(schema) <= KEYWORDS, path
        untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
        assert "type" in schema or untyped, path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_keys_of_lists_are_required_or_have_defaults(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        for key in schema.get("x-kubernetes-list-map-keys", []):
            entry = schema["items"]
            assert key in entry.get("required", []) or "default" in entry["properties"][key], path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_patterns_are_understood_by_go_as_by_python(flavour: Flavour) -> None:
    """Go's expressions have neither look-around nor back-references."""
    for path, schema in places(flavour):
        if "pattern" in schema:
            re.compile(schema["pattern"])
            assert not re.search(r"\(\?[=!<]|\\[1-9]", schema["pattern"]), path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_defaults_satisfy_their_own_schema(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        if "default" in schema:
            assert Draft4Validator(plain_schema(schema)).is_valid(schema["default"]), path


def test_exactly_one_version_of_each_kind_is_stored() -> None:
    for crd in all_crds(Flavour.EXTENDED):
        versions = crd["spec"]["versions"]
        assert sum(version["storage"] for version in versions) == 1, crd["metadata"]["name"]


def test_v1beta1_of_nodepool_is_not_served_where_nothing_converts() -> None:
    (pool,) = (crd for crd in all_crds(Flavour.EXTENDED) if crd["spec"]["names"]["kind"] == "NodePool")
    assert {version["name"]: version["served"] for version in pool["spec"]["versions"]} == {
        "v1": True,
        "v1beta1": False,
    }


def test_the_chart_has_the_crds_of_the_types() -> None:
    """`make crds` writes them anew."""
    folder = ROOT / "charts" / "springtide" / "crds"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    assert written == crd_files(Flavour.EXTENDED)


def test_stock_has_no_extension_fields() -> None:
    names = {path for path, _ in places(Flavour.STOCK)}
    extended = {path for path, _ in places(Flavour.EXTENDED)}
    assert names < extended
    for field in ("timeZone", "mode", "calendars", "maxPer", "budgetDefault", "disruptAfter", "repair"):
        assert not [path for path in names if path.startswith("karpenter.sh") and path.endswith(f".{field}")]


def documents(folder: str) -> Iterator[Any]:
    """Return every example of a kind that has a CRD."""
    for path in sorted((ROOT / folder).glob("*.yaml")):
        for number, document in enumerate(read(path.read_text(encoding="utf-8"))):
            assert isinstance(document, Document)
            if (document.value["apiVersion"], document.value["kind"]) in schemas(Flavour.EXTENDED):
                yield pytest.param(document.value, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("value", [*documents("examples")])
def test_a_server_stores_every_example(value: dict[str, Any]) -> None:
    assert admit(value) == []


@pytest.mark.parametrize(
    ("kind", "path", "most"),
    [
        ("MetricsProducer", ("spec", "schedule", "behaviors"), 512),
        ("HorizontalAutoscaler", ("spec", "metrics"), 32),
        ("HorizontalAutoscaler", ("spec", "behavior", "scaleUp", "policies"), 32),
        ("CronFederatedHPA", ("spec", "rules"), 256),
    ],
)
def test_lists_that_upstream_does_not_bound_are_bound_only_by_us(kind: str, path: tuple[str, ...], most: int) -> None:
    """What one object costs those who judge it has an end; but upstream's schema is upstream's."""
    for flavour, bound in ((Flavour.EXTENDED, most), (Flavour.STOCK, None)):
        (crd,) = [one for one in all_crds(flavour) if one["spec"]["names"]["kind"] == kind]
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for step in path:
            schema = schema["properties"][step]
        assert schema.get("maxItems") == bound
