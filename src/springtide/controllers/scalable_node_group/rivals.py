"""Which of several objects scales a group: the oldest that may.

Two objects with different wishes for one group would fight over it for ever. An object that no grant covers, or that
has errors, never counts: else anybody could stop the owner of a group by naming it first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from springtide.apis.extensions import merge_extensions
from springtide.apis.scheduled.node_group_ids import GroupId, may_be_same, read_group_id
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Store

BY_PLACE = "type and place of the group"
"""Finds the objects whose ids may mean one group."""


def places(item: Object) -> Iterable[Hashable]:
    """Give the values that an object is found under."""
    found = group_of(item)
    return () if found is None else ((type(found).__name__, found.place),)


def group_of(item: Object) -> GroupId | None:
    """Read which group an object is for; None where it does not say."""
    spec = merge_extensions(item)[0].get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("type"), str) or not isinstance(spec.get("id"), str):
        return None
    return read_group_id(spec["type"], spec["id"])


def others(item: Object, store: Store[Object]) -> list[Object]:
    """List the other objects that are, or may be, for the group of one."""
    own = group_of(item)
    if own is None:
        return []
    found = []
    for place in places(item):
        for other in store.by(BY_PLACE, place):
            theirs = group_of(other)
            if key_of(other) != key_of(item) and theirs is not None and may_be_same(own, theirs):
                found.append(other)
    return found


def ruler(item: Object, store: Store[Object], may_scale: Callable[[Object], bool]) -> Key | None:
    """Name the oldest of those that rule over the group of an object before it; None where the object rules itself."""
    older = [other for other in others(item, store) if _age(other) < _age(item) and may_scale(other)]
    return key_of(min(older, key=_age)) if older else None


def _age(item: Object) -> tuple[str, Key]:
    """Order objects by when they were made; of those of one second, by their names."""
    return item["metadata"].get("creationTimestamp") or "", key_of(item)
