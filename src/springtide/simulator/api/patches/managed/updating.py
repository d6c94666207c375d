"""What creates, updates and patches other than apply do to the owners of fields.

Whoever changes a field owns it from then on, alone; what is removed is owned by nobody. An object that lost its owners
altogether stays without, until somebody applies to it.
"""

from __future__ import annotations

from collections.abc import Callable

from springtide.cluster.resources import Object
from springtide.simulator.api.patches.managed import entries
from springtide.simulator.api.patches.managed.comparison import IDENTITY, Comparison, compare
from springtide.simulator.api.patches.managed.elements import Unidentifiable
from springtide.simulator.api.patches.managed.entries import Entry, Identity
from springtide.simulator.api.patches.managed.fieldsets import LEAF, FieldSet, difference, union
from springtide.simulator.api.structure import Node

NEVER_OWNED: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {".": LEAF, **{f"f:{name}": LEAF for name in sorted(IDENTITY)}},
}
"""What nobody owns, as a set of paths."""


def after_update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    node: Node,
    now: str,
    subresource: str = "",
    fits: Callable[[Object, str], bool] | None = None,
) -> Object:
    """Give the new object with its managed fields, after a write that is no apply; `old` is None for a create.

    `fits` tells whether another version of the kind declares all that an object has.
    """
    owners = _owners_before(old, new, subresource)
    if not owners and old is not None:
        return with_owners(new, [])
    if fits and not all(fits(new, version) for version in _versions(owners) - {new["apiVersion"]}):
        # As in the API server: what the version of some owner does not have costs the object all its owners.
        return with_owners(new, [])
    try:
        comparison = compare(node, old or {}, new)
    except Unidentifiable:
        # As in the API server: a list whose entries cannot be told apart costs the object its owners.
        return with_owners(new, [])
    writer = entries.updater(manager, new["apiVersion"], subresource)
    return with_owners(new, taken_over(owners, comparison, writer, now))


def taken_over(owners: list[Entry], comparison: Comparison, writer: Identity, now: str) -> list[Entry]:
    """Give the owners after a writer has changed and removed these paths."""
    changed = comparison.changed
    if not changed and not comparison.removed:
        return owners
    mine = next((entry["fieldsV1"] for entry in owners if entries.identity_of(entry) == writer), LEAF)
    if not changed:
        return entries.ordered(without_paths(owners, comparison))
    left = without_paths([entry for entry in owners if entries.identity_of(entry) != writer], comparison)
    fields = union(difference(mine, comparison.removed), changed)
    return entries.ordered(entries.capped([*left, entries.entry_of(writer, writer[2], fields, now)]))


def without_paths(owners: list[Entry], comparison: Comparison) -> list[Entry]:
    """Give what these owners are left with when somebody else changes and removes paths; who owns nothing is gone."""
    left = []
    for entry in owners:
        before = entry["fieldsV1"]
        fields = difference(difference(before, comparison.changed), comparison.removed)
        if fields is before:
            left.append(entry)
        elif fields:
            left.append({**entry, "fieldsV1": fields})
    return left


def with_owners(item: Object, owners: list[Entry]) -> Object:
    """Give an object with these managed fields: itself, if it has them already."""
    metadata = item.get("metadata") or {}
    if not owners:
        if "managedFields" not in metadata:
            return item
        return {**item, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
    if metadata.get("managedFields") is owners:
        return item
    return {**item, "metadata": {**metadata, "managedFields": owners}}


def _versions(owners: list[Entry]) -> set[str]:
    return {entry["apiVersion"] for entry in owners}


def _owners_before(old: Object | None, new: Object, subresource: str) -> list[Entry]:
    """Give the owners that a write starts from: those of the object, unless the client edits the list itself."""
    known = entries.stored(old)
    metadata = new.get("metadata") or {}
    if subresource or metadata.get("managedFields") is known or "managedFields" not in metadata:
        return known
    if entries.is_reset(metadata):
        return []
    return entries.sent(metadata) or known
