"""Patches of any type, server-side apply, and the owners of the fields of a new object.

The author of a new object owns its defaulted fields too, but not what the server derives from more than the object: the
not-ready tolerations of a pod, the selector and labels that a Job gets with its uid, and a status that another writer
sets.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, TypeAlias

from springtide.apiserver import patches
from springtide.apiserver.errors import invalid
from springtide.apiserver.kinds import ServedKind, StructureNode
from springtide.apiserver.metadata import fields_kept_by_status
from springtide.apiserver.patches import managed
from springtide.apiserver.scale import applied_scale
from springtide.apiserver.strategy import missing_name_message
from springtide.apiserver.values import value_at, with_value_at, without_value_at
from springtide.cluster.errors import BadRequest, StatusCause, UnsupportedPatch
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, PatchType

_MAX_BYTES = 128

_Path: TypeAlias = tuple[str, ...]

_LABELS = ("metadata", "labels")
_TEMPLATE_LABELS = ("spec", "template", "metadata", "labels")

_ADDED_TO: dict[tuple[str, str], dict[_Path, tuple[_Path, ...]]] = {
    ("", "Pod"): {("spec", "tolerations"): (("spec", "tolerations"),)},
    ("batch", "Job"): {
        _LABELS: (_LABELS, _TEMPLATE_LABELS),
        _TEMPLATE_LABELS: (_TEMPLATE_LABELS,),
        ("spec", "selector"): (("spec", "selector"),),
    },
}
"""By kind, the fields that the server adds to, and where the author may have written them."""


def check_manager(manager: str, verb: str) -> None:
    """Refuse an invalid field manager."""
    if causes := _problems(manager):
        raise invalid(Resource("meta.k8s.io", "v1", "", f"{verb}Options"), "", causes)


@lru_cache(maxsize=1024)
def _problems(manager: str) -> tuple[StatusCause, ...]:
    causes = []
    if len(manager.encode()) > _MAX_BYTES:
        message = f"Too long: may not be more than {_MAX_BYTES} bytes"
        causes.append(StatusCause("fieldManager", message, "FieldValueTooLong"))
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            place = len(manager[:position].encode())
            shown = json.dumps(manager, ensure_ascii=False)
            why = f"invalid character U+{ord(letter):04X} (at position {place})"
            causes.append(StatusCause("fieldManager", f"Invalid value: {shown}: {why}"))
    return tuple(causes)


def without_server_fields(kind: ServedKind, prepared: Object, body: Object) -> Object:
    """Return a new object without the fields that the server added; `body` is the object as the author sent it."""
    item = without_value_at(prepared, ("status",)) if "status" in kind.subresources else prepared
    for path, sources in _ADDED_TO.get((kind.resource.group, kind.resource.kind), {}).items():
        given = next(filter(None, (value_at(body, source) for source in sources)), None)
        item = without_value_at(item, path) if given is None else with_value_at(item, path, given)
    return item


def apply_patch(kind: ServedKind, item: Object, patch: Patch, node: StructureNode) -> Any:
    """Return what a JSON, merge or strategic patch makes of an object with the structure `node`."""
    match patch.type:
        case PatchType.MERGE:
            return patches.merge_patch(item, patch.body)
        case PatchType.JSON:
            return patches.json_patch(item, patch.body)
        case PatchType.STRATEGIC if kind.strategic:
            return patches.strategic_patch(item, patch.body, node)
        case _:
            accepted = [each.value for each in PatchType if each is not PatchType.STRATEGIC or kind.strategic]
            raise UnsupportedPatch(
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(accepted)
            )


def server_side_apply(
    kind: ServedKind, key: Key, live: Object | None, patch: Patch, *, manager: str, now: str, subresource: str = ""
) -> Object:
    """Return what an apply makes of an object, or of none."""
    body = applied_scale(kind, key, patch.body) if subresource == "scale" else patch.body
    if not isinstance(body, dict):
        raise BadRequest(f"the body of an apply is {type(body).__name__}, expected an object")
    if not manager:
        raise BadRequest("fieldManager is required for apply patch")
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"metadata of an apply is {type(metadata).__name__}, expected an object")
    if metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    name = metadata.get("name", key.name)
    if name != key.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    resource = kind.resource
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(field) != expected:
            raise BadRequest(f"{field} of an apply is {body.get(field)!r}, expected {expected!r}")
    if live is None and not metadata.get("name"):
        raise BadRequest(missing_name_message(key.name))
    if subresource == "scale" and not kind.strategic:
        raise BadRequest(
            f"failed to convert new object (/{name}; autoscaling/v1, Kind=Scale) to proper version: "
            "request to convert CR to an invalid group/version: autoscaling/v1"
        )
    made = managed.apply(
        live,
        _ownable(kind, body | {"metadata": metadata | {"name": name}}, subresource),
        manager=manager,
        force=patch.force,
        node=kind.structure,
        now=now,
        subresource=subresource,
    )
    # A new object may come with a status, if its kind allows that; the status has no owner.
    return made | {"status": body["status"]} if live is None and not subresource and "status" in body else made


def _ownable(kind: ServedKind, body: Object, subresource: str) -> Object:
    """Drop what the write cannot change, and the manager therefore cannot own."""
    if subresource == "status":
        kept = fields_kept_by_status(kind)
        metadata = {name: value for name, value in body["metadata"].items() if name not in kept}
        ownable = {name: value for name, value in body.items() if name in ("apiVersion", "kind", "status")}
        return ownable | {"metadata": metadata}
    if "status" in kind.subresources:
        return {name: value for name, value in body.items() if name != "status"}
    return body
