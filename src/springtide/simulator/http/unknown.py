"""Fields that nobody knows, which is what most typing errors are.

Custom kinds drop them when they are written; built-in ones must be relieved of them here, because a real server reads
their bodies into structures that have no place for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.structure import ListKind, Node, Type
from springtide.simulator.http.repeated import Path

_MOST = 100
"""How many are told at once."""


def unknown_fields(kind: ServedKind, value: Any, *, patch: bool = False) -> list[Path]:
    """Give the places of fields that the kind does not have; nulls and directives of a patch write nothing."""
    found = []
    for path in _walk(value, kind.structure, (), closed=kind.strategic, patch=patch):
        found.append(path)
        if len(found) == _MOST:
            break
    return found if kind.strategic else sorted(found, key=shown)


def unknown_in_operations(kind: ServedKind, operations: Any) -> list[tuple[int, Path]]:
    """Give the fields that a JSON patch adds and the kind does not have, each with the operation that adds it."""
    found: list[tuple[int, Path]] = []
    for index, operation in enumerate(operations if isinstance(operations, list) else ()):
        if not isinstance(operation, dict) or operation.get("op") not in ("add", "replace"):
            continue
        pointer = operation.get("path")
        if isinstance(pointer, str) and pointer.startswith("/"):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
            value = _nested(steps, operation.get("value"))
            found += [(index, path) for path in _walk(value, kind.structure, (), closed=kind.strategic, patch=True)]
    return found[:_MOST]


def without(value: Any, paths: list[Path]) -> Any:
    """Give a value without these fields; what holds none of them is shared with the original."""
    for path in sorted(paths, key=len, reverse=True):
        value = _dropped(value, path)
    return value


def shown(path: Path) -> str:
    """Write a place as the messages of strict decoding do."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def shown_with_keys(kind: ServedKind, value: Any, path: Path) -> str:
    """Write a place as the messages of apply do: entries of lists are named by their keys."""
    node, text = kind.structure, ""
    for step in path:
        if isinstance(step, int):
            text += f"[{_entry_name(value[step], node, step)}]"
            node = node.items or Node()
        else:
            text += f".{step}"
            node = node.child(step)
        value = value[step]
    return text


def _walk(value: Any, node: Node, path: Path, *, closed: bool, patch: bool) -> Iterator[Path]:
    if type(value) is dict:
        if node.type is not Type.OBJECT and not node.fields:
            return
        # A built-in type always says which fields it has; a custom one may say that it takes any.
        takes_any = not node.fields if closed else node.open
        for name, part in value.items():
            if patch and (part is None or name.startswith("$")):
                continue
            child = node.fields.get(name) or node.values
            if child is None:
                if not takes_any:
                    yield (*path, name)
            elif type(part) is dict or type(part) is list:
                yield from _walk(part, child, (*path, name), closed=closed, patch=patch)
    elif type(value) is list and node.items is not None:
        for index, part in enumerate(value):
            if type(part) is dict or type(part) is list:
                yield from _walk(part, node.items, (*path, index), closed=closed, patch=patch)


def _nested(steps: list[str], value: Any) -> Any:
    for step in reversed(steps):
        value = [value] if step == "-" or step.isdigit() else {step: value}
    return value


def _dropped(value: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _dropped(value[step], rest), *value[step + 1 :]]
    if not rest:
        return {name: part for name, part in value.items() if name != step}
    return {**value, step: _dropped(value[step], rest)}


def _entry_name(entry: Any, node: Node, index: int) -> str:
    if node.list_kind is not ListKind.MAP or not isinstance(entry, dict):
        return str(index)
    keys = {key: entry.get(key, node.key_defaults.get(key)) for key in sorted(node.keys)}
    return ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items() if value is not None)
