"""JSON values: copying them, sharing them, and finding places in them.

Objects are shared between the store, its history and everybody who reads, so whoever changes one copies it first.
`copy.deepcopy` would do, at ten times the price: it guards against cycles and foreign types that JSON does not have.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from springtide.cluster.resources import Object


def copied(value: Any) -> Any:
    """Copy a tree of JSON values."""
    kind = type(value)
    if kind is dict:
        return {name: copied(item) if type(item) in _TREES else item for name, item in value.items()}
    if kind is list:
        return [copied(item) if type(item) in _TREES else item for item in value]
    return value


_TREES = frozenset((dict, list))


def copied_beside(value: Any, held: Any) -> Any:
    """Copy a tree of JSON values, but for what is the very same in another one, at the same place."""
    if value is held or type(value) not in _TREES:
        return value
    if type(value) is not type(held):
        return copied(value)
    if type(value) is dict:
        return {name: copied_beside(item, held.get(name)) for name, item in value.items()}
    return [copied_beside(item, other) for item, other in zip_longest(value, held[: len(value)])]


def shared(new: Any, old: Any) -> Any:
    """Give the new value with everything that is as it was taken from the old one; the old one where all of it is.

    What has not changed is then recognised by identity, and kept once however long the history. Changes the new value,
    which nobody else may hold yet. Unlike `==`, it tells true from 1.
    """
    kind = type(new)
    if new is old or kind is not type(old):
        return new
    if kind is dict:
        unchanged = len(new) == len(old)
        for name, value in new.items():
            before = old.get(name, _MISSING)
            if value is before:
                continue
            if type(value) in _TREES:
                value = shared(value, before)
                if value is before:
                    new[name] = before
                    continue
            elif value == before and type(value) is type(before):
                continue
            unchanged = False
        return old if unchanged else new
    if kind is list:
        unchanged = len(new) == len(old)
        for index, (value, before) in enumerate(zip(new, old, strict=False)):
            new[index] = shared(value, before)
            unchanged = unchanged and new[index] is before
        return old if unchanged else new
    return old if new == old else new


_MISSING = object()


def steps(path: str) -> tuple[str, ...]:
    """Split a dotted path such as `.spec.replicas`."""
    return tuple(step for step in path.split(".") if step)


def found(value: Any, path: tuple[str, ...]) -> Any:
    """Give what stands at a path, or None."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def replaced(value: Object, path: tuple[str, ...], leaf: Any) -> Object:
    """Give the object with another value at a path; what lies beside the path is shared with the original."""
    first, rest = path[0], path[1:]
    if not rest:
        return {**value, first: leaf}
    inner = value.get(first)
    return {**value, first: replaced(inner if isinstance(inner, dict) else {}, rest, leaf)}


def removed(value: Object, path: tuple[str, ...]) -> Object:
    """Give the object without what stands at a path: itself, where nothing does."""
    first, rest = path[0], path[1:]
    if first not in value:
        return value
    if not rest:
        return {name: part for name, part in value.items() if name != first}
    inner = value[first]
    return {**value, first: removed(inner, rest)} if isinstance(inner, dict) else value


def with_metadata(value: Object, **fields: Any) -> Object:
    """Give the object with other metadata; None removes a field."""
    metadata = {name: item for name, item in (value["metadata"] | fields).items() if item is not None}
    return {**value, "metadata": metadata}
