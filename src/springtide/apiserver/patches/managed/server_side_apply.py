"""Server-side apply: a manager states the fields that it wants, and owns exactly these.

The configuration is merged into the live object. Fields that the manager applied before and no longer applies are
removed, unless another manager owns them. If another manager owns a field that would change, the apply fails with a
conflict, or takes the field over if it is forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from springtide.apiserver.kinds import StructureNode
from springtide.apiserver.patches.json_patches import equal_json
from springtide.apiserver.patches.managed import entries, fieldsets
from springtide.apiserver.patches.managed.entries import ManagerEntry, ManagerIdentity
from springtide.apiserver.patches.managed.fieldsets import (
    SELF,
    FieldSet,
    applied_paths,
    difference,
    intersection,
    union,
    with_named_fields,
)
from springtide.apiserver.patches.managed.ownership import (
    NEVER_OWNED,
    compare,
    transfer_ownership,
    with_owners,
    without_paths,
)
from springtide.apiserver.patches.managed.path_elements import (
    UnidentifiableElement,
    element_of,
    entries_by_element,
    is_list,
    is_map,
    item_node,
)
from springtide.apiserver.patches.managed.schema_check import describe_object, require_conformance
from springtide.cluster.errors import BadRequest, Conflict, StatusCause
from springtide.cluster.resources import Object


def remove_paths(node: StructureNode, value: Any, paths: FieldSet) -> Any:
    """Return a value without the paths of a set and all below them. Containers stay even if they become empty."""
    if is_map(node, value):
        kept = {}
        for name, part in value.items():
            below = paths.get("f:" + name)
            if below is None:
                kept[name] = part
            elif below and SELF not in below:
                kept[name] = remove_paths(node.child(name), part, below)
        return kept
    if is_list(node, value):
        rest = []
        for item in value:
            below = paths.get(element_of(node, item))
            if below is None:
                rest.append(item)
            elif below and SELF not in below:
                rest.append(remove_paths(item_node(node), item, below))
        return rest
    return value


def raise_conflicts(others: list[ManagerEntry], changed: FieldSet) -> None:
    """Raise `Conflict`, with a cause for each path, if one of these entries owns a path that would change."""
    conflicts = []
    for entry in sorted(others, key=entries.identity_of):
        contested = list(fieldsets.paths(intersection(entry["fieldsV1"], changed)))
        if contested:
            conflicts.append((entries.describe_manager(entry), contested))
    if not conflicts:
        return
    causes = tuple(
        StatusCause(field=path, message=f"conflict with {owner}", reason="FieldManagerConflict")
        for owner, contested in conflicts
        for path in contested
    )
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = [
            line
            for owner, contested in conflicts
            for line in (f"conflicts with {owner}:", *(f"- {p}" for p in contested))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    raise Conflict(message, causes=causes)


_ABSENT: Any = object()
_CONTAINERS = (dict, list)


def merge(node: StructureNode, live: Any, applied: Any) -> Any:
    """Return the live value with the applied one merged into it. Nothing is removed, and unchanged parts are shared."""
    if is_map(node, live) and live and (applied is None or is_map(node, applied)):
        return _merge_maps(node, live, applied or {})
    if is_list(node, live) and live and (applied is None or is_list(node, applied)):
        return _merge_lists(node, live, applied or [])
    return live if equal_json(live, applied) else applied


def _merge_maps(node: StructureNode, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    merged = live
    for name, value in applied.items():
        before = live.get(name, _ABSENT)
        if before is _ABSENT:
            after = value
        elif type(before) in _CONTAINERS:
            after = merge(node.child(name), before, value)
        else:
            after = before if equal_json(before, value) else value
        if after is not before:
            merged = dict(live) if merged is live else merged
            merged[name] = after
    return merged


def _merge_lists(node: StructureNode, live: list[Any], applied: list[Any]) -> list[Any]:
    items = item_node(node)
    steps = [element_of(node, item) for item in live]
    theirs = entries_by_element(node, live)
    ours = {element_of(node, item): item for item in applied}
    unmerged = {element: iter(same) for element, same in theirs.items()}
    merged = []
    for element in interleaved(steps, list(ours)):
        if element not in ours:
            merged.append(next(unmerged[element]))
        elif len(theirs.get(element, ())) == 1:
            merged.append(merge(items, theirs[element][0], ours[element]))
        else:
            # New, or a duplicate in the live list: the applied entry replaces duplicates.
            merged.append(ours[element])
    if len(merged) == len(live) and all(after is before for after, before in zip(merged, live, strict=True)):
        return live
    return merged


def interleaved(live: Sequence[str], applied: Sequence[str]) -> list[str]:
    """Merge the order of two lists.

    Applied entries come in their own order. Other entries keep their places between the neighbours that both lists
    have, as far as the applied order allows.
    """
    known = frozenset(live)
    wanted = frozenset(applied)
    shared = iter([element for element in applied if element in known])
    awaited = next(shared, None)
    order: list[str] = []
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live):
            element = live[left]
            if element not in wanted:
                order.append(element)
                left += 1
                continue
            if awaited is not None and element != awaited:
                # The applied order puts this entry elsewhere.
                left += 1
                continue
            if element in done or element == applied[right]:
                left += 1
        if right < len(applied):
            element = applied[right]
            right += 1
            order.append(element)
            done.add(element)
            if element == awaited:
                awaited = next(shared, None)
    return order


BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of the fields of an object without entries when it is applied to for the first time."""


def apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    node: StructureNode,
    now: str,
    subresource: str = "",
) -> Object:
    """Return the object after an apply, with its managed fields; raises `Conflict`."""
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    require_conformance(applied, node)
    try:
        return _apply(live, applied, entries.applier(manager, subresource), force, node, now)
    except UnidentifiableElement as error:
        raise BadRequest(f"failed to create typed live object ({describe_object(live or applied)}): {error}") from error


def _apply(
    live: Object | None, applied: Object, applier: ManagerIdentity, force: bool, node: StructureNode, now: str
) -> Object:
    before = live or {}
    owners = _owners(live, node, now)
    others = [entry for entry in owners if entries.identity_of(entry) != applier]
    last = next((entry for entry in owners if entries.identity_of(entry) == applier), None)

    claimed = applied_paths(node, applied)
    merged = merge(node, before, applied)
    if last:
        managed = reduce(union, (entry["fieldsV1"] for entry in others), claimed)
        merged = _pruned(merged, last["fieldsV1"], claimed, managed, node)

    comparison = compare(node, before, merged)
    if not force:
        raise_conflicts(others, comparison.changed)
    left = without_paths(others, comparison)
    if fields := difference(claimed, NEVER_OWNED):
        # A manager that becomes an owner of unchanged fields has changed nothing and gets no time.
        time = (last or {}).get("time", "") if equal_json(before, merged) else now
        left.append(entries.entry_of(applier, applied["apiVersion"], fields, time))
    left = entries.sorted_entries(left)
    return with_owners(merged, owners if left == owners else left)


def _owners(live: Object | None, node: StructureNode, now: str) -> list[ManagerEntry]:
    owners = entries.stored(live)
    if owners or live is None:
        return owners
    everything = compare(node, {}, live)
    return transfer_ownership([], everything, entries.updater(BEFORE_FIRST_APPLY, live["apiVersion"], ""), now)


def _pruned(merged: Object, last: FieldSet, claimed: FieldSet, managed: FieldSet, node: StructureNode) -> Object:
    """Remove the paths that were applied before, are no longer applied, and have no other owner.

    Removing an entry or a map removes its contents. What has another owner, or was never applied by this manager, is
    put back.
    """
    if not difference(last, claimed):
        return merged
    last = with_named_fields(last, node)
    present = with_named_fields(applied_paths(node, merged), node)

    bare = with_named_fields(applied_paths(node, remove_paths(node, merged, last)), node)
    unowned = difference(present, union(bare, with_named_fields(managed, node)))
    owned = with_named_fields(applied_paths(node, remove_paths(node, merged, unowned)), node)
    gone = intersection(difference(present, owned), last)
    pruned: Object = remove_paths(node, merged, gone)
    return pruned
