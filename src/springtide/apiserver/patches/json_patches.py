"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386).

Containers on the path of an operation are copied, all others are shared with the target. Where kube-apiserver departs
from RFC 6902, so does this module: negative indexes count from the end, `replace` sets a missing field, `copy` and
`test` read a missing field as null, and only `replace` and `test` accept the whole document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from springtide.cluster.errors import BadRequest, Invalid, StatusDetails


def equal_json(left: Any, right: Any) -> bool:
    """Compare two JSON values: unlike in Python, `true` and `1` differ; `1` and `1.0` are equal."""
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
"""The maximum number of operations in one patch."""

_ABSENT: Any = object()
_INTEGER = re.compile(r"[+-]?[0-9]+")

_Edit = Callable[[Any, str], Any]
"""Changes an entry of a container; the second argument is its token."""


def json_patch(target: Any, operations: Any) -> Any:
    """Apply the operations in order; `BadRequest` if one is malformed, `Invalid` if one cannot be applied."""
    if operations is None:
        return target
    if not isinstance(operations, list):
        problem = f"json: cannot unmarshal {_kind(operations)} into Go value of type []handlers.jsonPatchOp"
        raise BadRequest(f"error decoding patch: {problem}")
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
    """Return the tokens of a JSON pointer. The empty pointer is the whole document."""
    pointer = operation.get(member)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise BadRequest(f"JSON patch operation needs a JSON pointer as {member}, not {pointer!r}")
    # `~1` first: `~01` is the escape of `~1`, not of `/`.
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _get(document: Any, path: list[str], missing: Any = _ABSENT) -> Any:
    """Return the value at a path. If a field is missing, return `missing` if given, and fail otherwise."""
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
    """Return the document with an edit at the end of the path. Only the containers on the path are copied."""
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
    """Parse a token as an index of a list of the given length."""
    if not _INTEGER.fullmatch(token):
        raise _not_applicable()
    index = int(token)
    if not -places <= index < places:
        raise _not_applicable()
    return index % places


def _not_applicable() -> Invalid:
    """Return the error of kube-apiserver, which does not tell which operation failed."""
    return Invalid("the server rejected our request due to an error in our request", about=StatusDetails())


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return kinds.get(type(value), "number")


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the patched target: the target itself if the patch changes nothing."""
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
    """Copy the target at the first change."""
    return dict(target) if merged is target else merged
