"""Resources inside of resources: objects that a schema marks with `x-kubernetes-embedded-resource`.

They have a kind and metadata like any other, and the server holds them to the same basic form wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.kind_names import kind_name_problem
from springtide.simulator.api.custom.places import Place

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
"""The fields of the metadata of every resource."""


def drop_unknown_metadata(value: dict[str, Any]) -> None:
    """Drop from the metadata of an embedded resource what no metadata has."""
    metadata = value.get("metadata")
    if metadata.__class__ is dict:
        for name in tuple(metadata):
            if name not in METADATA_TYPES:
                del metadata[name]


def judge_embedded(value: Any, place: Place, path: str = "") -> Iterator[Cause]:
    """Find what is wrong with the kinds and the metadata of the embedded resources in a value."""
    if not place.embeds:
        return
    if isinstance(value, dict):
        if place.embedded:
            yield from _judge_resource(value, path)
        for name, part in value.items():
            declared = place.properties.get(name)
            child = declared or place.values
            if child is not None:
                step = f"{path}.{name}" if declared and path else name if declared else f"{path}[{name}]"
                yield from judge_embedded(part, child, step)
    elif isinstance(value, list) and place.items is not None:
        for index, part in enumerate(value):
            yield from judge_embedded(part, place.items, f"{path}[{index}]")


def _judge_resource(value: dict[str, Any], path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield wording.required(f"{prefix}{name}")
        elif not isinstance(value[name], str):
            yield wording.invalid(f"{prefix}{name}", value[name], "must be a string")
        elif not value[name]:
            yield wording.invalid(f"{prefix}{name}", "", "must not be empty")
        elif name == "apiVersion" and value[name].count("/") > 1:
            yield wording.invalid(f"{prefix}{name}", value[name], f"unexpected GroupVersion string: {value[name]}")
        elif name == "kind" and (problem := kind_name_problem(value[name].lower())):
            detail = f"may have mixed case, but should otherwise match: {problem}"
            yield wording.invalid(f"{prefix}{name}", value[name], detail)
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        yield wording.invalid(f"{prefix}metadata", metadata, f"must be an object, not {type(metadata).__name__}")
        return
    for name, expected in METADATA_TYPES.items():
        if name in metadata and not isinstance(metadata[name], expected):
            yield wording.invalid(f"{prefix}metadata", metadata, f"{name} has the wrong type")
