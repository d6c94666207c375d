"""Server-side apply: a manager says what it wants, and owns exactly that.

The configuration is laid over the live object; what the manager applied before and does not any more goes, unless
somebody else owns it; and where others own what would change, the apply is refused with the list of conflicts, or takes
it over by force.
"""

from __future__ import annotations

from functools import reduce

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object
from springtide.simulator.api.patches.managed import entries
from springtide.simulator.api.patches.managed.comparison import compare
from springtide.simulator.api.patches.managed.conflicts import refuse_conflicts
from springtide.simulator.api.patches.managed.elements import Unidentifiable
from springtide.simulator.api.patches.managed.entries import Entry, Identity
from springtide.simulator.api.patches.managed.fieldsets import (
    FieldSet,
    difference,
    intersection,
    union,
    with_named_fields,
)
from springtide.simulator.api.patches.managed.fitting import described, refuse_misfits
from springtide.simulator.api.patches.managed.merging import merge
from springtide.simulator.api.patches.managed.paths import claimed
from springtide.simulator.api.patches.managed.removal import without
from springtide.simulator.api.patches.managed.updating import NEVER_OWNED, taken_over, with_owners, without_paths
from springtide.simulator.api.patches.values import equal
from springtide.simulator.api.structure import Node

BEFORE_FIRST_APPLY = "before-first-apply"
"""Who owns what stood in an object without owners when it was applied to for the first time."""


def apply(
    live: Object | None, applied: Object, *, manager: str, force: bool, node: Node, now: str, subresource: str = ""
) -> Object:
    """Give the object after an apply, with its managed fields; `Conflict` where others own what would change."""
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    refuse_misfits(applied, node)
    try:
        return _apply(live, applied, entries.applier(manager, subresource), force, node, now)
    except Unidentifiable as error:
        raise BadRequest(f"failed to create typed live object ({described(live or applied)}): {error}") from error


def _apply(live: Object | None, applied: Object, applier: Identity, force: bool, node: Node, now: str) -> Object:
    before = live or {}
    owners = _owners(live, node, now)
    others = [entry for entry in owners if entries.identity_of(entry) != applier]
    last = next((entry for entry in owners if entries.identity_of(entry) == applier), None)

    said = claimed(node, applied)
    merged = merge(node, before, applied)
    if last:
        managed = reduce(union, (entry["fieldsV1"] for entry in others), said)
        merged = _pruned(merged, last["fieldsV1"], said, managed, node)

    comparison = compare(node, before, merged)
    if not force:
        refuse_conflicts(others, comparison.changed)
    left = without_paths(others, comparison)
    if fields := difference(said, NEVER_OWNED):
        # Who comes to own what is there already has changed nothing, and has no time.
        time = (last or {}).get("time", "") if equal(before, merged) else now
        left.append(entries.entry_of(applier, applied["apiVersion"], fields, time))
    left = entries.ordered(left)
    return with_owners(merged, owners if left == owners else left)


def _owners(live: Object | None, node: Node, now: str) -> list[Entry]:
    owners = entries.stored(live)
    if owners or live is None:
        return owners
    everything = compare(node, {}, live)
    return taken_over([], everything, entries.updater(BEFORE_FIRST_APPLY, live["apiVersion"], ""), now)


def _pruned(merged: Object, last: FieldSet, said: FieldSet, managed: FieldSet, node: Node) -> Object:
    """Remove what was applied last time, is not applied now, and is owned by nobody else.

    To remove an entry or a map is to remove all that is in it; what others own comes back, and so does what the
    manager never owned.
    """
    if not difference(last, said):
        return merged
    last = with_named_fields(last, node)
    present = with_named_fields(claimed(node, merged), node)

    bare = with_named_fields(claimed(node, without(node, merged, last)), node)
    unowned = difference(present, union(bare, with_named_fields(managed, node)))
    owned = with_named_fields(claimed(node, without(node, merged, unowned)), node)
    gone = intersection(difference(present, owned), last)
    pruned: Object = without(node, merged, gone)
    return pruned
