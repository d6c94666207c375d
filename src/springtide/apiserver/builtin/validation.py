"""Validation of built-in kinds: declared types and required fields, and the helpers that their rules are made of.

An update is only checked where it differs from the stored object, which makes small changes of large objects cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from springtide.apiserver.builtin.schema import QUANTITY, STATUS, EnumNode, TypeNode
from springtide.apiserver.field_errors import invalid, required, unsupported, wrong_type
from springtide.apiserver.kinds import StructureNode, ValueType
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

_Path = tuple[Any, ...]
"""A path as a linked list, `(parent, step)`: extending it is free, and it is formatted only for an error."""

_PYTHON_TYPES: dict[ValueType, tuple[type, ...]] = {
    ValueType.STRING: (str,),
    ValueType.INTEGER: (int,),
    ValueType.NUMBER: (int, float),
    ValueType.BOOLEAN: (bool,),
    ValueType.INT_OR_STRING: (int, str),
}
_TYPE_NAMES = {ValueType.INT_OR_STRING: "integer or string"}
_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

NO_INT32 = "must be between -2147483648 and 2147483647"
"""Of a number where a string is allowed, too: it is a field of 32 bits."""

_TYPE_AND_METADATA = frozenset({"apiVersion", "kind", "metadata"})
"""Fields that are validated for all kinds alike, before those of the kind."""


def type_errors(
    value: Object, structure: StructureNode, *, except_for: Collection[str] = _TYPE_AND_METADATA
) -> Iterator[StatusCause]:
    """Yield values of wrong types, except for those in some fields. Required fields are not checked."""
    causes: list[StatusCause] = []
    body = {name: part for name, part in value.items() if name not in except_for}
    _validate_struct(body, None, structure, (), causes, False)
    return (cause for cause in causes if cause.reason != "FieldValueNotSupported")


def first_type_error(value: Object, structure: StructureNode) -> StatusCause | None:
    """Return the first value of a wrong type, if any. Required fields and metadata are not checked."""
    return next(type_errors(value, structure), None)


def validate_fields(value: Object, old: Object | None, structure: TypeNode) -> tuple[StatusCause, ...]:
    """Return wrong types and missing required fields. Nothing is required of a status."""
    causes: list[StatusCause] = []
    body = {name: part for name, part in value.items() if name not in _TYPE_AND_METADATA}
    _validate_struct(body, old, structure, (), causes, True)
    return tuple(causes)


def _validate(
    value: Any, old: Any, node: StructureNode, path: _Path, causes: list[StatusCause], complete: bool
) -> None:
    """Validate a value that is not null; `complete` also checks required fields."""
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
    elif kind is ValueType.INT_OR_STRING and isinstance(value, int) and not -(2**31) <= value < 2**31:
        causes.append(invalid(_format_path(path), value, NO_INT32))
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
    return wrong_type(_format_path(path), value, f"must be of type {expected}")


@lru_cache(maxsize=4096, typed=True)
def _is_quantity(value: str | int | float) -> bool:
    try:
        Quantity.parse(value)
    except AmountError:
        return False
    return True


def _format_path(path: _Path) -> str:
    """Format a path as messages show it: `spec.containers[0].name`."""
    steps: list[str] = []
    while path:
        path, step = path
        if isinstance(step, int):
            steps.append(f"[{step}]")
        else:
            steps.append(step if step.startswith("[") else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


ObjectRule: TypeAlias = Callable[[Object, Object | None], Iterable[StatusCause]]
"""Checks an object; the second argument is its stored version, or None for a new object."""

AT_LEAST_ZERO = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


class KindRules(NamedTuple):
    """The rules of a kind, in the order in which their causes are reported."""

    main: tuple[ObjectRule, ...] = ()
    """Applied to new objects, and to updates that change more than metadata and status."""
    status: tuple[ObjectRule, ...] = ()
    """Applied to updates that change the status."""


def field_of(item: Object | None, path: str) -> Any:
    """Return the value at a path, or None."""
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def entries(holder: Object, name: str) -> Iterator[tuple[int, Any]]:
    """Iterate over a list with its positions; null entries are skipped."""
    return ((index, entry) for index, entry in enumerate(holder.get(name) or ()) if entry is not None)


def not_negative(*paths: str) -> ObjectRule:
    """Return a rule: these numbers must not be negative."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        for path in paths:
            number = field_of(item, path)
            if isinstance(number, int) and number < 0:
                yield invalid(path, number, AT_LEAST_ZERO)

    return rule


def immutable(*paths: str) -> ObjectRule:
    """Return a rule: these fields cannot be changed."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        if old is None:
            return
        for path in paths:
            value = field_of(item, path)
            if value != field_of(old, path):
                yield invalid(path, value, IMMUTABLE)

    return rule


def without_fields(spec: Object, names: Collection[str]) -> Object:
    """Return an object without some of its fields."""
    return {name: value for name, value in spec.items() if name not in names}
