"""The PromQL parser, with every way in which it fails told as an exception.

Unions of which the right side never counts: `a or b` of two metrics that one MetricsProducer has.

`or` leaves out what has the labels of a sample of its left side, and the names of metrics are no labels. A producer
that exports the one metric exports the other with the same labels, so nothing of it is ever left.

Aggregations that are written as functions of several arguments: `max(a, b)`.

It reads like arithmetic, and is no PromQL: aggregations work on the samples of one vector, and Prometheus refuses a
second argument. What is meant is the aggregation over the samples of both. `max(a or b)` is that only where no sample
of one has the labels of a sample of the other: `or` drops those of its right side that have the labels of one of its
left side. So it is shown only where matchers make sure that they differ.

PromQL as far as its text tells: what is not PromQL at all, and what can never have a number as its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from types import MappingProxyType

import promql_parser
from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatchOp,
    MatrixSelector,
    NumberLiteral,
    ParenExpr,
    StringLiteral,
    SubqueryExpr,
    UnaryExpr,
    ValueType,
    VectorSelector,
)

from springtide.apis.problems import Path, Problem, error, warning


class PromqlParserPanic(Exception):
    """A text on which the parser itself goes wrong; the message says how."""


def parse_unchecked(text: str) -> Expr:
    """Make an expression of a text; raises `ValueError` where it is no PromQL, and `ParserBroke`."""
    try:
        expression: Expr = promql_parser.parse(text)
    except ValueError:
        raise
    except BaseException as failure:
        # What goes wrong within the parser is no Exception, so that nobody catches it who does not mean to.
        if type(failure).__name__ != "PanicException":
            raise
        raise PromqlParserPanic(str(failure)) from None
    return expression


_METRIC_FAMILY = re.compile(r"karpenter_(scheduled|reserved_capacity)_")
"""What the metrics begin with that a producer has all at once; of a queue, only some are known everywhere."""


def redundant_union_operands(expression: Expr) -> Iterator[Expr]:
    """Find selectors on the right side of a union that reads everything of them on its left side already."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case BinaryExpr() as binary:
                left, right = _without_parentheses(binary.lhs), _without_parentheses(binary.rhs)
                if str(binary.op) == "or" and _series_key(left) is not None and _series_key(left) == _series_key(right):
                    yield right
                waiting += (binary.rhs, binary.lhs)
            case AggregateExpr() | ParenExpr() | UnaryExpr() as outer:
                waiting.append(outer.expr)
            case Call() as call:
                waiting += reversed(call.args)


def _without_parentheses(expression: Expr) -> Expr:
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    return expression


def _series_key(expression: Expr) -> tuple[str, frozenset[tuple[str, str, str]]] | None:
    """Give what tells of which producers the series are that an expression selects, if it is a selector of ours."""
    if not isinstance(expression, VectorSelector) or expression.offset is not None or expression.at is not None:
        return None
    family = _METRIC_FAMILY.match(expression.name or "")
    if family is None or expression.matchers.or_matchers:
        return None
    return family[1], frozenset((one.name, str(one.op), one.value) for one in expression.matchers.matchers)


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
    plain = _blank_out(query, quoted=False)
    masked = _blank_out(query, quoted=True)
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
        expressions = [parse_unchecked(argument) for argument in arguments]
        labels = [_known_labels(expression) for expression in expressions]
        if not all(
            one is not None and other is not None and one.differ(other) for one, other in combinations(labels, 2)
        ):
            return None
        vectors = [
            f"vector({argument})" if _is_scalar(expression) else argument
            for argument, expression in zip(arguments, expressions, strict=True)
        ]
        legal = f"{beginning}{' or '.join(vectors)})"
        parse_unchecked(legal)
    except (ValueError, PromqlParserPanic):
        return None
    return legal


def _known_labels(expression: Expr) -> _Labels | None:
    """Give the labels that all samples of an expression have; None where that cannot be told from its text."""
    if _is_scalar(expression):
        return _NONE
    match expression:
        case ParenExpr():
            return _known_labels(expression.expr)
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


def _blank_out(query: str, *, quoted: bool) -> str:
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


_LONGEST = 10_000
"""Characters of a query beyond which it is not parsed."""
_MARKS = re.compile(r"[-+*/%^<>=!~(\[@]|\b(?:and|or|unless|atan2)\b", re.IGNORECASE)
_MOST_MARKS = 500
"""Operators and brackets beyond which a query is not parsed, wherever they stand: the parser's time grows with the
square of how deep a query is, and some thousand levels exhaust the stack of the process."""
_REGEX_MARKS = 50
"""What a `~` counts as: the parser compiles the pattern that follows."""

