"""The entries of `metadata.managedFields`: one for each manager, operation, version and subresource.

For apply the version is not part of the identity; for update it is. Entries stay JSON objects, so that a write does not
touch those that it does not concern.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from springtide.apiserver.patches.managed.fieldsets import FieldSet, normal, union
from springtide.cluster.resources import Object

ManagerEntry: TypeAlias = dict[str, Any]
ManagerIdentity: TypeAlias = tuple[str, str, str, str]

APPLY = "Apply"
UPDATE = "Update"

MAX_UPDATE_MANAGERS = 10
"""With more update entries, the oldest are merged into one."""
ANCIENT_MANAGER = "ancient-changes"


def entry_of(identity: ManagerIdentity, version: str, fields: FieldSet, time: str) -> ManagerEntry:
    """Return an entry. An entry without a time has never changed the object."""
    manager, operation, _, subresource = identity
    entry: ManagerEntry = {"manager": manager, "operation": operation, "apiVersion": version}
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if subresource:
        entry["subresource"] = subresource
    return entry


def applier(manager: str, subresource: str) -> ManagerIdentity:
    """Return the identity of a manager that applies."""
    return (manager or "unknown", APPLY, "", subresource)


def updater(manager: str, version: str, subresource: str) -> ManagerIdentity:
    """Return the identity of a manager that updates."""
    return (manager or "unknown", UPDATE, version, subresource)


def identity_of(entry: ManagerEntry) -> ManagerIdentity:
    """Return the identity of an entry."""
    operation = entry["operation"]
    version = "" if operation == APPLY else entry["apiVersion"]
    return (entry.get("manager", ""), operation, version, entry.get("subresource", ""))


def describe_manager(entry: ManagerEntry) -> str:
    """Name the manager of an entry as conflicts do."""
    text = json.dumps(entry.get("manager", ""), ensure_ascii=False)
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry['apiVersion']}" if entry["operation"] == UPDATE else text


def stored(item: Object | None) -> list[ManagerEntry]:
    """Return the entries of a stored object."""
    return ((item or {}).get("metadata") or {}).get("managedFields") or []


def sent(metadata: Object) -> list[ManagerEntry]:
    """Return the entries that a client sent; none if they are malformed."""
    entries = metadata.get("managedFields")
    if not isinstance(entries, list) or not all(map(_well_formed, entries)):
        return []
    read = [{**entry, "fieldsV1": normal(entry.get("fieldsV1"))} for entry in entries]
    return list({identity_of(entry): entry for entry in read}.values())


def is_reset(metadata: Object) -> bool:
    """Whether a client resets the entries by sending `[]` or `[{}]`."""
    entries = metadata.get("managedFields")
    return isinstance(entries, list) and (not entries or entries == [{}])


def sorted_entries(entries: Iterable[ManagerEntry]) -> list[ManagerEntry]:
    """Sort entries: apply before update, the oldest first."""
    return sorted(entries, key=_place)


def capped_entries(entries: list[ManagerEntry]) -> list[ManagerEntry]:
    """Merge the oldest update entries of each version while there are too many."""
    if len(entries) <= MAX_UPDATE_MANAGERS:
        return entries
    updaters = sorted((entry for entry in entries if entry["operation"] == UPDATE), key=_place)
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    kept = {identity_of(entry): entry for entry in entries}
    oldest: dict[str, ManagerEntry] = {}
    for entry in updaters:
        if surplus <= 0:
            break
        version = entry["apiVersion"]
        first = oldest.setdefault(version, entry)
        if first is entry:
            continue
        bucket = updater(ANCIENT_MANAGER, version, "")
        before = kept.get(bucket)
        if before is None:
            before = kept.pop(identity_of(first))
        del kept[identity_of(entry)]
        kept[bucket] = entry_of(bucket, version, union(before["fieldsV1"], entry["fieldsV1"]), entry.get("time", ""))
        surplus -= 1
    return list(kept.values())


def _place(entry: ManagerEntry) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _well_formed(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in (APPLY, UPDATE)
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
    )
