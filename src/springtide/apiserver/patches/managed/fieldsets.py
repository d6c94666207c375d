"""Sets of paths, as the trees that `fieldsV1` writes: no decoding, no encoding.

A tree maps steps to what is owned below them:

    {"f:spec": {"f:replicas": {}, "f:selector": {".": {}, "f:app": {}}}}

is the set of `.spec.replicas`, `.spec.selector` and `.spec.selector.app`. Below the top, `{}` stands for the place
itself, and `"."` says that the place belongs to the set beside the places below it. At the top `{}` is the empty set:
nobody owns an object as such. Every level is in order of its steps, so that a set has one spelling only.

Trees are never changed, and operations give back what they were given where the result is the same.

The paths of a value, in two readings.

A change touches every path of what appears or disappears, containers included. A configuration claims only what it
says: leaves, entries of lists and keys of maps; not the declared fields on the way there, and not a list that is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from springtide.apiserver.kinds import StructureNode, ValueType
from springtide.apiserver.patches.managed import path_elements as elements
from springtide.apiserver.patches.managed.path_elements import entries_by_element, is_list, is_map, item_node

FieldSet: TypeAlias = dict[str, Any]

SELF = "."
LEAF: FieldSet = {}
"""The place itself, and nothing below it. Also the empty set, at the top."""


def sorted_fieldset(tree: FieldSet) -> FieldSet:
    """Put the steps of one level in order."""
    return dict(sorted(tree.items())) if len(tree) > 1 else tree


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the paths that are in either."""
    if left is right or not right:
        return left
    return _joined(left, right) if left else right


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the paths of the first that are not in the second; owning a place is not owning what is below it."""
    return (_without(left, right) or LEAF) if left and right else left


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the paths that are in both."""
    return (_shared(left, right) or LEAF) if left and right else LEAF


def paths(tree: FieldSet, prefix: str = "") -> Iterator[str]:
    """Write the paths of a set as people read them; those of a level before those below it."""
    for element, below in tree.items():
        if element != SELF and (not below or SELF in below):
            yield prefix + elements.format_element(element)
    for element, below in tree.items():
        if element != SELF:
            yield from paths(below, prefix + elements.format_element(element))


def with_named_fields(tree: FieldSet, node: StructureNode) -> FieldSet:
    """Add every declared field on the way to a path of the set; keys of maps and entries of lists are not declared."""
    named = {}
    for element, below in tree.items():
        declared = False
        child = None
        if element.startswith("f:") and node.type in (ValueType.OBJECT, ValueType.ANY):
            declared = element[2:] in node.fields
            child = node.child(element[2:])
        elif element.startswith("k:"):
            child = node.items
        if below and child is not None:
            below = with_named_fields(below, child)
        named[element] = {SELF: LEAF, **below} if below and declared and SELF not in below else below
    return named


def normal(tree: Any) -> FieldSet:
    """Read a set that somebody else wrote; steps that are none are dropped."""
    read = _normal(tree)
    return {} if read is None or SELF in read else read


def _normal(tree: Any) -> FieldSet | None:
    if not isinstance(tree, dict):
        return None
    read: FieldSet = {}
    for written, below in tree.items():
        element = SELF if written == SELF else elements.canonical(written)
        if element is not None:
            read[element] = LEAF if element == SELF else (_normal(below) or LEAF)
    return LEAF if list(read) == [SELF] else sorted_fieldset(read)


def _joined(left: FieldSet, right: FieldSet) -> FieldSet:
    """Join two levels, of which each has something in it."""
    joined = left
    grown = False
    for element, below in right.items():
        mine = left.get(element)
        if mine is None:
            grown = True
            both = below
        elif mine is below:
            continue
        elif not below:
            both = mine if not mine or SELF in mine else {SELF: LEAF, **mine}
        elif not mine:
            both = below if SELF in below else {SELF: LEAF, **below}
        else:
            both = _joined(mine, below)
        if both is not mine:
            joined = dict(left) if joined is left else joined
            joined[element] = both
    return sorted_fieldset(joined) if grown else joined


def _without(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """Take the second from the first, place and places below alike; None if nothing is left."""
    if not left:
        return left if right and SELF not in right else None
    if not right:
        return left if SELF not in left else {element: below for element, below in left.items() if element != SELF}
    rest = left
    for element, theirs in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        kept = None if element == SELF else _without(mine, theirs)
        if kept is not mine:
            rest = dict(left) if rest is left else rest
            if kept is None:
                del rest[element]
            else:
                rest[element] = kept
    return rest if rest is left else _spelled(rest)


def _shared(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """Give what two levels have in common; None if that is nothing."""
    if not left or not right:
        return LEAF if (not left or SELF in left) and (not right or SELF in right) else None
    both: FieldSet = {}
    for element, mine in left.items():
        theirs = right.get(element)
        if theirs is not None:
            common = LEAF if element == SELF else _shared(mine, theirs)
            if common is not None:
                both[element] = common
    return _spelled(both)


def _spelled(level: FieldSet) -> FieldSet | None:
    """Write a level that has lost steps as it is spelt; None if it has lost them all."""
    if len(level) == 1 and SELF in level:
        return LEAF
    return level or None


_CONTAINERS = (dict, list)


def all_paths(node: StructureNode, value: Any) -> FieldSet:
    """Give all paths of a value that appears or disappears, from the place where it stands."""
    return {SELF: LEAF, **below} if (below := all_paths_below(node, value)) else LEAF


def all_paths_below(node: StructureNode, value: Any) -> FieldSet:
    """Give all paths below the place where a value stands."""
    tree: FieldSet = {}
    if is_map(node, value):
        for name, part in value.items():
            tree["f:" + name] = all_paths(node.child(name), part) if type(part) in _CONTAINERS else LEAF
        if not value.keys() >= node.always:
            for name in node.always - value.keys():
                tree["f:" + name] = _all_paths_of_empty(node.child(name))
    elif is_list(node, value):
        items = item_node(node)
        for element, same in entries_by_element(node, value).items():
            tree[element] = all_paths(items, same[0]) if len(same) == 1 else LEAF
    return sorted_fieldset(tree)


def _all_paths_of_empty(node: StructureNode) -> FieldSet:
    """Give the paths of a field that is there and that nobody has written: those of an empty struct, or itself."""
    return all_paths(node, {}) if node.always else LEAF


def applied_paths(node: StructureNode, value: Any) -> FieldSet:
    """Give the set of paths that a whole configuration claims."""
    tree: FieldSet = {}
    if is_map(node, value):
        for name, part in value.items():
            if type(part) not in _CONTAINERS:
                tree["f:" + name] = LEAF
                continue
            below = applied_paths(node.child(name), part)
            # A declared field is claimed through what it holds; whatever can hold nothing is claimed itself.
            if not _is_granular(node.child(name), part) or name not in node.fields or part == {}:
                tree["f:" + name] = {SELF: LEAF, **below} if below else LEAF
            elif below:
                tree["f:" + name] = below
    elif is_list(node, value):
        items = item_node(node)
        for element, same in entries_by_element(node, value).items():
            below = applied_paths(items, same[0]) if len(same) == 1 else LEAF
            tree[element] = {SELF: LEAF, **below} if below else LEAF
    return sorted_fieldset(tree)


def _is_granular(node: StructureNode, value: Any) -> bool:
    return is_map(node, value) or is_list(node, value)
