"""Where a query is evaluated: in process if it can be compiled, else by Prometheus if one is configured.

A compiled query has the same result in process as in Prometheus, with two differences: numbers are exact, and only
series of the object's namespace are selected. So a query with labels that only Prometheus adds, or with other metrics
than those of MetricsProducers, is not compiled.
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
"""Reasons for which a query is refused, besides `NotInProcess`."""
AGGREGATIONS = ("sum", "min", "max", "avg")
OPERATORS = ("+", "-", "*", "/", "%", "^")
_EXPONENTS = range(-64, 65)
"""Exponents for which exact powers stay of reasonable size."""
_NAME = "__name__"
_DEEPEST = 100
"""The deepest nesting of a query, limited by the recursion of the compiler."""
_REMEMBERED = 4096
"""The number of cached plans; making one takes far less than a millisecond."""


class QuerySource(Enum):
    """Where queries are evaluated."""

    AUTO = "auto"
    """In process if the query can be compiled, else by Prometheus."""
    IN_PROCESS = "in-process"
    """In process only."""
    PROMETHEUS = "prometheus"
    """By Prometheus only, including metrics of MetricsProducers."""


@dataclass(frozen=True, slots=True)
class _InProcess:
    """A query that is evaluated in process."""

    formula: Formula


@dataclass(frozen=True, slots=True)
class _Forwarded:
    """A query that is sent to Prometheus."""

    server: MetricReader
    doubts: str
    """Why the query may not be valid PromQL; empty: it is valid."""


@dataclass(frozen=True, slots=True)
class _Unanswerable:
    """A query that cannot be evaluated."""

    reason: str
    message: str


_Plan: TypeAlias = _InProcess | _Forwarded | _Unanswerable


class QueryReader(MetricReader):
    """Evaluates the queries of a process."""

    def __init__(
        self,
        store: SeriesStore,
        prometheus: MetricReader | None = None,
        *,
        source: QuerySource = QuerySource.AUTO,
        now: Callable[[], int] | None = None,
    ) -> None:
        """Evaluate queries over a store, or by Prometheus; without a clock, no series is outdated."""
        if source is QuerySource.PROMETHEUS and prometheus is None:
            raise ValueError("only Prometheus may answer queries, but its URL is not set: give --prometheus-url")
        self._store = store
        self._prometheus = prometheus
        self._source = source
        self._now = now
        self._planned = lru_cache(maxsize=_REMEMBERED)(self._plan)

    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Evaluate a query."""
        match self._planned(query):
            case _InProcess(formula):
                now = self._now() if self._now is not None else None
                return evaluate(formula, self._store, namespace=namespace, now=now)
            case _Forwarded(server, doubts):
                return await _forwarded(server, query, namespace, doubts)
            case _Unanswerable(reason, message):
                raise QueryError(reason, message, permanent=True)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Return the series that a query reads; None: it is not evaluated in process."""
        plan = self._planned(query)
        if isinstance(plan, _InProcess):
            return tuple(dict.fromkeys(OwnSeries(one.metric, one.name) for one in selectors(plan.formula)))
        return None

    def address(self, query: str) -> str | None:
        """Return the URL of Prometheus; None: the query is not sent there."""
        plan = self._planned(query)
        return plan.server.address(query) if isinstance(plan, _Forwarded) else None

    def _plan(self, query: str) -> _Plan:
        if self._source is QuerySource.PROMETHEUS and self._prometheus is not None:
            return _Forwarded(self._prometheus, doubts="")
        try:
            return _InProcess(compile_query(query))
        except QueryError as refusal:
            # A query without a numeric result has none in Prometheus either; but Prometheus may accept newer syntax.
            if self._source is QuerySource.AUTO and self._prometheus is not None and refusal.reason != NOT_A_NUMBER:
                return _Forwarded(self._prometheus, doubts=str(refusal) if refusal.reason == NOT_PROMQL else "")
            return _Unanswerable(refusal.reason, str(refusal))


async def _forwarded(server: MetricReader, query: str, namespace: str, doubts: str) -> Fraction:
    try:
        return await server.read(query, namespace=namespace)
    except QueryError as failure:
        if failure.reason == NOT_PROMQL and doubts:
            # The server says that the query is wrong; our message may say how to fix it.
            raise QueryError(failure.reason, f"{failure} ({doubts})", permanent=failure.permanent) from failure
        raise


def compile_query(query: str) -> Formula:
    """Compile a query for evaluation in process; raises `QueryError`."""
    try:
        expression = parse_promql(query)
    except PromqlError as unparsed:
        raise QueryError(NOT_PROMQL, str(unparsed), permanent=True) from unparsed
    if nature := non_numeric_type(expression):
        raise QueryError(NOT_A_NUMBER, f"{quote_query(query)} is {nature}", permanent=True)
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
    """Quote an expression; its method `prettify` takes cubic time in its depth."""
    return quote_query(str(expression).replace("{}", ""))


def _arithmetic(binary: promql.BinaryExpr, depth: int) -> Arithmetic:
    left, right = _formula(binary.lhs, depth + 1), _formula(binary.rhs, depth + 1)
    # Formatted only after the depth was checked.
    operator, written = str(binary.op), _written(binary)
    if operator == "^":
        right = _computed(right)
        if not (isinstance(right, Number) and right.value in _EXPONENTS):
            raise _elsewhere(f"{written}, whose exponent is not a whole number up to {_EXPONENTS[-1]}, is")
    return Arithmetic(operator, left, right, _matching(binary), written)


def _computed(formula: Formula) -> Formula:
    """Fold constants: `2 ^ 3 ^ 2` becomes `2 ^ 9`."""
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
    # The shortest text with this float value is what was written, or equivalent.
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
                raise QueryError(NOT_PROMQL, message, permanent=True) from error
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
    """Refuse labels that series have only in Prometheus, where the result may differ."""
    for label in labels:
        if label not in LABELS:
            raise _elsewhere(f"the label `{label}` (series here have {' and '.join(LABELS)}) is")


def _elsewhere(subject: str) -> QueryError:
    message = f"{subject} answered by Prometheus only: start the controller with --prometheus-url"
    return QueryError("NotInProcess", message, permanent=True)
