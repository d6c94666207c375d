"""Lists and sets in rules: sums, extremes, order, positions, membership."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from springtide.simulator.api.custom.rules.library.signatures import Signature


def _is_sorted(values: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _sum(values: list[Any]) -> Any:
    if values and isinstance(values[0], datetime.timedelta):
        return sum(values, datetime.timedelta())
    return sum(values)


def _extreme(name: str, choose: Callable[[Iterable[Any]], Any]) -> Callable[[list[Any]], Any]:
    def find(values: list[Any]) -> Any:
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return find


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if _equal(value, wanted)), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index in reversed(range(len(values))) if _equal(values[index], wanted)), -1)


def _distinct(values: list[Any]) -> list[Any]:
    return [value for index, value in enumerate(values) if _index_of(values, value) == index]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        flat.extend(_flatten(value, depth - 1) if isinstance(value, list) and depth else [value])
    return flat


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _contains(values: list[Any], wanted: list[Any]) -> bool:
    return all(_index_of(values, value) >= 0 for value in wanted)


SEQUENCES = (
    Signature("isSorted", ("LIST",), "BOOL", _is_sorted),
    Signature("sum", ("LIST",), "DYN", _sum),
    Signature("max", ("LIST",), "DYN", _extreme("max", max)),
    Signature("min", ("LIST",), "DYN", _extreme("min", min)),
    Signature("indexOf", ("LIST", "DYN"), "INT", _index_of),
    Signature("lastIndexOf", ("LIST", "DYN"), "INT", _last_index_of),
    Signature("distinct", ("LIST",), "LIST", _distinct),
    Signature("flatten", ("LIST",), "LIST", _flatten),
    Signature("flatten", ("LIST", "INT"), "LIST", _flatten),
    Signature("reverse", ("LIST",), "LIST", lambda values: values[::-1]),
    Signature("slice", ("LIST", "INT", "INT"), "LIST", _slice),
    Signature("sort", ("LIST",), "LIST", sorted),
    Signature("lists.range", ("INT",), "LIST", lambda count: list(range(count)), member=False),
    Signature("sets.contains", ("LIST", "LIST"), "BOOL", _contains, member=False),
    Signature(
        "sets.equivalent",
        ("LIST", "LIST"),
        "BOOL",
        lambda one, other: _contains(one, other) and _contains(other, one),
        member=False,
    ),
    Signature(
        "sets.intersects",
        ("LIST", "LIST"),
        "BOOL",
        lambda one, other: any(_index_of(one, value) >= 0 for value in other),
        member=False,
    ),
)
