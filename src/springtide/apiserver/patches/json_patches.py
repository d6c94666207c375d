"""Equality of JSON values.

Python holds `True` and `1` for equal, JSON does not; `1` and `1.0` are the same number in both.

JSON patch (RFC 6902): operations on places that JSON pointers (RFC 6901) name; all of them, or none.

A place is rebuilt together with the containers above it; all others are shared with the target. Where the API server
departs from the RFC, so do we: negative indexes count from the end of a list, `replace` sets a field that is not there,
`copy` and `test` read such a field as null, and only `replace` and `test` take the whole document.

JSON merge patch (RFC 7386): maps are merged, null deletes, everything else replaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from springtide.cluster.errors import BadRequest, Invalid, StatusDetails


def equal_json(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict):
        return all(equal_json(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return all(map(equal_json, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


MOST_OPERATIONS = 10_000
"""How many operations the API server takes in one patch."""

_ABSENT: Any = object()
_INTEGER = re.compile(r"[+-]?[0-9]+")

_Edit = Callable[[Any, str], Any]
"""Gives a container as it is after an edit of one of its places."""


def json_patch(target: Any, operations: Any) -> Any:
    """Do the operations in order; `BadRequest` if they make no sense, `Invalid` if they do not fit the target."""
    if operations is None:
        return target
    if not isinstance(operations, list):
        told = f"json: cannot unmarshal {_kind(operations)} into Go value of type []handlers.jsonPatchOp"
        raise BadRequest(f"error decoding patch: {told}")
    if len(operations) > MOST_OPERATIONS:
        raise BadRequest(
            f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}",
            reason="RequestEntityTooLarge",
        )
    for operation in operations:
        target = _perform(target, operation)
    return target


def _perform(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise BadRequest(f"an operation of a JSON patch is an object, got {_kind(operation)}")
    name = operation.get("op")
    path = _tokens(operation, "path")
    match name:
        case "add":
            return _edit(document, path, _adding(_value(operation)))
        case "remove":
            return _edit(document, path, _remove)
        case "replace":
            if not path:
                return _value(operation)
            return _edit(document, path, _replacing(_value(operation)))
        case "move":
            origin = _tokens(operation, "from")
            moved = _get(document, origin)
            return _edit(_edit(document, origin, _remove), path, _adding(moved))
        case "copy":
            return _edit(document, path, _adding(_get(document, _tokens(operation, "from"), missing=None)))
        case "test":
            if not equal_json(_get(document, path, missing=None), operation.get("value")):
                raise _not_applicable()
            return document
    raise _not_applicable()


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise BadRequest(f"JSON patch operation {operation['op']!r} needs a value")
    return operation["value"]


def _tokens(operation: dict[str, Any], member: str) -> list[str]:
    """Split the JSON pointer of an operation; the empty one names the whole document."""
    pointer = operation.get(member)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise BadRequest(f"JSON patch operation needs a JSON pointer as {member}, not {pointer!r}")
    # `~1` first: `~01` is the escape of `~1`, not of `/`.
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _get(document: Any, path: list[str], missing: Any = _ABSENT) -> Any:
    """Read a place; a field that is not there is `missing`, if given, and an error otherwise."""
    for depth, token in enumerate(path, start=1):
        if isinstance(document, dict):
            document = document.get(token, missing if depth == len(path) else _ABSENT)
            if document is _ABSENT:
                raise _not_applicable()
        elif isinstance(document, list):
            document = document[_index(token, len(document))]
        else:
            raise _not_applicable()
    return document


def _edit(document: Any, path: list[str], edit: _Edit) -> Any:
    """Give the document with an edit at the end of the path, copying only the containers on the way there."""
    if not path or not isinstance(document, dict | list):
        raise _not_applicable()
    if len(path) == 1:
        return edit(document.copy(), path[0])
    token, *rest = path
    if isinstance(document, dict):
        if token not in document:
            raise _not_applicable()
        return {**document, token: _edit(document[token], rest, edit)}
    at = _index(token, len(document))
    return [*document[:at], _edit(document[at], rest, edit), *document[at + 1 :]]


def _adding(value: Any) -> _Edit:
    def add(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            container[token] = value
        elif token == "-":  # noqa: S105
            container.append(value)
        else:
            container.insert(_index(token, len(container) + 1), value)
        return container

    return add


def _replacing(value: Any) -> _Edit:
    def replace(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            container[token] = value
        else:
            container[_index(token, len(container))] = value
        return container

    return replace


def _remove(container: Any, token: str) -> Any:
    if isinstance(container, list):
        del container[_index(token, len(container))]
    elif token in container:
        del container[token]
    else:
        raise _not_applicable()
    return container


def _index(token: str, places: int) -> int:
    """Read a token as an index into a list that offers so many places."""
    if not _INTEGER.fullmatch(token):
        raise _not_applicable()
    index = int(token)
    if not -places <= index < places:
        raise _not_applicable()
    return index % places


def _not_applicable() -> Invalid:
    """Word it as the API server does, which does not tell which operation failed, nor why."""
    return Invalid("the server rejected our request due to an error in our request", about=StatusDetails())


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return kinds.get(type(value), "number")


def merge_patch(target: Any, patch: Any) -> Any:
    """Give the target as the patch wants it; the target itself where that changes nothing."""
    if not isinstance(patch, dict):
        return target if type(target) is type(patch) and target == patch and not isinstance(patch, list) else patch
    if not isinstance(target, dict):
        return {name: merge_patch(_ABSENT, value) for name, value in patch.items() if value is not None}
    merged = target
    for name, value in patch.items():
        before = target.get(name, _ABSENT)
        if value is None:
            if before is _ABSENT:
                continue
            merged = _own(merged, target)
            del merged[name]
            continue
        after = merge_patch(before, value)
        if after is not before:
            merged = _own(merged, target)
            merged[name] = after
    return merged


def _own(merged: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Copy the target at the first change, so that a patch that changes nothing copies nothing."""
    return dict(target) if merged is target else merged
