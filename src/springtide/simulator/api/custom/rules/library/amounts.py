"""Quantities in rules: `quantity("1Gi").isGreaterThan(quantity(self.size))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from springtide.quantity import Quantity, QuantityError
from springtide.simulator.api.custom.rules.library.signatures import Signature

_NANO = 10**9
_INT64 = range(-(2**63), 2**63)

Boxed: TypeAlias = dict[str, Any]


def _box(nano: int) -> Boxed:
    # As text, because an amount in billionths outgrows the integers of CEL.
    return {"kubernetes.Quantity": str(nano)}


def _nano(boxed: Boxed) -> int:
    if "kubernetes.Quantity" not in boxed:
        raise ValueError("no such overload")
    return int(boxed["kubernetes.Quantity"])


def _quantity(text: str) -> Boxed:
    try:
        return _box(Quantity.parse(text).nano)
    except QuantityError:
        grammar = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ValueError(f"quantities must match the regular expression '{grammar}'") from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _compare(one: Boxed, other: Boxed) -> int:
    return (_nano(one) > _nano(other)) - (_nano(one) < _nano(other))


def _is_integer(boxed: Boxed) -> bool:
    units, rest = divmod(_nano(boxed), _NANO)
    return not rest and units in _INT64


def _as_integer(boxed: Boxed) -> int:
    if not _is_integer(boxed):
        raise ValueError("cannot convert value to integer")
    return _nano(boxed) // _NANO


def _by(operation: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def with_quantity(one: Boxed, other: Boxed) -> Boxed:
        return _box(operation(_nano(one), _nano(other)))

    def with_integer(one: Boxed, other: int) -> Boxed:
        return _box(operation(_nano(one), other * _NANO))

    return with_quantity, with_integer


_ADD, _ADD_INTEGER = _by(lambda one, other: one + other)
_SUB, _SUB_INTEGER = _by(lambda one, other: one - other)

AMOUNTS = (
    Signature("quantity", ("STRING",), "MAP", _quantity, member=False),
    Signature("isQuantity", ("STRING",), "BOOL", _is_quantity, member=False),
    Signature("sign", ("MAP",), "INT", lambda boxed: (_nano(boxed) > 0) - (_nano(boxed) < 0), member=False),
    Signature("isGreaterThan", ("MAP", "MAP"), "BOOL", lambda one, other: _compare(one, other) > 0),
    Signature("isLessThan", ("MAP", "MAP"), "BOOL", lambda one, other: _compare(one, other) < 0),
    Signature("compareTo", ("MAP", "MAP"), "INT", _compare),
    Signature("asApproximateFloat", ("MAP",), "DOUBLE", lambda boxed: _nano(boxed) / _NANO),
    Signature("asInteger", ("MAP",), "INT", _as_integer),
    Signature("isInteger", ("MAP",), "BOOL", _is_integer),
    Signature("add", ("MAP", "MAP"), "MAP", _ADD),
    Signature("add", ("MAP", "INT"), "MAP", _ADD_INTEGER),
    Signature("sub", ("MAP", "MAP"), "MAP", _SUB),
    Signature("sub", ("MAP", "INT"), "MAP", _SUB_INTEGER),
)
