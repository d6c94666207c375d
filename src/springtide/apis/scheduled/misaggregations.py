"""Aggregations that are written as functions of several arguments: `max(a, b)`.

It reads like arithmetic, and is no PromQL: aggregations work on the samples of one vector, and Prometheus refuses a
second argument. What is meant is the aggregation over the samples of both. `max(a or b)` is that only where no sample
of one has the labels of a sample of the other: `or` drops those of its right side that have the labels of one of its
left side. So it is shown only where matchers make sure that they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from types import MappingProxyType

from promql_parser import (
    BinaryExpr,
    Call,
    Expr,
    MatchOp,
    NumberLiteral,
    ParenExpr,
    UnaryExpr,
    ValueType,
    VectorSelector,
)

from springtide.apis.scheduled.promql_parsing import ParserBroke, parsed

# `quantile`, `topk`, `bottomk`, `count_values`, `limitk` and `limit_ratio` take a parameter first, and are left alone.
_AGGREGATIONS = ("sum", "min", "max", "avg", "group", "count", "stddev", "stdvar")
_CALL = re.compile(rf"\b({'|'.join(_AGGREGATIONS)})\s*(?:(?:by|without)\s*\([^()]*\)\s*)?\(", re.IGNORECASE)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# A quote that is not closed reaches to the end: else every quote after it would be tried as the first.
_QUOTED_OR_COMMENT = re.compile(
    r"\"(?:\\.?|[^\"\\])*(?:\"|\Z)|'(?:\\.?|[^'\\])*(?:'|\Z)|`[^`]*(?:`|\Z)|(?P<comment>#[^\n]*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Misaggregation:
    """An aggregation with several arguments, and the legal query that it stands for."""

    operator: str
    written: str
    legal: str | None
    """What means the same for certain; None where `or` may leave something out."""


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels that every sample of a vector has."""

    known: Mapping[str, str]
    all: bool = False
    """Whether it has no others."""

    def of(self, label: str) -> str | None:
        """Give the value of a label, which is empty where there is none; None where it may be anything."""
        return self.known.get(label, "" if self.all else None)

    def differ(self, other: _Labels) -> bool:
        """Tell whether no sample of the one can have the labels of a sample of the other."""
        return any(
            mine is not None and theirs is not None and mine != theirs
            for mine, theirs in ((self.of(label), other.of(label)) for label in (*self.known, *other.known))
        )


_NONE = _Labels(MappingProxyType({}), all=True)


def misaggregations(query: str) -> Iterator[Misaggregation]:
    """Find aggregations that are written as functions of several arguments."""
    plain = _blanked(query, quoted=False)
    masked = _blanked(query, quoted=True)
    calls = [call for call in _CALL.finditer(masked) if masked[call.start() - 1 : call.start()] != ":"]
    # What follows a colon is the end of a recording rule's name.
    arguments = _arguments(masked) if calls else {}
    for call in calls:
        split = arguments.get(call.end() - 1)
        if split is None or len(split) < 3:
            continue
        yield Misaggregation(
            operator=call[1].lower(),
            written=query[call.start() : split[-1] + 1],
            legal=_union(plain[call.start() : call.end()], [plain[a + 1 : b].strip() for a, b in pairwise(split)]),
        )


def _union(beginning: str, arguments: Sequence[str]) -> str | None:
    """Write an aggregation over the samples of all arguments, where `or` leaves none of them out."""
    try:
        expressions = [parsed(argument) for argument in arguments]
        labels = [_labels(expression) for expression in expressions]
        if not all(
            one is not None and other is not None and one.differ(other) for one, other in combinations(labels, 2)
        ):
            return None
        vectors = [
            f"vector({argument})" if _is_scalar(expression) else argument
            for argument, expression in zip(arguments, expressions, strict=True)
        ]
        legal = f"{beginning}{' or '.join(vectors)})"
        parsed(legal)
    except (ValueError, ParserBroke):
        return None
    return legal


def _labels(expression: Expr) -> _Labels | None:
    """Give the labels that all samples of an expression have; None where that cannot be told from its text."""
    if _is_scalar(expression):
        return _NONE
    match expression:
        case ParenExpr():
            return _labels(expression.expr)
        case Call() if expression.func.name == "vector":
            return _NONE
        case VectorSelector() if not expression.matchers.or_matchers:
            equal = [one for one in expression.matchers.matchers if one.op == MatchOp.Equal and one.name != "__name__"]
            return _Labels({one.name: one.value for one in equal})
        case _:
            return None


def _is_scalar(expression: Expr) -> bool:
    """Tell whether an expression is a number and no vector, which `or` does not join."""
    match expression:
        case NumberLiteral():
            return True
        case ParenExpr() | UnaryExpr():
            return _is_scalar(expression.expr)
        case BinaryExpr():
            return _is_scalar(expression.lhs) and _is_scalar(expression.rhs)
        case Call():
            return bool(expression.func.return_type == ValueType.Scalar)
        case _:
            return False


def _blanked(query: str, *, quoted: bool) -> str:
    """Blank out comments and, if wanted, what stands in quotes: commas and brackets there are no syntax."""
    return _QUOTED_OR_COMMENT.sub(
        lambda found: " " * len(found[0]) if found["comment"] else "_" * len(found[0]) if quoted else found[0], query
    )


def _arguments(text: str) -> dict[int, list[int]]:
    """Give, by where brackets open, the positions of the opening one, of the commas directly within, and of its end.

    Brackets that are not closed, or by another kind, are left out.
    """
    found: dict[int, list[int]] = {}
    marks: list[list[int]] = []
    for position, character in enumerate(text):
        if character in _CLOSING:
            marks.append([position])
        elif character in ")]}":
            if marks and character == _CLOSING[text[marks[-1][0]]]:
                closed = marks.pop()
                found[closed[0]] = [*closed, position]
            else:
                marks.clear()
        elif character == "," and marks:
            marks[-1].append(position)
    return found
