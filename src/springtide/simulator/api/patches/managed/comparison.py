"""The paths that differ between two versions of an object.

This runs on every write. Versions share what did not change, so most of the work is not done: whatever is the same
object on both sides is skipped with all that is below it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from springtide.simulator.api.patches.managed.fieldsets import LEAF, SELF, FieldSet, ordered
from springtide.simulator.api.patches.managed.paths import touched, touched_below
from springtide.simulator.api.patches.managed.shape import entries, is_list, is_map, item_node
from springtide.simulator.api.patches.values import equal
from springtide.simulator.api.structure import Node


class Comparison(NamedTuple):
    """What became of the paths of an object."""

    changed: FieldSet
    """Paths that are new, or have another value."""
    removed: FieldSet
    """Paths that are no more."""


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
"""Fields of the metadata that say which object it is, or that only the server writes: nobody owns them."""

_OF_THE_KIND = frozenset({"apiVersion", "kind", "metadata"})
_ABSENT: Any = object()
_CONTAINERS = (dict, list)


def compare(node: Node, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Give the paths in which two objects of one kind differ, but for those that nobody ever owns."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    _compare_maps(node, _but(old, _OF_THE_KIND), _but(new, _OF_THE_KIND), changed, removed)
    appeared: FieldSet = {}
    vanished: FieldSet = {}
    before, after = _but(old.get("metadata") or {}, IDENTITY), _but(new.get("metadata") or {}, IDENTITY)
    _compare_maps(node.child("metadata"), before, after, appeared, vanished)
    if appeared:
        changed["f:metadata"] = ordered(appeared)
    if vanished:
        removed["f:metadata"] = ordered(vanished)
    return Comparison(ordered(changed), ordered(removed))


def _but(value: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in names}


def _compare_maps(node: Node, old: dict[str, Any], new: dict[str, Any], changed: FieldSet, removed: FieldSet) -> None:
    kept = 0
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is after:
            kept += 1
        elif before is _ABSENT:
            if name not in node.always:
                changed["f:" + name] = touched(node.child(name), after) if type(after) in _CONTAINERS else LEAF
            elif after:
                # It has been there before, and empty.
                _compare_places("f:" + name, node.child(name), None, after, changed, removed)
        else:
            kept += 1
            _compare_places("f:" + name, node.child(name), before, after, changed, removed)
    if kept < len(old):
        for name, before in old.items():
            if name in new:
                continue
            if name not in node.always:
                removed["f:" + name] = touched(node.child(name), before)
            elif before:
                _compare_places("f:" + name, node.child(name), before, None, changed, removed)


def _compare_lists(node: Node, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    items = item_node(node)
    olds = entries(node, old)
    news = entries(node, new)
    for element, after in news.items():
        before = olds.get(element)
        if before is None:
            changed[element] = touched(items, after[0]) if len(after) == 1 else LEAF
        elif len(before) == 1 and len(after) == 1:
            if before[0] is not after[0]:
                _compare_places(element, items, before[0], after[0], changed, removed)
        elif len(before) > 1 and len(after) > 1:
            # Entries that share a step are told apart by nobody: together they are one value.
            if not equal(before, after):
                changed[element] = LEAF
        elif len(after) == 1:
            changed[element] = touched(items, after[0])
            removed[element] = LEAF
        else:
            changed[element] = LEAF
            removed[element] = touched(items, before[0])
    for element, before in olds.items():
        if element not in news:
            removed[element] = touched(items, before[0]) if len(before) == 1 else LEAF


def _compare_places(element: str, node: Node, old: Any, new: Any, changed: FieldSet, removed: FieldSet) -> None:
    """Compare what stands in one place before and after, and note what differs under the step to it."""
    if type(new) not in _CONTAINERS and type(old) not in _CONTAINERS:
        if not equal(old, new):
            changed[element] = LEAF
        return
    appeared: FieldSet = {}
    vanished: FieldSet = {}
    if _both_in_parts(is_map(node, old), is_map(node, new), old, new):
        _compare_maps(node, old or {}, new or {}, appeared, vanished)
    elif _both_in_parts(is_list(node, old), is_list(node, new), old, new):
        _compare_lists(node, old or [], new or [], appeared, vanished)
    elif not equal(old, new):
        appeared = {SELF: LEAF, **touched_below(node, new)}
        vanished = touched_below(node, old)
    if appeared:
        changed[element] = LEAF if len(appeared) == 1 and SELF in appeared else ordered(appeared)
    if vanished:
        removed[element] = ordered(vanished)


def _both_in_parts(old_has_parts: bool, new_has_parts: bool, old: Any, new: Any) -> bool:
    """Tell whether both sides have parts of one kind; null stands for having none, unless the other has none either."""
    if not old and not new:
        return False
    return (old_has_parts or old is None) and (new_has_parts or new is None)
