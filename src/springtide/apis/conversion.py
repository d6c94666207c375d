"""Objects of one version as another, for kinds of ours that are served in several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from springtide.apis.karpenter.conversion import V1, V1_FIELDS, V1BETA1, V1BETA1_FIELDS, to_v1, to_v1beta1
from springtide.apis.registry import find

_WAYS: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    (V1BETA1, V1): to_v1,
    (V1, V1BETA1): to_v1beta1,
}
"""Where more than the name of the version differs."""
_NOTES = (V1_FIELDS, V1BETA1_FIELDS)

CONVERTED_GROUPS = tuple(dict.fromkeys(source.rpartition("/")[0] for source, _ in _WAYS))
"""The groups whose kinds a server cannot convert without our help."""


class Unconvertible(ValueError):
    """There is no way from one version to the other."""


def convert(item: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Give an object in another version of its kind; what it is made from stays as it is."""
    source, kind = item.get("apiVersion"), item.get("kind")
    if not isinstance(source, str) or not isinstance(kind, str):
        raise Unconvertible("an object must say what it is: `apiVersion` and `kind`")
    if source == api_version:
        return item
    if source.rpartition("/")[0] != api_version.rpartition("/")[0] or not (
        find(source, kind) and find(api_version, kind)
    ):
        raise Unconvertible(f"there is no way for a {kind} from {source} to {api_version}")
    way = _WAYS.get((source, api_version))
    return {**(item if way is None else _same_object(item, way(item))), "apiVersion": api_version, "kind": kind}


def _same_object(item: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Let a conversion change nothing of an object's metadata but our notes.

    The notes are annotations, which users can write, and a server takes no object back that has become another: one
    bad note would keep every list of its kind from being read.
    """
    metadata, converted = item.get("metadata"), made.get("metadata")
    if not isinstance(metadata, dict):
        return made
    before = metadata.get("annotations")
    after = converted.get("annotations") if isinstance(converted, dict) else None
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        return {**made, "metadata": metadata}
    kept = {name: text for name, text in (before or {}).items() if name not in _NOTES}
    noted = {name: after[name] for name in _NOTES if after and isinstance(after.get(name), str)}
    others = {name: part for name, part in metadata.items() if name != "annotations"}
    annotated = {"annotations": {**kept, **noted}} if kept or noted or after == {} else {}
    return {**made, "metadata": {**others, **annotated}}
