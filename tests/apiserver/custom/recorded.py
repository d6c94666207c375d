"""Recorded results of `k8s.io/apiextensions-apiserver` v0.36.0 (Kubernetes 1.36).

Each object went through pruning, defaulting and validation with ratcheting, list types and CEL; each definition through
the validation of CustomResourceDefinitions. The file holds what differs from the templates here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from springtide.cluster.errors import StatusCause

_RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
_OBJECT = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
_NAMES = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}


@dataclass(frozen=True)
class ObjectCase:
    """An object that was written, as it was stored, and the causes of a rejection."""

    name: str
    schema: dict[str, Any]
    new: dict[str, Any]
    old: dict[str, Any] | None
    stored: dict[str, Any]
    causes: list[StatusCause]


@dataclass(frozen=True)
class DefinitionCase:
    """A definition that was created, and the causes of its rejection."""

    name: str
    crd: dict[str, Any]
    causes: list[StatusCause]


def objects() -> list[ObjectCase]:
    """Return the recorded writes of objects."""
    cases: list[ObjectCase] = []
    for recorded in _RECORDED["objects"]:
        # A case without a schema has the one of the case before.
        cases.append(_object(recorded, cases[-1].schema if cases else {}))
    return cases + [_library(case) for case in _RECORDED["library"]]


def definitions() -> list[DefinitionCase]:
    """Return the recorded definitions."""
    return [_definition(case) for case in _RECORDED["definitions"]]


def definition(
    schema: Any = None, name: str = "things.example.com", version: Any = None, **spec: Any
) -> dict[str, Any]:
    """Return a valid definition with changes."""
    blank = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
    versions = [blank | (version or {})]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": "example.com", "names": _NAMES, "scope": "Namespaced", "versions": versions} | spec,
    }


def custom_object(spec: Any, **more: Any) -> dict[str, Any]:
    """Return an object with a spec."""
    return _OBJECT | {"spec": spec} | more


def _object(case: dict[str, Any], schema: dict[str, Any]) -> ObjectCase:
    spec = {"type": "object", "properties": case["fields"]} if "fields" in case else case.get("spec")
    if spec is not None:
        schema = {"type": "object", "properties": {"spec": spec}}
    new = _whole(case["new"])
    return ObjectCase(
        name=case["name"],
        schema=case.get("schema", schema),
        new=new,
        old=_whole(case["old"]) if "old" in case else None,
        stored=_whole(case["stored"]) if "stored" in case else new,
        causes=_causes(case),
    )


def _whole(value: Any) -> dict[str, Any]:
    """A case holds the spec, or under `*` the fields that differ from the template."""
    if isinstance(value, dict) and "*" in value:
        return {**_OBJECT, **value["*"]}
    return custom_object(value)


def _library(case: dict[str, Any]) -> ObjectCase:
    fields = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    rules = [{"rule": case["rule"], "message": "m"}]
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": rules}
    new = custom_object({"b": 2})
    causes = [StatusCause("spec", case["message"])] if "message" in case else []
    return ObjectCase(case["rule"], {"type": "object", "properties": {"spec": spec}}, new, None, new, causes)


def _definition(case: dict[str, Any]) -> DefinitionCase:
    schema = {"type": "object", "properties": case["fields"]} if "fields" in case else case.get("schema")
    crd = definition(
        schema, name=case.get("metadata", "things.example.com"), version=case.get("version"), **case.get("spec", {})
    )
    return DefinitionCase(case["name"], crd, _causes(case))


def _causes(case: dict[str, Any]) -> list[StatusCause]:
    return [StatusCause(*cause) for cause in case.get("causes", [])]
