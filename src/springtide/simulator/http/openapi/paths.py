"""The paths of a document: what can be asked where, and with which parameters."""

from __future__ import annotations

from typing import Any

from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.http.openapi.naming import reference
from springtide.simulator.http.openapi.schemas import gvk

Operation = dict[str, Any]

_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_TYPES = dict.fromkeys(("allowWatchBookmarks", "sendInitialEvents", "watch", "force", "orphanDependents"), "boolean")
_TYPES |= dict.fromkeys(("gracePeriodSeconds", "limit", "timeoutSeconds"), "integer")
_VERBS = {
    # The method, the action, the parameters, and whether a body is sent.
    "create": ("post", "post", _WRITE, True),
    "list": ("get", "list", _LIST, False),
    "deletecollection": ("delete", "deletecollection", _LIST + _DELETE, False),
    "get": ("get", "get", (), False),
    "update": ("put", "put", _WRITE, True),
    "patch": ("patch", "patch", (*_WRITE, "force"), True),
    "delete": ("delete", "delete", _DELETE, False),
}
_OF_COLLECTION = ("create", "list", "deletecollection")
_OF_SUBRESOURCE = ("get", "update", "patch")


def paths_of(kind: ServedKind, schema: str) -> dict[str, Any]:
    """Give all paths of a kind."""
    resource = kind.resource
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    within = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    collection, item = f"{within}/{resource.plural}", f"{within}/{resource.plural}/{{name}}"
    found = {
        collection: _operations(kind, schema, [verb for verb in kind.verbs if verb in _OF_COLLECTION]),
        item: _operations(kind, schema, [verb for verb in kind.verbs if verb in _VERBS and verb not in _OF_COLLECTION]),
    }
    if resource.namespaced:
        found[f"{root}/{resource.plural}"] = _operations(kind, schema, ["list"])
    for name in kind.subresources:
        if name in ("status", "scale"):
            found[f"{item}/{name}"] = _operations(kind, schema, _OF_SUBRESOURCE)
    return found


def _operations(kind: ServedKind, schema: str, verbs: Any) -> dict[str, Operation]:
    made = {}
    for verb in verbs:
        method, action, parameters, sends = _VERBS[verb]
        answer = f"{schema}List" if verb in ("list", "deletecollection") else schema
        operation: Operation = {
            "parameters": [_parameter(name) for name in parameters],
            "responses": {"200": {"description": "OK", "content": _content(("application/json",), answer)}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(kind),
        }
        if sends:
            media = ("*/*",) if verb != "patch" else _PATCHES if kind.strategic else _PATCHES[:3]
            operation["requestBody"] = {"content": _content(media, schema), "required": True}
        made[method] = operation
    return made


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}


def _content(media: tuple[str, ...], schema: str) -> dict[str, Any]:
    return {each: {"schema": reference(schema)} for each in media}
