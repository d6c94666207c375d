"""The functions that Kubernetes adds to CEL: quantities, and `find` and `findAll` for regular expressions.

The libraries for URLs, IP addresses, networks, lists, sets, formats and semantic versions are left out: no definition
that the embedded cluster serves uses them, and a rule that does is rejected with the definition.

A quantity is a map with one marked entry, because the engine lets functions written in Python take and return no types
of their own. Equal quantities are equal maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from springtide.apiserver.custom.formats import GoPatternError, compile_go
from springtide.quantity import Quantity, QuantityError


@dataclass(frozen=True, slots=True)
class CelFunction:
    """One overload of a function. Types have the names of the engine's types: STRING, INT, LIST, MAP, DYN …"""

    name: str
    parameters: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    member: bool = True
    """Whether the function is called on its first parameter, as in `text.find(pattern)`."""


_NANO = 10**9
_INT64 = range(-(2**63), 2**63)

_QuantityMap: TypeAlias = dict[str, Any]


def _quantity_map(nano: int) -> _QuantityMap:
    # As a string, because an amount in billionths exceeds the integers of CEL.
    return {"kubernetes.Quantity": str(nano)}


def _nano(quantity: _QuantityMap) -> int:
    if "kubernetes.Quantity" not in quantity:
        raise ValueError("no such overload")
    return int(quantity["kubernetes.Quantity"])


def _quantity(text: str) -> _QuantityMap:
    try:
        return _quantity_map(Quantity.parse(text).nano)
    except QuantityError:
        grammar = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ValueError(f"quantities must match the regular expression '{grammar}'") from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _compare(left: _QuantityMap, right: _QuantityMap) -> int:
    return (_nano(left) > _nano(right)) - (_nano(left) < _nano(right))


def _is_integer(quantity: _QuantityMap) -> bool:
    units, rest = divmod(_nano(quantity), _NANO)
    return not rest and units in _INT64


def _as_integer(quantity: _QuantityMap) -> int:
    if not _is_integer(quantity):
        raise ValueError("cannot convert value to integer")
    return _nano(quantity) // _NANO


def _operation(operation: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def with_quantity(left: _QuantityMap, right: _QuantityMap) -> _QuantityMap:
        return _quantity_map(operation(_nano(left), _nano(right)))

    def with_integer(left: _QuantityMap, right: int) -> _QuantityMap:
        return _quantity_map(operation(_nano(left), right * _NANO))

    return with_quantity, with_integer


_ADD, _ADD_INTEGER = _operation(lambda left, right: left + right)
_SUB, _SUB_INTEGER = _operation(lambda left, right: left - right)

_QUANTITY_FUNCTIONS = (
    CelFunction("quantity", ("STRING",), "MAP", _quantity, member=False),
    CelFunction("isQuantity", ("STRING",), "BOOL", _is_quantity, member=False),
    CelFunction("sign", ("MAP",), "INT", lambda quantity: (_nano(quantity) > 0) - (_nano(quantity) < 0), member=False),
    CelFunction("isGreaterThan", ("MAP", "MAP"), "BOOL", lambda left, right: _compare(left, right) > 0),
    CelFunction("isLessThan", ("MAP", "MAP"), "BOOL", lambda left, right: _compare(left, right) < 0),
    CelFunction("compareTo", ("MAP", "MAP"), "INT", _compare),
    CelFunction("asApproximateFloat", ("MAP",), "DOUBLE", lambda quantity: _nano(quantity) / _NANO),
    CelFunction("asInteger", ("MAP",), "INT", _as_integer),
    CelFunction("isInteger", ("MAP",), "BOOL", _is_integer),
    CelFunction("add", ("MAP", "MAP"), "MAP", _ADD),
    CelFunction("add", ("MAP", "INT"), "MAP", _ADD_INTEGER),
    CelFunction("sub", ("MAP", "MAP"), "MAP", _SUB),
    CelFunction("sub", ("MAP", "INT"), "MAP", _SUB_INTEGER),
)


def _compiled(pattern: str) -> Any:
    try:
        return compile_go(pattern)
    except GoPatternError as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return str(found.group()) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


_REGEX_FUNCTIONS = (
    CelFunction("find", ("STRING", "STRING"), "STRING", _find),
    CelFunction("findAll", ("STRING", "STRING"), "LIST", _find_all),
    CelFunction("findAll", ("STRING", "STRING", "INT"), "LIST", _find_all),
)

FUNCTIONS: tuple[CelFunction, ...] = (*_QUANTITY_FUNCTIONS, *_REGEX_FUNCTIONS)
