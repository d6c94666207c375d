"""Correlation of new and old values, and uniqueness of the entries of sets and keyed lists.

An update may keep violations in values that it does not change (ratcheting), and rules can compare a value with its old
one. Fields and map entries are correlated by name, list entries by the keys of the list, if it has any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from springtide.apiserver import field_errors
from springtide.apiserver.custom.structural_schema import SchemaNode
from springtide.cluster.errors import StatusCause

Key: TypeAlias = tuple[tuple[str, Any], ...]


class CorrelatedValue:
    """A value with its old value and its schema node."""

    __slots__ = ("_by_keys", "_unchanged", "new", "node", "old")

    def __init__(self, new: Any, old: Any, node: SchemaNode) -> None:
        self.new = new
        self.old = old
        self.node = node
        self._unchanged: bool | None = None
        self._by_keys: dict[Key, Any] | None = None

    def field(self, name: str) -> CorrelatedValue | None:
        """Return a field; None if the old value does not have it."""
        if not (isinstance(self.new, dict) and isinstance(self.old, dict)):
            return None
        node = self.node.child(name)
        if node is None or name not in self.new or name not in self.old:
            return None
        return CorrelatedValue(self.new[name], self.old[name], node)

    def item(self, index: int) -> CorrelatedValue | None:
        """Return a list entry; None if it cannot be correlated."""
        node = self.node.items
        if node is None or self.node.list_type != "map" or not isinstance(self.old, list):
            return None
        if self._by_keys is None:
            self._by_keys = old_entries(self.old, self.node.list_keys)
        key = entry_key(self.new[index], self.node.list_keys)
        return CorrelatedValue(self.new[index], self._by_keys[key], node) if key in self._by_keys else None

    @property
    def unchanged(self) -> bool:
        """Whether the value has not changed. The order of keyed lists does not matter."""
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict) and len(new) == len(old):
            return all((pair := self.field(name)) is not None and pair.unchanged for name in new)
        if self.node.list_type == "map" and isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
            return all((pair := self.item(index)) is not None and pair.unchanged for index in range(len(new)))
        return same_json(new, old)


def old_entries(old: list[Any], keys: tuple[str, ...]) -> dict[Key, Any]:
    """Index the old entries of a list by key. The first of several entries with one key counts."""
    index: dict[Key, Any] = {}
    for entry in old:
        key = entry_key(entry, keys)
        if key is not None:
            index.setdefault(key, entry)
    return index


def entry_key(entry: Any, keys: tuple[str, ...]) -> Key | None:
    """Return the key of a list entry; None if a part of it is missing or is not a scalar."""
    if not isinstance(entry, dict):
        return None
    parts = tuple(entry.get(name) for name in keys)
    if not all(isinstance(part, str | int | float) for part in parts):
        return None
    # The type is part of the key, because 1 and true are equal in Python.
    return tuple((part.__class__.__name__, part) for part in parts)


def same_json(one: Any, other: Any) -> bool:
    """Compare two JSON values. Unlike `==`, this tells `1`, `1.0` and `true` apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(part, other[name]) for name, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(same_json(*parts) for parts in zip(one, other, strict=True))
    return bool(one == other)


def validate_list_types(value: Any, node: SchemaNode, path: str = "") -> Iterator[StatusCause]:
    """Yield causes for duplicate entries of sets and keyed lists."""
    if not node.unique:
        return
    if isinstance(value, dict):
        for name, part in value.items():
            declared = node.properties.get(name)
            child = declared or node.values
            if child is not None and child.unique:
                step = f"{path}.{name}" if declared and path else name if declared else f"{path}[{name}]"
                yield from validate_list_types(part, child, step)
    elif isinstance(value, list):
        if node.list_type == "set":
            yield from _duplicates(value, path)
        elif node.list_type == "map":
            yield from _validate_list_map(value, node, path)
        if node.items is not None:
            for index, part in enumerate(value):
                yield from validate_list_types(part, node.items, f"{path}[{index}]")


def _validate_list_map(value: list[Any], node: SchemaNode, path: str) -> Iterator[StatusCause]:
    for index, entry in enumerate(value):
        if entry is not None and not isinstance(entry, dict):
            detail = "must be an object for an array of list-type map"
            yield field_errors.invalid(f"{path}[{index}]", entry, detail)
            return
    keys = [{name: (entry or {})[name] for name in node.list_keys if name in (entry or {})} for entry in value]
    yield from _duplicates(keys, path)


def _duplicates(values: list[Any], path: str) -> Iterator[StatusCause]:
    if len(values) < 2:
        return
    times: dict[str, int] = {}
    for index, value in enumerate(values):
        text = json.dumps(value, sort_keys=True)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            yield field_errors.duplicate(f"{path}[{index}]", value)
