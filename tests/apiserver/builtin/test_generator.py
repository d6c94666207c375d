"""`tools/builtin_kinds.py`: the data file of built-in kinds, made from a small OpenAPI document of a kube-apiserver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools.builtin_kinds import INCLUDED, OUTPUT, IncludedKind, generate, render

from springtide.apiserver.builtin.schema import BuiltinData, FieldType, TypeTrees, load_builtin_data
from springtide.apiserver.kinds import ListType, ValueType

_TIDE = {"group": "sea.example", "kind": "Tide", "version": "v1"}
_SCALE = {"group": "autoscaling", "kind": "Scale", "version": "v1"}
_PREFIX = "#/components/schemas/io.example.sea.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


def _operations(kind: dict[str, str], **actions: str) -> dict[str, Any]:
    return {
        method: {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "description": "prose"}
        for method, action in actions.items()
    } | {"parameters": [{"name": "pretty"}]}


_DOCUMENT: dict[str, Any] = {
    "info": {"title": "Kubernetes", "version": "v9.9.9"},
    "paths": {
        "/apis/sea.example/v1/": {"get": {"description": "the resources"}},
        "/apis/sea.example/v1/tides": _operations(_TIDE, get="list"),
        "/apis/sea.example/v1/namespaces/{namespace}/tides": _operations(
            _TIDE, get="list", post="post", delete="deletecollection"
        ),
        "/apis/sea.example/v1/namespaces/{namespace}/tides/{name}": _operations(
            _TIDE, get="get", put="put", patch="patch", delete="delete"
        ),
        "/apis/sea.example/v1/namespaces/{namespace}/tides/{name}/scale": _operations(_SCALE, get="get"),
        "/apis/sea.example/v1/namespaces/{namespace}/tides/{name}/status": _operations(_TIDE, get="get"),
        "/apis/sea.example/v1/namespaces/{namespace}/tides/{name}/portforward": _operations(_TIDE, get="connect"),
        "/apis/sea.example/v1/watch/tides": _operations(_TIDE, get="watchlist"),
    },
    "components": {
        "schemas": {
            "io.example.sea.v1.Tide": {
                "description": "prose",
                "type": "object",
                "properties": {
                    "spec": {"allOf": [{"$ref": f"{_PREFIX}TideSpec"}], "default": {}, "description": "prose"}
                },
                "x-kubernetes-group-version-kind": [_TIDE],
            },
            "io.example.sea.v1.TideSpec": {
                "type": "object",
                "required": ["moon"],
                "properties": {
                    "moon": {"type": "string", "default": ""},
                    "level": {"type": "integer", "default": 0},
                    "salt": {"type": "boolean", "nullable": True},
                    "free": {"type": "object"},
                    "amount": {"$ref": f"#/components/schemas/{_QUANTITY}"},
                    "port": {"$ref": f"#/components/schemas/{_INT_OR_STRING}"},
                    "labels": {
                        "type": "object",
                        "additionalProperties": {"type": "string", "default": ""},
                        "x-kubernetes-map-type": "atomic",
                    },
                    "waves": {
                        "type": "array",
                        "items": {"allOf": [{"$ref": f"{_PREFIX}Wave"}], "default": {}},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["height", "direction"],
                        "x-kubernetes-patch-strategy": "merge,retainKeys",
                        "x-kubernetes-patch-merge-key": "height",
                    },
                    "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "next": {"$ref": f"{_PREFIX}TideSpec"},
                },
            },
            "io.example.sea.v1.Wave": {
                "type": "object",
                "properties": {
                    "height": {"type": "integer", "format": "int32", "default": 0},
                    "direction": {"type": "string", "default": "up"},
                },
                "x-kubernetes-map-type": "atomic",
            },
            "io.example.sea.v1.Unused": {"type": "object", "properties": {"x": {"type": "string"}}},
            _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
            _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        }
    },
}
_WANTED: dict[str, tuple[IncludedKind, ...]] = {"sea.example/v1": (IncludedKind("Tide", ("td",), ("all",)),)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "apis__sea.example__v1_openapi.json").write_text(json.dumps(_DOCUMENT), "utf-8")
    return tmp_path


def test_kinds_are_read_from_paths(folder: Path) -> None:
    """Verbs and subresources are those of the paths; subresources that the embedded server lacks are left out."""
    assert generate(folder, included=_WANTED)["kinds"] == [
        {
            "group": "sea.example",
            "version": "v1",
            "kind": "Tide",
            "plural": "tides",
            "singular": "tide",
            "namespaced": True,
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "subresources": ["scale", "status"],
            "shortNames": ["td"],
            "categories": ["all"],
            "type": "sea.v1.Tide",
        }
    ]


def test_types_keep_the_structure_but_no_descriptions(folder: Path) -> None:
    """All attributes that merging and validation need are kept; zero values are no defaults."""
    assert generate(folder, included=_WANTED)["types"] == {
        "sea.v1.Tide": {"fields": {"spec": {"type": "@sea.v1.TideSpec", "present": True}}},
        "sea.v1.TideSpec": {
            "fields": {
                "moon": "string",
                "level": "integer",
                "salt": {"type": "boolean", "nullable": True},
                "free": "any",
                "amount": "quantity",
                "port": "int-or-string",
                "labels": {"type": "map", "of": "string", "atomic": True},
                "waves": {
                    "type": "list",
                    "of": "@sea.v1.Wave",
                    "list": "map",
                    "keys": ["height", "direction"],
                    "merge": True,
                    "retain": True,
                    "key": "height",
                },
                "names": {"type": "list", "of": "string", "list": "set"},
                "next": "@sea.v1.TideSpec",
            },
            "required": ["moon"],
        },
        "sea.v1.Wave": {
            "fields": {"height": "integer", "direction": {"type": "string", "default": "up"}},
            "atomic": True,
        },
    }


@pytest.mark.parametrize(
    ("given", "named"),
    [pytest.param("", "v9.9.9", id="from-the-document"), pytest.param("v1.2.3", "v1.2.3", id="as-told")],
)
def test_the_kubernetes_version_is_written(folder: Path, given: str, named: str) -> None:
    assert generate(folder, given, _WANTED)["kubernetes"] == named


def test_a_kind_without_paths_is_an_error(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"the document of sea\.example/v1 has no paths of Ebb"):
        generate(folder, included={"sea.example/v1": (IncludedKind("Ebb"),)})


def test_the_loader_reads_what_is_rendered(folder: Path) -> None:
    """Types may refer back to themselves."""
    text = render(generate(folder, included=_WANTED))

    data = msgspec.json.decode(text, type=BuiltinData)
    spec = TypeTrees(data.types).type("sea.v1.TideSpec")
    waves = spec.fields["waves"]

    assert isinstance(data.types["sea.v1.TideSpec"].fields["waves"], FieldType)
    assert (spec.required, spec.open, spec.fields["next"]) == (("moon",), True, spec)
    assert (waves.type, waves.list_kind, waves.keys) == (ValueType.LIST, ListType.MAP, ("height", "direction"))
    assert (waves.key_defaults, waves.patch_merge, waves.patch_key) == ({"direction": "up"}, True, "height")
    assert waves.items is not None
    assert (waves.items.atomic, waves.items.patch_retain_keys) == (True, True)
    assert (spec.fields["labels"].atomic, spec.fields["labels"].values is spec.fields["moon"]) == (True, True)
    assert (spec.fields["salt"].nullable, spec.fields["names"].list_kind) == (True, ListType.SET)


def test_rendering_is_deterministic(folder: Path) -> None:
    assert render(generate(folder, included=_WANTED)) == render(generate(folder, included=_WANTED))


def test_the_stored_file_has_all_wanted_kinds() -> None:
    """Fails if a kind was added to the script and the script has not been run."""
    wanted = [
        (api_version, each.kind, each.short_names, each.categories)
        for api_version, kinds in INCLUDED.items()
        for each in kinds
    ]
    stored = [
        (f"{kind.group}/{kind.version}".lstrip("/"), kind.kind, kind.short_names, kind.categories)
        for kind in load_builtin_data().kinds
    ]

    assert sorted(stored) == sorted(wanted)


def test_the_stored_file_is_compact_and_without_descriptions() -> None:
    text = OUTPUT.read_text("utf-8")

    assert len(text) < 250_000
    assert "description" not in json.loads(text)["types"]["core.v1.Container"]
    assert load_builtin_data().kubernetes.startswith("v1.")