_MOST_SHOWN = 200
"""Characters of a query that sentences quote."""


class PromqlError(Exception):
    """A text of which no expression was made; the message says why."""

    def __init__(self, message: str, hint: str = "", *, certain: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to write instead, where that is known."""
        self.certain = certain
        """Whether every Prometheus will refuse it; otherwise only the server that is asked can tell."""

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


def parse_promql(query: str) -> Expr:
    """Make an expression of a query; raises `Unparsed`.

    Queries are written by users of namespaces, and the parser is a library that may be driven to exhaust time and
    stack: what is too long or too deep for it does not reach it.
    """
    marks = sum(_REGEX_MARKS if mark[0] == "~" else 1 for mark in _MARKS.finditer(query))
    if len(query) > _LONGEST or marks > _MOST_MARKS:
        raise PromqlError(
            f"a query of {len(query)} characters and so many operators is too long to be parsed here",
            "split it into several metrics, or let Prometheus record it by a rule",
            certain=False,
        )
    for found in misaggregations(query):
        raise PromqlError(
            f"{quote_query(found.written)} is not PromQL: an aggregation takes one vector, and Prometheus refuses more",
            _aggregation_hint(found),
            certain=False,  # servers that only resemble Prometheus take the highest of all arguments
        )
    try:
        return parse_unchecked(query)
    except ValueError as failure:
        raise _parse_error(query, str(failure)) from failure
    except PromqlParserPanic as failure:
        raise PromqlError(f"{quote_query(query)} cannot be parsed here: {failure}", certain=False) from failure


def query_problems(query: str, path: Path) -> Iterator[Problem]:
    """Find queries that Prometheus will refuse, whose result is never a number, or of which a part is never read."""
    try:
        expression = parse_promql(query)
    except PromqlError as unparsed:
        kind = error if unparsed.certain else warning
        yield kind(path, unparsed.message, unparsed.hint)
        return
    if nature := non_numeric_type(expression):
        yield error(path, f"{quote_query(query)} is {nature}", "write a query whose result is one number")
    for unread in redundant_union_operands(expression):
        yield warning(
            path,
            f"{quote_query(unread.prettify())} is never read: "
            "what stands before `or` has the same labels, and counts alone",
            "list both as metrics of their own, of which the highest counts",
        )


def quote_query(query: str) -> str:
    """Quote a query in a sentence, in one line and not the whole of a long one."""
    line = " ".join(query.split())
    return f"`{line}`" if len(line) <= _MOST_SHOWN else f"`{line[:_MOST_SHOWN]}…`"


def non_numeric_type(expression: Expr) -> str | None:
    """Say what the result of an expression is, where it can be no number and no vector of numbers."""
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    if isinstance(expression, StringLiteral):
        return "a text, not a number"
    if isinstance(expression, MatrixSelector | SubqueryExpr):
        return "a range of samples over time, not a number"
    return None


def _aggregation_hint(found: Misaggregation) -> str:
    """Say what to write in place of an aggregation with several arguments."""
    listed = "list the queries as metrics of their own, of which the highest counts"
    if found.legal is not None:
        # What is cut off could not be typed.
        union = quote_query(found.legal) if len(found.legal) <= _MOST_SHOWN else "`or` between the arguments"
        return f"write {union}" + (f", or {listed}" if found.operator == "max" else "")
    warned = "`a or b` leaves out samples of `b` that have the same labels as one of `a`"
    if found.operator == "max":
        return f"{listed} ({warned})"
    return f"aggregate one vector; to join two, make sure that a label differs: {warned}"


def _parse_error(query: str, words: str) -> PromqlError:
    """Say in which way the parser refused a query."""
    if not query.strip():
        return PromqlError("the query is empty", 'write PromQL, such as `karpenter_scheduled_capacity{name="…"}`')
    if words == "invalid promql query":
        return PromqlError(f"{quote_query(query)} is not PromQL")
    if words.startswith("unknown function"):
        # Functions are added to PromQL, and to what resembles it, with every year.
        return PromqlError(f"{quote_query(query)}: {words}", "use one that your Prometheus has", certain=False)
    if words.startswith("set operator"):
        return PromqlError(f"{quote_query(query)} is not PromQL: {words}", "make numbers vectors: `a or vector(3)`")
    return PromqlError(f"{quote_query(query)} is not PromQL: {words}")
