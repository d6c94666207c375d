"""Conformance of applied configurations to the schema of their kind.

A configuration may contain only declared fields, values of the declared types, and list entries that can be told apart.
Otherwise ownership is undefined, and the apply is rejected as a bad request, where a kube-apiserver answers with an
internal error.
"""

from __future__ import annotations

import json
from typing import Any

from springtide.apiserver.kinds import StructureNode, ValueType
from springtide.apiserver.patches.managed.path_elements import (
    UnidentifiableElement,
    element_of,
    format_element,
    is_list,
    item_node,
)
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_NUMBERS = frozenset((int, float))
_TYPES = {
    ValueType.STRING: frozenset((str,)),
    ValueType.INTEGER: _NUMBERS,
    ValueType.NUMBER: _NUMBERS,
    ValueType.BOOLEAN: frozenset((bool,)),
    ValueType.OBJECT: frozenset((dict,)),
    ValueType.LIST: frozenset((list,)),
}
"""The usual Python types of each type. Other values are looked at more closely."""


def require_conformance(applied: Object, node: StructureNode) -> None:
    """Raise the error of kube-apiserver if a configuration does not conform."""
    problems = _problems(node, applied)
    if not problems:
        return
    text = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join("  " + problem for problem in problems)
    raise BadRequest(f"failed to create typed patch object ({describe_object(applied)}): {text}")


def conforms(item: Object, node: StructureNode) -> bool:
    """Whether an object conforms to a schema."""
    return not _problems(node, item)


def describe_object(item: Object) -> str:
    """Name an object as the messages about applied configurations do."""
    metadata = item.get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    version = item.get("apiVersion", "")
    return f"{name}; {version if '/' in version else f'/{version}'}, Kind={item.get('kind', '')}"


def _problems(node: StructureNode, value: Any) -> list[str]:
    """Return what is wrong with a value. Each problem starts with its path below the value, or with a colon.

    Nearly all configurations conform, so paths are built on the way back from a problem.
    """
    if value is None:
        return []
    if type(value) not in _TYPES.get(node.type, ()) and (problem := _wrong_type(node.type, value)):
        return [f": {problem}"]
    if isinstance(value, dict):
        return _in_map(node, value)
    return _in_list(node, value) if isinstance(value, list) else []


def _wrong_type(wanted: ValueType, value: Any) -> str:
    match wanted:
        case ValueType.STRING if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_as_source(value)}}}"
        case ValueType.INTEGER | ValueType.NUMBER if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_type_name(value)}"
        case ValueType.BOOLEAN if not isinstance(value, bool):
            return f"expected boolean, got &{{{_as_text(value)}}}"
        case ValueType.OBJECT if not isinstance(value, dict):
            return f"expected map, got &{{{_as_text(value)}}}"
        case ValueType.LIST if not isinstance(value, list):
            return f"expected list, got &{{{_as_text(value)}}}"
    return ""


def _in_map(node: StructureNode, value: Object) -> list[str]:
    # An object without declared fields is a map of anything.
    closed = node.type is ValueType.OBJECT and bool(node.fields) and node.values is None and not node.open
    found: list[str] = []
    for name, part in value.items():
        if closed and name not in node.fields:
            return [*found, f".{name}: field not declared in schema"]
        if below := _problems(node.child(name), part):
            found += [f".{name}{problem}" for problem in below]
    return found


def _in_list(node: StructureNode, value: list[Any]) -> list[str]:
    found: list[str] = []
    if not is_list(node, value):
        for index, item in enumerate(value):
            found += [f"[{index}]{problem}" for problem in _problems(item_node(node), item)]
        return found
    seen = set()
    for index, item in enumerate(value):
        try:
            element = element_of(node, item)
        except UnidentifiableElement as error:
            found.append(f": element {index}: {error}")
            continue
        if element in seen:
            found.append(f": duplicate entries for key {format_element(element)}")
        seen.add(element)
        found += [f"{format_element(element)}{problem}" for problem in _problems(item_node(node), item)]
    return found


def _type_name(value: Any) -> str:
    """Return the type of a value as messages name it."""
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "interface {}")


def _as_text(value: Any) -> str:
    """Format a value as Go's `%v` does."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_as_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_as_text, value))}]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else json.dumps(value)


def _as_source(value: Any) -> str:
    """Format a value as Go's `%#v` does."""
    if isinstance(value, dict):
        parts = ", ".join(f"{json.dumps(name)}:{_as_source(value[name])}" for name in sorted(value))
        return f"{_type_name(value)}{{{parts}}}"
    if isinstance(value, list):
        return f"{_type_name(value)}{{{', '.join(map(_as_source, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value)
