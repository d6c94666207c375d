"""Evaluation in process: a formula over the series of a store, with exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import trunc
from typing import TypeAlias, cast

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Key
from springtide.metrics.reading.formulas import (
    Aggregation,
    Arithmetic,
    Formula,
    Labels,
    Matcher,
    Negation,
    Number,
    ScalarVector,
    Selector,
    Union,
    selectors,
)
from springtide.metrics.reading.port import QueryError
from springtide.metrics.series import STALENESS_LIMIT, SeriesStore

SampleValue: TypeAlias = Fraction | None
"""None is NaN."""
Vector: TypeAlias = dict[Labels, SampleValue]
"""Samples by their labels, ordered by object; without the name of the metric."""

_MOST_BITS = 1 << 15
"""The limit of numerators and denominators: enough for the sum of hundreds of different fractions."""
_INFINITE = 2**1024
"""Larger than every finite float."""
_MOST_LISTED = 5
_MOST_STEPS = 1_000_000
"""Steps of matching patterns against the names of series: some 50 ms, for which the event loop is blocked."""


def evaluate(formula: Formula, store: SeriesStore, *, namespace: str, now: int | None = None) -> Fraction:
    """Return the one sample of a formula for an object of a namespace; raises `QueryError`.

    There is no result while a series that the formula reads is outdated or pending, or while the store is not synced.
    """
    evaluation = _Evaluation(store, namespace, now)
    result = evaluation.of(formula)
    if isinstance(result, dict):
        if not result:
            raise QueryError("NoSample", evaluation.absence(formula))
        if len(result) > 1:
            raise QueryError("ManySamples", many_samples([_written(labels) for labels in result]))
        result = next(iter(result.values()))
    if result is None:
        raise QueryError("NoValue", "the result is NaN: there is no value yet, or nothing to divide by")
    if abs(result) >= _INFINITE:
        raise QueryError("NoValue", "the result is so large that Prometheus would call it infinite")
    return result


def many_samples(written: Sequence[str]) -> str:
    """Return the message about a result with several samples."""
    return (
        f"the result has {len(written)} samples instead of one ({listed(written)}):"
        " put sum(…) or max(…) around the query, or add a matcher such as name="
    )


@dataclass(slots=True)
class _EvaluationBudget:
    """The steps that an evaluation may still use; counted instead of timed, so that results are reproducible."""

    left: int = _MOST_STEPS


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One evaluation for a namespace."""

    store: SeriesStore
    namespace: str
    now: int | None
    budget: _EvaluationBudget = field(default_factory=_EvaluationBudget)
    selected: dict[Selector, Vector] = field(default_factory=dict)
    """Cached results of selectors."""

    def of(self, formula: Formula) -> SampleValue | Vector:
        """Evaluate a formula."""
        match formula:
            case Number():
                return formula.value
            case Selector():
                return self._selected(formula)
            case ScalarVector():
                # The parser accepts only scalars here.
                return {(): cast(SampleValue, self.of(formula.number))}
            case Negation():
                inner = self.of(formula.inner)
                if isinstance(inner, dict):
                    return {labels: _negated(value) for labels, value in inner.items()}
                return _negated(inner)
            case Aggregation():
                return _aggregated(formula, self._vector(formula.inner))
            case Union():
                return _joined(formula, self._vector(formula.left), self._vector(formula.right))
            case Arithmetic():
                return self._computed(formula)

    def absence(self, formula: Formula) -> str:
        """Return the message about an empty result: which selectors are empty, and what exists instead."""
        empty = [selector for selector in selectors(formula) if not self._selected(selector)]
        if not empty:
            return "the query has no sample: its sides have no labels in common"
        return "; ".join(self._missing(selector) for selector in empty)

    def _missing(self, selector: Selector) -> str:
        others = [key.name for key, _ in self.store.of(selector.metric, self.namespace)]
        if others:
            found = f"MetricsProducers that have one: {listed(others)}"
        else:
            found = "no MetricsProducer has one"
        return f"there is no series {selector.written} in namespace {self.namespace} ({found})"

    def _selected(self, selector: Selector) -> Vector:
        if selector not in self.selected:
            self.selected[selector] = self._select(selector)
        return self.selected[selector]

    def _select(self, selector: Selector) -> Vector:
        for matcher in selector.matchers:
            if matcher.label == "namespace" and not self._meets(selector, (matcher,), self.namespace):
                raise QueryError(
                    "OtherNamespace",
                    f"{selector.written} is about another namespace, and only series of namespace {self.namespace}"
                    f" can be read from here: remove `{matcher.written}`",
                    permanent=True,
                )
        if not self.store.synced:
            raise QueryError(
                "NotKnownYet",
                f"{selector.written} is not known before the metrics-producer controller of this process has started;"
                " where that runs in another one, let Prometheus answer with --metrics-source prometheus",
            )
        named = [matcher for matcher in selector.matchers if matcher.label == "name"]
        for key in self.store.pending(selector.metric, self.namespace, selector.name):
            if self._meets(selector, named, key.name):
                # Without it, a sum would be too small, or a fallback would be used.
                raise QueryError(
                    "NotKnownYet", f"the value of MetricsProducer {key.name} for {selector.written} is not known yet"
                )
        found = [
            (key, value)
            for key, value in self.store.of(selector.metric, self.namespace, selector.name)
            if self._meets(selector, named, key.name)
        ]
        for key, _ in found:
            self._refuse_if_outdated(selector, key)
        return {
            (("name", key.name), ("namespace", key.namespace)): None if value is None else Fraction(value)
            for key, value in found
        }

    def _meets(self, selector: Selector, matchers: Sequence[Matcher], value: str) -> bool:
        for matcher in matchers:
            self.budget.left -= matcher.steps * (len(value) + 1)
            if self.budget.left < 0:
                raise QueryError(
                    "TooCostly",
                    f"the patterns of {selector.written} take too long, with so many series, to be answered in process:"
                    " name one with name=, write shorter patterns, or let Prometheus record the result by a rule",
                )
            if not matcher.accepts(value):
                return False
        return True

    def _refuse_if_outdated(self, selector: Selector, key: Key) -> None:
        reading = self.store.get(key)
        if (
            self.now is None
            or reading is None
            or reading.fresh_until is None
            or reading.age(self.now) <= STALENESS_LIMIT
        ):
            return
        # The instant and not the duration, so that the message of the condition does not change with every evaluation.
        since = format_instant(reading.fresh_until)
        raise QueryError(
            "Outdated",
            f"{selector.written} of MetricsProducer {key.name} has been outdated since {since}: its conditions say why",
        )

    def _computed(self, formula: Arithmetic) -> SampleValue | Vector:
        left, right = self.of(formula.left), self.of(formula.right)
        if isinstance(left, dict):
            if isinstance(right, dict):
                return _paired(formula, left, right)
            return {labels: _operated(formula, value, right) for labels, value in left.items()}
        if isinstance(right, dict):
            return {labels: _operated(formula, left, value) for labels, value in right.items()}
        return _operated(formula, left, right)

    def _vector(self, formula: Formula) -> Vector:
        # The parser accepts only vectors here.
        return cast(Vector, self.of(formula))


