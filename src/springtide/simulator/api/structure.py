"""The structure of kinds, as merging and validating need it: types, required fields, keys of lists.

Built-in kinds are read from data (`springtide.simulator.api.builtin`), custom ones from the schema of their CRD. Both
become the same tree of `Node`, so that patches, managed fields and pruning know no difference between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Type(StrEnum):
    """The type of a value, as far as the API tells them apart."""

    OBJECT = "object"
    """Fields with names that are declared, or (with `values`) a map from any name."""
    LIST = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    ANY = "any"


class ListKind(StrEnum):
    """What a list is to those who own parts of it."""

    ATOMIC = "atomic"
    """One value: owned and replaced as a whole."""
    SET = "set"
    """Scalars, each owned by itself."""
    MAP = "map"
    """Objects told apart by the keys of the list, each owned by itself."""


@dataclass(slots=True, eq=False)
class Node:
    """One place in the tree of a kind. Identity is equality: trees may refer back to themselves."""

    type: Type = Type.ANY
    fields: dict[str, Node] = field(default_factory=dict)
    values: Node | None = None
    items: Node | None = None
    required: tuple[str, ...] = ()
    always: frozenset[str] = frozenset()
    """Fields that a value has even when nobody writes them: they are empty then, and need not be written down."""
    list_kind: ListKind = ListKind.ATOMIC
    keys: tuple[str, ...] = ()
    """The fields that tell entries of a MAP list apart."""
    key_defaults: dict[str, object] = field(default_factory=dict)
    """What stands for a key that an entry does not write, such as TCP for the protocol of a port."""
    atomic: bool = False
    """An object that is owned and replaced as a whole."""
    patch_merge: bool = False
    """A strategic merge patch merges this list (by `patch_key`, or as a set of scalars) instead of replacing it."""
    patch_key: str = ""
    patch_retain_keys: bool = False
    """A strategic merge patch of this object drops the fields that `$retainKeys` does not list."""
    patch_replace: bool = False
    """A strategic merge patch replaces this object instead of merging it."""
    nullable: bool = False
    open: bool = False
    """Fields that are not declared are kept as they are."""

    def child(self, name: str) -> Node:
        """Give the node of a field or of a value of a map; what is not declared may be anything."""
        found = self.fields.get(name)
        return found or self.values or ANYTHING


ANYTHING = Node(open=True)
