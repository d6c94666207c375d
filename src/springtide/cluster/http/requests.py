"""Requests to an API server: paths of resources, query parameters, and preconditions in request bodies.

The API has no header for preconditions. A merge patch that contains a resourceVersion or a uid is refused if the
object has another one; a JSON patch begins with `test` operations. Either way it is a conflict, although the server
may answer with another error.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from springtide.cluster.errors import BadRequest, Invalid
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import UNCONDITIONAL, Patch, PatchType, Precondition, Propagation, Write

Query = dict[str, str]


def path_of(resource: Resource, key: Key, subresource: str = "") -> str:
    """Return the path of an object or its subresource; without a name, that of all objects of a namespace."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    parts = [root]
    if resource.namespaced and key.namespace:
        parts += ["namespaces", _escaped(key.namespace)]
    parts.append(resource.plural)
    if key.name:
        parts.append(_escaped(key.name))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def object_path(resource: Resource, key: Key, subresource: str = "") -> str:
    """Return the path of one object; an empty name is refused, as it would be the path of the whole collection."""
    if not key.name:
        raise BadRequest(f"{resource}: the name of an object may not be empty")
    return path_of(resource, key, subresource)


def list_query(selection: Selection, *, limit: int, continue_: str, version: str, exact: bool) -> Query:
    """Return the parameters of a list; a continue token implies its version."""
    query = _selectors(selection)
    if limit:
        query["limit"] = str(limit)
    if continue_:
        query["continue"] = continue_
    elif version:
        query["resourceVersion"] = version
        query["resourceVersionMatch"] = "Exact" if exact else "NotOlderThan"
    return query


def watch_query(selection: Selection, *, version: str, initial_events: bool, timeout: float | None) -> Query:
    """Return the parameters of a watch."""
    query = _selectors(selection) | {"watch": "true", "allowWatchBookmarks": "true"}
    if version:
        query["resourceVersion"] = version
    if initial_events:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    if timeout is not None:
        # Zero would mean no timeout.
        query["timeoutSeconds"] = str(max(1, round(timeout)))
    return query


def write_query(write: Write, patch: Patch | None = None) -> Query:
    """Return the parameters of a create or a patch."""
    query: Query = {}
    if write.manager:
        query["fieldManager"] = write.manager
    if write.dry_run:
        query["dryRun"] = "All"
    if patch is not None and patch.force:
        query["force"] = "true"
    return query


def _selectors(selection: Selection) -> Query:
    query: Query = {}
    if selection.labels:
        query["labelSelector"] = selection.labels
    if selection.fields:
        query["fieldSelector"] = selection.fields
    return query


def _escaped(segment: str) -> str:
    # Clients and proxies resolve segments of dots, which would change the path.
    return quote(segment, safe="") if segment.strip(".") else segment.replace(".", "%2E")


_RESOURCE_VERSION = "resourceVersion"


def with_precondition(patch: Patch, precondition: Precondition) -> Any:
    """Return the body of a patch including its precondition; the patch itself is not changed."""
    required = _required_metadata(precondition)
    if not required:
        return patch.body
    if patch.type is PatchType.JSON:
        tests = [{"op": "test", "path": f"/metadata/{name}", "value": value} for name, value in required.items()]
        return [*tests, *patch.body]
    metadata = patch.body.get("metadata") or {}
    return patch.body | {"metadata": metadata | required}


def delete_options(
    write: Write, precondition: Precondition, propagation: Propagation | None, grace_seconds: int | None
) -> Object:
    """Return the body of a deletion."""
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if required := _required_metadata(precondition):
        options["preconditions"] = required
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if write.dry_run:
        options["dryRun"] = ["All"]
    return options


def means_conflict(error: Invalid, precondition: Precondition) -> bool:
    """Return whether an Invalid error is a conflict: the answer to a patch whose uid is not that of the object."""
    return bool(precondition.uid) and any(cause.field == "metadata.uid" for cause in error.causes)


def may_mean_conflict(error: Invalid, patch: Patch, precondition: Precondition) -> bool:
    """Return whether a failed `test` of the precondition may be the cause; servers do not name the operation."""
    return patch.type is PatchType.JSON and precondition != UNCONDITIONAL and not error.causes


def conflict_message(resource: Resource, key: Key) -> str:
    """Return the message of a conflict, as servers phrase it."""
    return (
        f'Operation cannot be fulfilled on {resource} "{key.name}": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )


def is_met(precondition: Precondition, found: Object) -> bool:
    """Return whether an object meets a precondition."""
    metadata = found.get("metadata") or {}
    return all(metadata.get(name) == value for name, value in _required_metadata(precondition).items())


def _required_metadata(precondition: Precondition) -> dict[str, str]:
    required = {_RESOURCE_VERSION: precondition.version, "uid": precondition.uid}
    return {name: value for name, value in required.items() if value}
