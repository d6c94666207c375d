"""Sets of paths, as the trees that `fieldsV1` writes: no decoding, no encoding.

A tree maps steps to what is owned below them:

    {"f:spec": {"f:replicas": {}, "f:selector": {".": {}, "f:app": {}}}}

is the set of `.spec.replicas`, `.spec.selector` and `.spec.selector.app`. Below the top, `{}` stands for the place
itself, and `"."` says that the place belongs to the set beside the places below it. At the top `{}` is the empty set:
nobody owns an object as such. Every level is in order of its steps, so that a set has one spelling only.

Trees are never changed, and operations give back what they were given where the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from springtide.simulator.api.patches.managed import elements
from springtide.simulator.api.structure import Node, Type

FieldSet: TypeAlias = dict[str, Any]

SELF = "."
LEAF: FieldSet = {}
"""The place itself, and nothing below it. Also the empty set, at the top."""


def ordered(tree: FieldSet) -> FieldSet:
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
            yield prefix + elements.shown(element)
    for element, below in tree.items():
        if element != SELF:
            yield from paths(below, prefix + elements.shown(element))


def with_named_fields(tree: FieldSet, node: Node) -> FieldSet:
    """Add every declared field on the way to a path of the set; keys of maps and entries of lists are not declared."""
    named = {}
    for element, below in tree.items():
        declared = False
        child = None
        if element.startswith("f:") and node.type in (Type.OBJECT, Type.ANY):
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
    return LEAF if list(read) == [SELF] else ordered(read)


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
    return ordered(joined) if grown else joined


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
