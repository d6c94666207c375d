"""Checks of what is declared: types and required fields, worded as a kube-apiserver words them.

What an update leaves as it was has been judged before and is not looked at again; that makes small changes of large
objects cheap.

What rules are made of: the ways in which most of them judge, told once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from springtide.apiserver.builtin.schema import QUANTITY, STATUS, EnumNode, TypeNode
from springtide.apiserver.kinds import StructureNode, ValueType
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

_Path = tuple[Any, ...]
"""A linked path, `(parent, step)`: it costs nothing to extend, and is spelt out only where something is wrong."""

_PYTHON_TYPES: dict[ValueType, tuple[type, ...]] = {
    ValueType.STRING: (str,),
    ValueType.INTEGER: (int,),
    ValueType.NUMBER: (int, float),
    ValueType.BOOLEAN: (bool,),
    ValueType.INT_OR_STRING: (int, str),
}
_TYPE_NAMES = {ValueType.INT_OR_STRING: "integer or string"}
_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class GoStruct(dict[str, Any]):
    """An object as messages show it that print Go's own structures: with all fields, in Go's spelling and order."""

    def __init__(self, value: Object, /, **zero: Any) -> None:
        """Take the fields that the structure has, each with what stands for none."""
        super().__init__({f"{name[0].upper()}{name[1:]}": value.get(name, none) for name, none in zero.items()})


def required(field: str, detail: str = "") -> StatusCause:
    """Say that a field must be there."""
    return StatusCause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def invalid(field: str, value: Any, detail: str) -> StatusCause:
    """Say what is wrong with a value."""
    return StatusCause(field, f"Invalid value: {format_value(value)}: {detail}")


def invalid_without_value(field: str, detail: str) -> StatusCause:
    """Say what is wrong at a field whose value would say nothing."""
    return StatusCause(field, f"Invalid value: {detail}")


def duplicate(field: str, value: Any, detail: str = "") -> StatusCause:
    """Say that a value stands there twice."""
    told = f"Duplicate value: {format_value(value)}"
    return StatusCause(field, f"{told}: {detail}" if detail else told, "FieldValueDuplicate")


def not_found(field: str, value: Any) -> StatusCause:
    """Say that what a field names is not there."""
    return StatusCause(field, f"Not found: {format_value(value)}", "FieldValueNotFound")


def forbidden(field: str, detail: str) -> StatusCause:
    """Say what must not be done to a field."""
    return StatusCause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def unsupported(field: str, value: Any, *supported: str) -> StatusCause:
    """Say which values there are instead of this one."""
    listed = ", ".join(json.dumps(each) for each in supported)
    return StatusCause(
        field, f"Unsupported value: {format_value(value)}: supported values: {listed}", "FieldValueNotSupported"
    )


def format_value(value: Any) -> str:
    """Write a value as messages show it: as compact JSON, with the names in order."""
    in_order = not isinstance(value, GoStruct)
    return json.dumps(value, separators=(",", ":"), sort_keys=in_order, ensure_ascii=False)


_TYPE_AND_METADATA = frozenset({"apiVersion", "kind", "metadata"})
"""What the server has looked at before it asks about a kind."""


def first_type_error(value: Object, structure: StructureNode) -> StatusCause | None:
    """Find a value that is not of its declared type, without asking for anything else; metadata is looked at apart."""
    causes: list[StatusCause] = []
    body = {name: part for name, part in value.items() if name not in _TYPE_AND_METADATA}
    _validate_struct(body, None, structure, (), causes, False)
    return next((cause for cause in causes if cause.reason != "FieldValueNotSupported"), None)


def validate_fields(value: Object, old: Object | None, structure: TypeNode) -> tuple[StatusCause, ...]:
    """Find wrong types, and required fields that are not there; what a status lacks is nobody's fault."""
    causes: list[StatusCause] = []
    body = {name: part for name, part in value.items() if name not in _TYPE_AND_METADATA}
    _validate_struct(body, old, structure, (), causes, True)
    return tuple(causes)


