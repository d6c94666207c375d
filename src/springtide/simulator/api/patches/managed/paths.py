"""The paths of a value, in two readings.

A change touches every path of what appears or disappears, containers included. A configuration claims only what it
says: leaves, entries of lists and keys of maps; not the declared fields on the way there, and not a list that is empty.
"""

from __future__ import annotations

from typing import Any

from springtide.simulator.api.patches.managed.fieldsets import LEAF, SELF, FieldSet, ordered
from springtide.simulator.api.patches.managed.shape import entries, is_list, is_map, item_node
from springtide.simulator.api.structure import Node

_CONTAINERS = (dict, list)


def touched(node: Node, value: Any) -> FieldSet:
    """Give all paths of a value that appears or disappears, from the place where it stands."""
    return {SELF: LEAF, **below} if (below := touched_below(node, value)) else LEAF


def touched_below(node: Node, value: Any) -> FieldSet:
    """Give all paths below the place where a value stands."""
    tree: FieldSet = {}
    if is_map(node, value):
        for name, part in value.items():
            tree["f:" + name] = touched(node.child(name), part) if type(part) in _CONTAINERS else LEAF
        if not value.keys() >= node.always:
            for name in node.always - value.keys():
                tree["f:" + name] = _touched_empty(node.child(name))
    elif is_list(node, value):
        items = item_node(node)
        for element, same in entries(node, value).items():
            tree[element] = touched(items, same[0]) if len(same) == 1 else LEAF
    return ordered(tree)


def _touched_empty(node: Node) -> FieldSet:
    """Give the paths of a field that is there and that nobody has written: those of an empty struct, or itself."""
    return touched(node, {}) if node.always else LEAF


def claimed(node: Node, value: Any) -> FieldSet:
    """Give the set of paths that a whole configuration claims."""
    tree: FieldSet = {}
    if is_map(node, value):
        for name, part in value.items():
            if type(part) not in _CONTAINERS:
                tree["f:" + name] = LEAF
                continue
            below = claimed(node.child(name), part)
            # A declared field is claimed through what it holds; whatever can hold nothing is claimed itself.
            if not _in_parts(node.child(name), part) or name not in node.fields or part == {}:
                tree["f:" + name] = {SELF: LEAF, **below} if below else LEAF
            elif below:
                tree["f:" + name] = below
    elif is_list(node, value):
        items = item_node(node)
        for element, same in entries(node, value).items():
            below = claimed(items, same[0]) if len(same) == 1 else LEAF
            tree[element] = {SELF: LEAF, **below} if below else LEAF
    return ordered(tree)


def _in_parts(node: Node, value: Any) -> bool:
    return is_map(node, value) or is_list(node, value)
