"""Ownership after creates, updates and patches other than apply.

A manager that changes a field becomes its only owner; a removed field has none. An object that has lost all entries
gets new ones only with the next apply. Every write compares two versions of an object. Versions share what did not
change, so identical subtrees are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from springtide.apiserver.kinds import StructureNode
from springtide.apiserver.patches.json_patches import equal_json
from springtide.apiserver.patches.managed import entries
from springtide.apiserver.patches.managed.entries import ManagerEntry, ManagerIdentity
from springtide.apiserver.patches.managed.fieldsets import (
    LEAF,
    SELF,
    FieldSet,
    all_paths,
    all_paths_below,
    difference,
    sorted_fieldset,
    union,
)
from springtide.apiserver.patches.managed.path_elements import (
    UnidentifiableElement,
    entries_by_element,
    is_list,
    is_map,
    item_node,
)
from springtide.cluster.resources import Object


class FieldComparison(NamedTuple):
    """The paths in which two versions of an object differ."""

    changed: FieldSet
    """Paths that were added, or whose value changed."""
    removed: FieldSet
    """Paths that were removed."""


IDENTITY = frozenset(
    {
        "clusterName",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Fields of the metadata that identify the object or are written by the server: they have no owner."""

_OF_THE_KIND = frozenset({"apiVersion", "kind", "metadata"})
_ABSENT: Any = object()
_CONTAINERS = (dict, list)