def _negated(value: SampleValue) -> SampleValue:
    return None if value is None else -value


def _joined(union: Union, left: Vector, right: Vector) -> Vector:
    known = {union.matching.of(labels) for labels in left}
    return left | {labels: value for labels, value in right.items() if union.matching.of(labels) not in known}


def _aggregated(aggregation: Aggregation, vector: Vector) -> Vector:
    groups: dict[Labels, list[SampleValue]] = {}
    for labels, value in vector.items():
        groups.setdefault(aggregation.grouping.of(labels), []).append(value)
    return {labels: _aggregate(aggregation.operator, values) for labels, values in groups.items()}


def _aggregate(operator: str, values: Sequence[SampleValue]) -> SampleValue:
    numbers = [value for value in values if value is not None]
    # As in Prometheus, min and max ignore NaN, and a sum with NaN is NaN.
    if not numbers or (operator in ("sum", "avg") and len(numbers) < len(values)):
        return None
    match operator:
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case "avg":
            return _sum(numbers) / len(numbers)
        case _:
            return _sum(numbers)


def _sum(numbers: Sequence[Fraction]) -> Fraction:
    """Add numbers up in pairs, so that only the last few sums of different fractions are large."""
    while len(numbers) > 1:
        numbers = [_kept(sum(numbers[at : at + 2], Fraction(0))) for at in range(0, len(numbers), 2)]
    return numbers[0]


def _paired(formula: Arithmetic, left: Vector, right: Vector) -> Vector:
    """Apply an operation to samples with matching labels; at most one sample of each side may have them."""
    if not left:
        return {}
    partners: dict[Labels, SampleValue] = {}
    for labels, value in right.items():
        group = formula.matching.of(labels)
        if group in partners:
            raise _ambiguous(formula, "right", group)
        partners[group] = value
    result: Vector = {}
    for labels, value in left.items():
        group = formula.matching.of(labels)
        if group in result:
            raise _ambiguous(formula, "left", group)
        if group in partners:
            result[group] = _operated(formula, value, partners[group])
    return result


def _operated(formula: Arithmetic, left: SampleValue, right: SampleValue) -> SampleValue:
    if left is None or right is None:
        return None
    if not right and formula.operator in ("/", "%"):
        raise QueryError("DivisionByZero", f"{formula.written} divides by zero now")
    match formula.operator:
        case "+":
            return _kept(left + right)
        case "-":
            return _kept(left - right)
        case "*":
            return _kept(left * right)
        case "/":
            return _kept(left / right)
        case "%":
            return _kept(left - right * trunc(left / right))  # the sign is that of the left side
        case _:
            return _raised(formula, left, right)


def _raised(formula: Arithmetic, base: Fraction, exponent: Fraction) -> Fraction:
    # The exponent is a small integer: nothing else is compiled.
    if not base and exponent < 0:
        raise QueryError("DivisionByZero", f"{formula.written} divides by zero now")
    _kept(base, times=abs(int(exponent)))
    return Fraction(base ** int(exponent))


def _kept(number: Fraction, *, times: int = 1) -> Fraction:
    """Return a number; raises `QueryError` if it, or its product with itself so many times, is too large."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) * times > _MOST_BITS:
        raise QueryError("TooLarge", "the exact result has too many digits to be computed in process")
    return number


def _ambiguous(formula: Arithmetic, side: str, group: Labels) -> QueryError:
    return QueryError(
        "AmbiguousMatch",
        f"{formula.written} has several samples with the labels {_written(group)} on the {side} side:"
        " put sum(…) or max(…) around that side, or add a matcher such as name=",
    )


def _written(labels: Labels) -> str:
    return "{" + ",".join(f'{label}="{value}"' for label, value in labels) + "}"


def listed(items: Sequence[str]) -> str:
    """Format the first items of a list, and the number of the others."""
    more = f" and {len(items) - _MOST_LISTED} more" if len(items) > _MOST_LISTED else ""
    return ", ".join(items[:_MOST_LISTED]) + more
