"""JSON values: copies, structural sharing, paths, timestamps and typed access.

Objects are shared between storage, history and readers, so they are copied before they are changed. `copy.deepcopy` is
ten times slower, since it handles cycles and types that JSON does not have.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeVar

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_TREES = frozenset((dict, list))

_MISSING = object()

T = TypeVar("T")


def deep_copy(value: Any) -> Any:
    """Copy a JSON value."""
    kind = type(value)
    if kind is dict:
        return {name: deep_copy(item) if type(item) in _TREES else item for name, item in value.items()}
    if kind is list:
        return [deep_copy(item) if type(item) in _TREES else item for item in value]
    return value


def deep_copy_unshared(value: Any, held: Any) -> Any:
    """Copy a JSON value, except for parts that are the same instance at the same place of another value."""
    if value is held or type(value) not in _TREES:
        return value
    if type(value) is not type(held):
        return deep_copy(value)
    if type(value) is dict:
        return {name: deep_copy_unshared(item, held.get(name)) for name, item in value.items()}
    return [deep_copy_unshared(item, other) for item, other in zip_longest(value, held[: len(value)])]


def share_unchanged(new: Any, old: Any) -> Any:
    """Return the new value, with unchanged parts taken from the old one; the old value where nothing changed.

    Unchanged parts can then be recognised by identity, and are kept once in a long history. Modifies the new value,
    which must not be shared yet. Unlike `==`, it distinguishes true from 1.
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
                value = share_unchanged(value, before)
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
            new[index] = share_unchanged(value, before)
            unchanged = unchanged and new[index] is before
        return old if unchanged else new
    return old if new == old else new


def path_steps(path: str) -> tuple[str, ...]:
    """Split a dotted path such as `.spec.replicas`."""
    return tuple(step for step in path.split(".") if step)


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def with_value_at(value: Object, path: tuple[str, ...], leaf: Any) -> Object:
    """Return the object with another value at a path; the rest is shared with the original."""
    first, rest = path[0], path[1:]
    if not rest:
        return {**value, first: leaf}
    inner = value.get(first)
    return {**value, first: with_value_at(inner if isinstance(inner, dict) else {}, rest, leaf)}


def without_value_at(value: Object, path: tuple[str, ...]) -> Object:
    """Return the object without the value at a path; itself where there is none."""
    first, rest = path[0], path[1:]
    if first not in value:
        return value
    if not rest:
        return {name: part for name, part in value.items() if name != first}
    inner = value[first]
    return {**value, first: without_value_at(inner, rest)} if isinstance(inner, dict) else value


def with_metadata(value: Object, **fields: Any) -> Object:
    """Return the object with changed metadata; None removes a field."""
    metadata = {name: item for name, item in (value["metadata"] | fields).items() if item is not None}
    return {**value, "metadata": metadata}


@lru_cache(maxsize=1024)
def timestamp(instant: int) -> str:
    """Format an instant as RFC 3339, in UTC and whole seconds."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> int:
    """Parse an RFC 3339 timestamp."""
    return int(datetime.fromisoformat(text).timestamp())


def typed_body(kind: str, body: Any, name: str) -> Object:
    """Return a body of the given kind, which it may leave out; its name, if any, must be that of the request."""
    if not isinstance(body, dict) or body.get("kind", kind) != kind:
        raise BadRequest(f"expected a {kind}, got {body!r:.40}")
    if typed_field(object_field(body, "metadata"), "name", str, name) != name:
        raise BadRequest(f"name in URL does not match name in {kind} object")
    return body


def object_field(body: Object, field: str) -> Object:
    """Return an object within a body; empty where it is absent."""
    return typed_field(body, field, dict, {})


def typed_field(body: Object, field: str, kind: type[T], default: T) -> T:
    """Return a value within a body; refuse another type."""
    value = body.get(field)
    if value is None:
        return default
    if type(value) is not kind:
        raise BadRequest(f"{field} is {value!r:.40}, expected {kind.__name__}")
    return value
