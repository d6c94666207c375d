"""Which old value belongs to which new one.

An update is judged more kindly than a creation: what was wrong before and has not been touched may stay (ratcheting),
and rules may compare a value with what it was. Both need to know what a value was before. Fields and entries of maps
belong together by name, entries of lists only where the schema names the keys that tell them apart.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from springtide.simulator.api.custom.places import Place

Key: TypeAlias = tuple[tuple[str, Any], ...]


class Pair:
    """A value, what it was before, and the place where both stand."""

    __slots__ = ("_by_keys", "_unchanged", "new", "old", "place")

    def __init__(self, new: Any, old: Any, place: Place) -> None:
        self.new = new
        self.old = old
        self.place = place
        self._unchanged: bool | None = None
        self._by_keys: dict[Key, Any] | None = None

    def field(self, name: str) -> Pair | None:
        """Follow a field; None where it was not there before."""
        if not (isinstance(self.new, dict) and isinstance(self.old, dict)):
            return None
        place = self.place.child(name)
        if place is None or name not in self.new or name not in self.old:
            return None
        return Pair(self.new[name], self.old[name], place)

    def item(self, index: int) -> Pair | None:
        """Follow an entry of a list; None where nothing tells which one it was before."""
        place = self.place.items
        if place is None or self.place.list_type != "map" or not isinstance(self.old, list):
            return None
        if self._by_keys is None:
            self._by_keys = old_entries(self.old, self.place.list_keys)
        key = entry_key(self.new[index], self.place.list_keys)
        return Pair(self.new[index], self._by_keys[key], place) if key in self._by_keys else None

    @property
    def unchanged(self) -> bool:
        """Whether the value is what it was before; the order of lists with keys does not count."""
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict) and len(new) == len(old):
            return all((pair := self.field(name)) is not None and pair.unchanged for name in new)
        if self.place.list_type == "map" and isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
            return all((pair := self.item(index)) is not None and pair.unchanged for index in range(len(new)))
        return same(new, old)


def old_entries(old: list[Any], keys: tuple[str, ...]) -> dict[Key, Any]:
    """Index the old entries of a list by its keys; the first of several with the same keys counts."""
    index: dict[Key, Any] = {}
    for entry in old:
        key = entry_key(entry, keys)
        if key is not None:
            index.setdefault(key, entry)
    return index


def entry_key(entry: Any, keys: tuple[str, ...]) -> Key | None:
    """Give what tells an entry of a list apart: all of its keys, where each is there and holds a scalar."""
    if not isinstance(entry, dict):
        return None
    parts = tuple(entry.get(name) for name in keys)
    if not all(isinstance(part, str | int | float) for part in parts):
        return None
    # The type belongs to the key, because 1 and true are equal in Python.
    return tuple((part.__class__.__name__, part) for part in parts)


def same(one: Any, other: Any) -> bool:
    """Compare two JSON values; unlike `==`, this holds `1`, `1.0` and `true` apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*parts) for parts in zip(one, other, strict=True))
    return bool(one == other)
