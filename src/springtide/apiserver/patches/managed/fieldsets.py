"""Sets of paths as the trees of `fieldsV1`, without decoding and encoding, and the paths of a value.

A tree maps path elements to the trees below them:

    {"f:spec": {"f:replicas": {}, "f:selector": {".": {}, "f:app": {}}}}

is the set of `.spec.replicas`, `.spec.selector` and `.spec.selector.app`. Below the top, `{}` is the path itself, and
`"."` adds the path to those below it. At the top `{}` is the empty set: an object as such has no owner. Each level is
sorted, so that equal sets are equal trees. Trees are never changed, and operations return the given tree if the result
is the same.

A value that is added or removed has all its paths, containers included. An applied configuration claims only what it
states: leaves, list entries and map keys, but not the declared fields on the way there, and no empty list.
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
"""A path and nothing below it. At the top: the empty set."""


def sorted_fieldset(tree: FieldSet) -> FieldSet:
    """Sort the elements of one level."""
    return dict(sorted(tree.items())) if len(tree) > 1 else tree


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    if left is right or not right:
        return left
    return _joined(left, right) if left else right


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of the first set that are not in the second. Owning a path does not mean owning what is below
    it."""
    return (_subtract(left, right) or LEAF) if left and right else left


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    return (_common(left, right) or LEAF) if left and right else LEAF


def paths(tree: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the paths of a set as conflicts show them, parents first."""
    for element, below in tree.items():
        if element != SELF and (not below or SELF in below):
            yield prefix + elements.format_element(element)
    for element, below in tree.items():
        if element != SELF:
            yield from paths(below, prefix + elements.format_element(element))


def with_named_fields(tree: FieldSet, node: StructureNode) -> FieldSet:
    """Add all declared fields on the way to a path of the set. Map keys and list entries are not declared."""
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
    """Read a set that a client sent. Invalid elements are dropped."""
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
    """Join two levels, neither of which is empty."""
    joined = left
    grown = False
    for element, below in right.items():
        left_below = left.get(element)
        if left_below is None:
            grown = True
            both = below
        elif left_below is below:
            continue
        elif not below:
            both = left_below if not left_below or SELF in left_below else {SELF: LEAF, **left_below}
        elif not left_below:
            both = below if SELF in below else {SELF: LEAF, **below}
        else:
            both = _joined(left_below, below)
        if both is not left_below:
            joined = dict(left) if joined is left else joined
            joined[element] = both
    return sorted_fieldset(joined) if grown else joined


def _subtract(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """Subtract the second level from the first; None if nothing is left."""
    if not left:
        return left if right and SELF not in right else None
    if not right:
        return left if SELF not in left else {element: below for element, below in left.items() if element != SELF}
    rest = left
    for element, right_below in right.items():
        left_below = left.get(element)
        if left_below is None:
            continue
        kept = None if element == SELF else _subtract(left_below, right_below)
        if kept is not left_below:
            rest = dict(left) if rest is left else rest
            if kept is None:
                del rest[element]
            else:
                rest[element] = kept
    return rest if rest is left else _canonical_level(rest)


def _common(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """Return what two levels have in common; None if there is nothing."""
    if not left or not right:
        return LEAF if (not left or SELF in left) and (not right or SELF in right) else None
    both: FieldSet = {}
    for element, left_below in left.items():
        right_below = right.get(element)
        if right_below is not None:
            common = LEAF if element == SELF else _common(left_below, right_below)
            if common is not None:
                both[element] = common
    return _canonical_level(both)


def _canonical_level(level: FieldSet) -> FieldSet | None:
    """Restore the canonical form of a level that has lost elements; None if it has lost all."""
    if len(level) == 1 and SELF in level:
        return LEAF
    return level or None


_CONTAINERS = (dict, list)


def all_paths(node: StructureNode, value: Any) -> FieldSet:
    """Return all paths of a value that is added or removed, its own included."""
    return {SELF: LEAF, **below} if (below := all_paths_below(node, value)) else LEAF


def all_paths_below(node: StructureNode, value: Any) -> FieldSet:
    """Return all paths below a value."""
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
    """Return the paths of a field that is set without having been written: those of an empty struct, or its own."""
    return all_paths(node, {}) if node.always else LEAF


def applied_paths(node: StructureNode, value: Any) -> FieldSet:
    """Return the paths that an applied configuration claims."""
    tree: FieldSet = {}
    if is_map(node, value):
        for name, part in value.items():
            if type(part) not in _CONTAINERS:
                tree["f:" + name] = LEAF
                continue
            below = applied_paths(node.child(name), part)
            # A declared field is claimed through its contents. Values without contents are claimed themselves.
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
