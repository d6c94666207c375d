"""Random queries over random stores, against a slow evaluator with plain lists and dictionaries.

A query is made as a tree, which is written down as PromQL for the one, and walked through by the other.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.reading.series_stores import CAPACITY, QUEUE, SCHEDULED, store_of

from springtide.metrics.reading.inprocess import evaluate
from springtide.metrics.reading.port import QueryError
from springtide.metrics.reading.queries import compile_query

Tree = tuple[Any, ...]
Sample = tuple[dict[str, str], Any]
NAN = "NaN"
FAILED = "one of several failures: which one depends on what is looked at first"
NAMESPACE = "shop"


class NoNumber(Exception):
    """The oracle has no result."""


# How trees are made.

_NAMES = ("a", "b", "ab")
_VALUES = st.one_of(st.none(), st.integers(-3, 9), st.fractions(-2, 2, max_denominator=7))
_BOOKS = st.dictionaries(
    st.sampled_from([f"{space}/{name}" for space in (NAMESPACE, "bank") for name in _NAMES]),
    st.dictionaries(st.sampled_from([QUEUE, SCHEDULED, CAPACITY]), _VALUES),
    max_size=6,
)
_MATCHERS = st.lists(
    st.tuples(
        st.sampled_from(["=", "!=", "=~", "!~"]),
        st.sampled_from(["a", "b", "a|b", "a.*", ".*", "[ab]b?", ""]),
    ),
    max_size=2,
)
_LABELS = st.lists(st.sampled_from(["name", "namespace"]), unique=True)
_MATCHING = st.one_of(st.none(), st.tuples(st.sampled_from(["on", "ignoring"]), _LABELS))
_GROUPING = st.one_of(st.none(), st.tuples(st.sampled_from(["by", "without"]), _LABELS))
_OPERATORS = st.sampled_from("+-*/%")
_EXPONENTS = st.integers(-2, 3).map(lambda exponent: ("number", str(exponent)))
_NUMBERS = st.sampled_from(["0", "1", "2", "0.1", "1.5", "1e2", "NaN"]).map(lambda text: ("number", text))
_SELECTORS = st.tuples(st.just("select"), st.sampled_from([QUEUE, SCHEDULED, CAPACITY]), _MATCHERS)


def _more_numbers(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.just("compute"), _OPERATORS, inner, inner, st.none()),
        st.tuples(st.just("compute"), st.just("^"), inner, _EXPONENTS, st.none()),
        st.tuples(st.just("negate"), inner),
    )


_SCALARS: st.SearchStrategy[Tree] = st.recursive(_NUMBERS, _more_numbers, max_leaves=3)


def _more_vectors(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.just("aggregate"), st.sampled_from(["sum", "min", "max", "avg"]), _GROUPING, inner),
        st.tuples(st.just("or"), inner, inner, _MATCHING),
        st.tuples(st.just("compute"), _OPERATORS, inner, inner, _MATCHING),
        st.tuples(st.just("compute"), _OPERATORS, inner, _SCALARS, st.none()),
        st.tuples(st.just("compute"), _OPERATORS, _SCALARS, inner, st.none()),
        st.tuples(st.just("compute"), st.just("^"), inner, _EXPONENTS, st.none()),
        st.tuples(st.just("negate"), inner),
    )


_VECTORS: st.SearchStrategy[Tree] = st.recursive(
    st.one_of(_SELECTORS, st.tuples(st.just("vector"), _SCALARS)), _more_vectors, max_leaves=6
)


# How they are written.


def written(tree: Tree) -> str:
    match tree:
        case ("number", text):
            return str(text)
        case ("select", metric, matchers):
            conditions = ",".join(f'name{mark}"{value}"' for mark, value in matchers)
            return f"{metric}{{{conditions}}}"
        case ("vector", number):
            return f"vector({written(number)})"
        case ("negate", inner):
            return f"-({written(inner)})"
        case ("aggregate", operator, grouping, inner):
            return f"{operator} {_modifier(grouping)} ({written(inner)})"
        case ("or", left, right, matching):
            return f"({written(left)}) or {_modifier(matching)} ({written(right)})"
        case ("compute", operator, left, right, matching):
            return f"({written(left)}) {operator} {_modifier(matching)} ({written(right)})"
        case _:
            raise AssertionError(tree)


def _modifier(modifier: tuple[str, list[str]] | None) -> str:
    return "" if modifier is None else f"{modifier[0]} ({', '.join(modifier[1])})"


# What they mean.


def evaluated(tree: Tree, series: list[Sample]) -> Any:
    match tree:
        case ("number", text):
            return NAN if text == NAN else Fraction(text)
        case ("select", metric, matchers):
            return [
                ({key: value for key, value in labels.items() if key != "metric"}, value)
                for labels, value in series
                if labels["metric"] == metric and all(_accepts(mark, one, labels["name"]) for mark, one in matchers)
            ]
        case ("vector", number):
            return [({}, evaluated(number, series))]
        case ("negate", inner):
            return _for_each(evaluated(inner, series), lambda value: NAN if value == NAN else -value)
        case ("aggregate", operator, grouping, inner):
            return _grouped(operator, grouping or ("by", []), evaluated(inner, series))
        case ("or", left, right, matching):
            kept = list(evaluated(left, series))
            return kept + [
                sample
                for sample in evaluated(right, series)
                if all(_part(sample[0], matching) != _part(other[0], matching) for other in kept)
            ]
        case ("compute", operator, left, right, matching):
            return _computed(operator, evaluated(left, series), evaluated(right, series), matching)
        case _:
            raise AssertionError(tree)


def _accepts(mark: str, wanted: str, name: str) -> bool:
    return {
        "=": name == wanted,
        "!=": name != wanted,
        "=~": bool(re.fullmatch(wanted, name)),
        "!~": not re.fullmatch(wanted, name),
    }[mark]


def _part(labels: dict[str, str], modifier: tuple[str, list[str]] | None) -> dict[str, str]:
    way, names = modifier or ("ignoring", [])
    if way in ("on", "by"):
        return {name: labels[name] for name in names if name in labels}
    return {name: labels[name] for name in labels if name not in names}


def _for_each(result: Any, function: Any) -> Any:
    return [(labels, function(value)) for labels, value in result] if isinstance(result, list) else function(result)


def _grouped(operator: str, grouping: tuple[str, list[str]], samples: list[Sample]) -> list[Sample]:
    groups: list[tuple[dict[str, str], list[Any]]] = []
    for labels, value in samples:
        part = _part(labels, grouping)
        for known, values in groups:
            if known == part:
                values.append(value)
                break
        else:
            groups.append((part, [value]))
    return [(labels, _one(operator, values)) for labels, values in groups]


def _one(operator: str, values: list[Any]) -> Any:
    """Fold a group as Prometheus does, one value after the other."""
    result = values[0]
    for value in values[1:]:
        if operator in ("sum", "avg"):
            result = NAN if NAN in (result, value) else result + value
        elif result == NAN or (value != NAN and (value > result if operator == "max" else value < result)):
            result = value
    return result / len(values) if operator == "avg" and result != NAN else result


def _computed(operator: str, left: Any, right: Any, matching: tuple[str, list[str]] | None) -> Any:
    if not isinstance(right, list):
        return _for_each(left, lambda value: _calculated(operator, value, right))
    if not isinstance(left, list):
        return _for_each(right, lambda value: _calculated(operator, left, value))
    if not left:
        return []
    parts = [_part(labels, matching) for labels, _ in right]
    if any(parts.count(part) > 1 for part in parts):
        raise NoNumber("several on the right")
    result: list[Sample] = []
    for labels, value in left:
        for other, partner in right:
            if (part := _part(labels, matching)) == _part(other, matching):
                if any(known == part for known, _ in result):
                    raise NoNumber("several on the left")
                result.append((part, _calculated(operator, value, partner)))
    return result


def _calculated(operator: str, left: Any, right: Any) -> Any:
    if NAN in (left, right):
        return NAN
    try:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "%":
                rest = abs(left) % abs(right)
                return rest if left >= 0 else -rest
            case _:
                return left ** int(right)
    except ZeroDivisionError:
        raise NoNumber("zero") from None


def expected(tree: Tree, readings: Any) -> Fraction | str:
    """Return the result, or the reason why there is none."""
    series = [
        ({"metric": metric, "namespace": place.split("/")[0], "name": place.split("/")[1]}, NAN if v is None else v)
        for place, values in readings.items()
        for metric, v in values.items()
        if place.startswith(f"{NAMESPACE}/")
    ]
    try:
        result = evaluated(tree, series)
    except NoNumber:
        return FAILED
    if isinstance(result, list):
        if len(result) != 1:
            return "ManySamples" if result else "NoSample"
        result = result[0][1]
    return "NoValue" if result == NAN else Fraction(result)


def found(tree: Tree, readings: Any) -> Fraction | str:
    try:
        return evaluate(compile_query(written(tree)), store_of(readings), namespace=NAMESPACE)
    except QueryError as failure:
        return FAILED if failure.reason in ("DivisionByZero", "AmbiguousMatch") else failure.reason


@given(st.one_of(_VECTORS, _SCALARS), _BOOKS)
def test_same_answer_as_the_oracle(tree: Tree, readings: Any) -> None:
    assert found(tree, readings) == expected(tree, readings), written(tree)
