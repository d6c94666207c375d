"""The object that a patch makes of another one, whichever kind of patch it is."""

from __future__ import annotations

from typing import Any

from springtide.cluster.errors import BadRequest, UnsupportedPatch
from springtide.cluster.port import Patch, PatchType
from springtide.cluster.resources import Key, Object
from springtide.simulator.api import patches
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.lifecycle import nameless
from springtide.simulator.api.metadata import kept_by_status
from springtide.simulator.api.patches import managed
from springtide.simulator.api.scale import scale_applied
from springtide.simulator.api.structure import Node


def patched(kind: ServedKind, item: Object, patch: Patch, node: Node) -> Any:
    """Give what a patch other than an apply makes of an object; `node` is the structure of what is patched."""
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


def applied(
    kind: ServedKind, key: Key, live: Object | None, patch: Patch, *, manager: str, now: str, subresource: str = ""
) -> Object:
    """Give what an apply makes of an object, or of nothing."""
    body = scale_applied(kind, key, patch.body) if subresource == "scale" else patch.body
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
        raise BadRequest(nameless(key.name))
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
    # What is new may come with a status, if its kind lets it: nobody owns that.
    return made | {"status": body["status"]} if live is None and not subresource and "status" in body else made


def _ownable(kind: ServedKind, body: Object, subresource: str) -> Object:
    """Leave out what the writer cannot change here, and so cannot own."""
    if subresource == "status":
        kept = kept_by_status(kind)
        metadata = {name: value for name, value in body["metadata"].items() if name not in kept}
        ownable = {name: value for name, value in body.items() if name in ("apiVersion", "kind", "status")}
        return ownable | {"metadata": metadata}
    if "status" in kind.subresources:
        return {name: value for name, value in body.items() if name != "status"}
    return body
