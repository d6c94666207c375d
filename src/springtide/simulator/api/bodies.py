"""Reading the bodies of scales, bindings and evictions, which no kind judges before they are used."""

from __future__ import annotations

from typing import Any, TypeVar

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

T = TypeVar("T")


def body_of(kind: str, body: Any, name: str) -> Object:
    """Give a body that is of a kind, or does not say; its name, if it has one, must be that of the request."""
    if not isinstance(body, dict) or body.get("kind", kind) != kind:
        raise BadRequest(f"expected a {kind}, got {body!r:.40}")
    if leaf(part(body, "metadata"), "name", str, name) != name:
        raise BadRequest(f"name in URL does not match name in {kind} object")
    return body


def part(body: Object, field: str) -> Object:
    """Give an object within a body; empty where it is not there."""
    return leaf(body, field, dict, {})


def leaf(body: Object, field: str, kind: type[T], default: T) -> T:
    """Give a value within a body."""
    value = body.get(field)
    if value is None:
        return default
    if type(value) is not kind:
        raise BadRequest(f"{field} is {value!r:.40}, expected {kind.__name__}")
    return value
