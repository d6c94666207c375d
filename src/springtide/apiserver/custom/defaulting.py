"""Pruning and defaulting of custom resources, and validation of embedded resources.

The server prunes first and applies defaults then. Both change the object in place, because it has been decoded or
copied for this write. Embedded resources (`x-kubernetes-embedded-resource`) have a type and metadata, which are pruned
and validated like those of any resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from springtide.apiserver import field_errors
from springtide.apiserver.custom.formats import kind_name_problem
from springtide.apiserver.custom.structural_schema import ABSENT, META_FIELDS, SchemaNode
from springtide.cluster.errors import StatusCause

METADATA_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "annotations": dict,
    "creationTimestamp": (str, type(None)),
    "deletionGracePeriodSeconds": int,
    "deletionTimestamp": (str, type(None)),
    "finalizers": list,
    "generateName": str,
    "generation": int,
    "labels": dict,
    "managedFields": list,
    "name": str,
    "namespace": str,
    "ownerReferences": list,
    "resourceVersion": str,
    "selfLink": str,
    "uid": str,
}
"""The fields of `metadata`."""


def drop_unknown_metadata(value: dict[str, Any]) -> None:
    """Prune the metadata of an embedded resource."""
    metadata = value.get("metadata")
    if metadata.__class__ is dict:
        for name in tuple(metadata):
            if name not in METADATA_TYPES:
                del metadata[name]


def validate_embedded(value: Any, node: SchemaNode, path: str = "") -> Iterator[StatusCause]:
    """Yield what is wrong with the type and metadata of embedded resources."""
    if not node.has_embedded:
        return
    if isinstance(value, dict):
        if node.embedded:
            yield from _validate_embedded_resource(value, path)
        for name, part in value.items():
            declared = node.properties.get(name)
            child = declared or node.values
            if child is not None:
                step = f"{path}.{name}" if declared and path else name if declared else f"{path}[{name}]"
                yield from validate_embedded(part, child, step)
    elif isinstance(value, list) and node.items is not None:
        for index, part in enumerate(value):
            yield from validate_embedded(part, node.items, f"{path}[{index}]")


def _validate_embedded_resource(value: dict[str, Any], path: str) -> Iterator[StatusCause]:
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield field_errors.required(f"{prefix}{name}")
        elif not isinstance(value[name], str):
            yield field_errors.invalid(f"{prefix}{name}", value[name], "must be a string")
        elif not value[name]:
            yield field_errors.invalid(f"{prefix}{name}", "", "must not be empty")
        elif name == "apiVersion" and value[name].count("/") > 1:
            yield field_errors.invalid(f"{prefix}{name}", value[name], f"unexpected GroupVersion string: {value[name]}")
        elif name == "kind" and (problem := kind_name_problem(value[name].lower())):
            detail = f"may have mixed case, but should otherwise match: {problem}"
            yield field_errors.invalid(f"{prefix}{name}", value[name], detail)
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        yield field_errors.invalid(f"{prefix}metadata", metadata, f"must be an object, not {type(metadata).__name__}")
        return
    for name, expected in METADATA_TYPES.items():
        if name in metadata and not isinstance(metadata[name], expected):
            yield field_errors.invalid(f"{prefix}metadata", metadata, f"{name} has the wrong type")


def prune(value: dict[str, Any], node: SchemaNode) -> None:
    """Remove undeclared fields, and nulls of fields that are not nullable and have no default.

    The type and metadata of the resource itself are left alone: they are handled for all kinds alike.
    """
    _prune_object(value, node, keep=node.open, spared=META_FIELDS)


def _prune(value: Any, node: SchemaNode | None, *, keep: bool) -> None:
    if value.__class__ is dict:
        if node is None:
            value.clear()
        else:
            _prune_object(value, node, keep=keep, spared=META_FIELDS if node.embedded else ())
            if node.embedded:
                drop_unknown_metadata(value)
    elif value.__class__ is list:
        items = node.items if node is not None else None
        if items is None and keep:
            return
        for item in value:
            if item.__class__ is dict or item.__class__ is list:
                _prune(item, items, keep=keep or (items is not None and items.open))


def _prune_object(value: dict[str, Any], node: SchemaNode, *, keep: bool, spared: tuple[str, ...]) -> None:
    properties, values = node.properties, node.values
    for name in tuple(value):
        if name in spared:
            continue
        child = properties.get(name, values)
        part = value[name]
        if child is None:
            if node.untyped_values is not None:
                _prune(part, None, keep=False)
            elif not keep:
                del value[name]
        elif part is None:
            if not child.nullable and child.default is ABSENT:
                del value[name]
        elif part.__class__ is dict or part.__class__ is list:
            _prune(part, child, keep=child.open)


def apply_defaults(value: Any, node: SchemaNode) -> None:
    """Apply defaults where a field is unset, or null without being nullable, and inside of applied defaults."""
    if not node.has_defaults:
        return
    if value.__class__ is dict:
        for name, child in node.properties.items():
            if not child.has_defaults:
                continue
            part = value.get(name, ABSENT)
            if child.default is not ABSENT and (part is ABSENT or (part is None and not child.nullable)):
                part = value[name] = copy_value(child.default)
            if part.__class__ is dict or part.__class__ is list:
                apply_defaults(part, child)
        if node.values is not None and node.values.has_defaults:
            for name, part in value.items():
                if name not in node.properties:
                    value[name] = _defaulted(part, node.values)
    elif value.__class__ is list and node.items is not None and node.items.has_defaults:
        for index, part in enumerate(value):
            value[index] = _defaulted(part, node.items)


def _defaulted(part: Any, node: SchemaNode) -> Any:
    if part is None and not node.nullable and node.default is not ABSENT:
        part = copy_value(node.default)
    apply_defaults(part, node)
    return part


def copy_value(value: Any) -> Any:
    """Copy the mutable parts of a JSON value."""
    if value.__class__ is dict:
        return {name: copy_value(part) for name, part in value.items()}
    if value.__class__ is list:
        return [copy_value(part) for part in value]
    return value
