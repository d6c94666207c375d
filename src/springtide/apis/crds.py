"""CRDs, generated from the declared kinds.

Two flavours: `extended` has all fields, for clusters where no other project owns the CRD; `stock` has upstream's fields
only, and extension fields go into the annotation that `springtide.apis.validation` merges.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from springtide.apis.kinds import CelRule, Kind, KindVersion, PrinterColumn
from springtide.apis.schema import NO_DEFAULT, SchemaField, ValueShape, ViewSchema, schema_of
from springtide.apis.scheme import KINDS, OUR_GROUP
from springtide.apis.yaml import dump

_QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_TYPES = {
    ValueShape.STRING: "string",
    ValueShape.INTEGER: "integer",
    ValueShape.NUMBER: "number",
    ValueShape.BOOLEAN: "boolean",
}


_HEADER = "# Generated from the types of Springtide by `springtide crds`. Do not edit.\n"


CATEGORY = "springtide"
"""The category of all kinds of the extended flavour: `kubectl get springtide -A`."""


class Flavour(StrEnum):
    """Which schema a CRD has."""

    EXTENDED = "extended"
    STOCK = "stock"


def all_crds(flavour: Flavour) -> list[dict[str, Any]]:
    """Generate the CRD of every kind that is not built in, in a stable order."""
    ours = [kind for kind in KINDS if not kind.builtin]
    return [crd(kind, flavour) for kind in sorted(ours, key=lambda kind: (kind.group, kind.plural))]


def crd_files(flavour: Flavour) -> dict[str, str]:
    """Write every CRD as YAML, by the name of its file."""
    return {
        f"{made['spec']['group']}_{made['spec']['names']['plural']}.yaml": _HEADER + dump(made)
        for made in all_crds(flavour)
    }


def crd(kind: Kind, flavour: Flavour) -> dict[str, Any]:
    """Generate the CRD of one kind; those of our own group have one flavour."""
    if kind.group == OUR_GROUP:
        flavour = Flavour.EXTENDED
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    short_names, categories = kind.short_names, kind.categories
    if flavour is Flavour.EXTENDED:
        short_names = (*short_names, *kind.own_short_names)
        categories = tuple(dict.fromkeys((*categories, CATEGORY)))
    if short_names:
        names["shortNames"] = list(short_names)
    if categories:
        names["categories"] = list(categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": kind.scope,
            "versions": [_version(kind, version, flavour) for version in kind.versions],
        },
    }


def _version(kind: Kind, version: KindVersion, flavour: Flavour) -> dict[str, Any]:
    made: dict[str, Any] = {"name": version.name, "served": version.served, "storage": version.storage}
    if version.deprecated is not None:
        made["deprecated"] = True
        made["deprecationWarning"] = version.deprecated
    columns = [_column(column) for column in version.columns if flavour is Flavour.EXTENDED or not column.extension]
    if columns:
        made["additionalPrinterColumns"] = columns
    subresources: dict[str, Any] = {}
    if kind.scale is not None:
        scale = {"specReplicasPath": kind.scale.spec_path, "statusReplicasPath": kind.scale.status_path}
        if kind.scale.selector_path is not None:
            scale["labelSelectorPath"] = kind.scale.selector_path
        subresources["scale"] = scale
    if kind.status:
        subresources["status"] = {}
    if subresources:
        made["subresources"] = subresources
    made["schema"] = {"openAPIV3Schema": _root(version, flavour)}
    return made


def _column(column: PrinterColumn) -> dict[str, Any]:
    made: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        made["priority"] = column.priority
    return made


def _root(version: KindVersion, flavour: Flavour) -> dict[str, Any]:
    made = openapi(schema_of(version.view), flavour)
    made["properties"]["metadata"] = {"type": "object"}
    made["required"] = [name for name in made.get("required", []) if name not in ("apiVersion", "kind", "metadata")]
    if not made["required"]:
        del made["required"]
    return made


def openapi(schema: ViewSchema, flavour: Flavour) -> dict[str, Any]:
    """Write a schema as structural OpenAPI v3."""
    made: dict[str, Any] = {"description": schema.description} if schema.description else {}
    if flavour is Flavour.STOCK and schema.stock:
        return {**made, **dict(schema.stock)}
    made |= _typed(schema, flavour)
    if schema.enum:
        made["enum"] = list(schema.enum)
    for keyword, bound in (("minimum", schema.minimum), ("maximum", schema.maximum)):
        # The format implies the bounds of 32 and 64 bits.
        if bound is not None and abs(bound) not in (2**31 - 1, 2**31, 2**63 - 1, 2**63):
            made[keyword] = bound
    made |= dict(schema.keywords)
    rules = [rule for rule in schema.rules if flavour is Flavour.EXTENDED or not rule.extension]
    if rules:
        made["x-kubernetes-validations"] = [_rule(rule) for rule in rules]
    return made


def _typed(schema: ViewSchema, flavour: Flavour) -> dict[str, Any]:
    made: dict[str, Any]
    match schema.shape:
        case ValueShape.OBJECT:
            return _object(schema, flavour)
        case ValueShape.LIST:
            return _list(schema, flavour)
        case ValueShape.MAP:
            assert schema.items is not None  # noqa: S101 - every map has a type of values
            made = {"type": "object", "additionalProperties": openapi(schema.items, flavour)}
            return made | _lengths(schema, "minProperties", "maxProperties", flavour)
        case ValueShape.ANY:
            return {"x-kubernetes-preserve-unknown-fields": True}
        case ValueShape.INT_OR_STRING:
            made = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
            pattern = _QUANTITY_PATTERN if schema.format == "quantity" else schema.pattern
            return (
                made | _lengths(schema, "minLength", "maxLength", flavour) | ({"pattern": pattern} if pattern else {})
            )
    made = {"type": _TYPES[schema.shape], **_lengths(schema, "minLength", "maxLength", flavour)}
    if schema.pattern:
        made["pattern"] = schema.pattern
    return made


def _object(schema: ViewSchema, flavour: Flavour) -> dict[str, Any]:
    fields = [field for field in schema.fields if flavour is Flavour.EXTENDED or not field.schema.extension]
    made: dict[str, Any] = {"type": "object"}
    properties = {field.name: _property(field, flavour) for field in sorted(fields, key=lambda field: field.name)}
    for name in schema.view.__opaque__ if schema.view is not None else ():
        properties[name] = {"x-kubernetes-preserve-unknown-fields": True}
    if properties:
        made["properties"] = properties
    stock = flavour is Flavour.STOCK
    required = sorted(field.name for field in fields if field.required or (stock and field.schema.stock_required))
    if required:
        made["required"] = required
    return made


def _property(field: SchemaField, flavour: Flavour) -> dict[str, Any]:
    made = openapi(field.schema, flavour)
    if field.default is not NO_DEFAULT:
        made["default"] = msgspec.to_builtins(field.default)
    return made


def _list(schema: ViewSchema, flavour: Flavour) -> dict[str, Any]:
    assert schema.items is not None  # noqa: S101 - every list has a type of entries
    made = {"type": "array", "items": openapi(schema.items, flavour)} | _lengths(
        schema, "minItems", "maxItems", flavour
    )
    if schema.map_keys:
        made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(schema.map_keys)}
    elif schema.unique:
        made["x-kubernetes-list-type"] = "set"
    return made


def _lengths(schema: ViewSchema, shortest: str, longest: str, flavour: Flavour) -> dict[str, int]:
    ours = flavour is Flavour.STOCK and schema.own_bound
    bounds = {shortest: schema.shortest, longest: None if ours else schema.longest}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _rule(rule: CelRule) -> dict[str, str]:
    return {"rule": rule.rule, "message": rule.message}
