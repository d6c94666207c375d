"""Where things are on a server: the paths of resources, and the parameters of lists, watches and writes."""

from __future__ import annotations

from urllib.parse import quote

from springtide.cluster.errors import BadRequest
from springtide.cluster.port import Patch, Write
from springtide.cluster.resources import Key, Resource, Selection

Query = dict[str, str]


def path_of(resource: Resource, key: Key, subresource: str = "") -> str:
    """Give the path of an object, or of something below it; without a name, that of all objects of a namespace."""
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
    """Give the path of one object. Without a name it would be that of all of them, which is no place for a deletion."""
    if not key.name:
        raise BadRequest(f"{resource}: the name of an object may not be empty")
    return path_of(resource, key, subresource)


def list_query(selection: Selection, *, limit: int, continue_: str, version: str, exact: bool) -> Query:
    """Give the parameters of a page. A token to go on with stands for a version already."""
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
    """Give the parameters of a watch."""
    query = _selectors(selection) | {"watch": "true", "allowWatchBookmarks": "true"}
    if version:
        query["resourceVersion"] = version
    if initial_events:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    if timeout is not None:
        # Zero would mean "as long as you like" to a server.
        query["timeoutSeconds"] = str(max(1, round(timeout)))
    return query


def write_query(write: Write, patch: Patch | None = None) -> Query:
    """Give the parameters of a create or a patch."""
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
    # A segment of dots would be resolved away, and the request would be about something else.
    return quote(segment, safe="") if segment.strip(".") else segment.replace(".", "%2E")