def compare(node: StructureNode, old: dict[str, Any], new: dict[str, Any]) -> FieldComparison:
    """Return the paths in which two objects of one kind differ, without those that never have an owner."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    _compare_maps(node, _but(old, _OF_THE_KIND), _but(new, _OF_THE_KIND), changed, removed)
    appeared: FieldSet = {}
    vanished: FieldSet = {}
    before, after = _but(old.get("metadata") or {}, IDENTITY), _but(new.get("metadata") or {}, IDENTITY)
    _compare_maps(node.child("metadata"), before, after, appeared, vanished)
    if appeared:
        changed["f:metadata"] = sorted_fieldset(appeared)
    if vanished:
        removed["f:metadata"] = sorted_fieldset(vanished)
    return FieldComparison(sorted_fieldset(changed), sorted_fieldset(removed))


def _but(value: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in names}


def _compare_maps(
    node: StructureNode, old: dict[str, Any], new: dict[str, Any], changed: FieldSet, removed: FieldSet
) -> None:
    kept = 0
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is after:
            kept += 1
        elif before is _ABSENT:
            if name not in node.always:
                changed["f:" + name] = all_paths(node.child(name), after) if type(after) in _CONTAINERS else LEAF
            elif after:
                # The field was set before, and empty.
                _compare_places("f:" + name, node.child(name), None, after, changed, removed)
        else:
            kept += 1
            _compare_places("f:" + name, node.child(name), before, after, changed, removed)
    if kept < len(old):
        for name, before in old.items():
            if name in new:
                continue
            if name not in node.always:
                removed["f:" + name] = all_paths(node.child(name), before)
            elif before:
                _compare_places("f:" + name, node.child(name), before, None, changed, removed)


def _compare_lists(node: StructureNode, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    items = item_node(node)
    olds = entries_by_element(node, old)
    news = entries_by_element(node, new)
    for element, after in news.items():
        before = olds.get(element)
        if before is None:
            changed[element] = all_paths(items, after[0]) if len(after) == 1 else LEAF
        elif len(before) == 1 and len(after) == 1:
            if before[0] is not after[0]:
                _compare_places(element, items, before[0], after[0], changed, removed)
        elif len(before) > 1 and len(after) > 1:
            # Duplicate entries cannot be told apart: together they are one value.
            if not equal_json(before, after):
                changed[element] = LEAF
        elif len(after) == 1:
            changed[element] = all_paths(items, after[0])
            removed[element] = LEAF
        else:
            changed[element] = LEAF
            removed[element] = all_paths(items, before[0])
    for element, before in olds.items():
        if element not in news:
            removed[element] = all_paths(items, before[0]) if len(before) == 1 else LEAF


def _compare_places(
    element: str, node: StructureNode, old: Any, new: Any, changed: FieldSet, removed: FieldSet
) -> None:
    """Compare the values at one path, and record the differences below its element."""
    if type(new) not in _CONTAINERS and type(old) not in _CONTAINERS:
        if not equal_json(old, new):
            changed[element] = LEAF
        return
    appeared: FieldSet = {}
    vanished: FieldSet = {}
    if _both_in_parts(is_map(node, old), is_map(node, new), old, new):
        _compare_maps(node, old or {}, new or {}, appeared, vanished)
    elif _both_in_parts(is_list(node, old), is_list(node, new), old, new):
        _compare_lists(node, old or [], new or [], appeared, vanished)
    elif not equal_json(old, new):
        appeared = {SELF: LEAF, **all_paths_below(node, new)}
        vanished = all_paths_below(node, old)
    if appeared:
        changed[element] = LEAF if len(appeared) == 1 and SELF in appeared else sorted_fieldset(appeared)
    if vanished:
        removed[element] = sorted_fieldset(vanished)


def _both_in_parts(old_has_parts: bool, new_has_parts: bool, old: Any, new: Any) -> bool:
    """Whether both values are granular; null counts as an empty one if the other value is granular."""
    if not old and not new:
        return False
    return (old_has_parts or old is None) and (new_has_parts or new is None)


NEVER_OWNED: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {".": LEAF, **{f"f:{name}": LEAF for name in sorted(IDENTITY)}},
}
"""The paths that never have an owner."""


def after_update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    node: StructureNode,
    now: str,
    subresource: str = "",
    fits: Callable[[Object, str], bool] | None = None,
) -> Object:
    """Return the object with its managed fields after a create (`old` is None) or update.

    `fits` tells whether another version of the kind declares all fields of the object.
    """
    owners = _owners_before(old, new, subresource)
    if not owners and old is not None:
        return with_owners(new, [])
    if fits and not all(fits(new, version) for version in _versions(owners) - {new["apiVersion"]}):
        # As in kube-apiserver: if the object does not fit the version of an entry, all entries are dropped.
        return with_owners(new, [])
    try:
        comparison = compare(node, old or {}, new)
    except UnidentifiableElement:
        # As in kube-apiserver: if the entries of a list cannot be told apart, all managed fields are dropped.
        return with_owners(new, [])
    writer = entries.updater(manager, new["apiVersion"], subresource)
    return with_owners(new, transfer_ownership(owners, comparison, writer, now))


def transfer_ownership(
    owners: list[ManagerEntry], comparison: FieldComparison, writer: ManagerIdentity, now: str
) -> list[ManagerEntry]:
    """Return the entries after a manager has changed and removed these paths."""
    changed = comparison.changed
    if not changed and not comparison.removed:
        return owners
    own_fields = next((entry["fieldsV1"] for entry in owners if entries.identity_of(entry) == writer), LEAF)
    if not changed:
        return entries.sorted_entries(without_paths(owners, comparison))
    left = without_paths([entry for entry in owners if entries.identity_of(entry) != writer], comparison)
    fields = union(difference(own_fields, comparison.removed), changed)
    return entries.sorted_entries(entries.capped_entries([*left, entries.entry_of(writer, writer[2], fields, now)]))


def without_paths(owners: list[ManagerEntry], comparison: FieldComparison) -> list[ManagerEntry]:
    """Return the entries without these paths; entries that become empty are dropped."""
    left = []
    for entry in owners:
        before = entry["fieldsV1"]
        fields = difference(difference(before, comparison.changed), comparison.removed)
        if fields is before:
            left.append(entry)
        elif fields:
            left.append({**entry, "fieldsV1": fields})
    return left


def with_owners(item: Object, owners: list[ManagerEntry]) -> Object:
    """Return an object with these entries: the object itself if it has them already."""
    metadata = item.get("metadata") or {}
    if not owners:
        if "managedFields" not in metadata:
            return item
        return {**item, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
    if metadata.get("managedFields") is owners:
        return item
    return {**item, "metadata": {**metadata, "managedFields": owners}}


def _versions(owners: list[ManagerEntry]) -> set[str]:
    return {entry["apiVersion"] for entry in owners}


def _owners_before(old: Object | None, new: Object, subresource: str) -> list[ManagerEntry]:
    """Return the entries that a write starts from: the stored ones, unless the client edits the list."""
    known = entries.stored(old)
    metadata = new.get("metadata") or {}
    if subresource or metadata.get("managedFields") is known or "managedFields" not in metadata:
        return known
    if entries.is_reset(metadata):
        return []
    return entries.sent(metadata) or known
