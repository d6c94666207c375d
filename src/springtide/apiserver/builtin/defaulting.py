"""Defaulting of built-in kinds: each type has its defaults, wherever it occurs, and quantities get their canonical
form.

Types without defaults, here and below, are skipped, which is most of an object. A value that has its defaults already
is not written to, so that objects may share parts with stored ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from springtide.apiserver.builtin.derived_defaults import DERIVED_DEFAULTS
from springtide.apiserver.builtin.schema import FieldType, TypeData, field_type
from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

Defaulter: TypeAlias = Callable[[Object], Object]


class DefaultStep(msgspec.Struct, frozen=True):
    """Defaults for unset fields, applied where the fields in `given` have these values (null: unset)."""

    set: dict[str, Any]
    given: dict[str, Any] = {}


@cache
def default_table() -> dict[str, list[DefaultStep]]:
    """Return the table of defaults, by type."""
    return msgspec.json.decode(
        Path(__file__).with_name("defaults.json").read_bytes(), type=dict[str, list[DefaultStep]]
    )


class _TypeDefaulter:
    """Applies the defaults of one type."""

    __slots__ = ("_amount_maps", "_amounts", "_derive", "_entries", "_parts", "_steps", "_structs")

    def __init__(self, steps: tuple[DefaultStep, ...], derive: Callable[[Object], None] | None) -> None:
        self._steps = steps
        self._derive = derive
        self._structs: list[tuple[str, _TypeDefaulter]] = []
        """Go structs that are no pointers: they are defaulted even where the field is unset."""
        self._parts: list[tuple[str, _TypeDefaulter]] = []
        self._entries: list[tuple[str, _TypeDefaulter]] = []
        self._amounts: list[str] = []
        self._amount_maps: list[str] = []

    def add(self, field: str, declared: FieldType, defaulter: _TypeDefaulter | None) -> None:
        """Register a field of the type; `defaulter` applies the defaults of the field's own type."""
        entry = field_type(declared.of).type
        if declared.type == "quantity":
            self._amounts.append(field)
        elif declared.type == "map" and entry == "quantity":
            self._amount_maps.append(field)
        elif defaulter is not None and declared.type == "list":
            self._entries.append((field, defaulter))
        elif defaulter is not None and declared.type != "map":
            (self._structs if declared.present else self._parts).append((field, defaulter))

    @property
    def idle(self) -> bool:
        """Whether the type has no defaults, here and below."""
        work = (self._steps, self._structs, self._parts, self._entries, self._amounts, self._amount_maps)
        return self._derive is None and not any(work)

    def fill(self, value: Object) -> None:
        """Apply the defaults in place. Values of a wrong type are left to validation."""
        for step in self._steps:
            if all((value.get(name) or None) == wanted for name, wanted in step.given.items()):
                for name, default in step.set.items():
                    held = value.get(name)
                    # Go cannot tell an empty string or list from an unset one.
                    if held is None or (held in ("", []) and default != held):
                        value[name] = copy_default(default)
        if self._derive is not None:
            self._derive(value)
        for name, defaulter in self._structs:
            part = value.get(name)
            if part is None:
                part = {}
                defaulter.fill(part)
                if part:
                    value[name] = part
            elif isinstance(part, dict):
                defaulter.fill(part)
        for name, defaulter in self._parts:
            part = value.get(name)
            if isinstance(part, dict):
                defaulter.fill(part)
        for name, defaulter in self._entries:
            entries = value.get(name)
            if isinstance(entries, list):
                for index, entry in enumerate(entries):
                    if isinstance(entry, dict):
                        defaulter.fill(entry)
                    elif entry is None:
                        # Go structs cannot be null: null is the empty struct.
                        entries[index] = {}
                        defaulter.fill(entries[index])
        for name in self._amounts:
            _canonicalize(value, name, canonical_quantity)
        for name in self._amount_maps:
            amounts = value.get(name)
            if isinstance(amounts, dict):
                for resource in amounts:
                    _canonicalize(amounts, resource, canonical_resource_quantity)


def defaulters(types: Mapping[str, TypeData]) -> Callable[[str], Defaulter]:
    """Return a function that gives the defaulter of a type."""
    known_defaulters: dict[str, _TypeDefaulter | None] = {}

    def type_defaulter(name: str) -> _TypeDefaulter | None:
        if name in known_defaulters:
            return known_defaulters[name]
        # A type that refers back to itself has no defaults further down.
        known_defaulters[name] = None
        data = types[name]
        declared_types = {field: field_type(given) for field, given in data.fields.items()}
        defaults = {field: each.default for field, each in declared_types.items() if each.default is not None}
        steps = (*default_table().get(name, ()), *((DefaultStep(defaults),) if defaults else ()))
        defaulter = _TypeDefaulter(steps, DERIVED_DEFAULTS.get(name))
        for field, declared in declared_types.items():
            target = field_type(declared.of).type if declared.type == "list" else declared.type
            defaulter.add(field, declared, type_defaulter(target[1:]) if target.startswith("@") else None)
        known_defaulters[name] = None if defaulter.idle else defaulter
        return known_defaulters[name]

    def completer_of(name: str) -> Defaulter:
        defaulter = type_defaulter(name)
        structs = tuple(
            field
            for field in ("spec", "status")
            if field in types[name].fields and _is_always_present(types[name], field)
        )

        def complete(value: Object) -> Object:
            for field in structs:
                if value.get(field) is None:
                    value[field] = {}
            if defaulter is not None:
                defaulter.fill(value)
            return value

        return complete

    return completer_of


def _is_always_present(data: TypeData, field: str) -> bool:
    return field_type(data.fields[field]).present


def copy_default(default: Any) -> Any:
    """Copy a default, because objects must not share mutable values with the table."""
    if isinstance(default, dict):
        return {name: copy_default(value) for name, value in default.items()}
    if isinstance(default, list):
        return [copy_default(value) for value in default]
    return default


def _canonicalize(holder: Object, name: str, canon: Callable[[Any], Any]) -> None:
    amount = holder.get(name)
    if isinstance(amount, str | int | float):
        text = canon(amount)
        if text != amount or type(amount) is not str:
            holder[name] = text


@lru_cache(maxsize=4096, typed=True)
def canonical_quantity(amount: str | int | float) -> Any:
    """Return a quantity in canonical form. What is no quantity stays as it is, for validation to reject."""
    try:
        return str(Quantity.parse(amount))
    except AmountError:
        return amount


@lru_cache(maxsize=4096, typed=True)
def canonical_resource_quantity(amount: str | int | float) -> Any:
    """Return the quantity of a resource in canonical form, rounded up to thousandths."""
    try:
        parsed = Quantity.parse(amount)
    except AmountError:
        return amount
    return str(parsed) if parsed.nano % 10**6 == 0 else f"{parsed.milli}m"
