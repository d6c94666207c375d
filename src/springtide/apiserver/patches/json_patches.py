"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386).

Containers on the path of an operation are copied once, all others are shared with the target. Where kube-apiserver
departs from RFC 6902, so does this module: negative indexes count from the end, `replace` sets a missing field, `copy`
and `test` read a missing field as null, and only `replace` and `test` accept the whole document.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import msgspec

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

MOST_COPIED = 3 * 1024 * 1024
"""The maximum size of all values that one patch copies, as JSON, as in a kube-apiserver."""

_ABSENT: Any = object()
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


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
    patched = _PatchedDocument(target)
    for operation in operations:
        patched.perform(operation)
    return patched.root


class _PatchedDocument:
    """A document under a patch: a container is copied when it is first changed, and changed in place afterwards."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._own: dict[int, Any] = {}
        """The containers that only this document holds, by their identity."""
        self._copied = 0

    def perform(self, operation: Any) -> None:
        """Perform one operation."""
        if not isinstance(operation, dict):
            raise BadRequest(f"an operation of a JSON patch is an object, got {_kind(operation)}")
        path = _tokens(operation, "path")
        match operation.get("op"):
            case "add":
                self._add(path, _value(operation))
            case "remove":
                self._remove(path)
            case "replace" if not path:
                self.root = _value(operation)
            case "replace":
                self._replace(path, _value(operation))
            case "move":
                origin = _tokens(operation, "from")
                moved = _get(self.root, origin)
                self._remove(origin)
                self._add(path, moved)
            case "copy":
                self._add(path, self._copy(_get(self.root, _tokens(operation, "from"), missing=None)))
            case "test":
                if not equal_json(_get(self.root, path, missing=None), operation.get("value")):
                    raise _not_applicable()
            case _:
                raise _not_applicable()

    def _add(self, path: list[str], value: Any) -> None:
        container, token = self._container(path)
        if isinstance(container, dict):
            container[token] = value
        elif token == "-":  # noqa: S105
            container.append(value)
        else:
            container.insert(_index(token, len(container) + 1), value)

    def _replace(self, path: list[str], value: Any) -> None:
        container, token = self._container(path)
        container[token if isinstance(container, dict) else _index(token, len(container))] = value

    def _remove(self, path: list[str]) -> None:
        container, token = self._container(path)
        if isinstance(container, list):
            del container[_index(token, len(container))]
        elif token in container:
            del container[token]
        else:
            raise _not_applicable()

    def _copy(self, value: Any) -> Any:
        """Return a copy of a value, so that a change of one leaves the other alone."""
        written = msgspec.json.encode(value)
        self._copied += len(written)
        if self._copied > MOST_COPIED:
            raise _not_applicable()
        return msgspec.json.decode(written)

    def _container(self, path: list[str]) -> tuple[Any, str]:
        """Return the container at the end of a path, ready to be changed, and the last token."""
        if not path or not isinstance(self.root, dict | list):
            raise _not_applicable()
        container = self.root = self._owned(self.root)
        for token in islice(path, len(path) - 1):
            if isinstance(container, dict) and token not in container:
                raise _not_applicable()
            step = token if isinstance(container, dict) else _index(token, len(container))
            inner = container[step]
            if not isinstance(inner, dict | list):
                raise _not_applicable()
            container[step] = container = self._owned(inner)
        return container, path[-1]

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        copied = container.copy()
        self._own[id(copied)] = copied
        return copied


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