def _validate(
    value: Any, old: Any, node: StructureNode, path: _Path, causes: list[StatusCause], complete: bool
) -> None:
    """Judge a value that is there; `complete` asks for required fields as well."""
    if value == old and type(value) is type(old):
        return
    kind = node.type
    if kind is ValueType.OBJECT:
        if type(value) is not dict:
            causes.append(_wrong_type(path, value, "object"))
        elif node.values is not None:
            _validate_map(value, old, node.values, path, causes, complete)
        else:
            _validate_struct(value, old, node, path, causes, complete)
    elif kind is ValueType.LIST:
        if type(value) is not list:
            causes.append(_wrong_type(path, value, "array"))
        elif node.items is not None:
            known = old if type(old) is list else ()
            for index, entry in enumerate(value):
                before = known[index] if index < len(known) else None
                if entry is not None:
                    _validate(entry, before, node.items, (path, index), causes, complete)
    elif node is QUANTITY:
        if type(value) not in (str, int, float) or not _is_quantity(value):
            causes.append(invalid(_format_path(path), value, _QUANTITY_FORM))
    elif kind is not ValueType.ANY and type(value) not in _PYTHON_TYPES[kind]:
        causes.append(_wrong_type(path, value, _TYPE_NAMES.get(kind, kind.value)))
    elif type(node) is EnumNode and value and value not in node.supported:
        causes.append(unsupported(_format_path(path), value, *node.supported))


def _validate_map(
    value: Object, old: Any, values: StructureNode, path: _Path, causes: list[StatusCause], complete: bool
) -> None:
    known = old if type(old) is dict else {}
    for name, entry in value.items():
        if entry is not None:
            _validate(entry, known.get(name), values, (path, f"[{name}]"), causes, complete)


def _validate_struct(
    value: Object, old: Any, node: StructureNode, path: _Path, causes: list[StatusCause], complete: bool
) -> None:
    known = old if type(old) is dict else {}
    fields = node.fields
    for name, entry in value.items():
        if entry is not None and name in fields:
            _validate(entry, known.get(name), fields[name], (path, name), causes, complete and name != STATUS)
    if not complete:
        return
    if node.required:
        causes.extend(required(_format_path((path, name))) for name in node.required if _is_empty(value.get(name)))
    for name in node.present if isinstance(node, TypeNode) else ():
        if value.get(name) is None:
            _validate_struct({}, None, fields[name], (path, name), causes, True)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == []


def _wrong_type(path: _Path, value: Any, expected: str) -> StatusCause:
    return StatusCause(
        _format_path(path), f"Invalid value: {format_value(value)}: must be of type {expected}", "FieldValueTypeInvalid"
    )


@lru_cache(maxsize=4096, typed=True)
def _is_quantity(value: str | int | float) -> bool:
    try:
        Quantity.parse(value)
    except AmountError:
        return False
    return True


def _format_path(path: _Path) -> str:
    """Spell a path out: `spec.containers[0].name`."""
    steps: list[str] = []
    while path:
        path, step = path
        if isinstance(step, int):
            steps.append(f"[{step}]")
        else:
            steps.append(step if step.startswith("[") else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


ObjectRule: TypeAlias = Callable[[Object, Object | None], Iterable[StatusCause]]

AT_LEAST_ZERO = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


class KindRules(NamedTuple):
    """The rules of a kind, in the order in which their causes are listed."""

    main: tuple[ObjectRule, ...] = ()
    """Asked about new objects, and where something else than metadata and status has changed."""
    status: tuple[ObjectRule, ...] = ()
    """Asked where the status has changed."""


def field_of(item: Object | None, path: str) -> Any:
    """Find what stands at a path; None where nothing does."""
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def not_negative(*paths: str) -> ObjectRule:
    """Make a rule: these numbers are never negative."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        for path in paths:
            number = field_of(item, path)
            if isinstance(number, int) and number < 0:
                yield invalid(path, number, AT_LEAST_ZERO)

    return rule


def immutable(*paths: str) -> ObjectRule:
    """Make a rule: these fields never change."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        if old is None:
            return
        for path in paths:
            value = field_of(item, path)
            if value != field_of(old, path):
                yield invalid(path, value, IMMUTABLE)

    return rule


def without_fields(spec: Object, names: Collection[str]) -> Object:
    """Give an object without some of its fields."""
    return {name: value for name, value in spec.items() if name not in names}
