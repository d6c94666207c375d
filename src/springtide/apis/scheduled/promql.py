"""Checks of PromQL queries that need no Prometheus: syntax, the type of the result, and two common mistakes.

An aggregation with several arguments, such as `max(a, b)`, is no PromQL: aggregations work on the samples of one
vector. The query probably means `max(a or b)`, but `or` drops samples of its right side that have the labels of one of
its left side. So the hint proposes `or` only if matchers make sure that the labels differ.

In `a or b` of two metrics of one MetricsProducer, the right side never counts: both metrics have the same labels, and
the metric name does not count as one.
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
    """The parser crashed on a text; the message says how."""


def parse_unchecked(text: str) -> Expr:
    """Parse PromQL; raises `ValueError` if it is invalid, and `PromqlParserPanic`."""
    try:
        expression: Expr = promql_parser.parse(text)
    except ValueError:
        raise
    except BaseException as failure:
        # A panic of the parser is a BaseException, so that it is not caught by accident.
        if type(failure).__name__ != "PanicException":
            raise
        raise PromqlParserPanic(str(failure)) from None
    return expression


_METRIC_FAMILY = re.compile(r"karpenter_(scheduled|reserved_capacity)_")
"""Prefixes of the metrics that one producer always has together; of queues, some metrics may be missing."""


def redundant_union_operands(expression: Expr) -> Iterator[Expr]:
    """Find selectors on the right side of `or` whose samples are all dropped, as the left side has their labels."""
    pending = [expression]
    while pending:
        match pending.pop():
            case BinaryExpr() as binary:
                left, right = _without_parentheses(binary.lhs), _without_parentheses(binary.rhs)
                if str(binary.op) == "or" and _series_key(left) is not None and _series_key(left) == _series_key(right):
                    yield right
                pending += (binary.rhs, binary.lhs)
            case AggregateExpr() | ParenExpr() | UnaryExpr() as outer:
                pending.append(outer.expr)
            case Call() as call:
                pending += reversed(call.args)


def _without_parentheses(expression: Expr) -> Expr:
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    return expression


def _series_key(expression: Expr) -> tuple[str, frozenset[tuple[str, str, str]]] | None:
    """Return the family and the matchers of a selector of our metrics; None for other expressions."""
    if not isinstance(expression, VectorSelector) or expression.offset is not None or expression.at is not None:
        return None
    family = _METRIC_FAMILY.match(expression.name or "")
    if family is None or expression.matchers.or_matchers:
        return None
    return family[1], frozenset((one.name, str(one.op), one.value) for one in expression.matchers.matchers)


# Not `quantile`, `topk`, `bottomk`, `count_values`, `limitk` and `limit_ratio`, whose first argument is a parameter.
_AGGREGATIONS = ("sum", "min", "max", "avg", "group", "count", "stddev", "stdvar")
_CALL = re.compile(rf"\b({'|'.join(_AGGREGATIONS)})\s*(?:(?:by|without)\s*\([^()]*\)\s*)?\(", re.IGNORECASE)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# An unclosed quote reaches to the end; otherwise every later quote would be tried as the first.
_QUOTED_OR_COMMENT = re.compile(
    r"\"(?:\\.?|[^\"\\])*(?:\"|\Z)|'(?:\\.?|[^'\\])*(?:'|\Z)|`[^`]*(?:`|\Z)|(?P<comment>#[^\n]*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Misaggregation:
    """An aggregation with several arguments, and the valid query that it probably means."""

    operator: str
    written: str
    legal: str | None
    """The equivalent valid query; None if `or` could drop samples."""


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels that every sample of a vector has."""

    known: Mapping[str, str]
    all: bool = False
    """Whether there are no others."""

    def of(self, label: str) -> str | None:
        """Return the value of a label, empty if there is none; None if it is unknown."""
        return self.known.get(label, "" if self.all else None)

    def differ(self, other: _Labels) -> bool:
        """Return whether no sample of the one can have the labels of a sample of the other."""
        return any(
            mine is not None and theirs is not None and mine != theirs
            for mine, theirs in ((self.of(label), other.of(label)) for label in (*self.known, *other.known))
        )


_NONE = _Labels(MappingProxyType({}), all=True)


def misaggregations(query: str) -> Iterator[Misaggregation]:
    """Find aggregations with several arguments."""
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
    """Return an aggregation over the samples of all arguments, if `or` drops none of them."""
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
    """Return the labels that all samples of an expression have; None if they are unknown."""
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
    """Return whether an expression is a scalar, which `or` does not accept."""
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
    """Blank out comments and, if wanted, strings, whose commas and brackets are no syntax."""
    return _QUOTED_OR_COMMENT.sub(
        lambda found: " " * len(found[0]) if found["comment"] else "_" * len(found[0]) if quoted else found[0], query
    )


