"""From PromQL to what is answered in process, or to words for why only Prometheus can answer a query.

What is accepted has the same answer here and there, but for two things: numbers are exact here, and only series of the
object's own namespace are seen. So labels that only Prometheus adds are not accepted, nor are metrics of others.

Where a query is answered: in process where that is possible, else by Prometheus where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import isinf, isnan
from typing import TypeAlias

import promql_parser as promql

from springtide.apis.scheduled.label_patterns import OversizedPatternError, PatternError, compile_pattern
from springtide.apis.scheduled.promql import PromqlError, non_numeric_type, parse_promql, quote_query
from springtide.metrics.reading.formulas import (
    LABELS,
    Aggregation,
    Arithmetic,
    Formula,
    LabelSet,
    Matcher,
    Negation,
    Number,
    ScalarVector,
    Selector,
    Union,
    selectors,
)
from springtide.metrics.reading.inprocess import evaluate
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError
from springtide.metrics.series import HELP, SeriesStore

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


def compile_query(query: str) -> Formula:
    """Make of a query what is answered in process; raises `Unreadable`."""
    try:
        expression = parse_promql(query)
    except PromqlError as unparsed:
        raise QueryError(NOT_PROMQL, str(unparsed), lasting=True) from unparsed
    if nature := non_numeric_type(expression):
        raise QueryError(NOT_A_NUMBER, f"{quote_query(query)} is {nature}", lasting=True)
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
            return ScalarVector(_formula(expression.args[0], depth + 1))
        case _:
            raise _elsewhere(f"{_written(expression)} is")


def _written(expression: promql.Expr) -> str:
    """Quote an expression; its own `prettify` takes as long as the cube of its depth."""
    return quote_query(str(expression).replace("{}", ""))


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
        return Number(evaluate(formula, SeriesStore(), namespace=""))
    except QueryError:
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
    written = quote_query(selector.prettify())
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
                pattern = compile_pattern(value)
            except OversizedPatternError as error:
                raise _elsewhere(f"the pattern {quote_query(value)} ({error}) is") from error
            except PatternError as error:
                message = f"the pattern {quote_query(value)} is not a regular expression of PromQL: {error}"
                raise QueryError(NOT_PROMQL, message, lasting=True) from error
            wanted = matcher.op == promql.MatchOp.Re
            return Matcher(
                matcher.name, lambda found: pattern.matches(found) == wanted, written, steps=pattern.steps_per_character
            )


def _grouping(aggregation: promql.AggregateExpr) -> LabelSet:
    modifier = aggregation.modifier
    if modifier is None:
        return LabelSet((), only=True)
    return _keeping(modifier.labels, only=modifier.type == promql.AggModifierType.By)


def _matching(binary: promql.BinaryExpr) -> LabelSet:
    modifier = binary.modifier
    if modifier is None:
        return LabelSet((), only=False)
    cards = (promql.VectorMatchCardinality.ManyToOne, promql.VectorMatchCardinality.OneToMany)
    fill = modifier.fill_values
    if modifier.card in cards or modifier.return_bool or fill.lhs is not None or fill.rhs is not None:
        raise _elsewhere(f"{_written(binary)} is")
    if modifier.matching is None:
        return LabelSet((), only=False)
    return _keeping(modifier.matching.labels, only=modifier.matching.type == promql.LabelModifierType.Include)


def _keeping(labels: Sequence[str], *, only: bool) -> LabelSet:
    if only:
        _only_known(labels)
    return LabelSet(tuple(labels), only)


def _only_known(labels: Collection[str]) -> None:
    """Refuse labels that series have in Prometheus only: there the answer may be another."""
    for label in labels:
        if label not in LABELS:
            raise _elsewhere(f"the label `{label}` (series here have {' and '.join(LABELS)}) is")


def _elsewhere(subject: str) -> QueryError:
    message = f"{subject} answered by Prometheus only: start the controller with --prometheus-url"
    return QueryError("NotInProcess", message, lasting=True)


_REMEMBERED = 4096
"""Queries of which it is remembered how they are answered; to find it out anew takes far less than a millisecond."""


class QuerySource(Enum):
    """Who answers queries."""

    AUTO = "auto"
    """This process, if a query is about our own metrics only and can be answered here; else Prometheus."""
    IN_PROCESS = "in-process"
    """This process only."""
    PROMETHEUS = "prometheus"
    """Prometheus only, also for our own metrics."""


@dataclass(frozen=True, slots=True)
class _InProcess:
    """A query that is answered here."""

    formula: Formula


@dataclass(frozen=True, slots=True)
class _Forwarded:
    """A query that is sent to a server."""

    server: MetricReader
    doubts: str
    """Why it may be no PromQL at all, if it may."""


@dataclass(frozen=True, slots=True)
class _Unanswerable:
    """A query that nobody answers."""

    reason: str
    message: str


_Plan: TypeAlias = _InProcess | _Forwarded | _Unanswerable


class QueryReader(MetricReader):
    """The reader of a process."""

    def __init__(
        self,
        book: SeriesStore,
        prometheus: MetricReader | None = None,
        *,
        source: QuerySource = QuerySource.AUTO,
        now: Callable[[], int] | None = None,
    ) -> None:
        """Read from a book, or from Prometheus; without a clock, nothing in the book is ever too old."""
        if source is QuerySource.PROMETHEUS and prometheus is None:
            raise ValueError("only Prometheus is to answer queries, but nobody says where it is: give --prometheus-url")
        self._book = book
        self._prometheus = prometheus
        self._source = source
        self._now = now
        self._planned = lru_cache(maxsize=_REMEMBERED)(self._plan)

    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Answer a query where it is to be answered."""
        match self._planned(query):
            case _InProcess(formula):
                now = self._now() if self._now is not None else None
                return evaluate(formula, self._book, namespace=namespace, now=now)
            case _Forwarded(server, doubts):
                return await _forwarded(server, query, namespace, doubts)
            case _Unanswerable(reason, message):
                raise QueryError(reason, message, lasting=True)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Name the series of our own that are all a query reads, if it is answered in process."""
        plan = self._planned(query)
        if isinstance(plan, _InProcess):
            return tuple(dict.fromkeys(OwnSeries(one.metric, one.name) for one in selectors(plan.formula)))
        return None

    def address(self, query: str) -> str | None:
        """Give the URL of Prometheus, if that is where a query goes."""
        plan = self._planned(query)
        return plan.server.address(query) if isinstance(plan, _Forwarded) else None

    def _plan(self, query: str) -> _Plan:
        if self._source is QuerySource.PROMETHEUS and self._prometheus is not None:
            return _Forwarded(self._prometheus, doubts="")
        try:
            return _InProcess(compile_query(query))
        except QueryError as refusal:
            # What is no number here is none there; but what PromQL is, the server knows best.
            if self._source is QuerySource.AUTO and self._prometheus is not None and refusal.reason != NOT_A_NUMBER:
                return _Forwarded(self._prometheus, doubts=str(refusal) if refusal.reason == NOT_PROMQL else "")
            return _Unanswerable(refusal.reason, str(refusal))


async def _forwarded(server: MetricReader, query: str, namespace: str, doubts: str) -> Fraction:
    try:
        return await server.read(query, namespace=namespace)
    except QueryError as failure:
        if failure.reason == NOT_PROMQL and doubts:
            # The server says that it is wrong; our own words may say what would be right.
            raise QueryError(failure.reason, f"{failure} ({doubts})", lasting=failure.lasting) from failure
        raise
