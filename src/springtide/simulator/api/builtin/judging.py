"""Checks of what is declared: types and required fields, worded as a kube-apiserver words them.

What an update leaves as it was has been judged before and is not looked at again; that makes small changes of large
objects cheap.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity
from springtide.simulator.api.builtin.tree import QUANTITY, STATUS, Choice, TypeNode
from springtide.simulator.api.structure import Node, Type

_Path = tuple[Any, ...]
"""A linked path, `(parent, step)`: it costs nothing to extend, and is spelt out only where something is wrong."""

_PYTHON_TYPES: dict[Type, tuple[type, ...]] = {
    Type.STRING: (str,),
    Type.INTEGER: (int,),
    Type.NUMBER: (int, float),
    Type.BOOLEAN: (bool,),
    Type.INT_OR_STRING: (int, str),
}
_NAMES = {Type.INT_OR_STRING: "integer or string"}
_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class GoStruct(dict[str, Any]):
    """An object as messages show it that print Go's own structures: with all fields, in Go's spelling and order."""

    def __init__(self, value: Object, /, **zero: Any) -> None:
        """Take the fields that the structure has, each with what stands for none."""
        super().__init__({f"{name[0].upper()}{name[1:]}": value.get(name, none) for name, none in zero.items()})


def required(field: str, detail: str = "") -> Cause:
    """Say that a field must be there."""
    return Cause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def invalid(field: str, value: Any, detail: str) -> Cause:
    """Say what is wrong with a value."""
    return Cause(field, f"Invalid value: {shown(value)}: {detail}")


def invalid_here(field: str, detail: str) -> Cause:
    """Say what is wrong at a field whose value would say nothing."""
    return Cause(field, f"Invalid value: {detail}")


def duplicate(field: str, value: Any, detail: str = "") -> Cause:
    """Say that a value stands there twice."""
    told = f"Duplicate value: {shown(value)}"
    return Cause(field, f"{told}: {detail}" if detail else told, "FieldValueDuplicate")


def not_found(field: str, value: Any) -> Cause:
    """Say that what a field names is not there."""
    return Cause(field, f"Not found: {shown(value)}", "FieldValueNotFound")


def forbidden(field: str, detail: str) -> Cause:
    """Say what must not be done to a field."""
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def unsupported(field: str, value: Any, *supported: str) -> Cause:
    """Say which values there are instead of this one."""
    listed = ", ".join(json.dumps(each) for each in supported)
    return Cause(field, f"Unsupported value: {shown(value)}: supported values: {listed}", "FieldValueNotSupported")


def shown(value: Any) -> str:
    """Write a value as messages show it: as compact JSON, with the names in order."""
    in_order = not isinstance(value, GoStruct)
    return json.dumps(value, separators=(",", ":"), sort_keys=in_order, ensure_ascii=False)


_HEAD = frozenset({"apiVersion", "kind", "metadata"})
"""What the server has looked at before it asks about a kind."""


def mistyped(value: Object, structure: Node) -> Cause | None:
    """Find a value that is not of its declared type, without asking for anything else; metadata is looked at apart."""
    causes: list[Cause] = []
    body = {name: part for name, part in value.items() if name not in _HEAD}
    _judge_fields(body, None, structure, (), causes, False)
    return next((cause for cause in causes if cause.reason != "FieldValueNotSupported"), None)


def misfits(value: Object, old: Object | None, structure: TypeNode) -> tuple[Cause, ...]:
    """Find wrong types, and required fields that are not there; what a status lacks is nobody's fault."""
    causes: list[Cause] = []
    body = {name: part for name, part in value.items() if name not in _HEAD}
    _judge_fields(body, old, structure, (), causes, True)
    return tuple(causes)


def _judge(value: Any, old: Any, node: Node, path: _Path, causes: list[Cause], complete: bool) -> None:
    """Judge a value that is there; `complete` asks for required fields as well."""
    if value == old and type(value) is type(old):
        return
    kind = node.type
    if kind is Type.OBJECT:
        if type(value) is not dict:
            causes.append(_wrong_type(path, value, "object"))
        elif node.values is not None:
            _judge_map(value, old, node.values, path, causes, complete)
        else:
            _judge_fields(value, old, node, path, causes, complete)
    elif kind is Type.LIST:
        if type(value) is not list:
            causes.append(_wrong_type(path, value, "array"))
        elif node.items is not None:
            known = old if type(old) is list else ()
            for index, entry in enumerate(value):
                before = known[index] if index < len(known) else None
                if entry is not None:
                    _judge(entry, before, node.items, (path, index), causes, complete)
    elif node is QUANTITY:
        if type(value) not in (str, int, float) or not _is_quantity(value):
            causes.append(invalid(_spelt(path), value, _QUANTITY_FORM))
    elif kind is not Type.ANY and type(value) not in _PYTHON_TYPES[kind]:
        causes.append(_wrong_type(path, value, _NAMES.get(kind, kind.value)))
    elif type(node) is Choice and value and value not in node.supported:
        causes.append(unsupported(_spelt(path), value, *node.supported))


def _judge_map(value: Object, old: Any, values: Node, path: _Path, causes: list[Cause], complete: bool) -> None:
    known = old if type(old) is dict else {}
    for name, entry in value.items():
        if entry is not None:
            _judge(entry, known.get(name), values, (path, f"[{name}]"), causes, complete)


def _judge_fields(value: Object, old: Any, node: Node, path: _Path, causes: list[Cause], complete: bool) -> None:
    known = old if type(old) is dict else {}
    fields = node.fields
    for name, entry in value.items():
        if entry is not None and name in fields:
            _judge(entry, known.get(name), fields[name], (path, name), causes, complete and name != STATUS)
    if not complete:
        return
    if node.required:
        causes.extend(required(_spelt((path, name))) for name in node.required if _is_empty(value.get(name)))
    for name in node.present if isinstance(node, TypeNode) else ():
        if value.get(name) is None:
            _judge_fields({}, None, fields[name], (path, name), causes, True)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == []


def _wrong_type(path: _Path, value: Any, expected: str) -> Cause:
    return Cause(_spelt(path), f"Invalid value: {shown(value)}: must be of type {expected}", "FieldValueTypeInvalid")


@lru_cache(maxsize=4096, typed=True)
def _is_quantity(value: str | int | float) -> bool:
    try:
        Quantity.parse(value)
    except AmountError:
        return False
    return True


def _spelt(path: _Path) -> str:
    """Spell a path out: `spec.containers[0].name`."""
    steps: list[str] = []
    while path:
        path, step = path
        if isinstance(step, int):
            steps.append(f"[{step}]")
        else:
            steps.append(step if step.startswith("[") else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")