def _arguments(text: str) -> dict[int, list[int]]:
    """Return, for each opening bracket, its position, those of the commas directly within, and that of its end.

    Unclosed and mismatched brackets are left out.
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


MAX_QUERY = 10_000
"""The maximum length of a query."""
_MARKS = re.compile(r"[-+*/%^<>=!~(\[@]|\b(?:and|or|unless|atan2)\b", re.IGNORECASE)
_MOST_MARKS = 500
"""The maximum number of operators and brackets of a query that is parsed: the time of the parser grows with the square
of the nesting depth, and some thousand levels exhaust the stack of the process."""
_REGEX_MARKS = 50
"""How many operators a `~` counts as, because the parser compiles the following pattern."""

_MOST_SHOWN = 200
"""Characters of a query that messages quote."""


class PromqlError(Exception):
    """A query that was not parsed; the message says why."""

    def __init__(self, message: str, hint: str = "", *, certain: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to write instead, if that is known."""
        self.certain = certain
        """Whether every Prometheus rejects it; otherwise only the server in use can decide."""

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


def parse_promql(query: str) -> Expr:
    """Parse a query; raises `PromqlError`.

    Queries come from users of namespaces, and could exhaust time or stack of the parser: queries that are too long or
    too deep are not parsed.
    """
    if len(query) > MAX_QUERY:
        raise PromqlError(
            f"a query of {len(query)} characters is too long, expected at most {MAX_QUERY}",
            "split it into several metrics, or let Prometheus record it by a rule",
            certain=False,
        )
    marks = sum(_REGEX_MARKS if mark[0] == "~" else 1 for mark in _MARKS.finditer(query))
    if marks > _MOST_MARKS:
        raise PromqlError(
            f"a query of {len(query)} characters and so many operators is too long to be parsed here",
            "split it into several metrics, or let Prometheus record it by a rule",
            certain=False,
        )
    for found in misaggregations(query):
        raise PromqlError(
            f"{quote_query(found.written)} is not PromQL: an aggregation takes one vector, and Prometheus rejects more",
            _aggregation_hint(found),
            certain=False,  # some compatible servers accept several arguments
        )
    try:
        return parse_unchecked(query)
    except ValueError as failure:
        raise _parse_error(query, str(failure)) from failure
    except PromqlParserPanic as failure:
        raise PromqlError(f"{quote_query(query)} cannot be parsed here: {failure}", certain=False) from failure


def query_problems(query: str, path: Path) -> Iterator[Problem]:
    """Find queries that Prometheus rejects, whose result is not a number, or of which a part has no effect."""
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
            f"{quote_query(unread.prettify())} has no effect: "
            "the left side of `or` has the same labels, and only it counts",
            "list both as separate metrics, of which the highest counts",
        )


def quote_query(query: str) -> str:
    """Quote a query in a message: in one line, and shortened."""
    line = " ".join(query.split())
    return f"`{line}`" if len(line) <= _MOST_SHOWN else f"`{line[:_MOST_SHOWN]}…`"


def non_numeric_type(expression: Expr) -> str | None:
    """Return the type of the result of an expression, if it is neither a number nor a vector."""
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    if isinstance(expression, StringLiteral):
        return "a text, not a number"
    if isinstance(expression, MatrixSelector | SubqueryExpr):
        return "a range of samples over time, not a number"
    return None


def _aggregation_hint(found: Misaggregation) -> str:
    """Return the hint for an aggregation with several arguments."""
    listed = "list the queries as separate metrics, of which the highest counts"
    if found.legal is not None:
        # A shortened query could not be copied.
        union = quote_query(found.legal) if len(found.legal) <= _MOST_SHOWN else "`or` between the arguments"
        return f"write {union}" + (f", or {listed}" if found.operator == "max" else "")
    warned = "`a or b` drops samples of `b` that have the same labels as one of `a`"
    if found.operator == "max":
        return f"{listed} ({warned})"
    return f"aggregate one vector; to join two, make sure that a label differs: {warned}"


def _parse_error(query: str, words: str) -> PromqlError:
    """Turn an error message of the parser into an error."""
    if not query.strip():
        return PromqlError("the query is empty", 'write PromQL, such as `karpenter_scheduled_capacity{name="…"}`')
    if words == "invalid promql query":
        return PromqlError(f"{quote_query(query)} is not PromQL")
    if words.startswith("unknown function"):
        # New versions of Prometheus and compatible servers have more functions.
        return PromqlError(f"{quote_query(query)}: {words}", "use one that your Prometheus has", certain=False)
    if words.startswith("set operator"):
        return PromqlError(
            f"{quote_query(query)} is not PromQL: {words}", "turn numbers into vectors: `a or vector(3)`"
        )
    return PromqlError(f"{quote_query(query)} is not PromQL: {words}")
