"""From PromQL to what is answered in process, or to words for why only Prometheus can answer a query.

What is accepted has the same answer here and there, but for two things: numbers are exact here, and only series of the
object's own namespace are seen. So labels that only Prometheus adds are not accepted, nor are metrics of others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from math import isinf, isnan

import promql_parser as promql

from springtide.apis.scheduled.promql import Unparsed, not_a_number, parse, shown
from springtide.metrics.reading.formulas import (
    LABELS,
    Aggregation,
    Arithmetic,
    Formula,
    Keeping,
    Lifted,
    Matcher,
    Negation,
    Number,
    Selector,
    Union,
)
from springtide.metrics.reading.inprocess import answer
from springtide.metrics.reading.patterns import Pattern, UnknownPattern
from springtide.metrics.reading.port import Unreadable
from springtide.metrics.series import HELP, SeriesBook

NOT_PROMQL = "NotPromQL"
NOT_A_NUMBER = "NotANumber"
"""Reasons for which a query is refused, besides that it is answered by Prometheus only."""

AGGREGATIONS = ("sum", "min", "max", "avg")
OPERATORS = ("+", "-", "*", "/", "%", "^")
_EXPONENTS = range(-64, 65)
"""What can be raised to exactly without growing beyond measure."""
_NAME = "__name__"
_DEEPEST = 100
"""Levels of a query, each of which is a call or two of a function."""


def compiled(query: str) -> Formula:
    """Make of a query what is answered in process; raises `Unreadable`."""
    try:
        expression = parse(query)
    except Unparsed as unparsed:
        raise Unreadable(NOT_PROMQL, str(unparsed), lasting=True) from unparsed
    if nature := not_a_number(expression):
        raise Unreadable(NOT_A_NUMBER, f"{shown(query)} is {nature}", lasting=True)
    return _formula(expression, 0)


def _formula(expression: promql.Expr, depth: int) -> Formula:
    if depth > _DEEPEST:
        raise _elsewhere("a query with so many levels is")
    match expression:
        case promql.ParenExpr():
            return _formula(expression.expr, depth + 1)
        case promql.NumberLiteral():
            return _number(expression)
        case promql.UnaryExpr():
            return Negation(_formula(expression.expr, depth + 1))
        case promql.VectorSelector():
            return _selector(expression)
        case promql.AggregateExpr() if str(expression.op) in AGGREGATIONS and expression.param is None:
            return Aggregation(str(expression.op), _formula(expression.expr, depth + 1), _grouping(expression))
        case promql.BinaryExpr() if str(expression.op) == "or":
            return Union(
                _formula(expression.lhs, depth + 1), _formula(expression.rhs, depth + 1), _matching(expression)
            )
        case promql.BinaryExpr() if str(expression.op) in OPERATORS:
            return _arithmetic(expression, depth)
        case promql.Call() if expression.func.name == "vector":
            return Lifted(_formula(expression.args[0], depth + 1))
        case _:
            raise _elsewhere(f"{_written(expression)} is")


def _written(expression: promql.Expr) -> str:
    """Quote an expression; its own `prettify` takes as long as the cube of its depth."""
    return shown(str(expression).replace("{}", ""))


def _arithmetic(binary: promql.BinaryExpr, depth: int) -> Arithmetic:
    left, right = _formula(binary.lhs, depth + 1), _formula(binary.rhs, depth + 1)
    # Only now that it is known not to be too deep.
    operator, written = str(binary.op), _written(binary)
    if operator == "^":
        right = _computed(right)
        if not (isinstance(right, Number) and right.value in _EXPONENTS):
            raise _elsewhere(f"{written}, whose exponent is not a whole number up to {_EXPONENTS[-1]}, is")
    return Arithmetic(operator, left, right, _matching(binary), written)


def _computed(formula: Formula) -> Formula:
    """Make one number of arithmetic with numbers: that `2 ^ 3 ^ 2` is `2 ^ 9` is known before anything is read."""
    if not _is_known(formula):
        return formula
    try:
        return Number(answer(formula, SeriesBook(), namespace=""))
    except Unreadable:
        return formula


def _is_known(formula: Formula) -> bool:
    match formula:
        case Number():
            return True
        case Negation():
            return _is_known(formula.inner)
        case Arithmetic():
            return _is_known(formula.left) and _is_known(formula.right)
        case _:
            return False


def _number(literal: promql.NumberLiteral) -> Number:
    if isinf(literal.val):
        raise _elsewhere("an infinite number is")
    # The shortest text that stands for this float is what was written, or something as good.
    return Number(None if isnan(literal.val) else Fraction(repr(literal.val)))


def _selector(selector: promql.VectorSelector) -> Selector:
    written = shown(selector.prettify())
    if selector.offset is not None or selector.at is not None:
        raise _elsewhere(f"{written}, a value of another time, is")
    if selector.matchers.or_matchers:
        raise _elsewhere(f"{written}, with `or` between matchers, is")
    names = [matcher for matcher in selector.matchers.matchers if matcher.name == _NAME]
    if len(names) + (selector.name is not None) != 1 or any(name.op != promql.MatchOp.Equal for name in names):
        raise _elsewhere(f"{written}, a selector without the name of one metric, is")
    metric = selector.name if selector.name is not None else names[0].value
    if metric not in HELP:
        raise _elsewhere(f"`{metric}`, no metric of a MetricsProducer, is")
    matchers = tuple(_matcher(matcher) for matcher in selector.matchers.matchers if matcher.name != _NAME)
    return Selector(metric, matchers, written)


def _matcher(matcher: promql.Matcher) -> Matcher:
    _only_known((matcher.name,))
    value, written = matcher.value, str(matcher)
    match matcher.op:
        case promql.MatchOp.Equal:
            return Matcher(matcher.name, lambda found: found == value, written, only=value)
        case promql.MatchOp.NotEqual:
            return Matcher(matcher.name, lambda found: found != value, written)
        case _:
            try:
                pattern = Pattern(value)
            except UnknownPattern as unknown:
                raise _elsewhere(f"the pattern {shown(value)} ({unknown}) is") from unknown
            wanted = matcher.op == promql.MatchOp.Re
            return Matcher(
                matcher.name, lambda found: pattern.matches(found) == wanted, written, steps=pattern.steps_per_character
            )


def _grouping(aggregation: promql.AggregateExpr) -> Keeping:
    modifier = aggregation.modifier
    if modifier is None:
        return Keeping((), only=True)
    return _keeping(modifier.labels, only=modifier.type == promql.AggModifierType.By)


def _matching(binary: promql.BinaryExpr) -> Keeping:
    modifier = binary.modifier
    if modifier is None:
        return Keeping((), only=False)
    cards = (promql.VectorMatchCardinality.ManyToOne, promql.VectorMatchCardinality.OneToMany)
    fill = modifier.fill_values
    if modifier.card in cards or modifier.return_bool or fill.lhs is not None or fill.rhs is not None:
        raise _elsewhere(f"{_written(binary)} is")
    if modifier.matching is None:
        return Keeping((), only=False)
    return _keeping(modifier.matching.labels, only=modifier.matching.type == promql.LabelModifierType.Include)


def _keeping(labels: Sequence[str], *, only: bool) -> Keeping:
    if only:
        _only_known(labels)
    return Keeping(tuple(labels), only)


def _only_known(labels: Collection[str]) -> None:
    """Refuse labels that series have in Prometheus only: there the answer may be another."""
    for label in labels:
        if label not in LABELS:
            raise _elsewhere(f"the label `{label}` (series here have {' and '.join(LABELS)}) is")


def _elsewhere(subject: str) -> Unreadable:
    message = f"{subject} answered by Prometheus only: start the controller with --prometheus-url"
    return Unreadable("NotInProcess", message, lasting=True)
