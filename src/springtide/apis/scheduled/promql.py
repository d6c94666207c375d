"""PromQL as far as its text tells: what is not PromQL at all, and what can never have a number as its result.

One mistake reads like arithmetic, and is answered with the legal form: `max(a, b)`. Aggregations of PromQL work on the
samples of one vector, so Prometheus refuses a second argument. What is meant is the aggregation over the union of both:
`max(a or b)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import promql_parser
from promql_parser import Expr, MatrixSelector, ParenExpr, StringLiteral, SubqueryExpr

from springtide.apis.problems import Path, Problem, error, warning

# `quantile`, `topk`, `bottomk`, `count_values`, `limitk` and `limit_ratio` take a parameter first, and are left alone.
_AGGREGATIONS = ("sum", "min", "max", "avg", "group", "count", "stddev", "stdvar")
_CALL = re.compile(rf"\b({'|'.join(_AGGREGATIONS)})\s*(?:(?:by|without)\s*\([^()]*\)\s*)?\(", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CLOSING = {"(": ")", "[": "]", "{": "}"}

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


class Unparsed(Exception):
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


@dataclass(frozen=True, slots=True)
class Misaggregation:
    """An aggregation with several arguments, and the legal query that it stands for."""

    written: str
    legal: str


def parse(query: str) -> Expr:
    """Make an expression of a query; raises `Unparsed`.

    Queries are written by users of namespaces, and the parser is a library that may be driven to exhaust time and
    stack: what is too long or too deep for it does not reach it.
    """
    marks = sum(_REGEX_MARKS if mark[0] == "~" else 1 for mark in _MARKS.finditer(query))
    if len(query) > _LONGEST or marks > _MOST_MARKS:
        raise Unparsed(
            f"a query of {len(query)} characters and so many operators is too long to be parsed here",
            "split it into several metrics, or let Prometheus record it by a rule",
            certain=False,
        )
    for found in misaggregations(query):
        raise Unparsed(
            f"{shown(found.written)} is not PromQL: an aggregation takes one vector, and Prometheus refuses more",
            f"write {shown(found.legal)}, or list the queries as metrics of their own, of which the highest counts",
            certain=False,  # servers that only resemble Prometheus take the highest of all arguments
        )
    try:
        parsed: Expr = promql_parser.parse(query)
    except ValueError as failure:
        raise _refused(query, str(failure)) from failure
    except BaseException as failure:
        # What goes wrong within the parser is no Exception, so that nobody catches it who does not mean to.
        if type(failure).__name__ != "PanicException":
            raise
        raise Unparsed(f"{shown(query)} cannot be parsed here: {failure}", certain=False) from None
    return parsed


def query_problems(query: str, path: Path) -> Iterator[Problem]:
    """Find queries that Prometheus will refuse, and those whose result is never a number."""
    try:
        expression = parse(query)
    except Unparsed as unparsed:
        kind = error if unparsed.certain else warning
        yield kind(path, unparsed.message, unparsed.hint)
        return
    if nature := not_a_number(expression):
        yield error(path, f"{shown(query)} is {nature}", "write a query whose result is one number")


def shown(query: str) -> str:
    """Quote a query in a sentence, in one line and not the whole of a long one."""
    line = " ".join(query.split())
    return f"`{line}`" if len(line) <= _MOST_SHOWN else f"`{line[:_MOST_SHOWN]}…`"


def not_a_number(expression: Expr) -> str | None:
    """Say what the result of an expression is, where it can be no number and no vector of numbers."""
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    if isinstance(expression, StringLiteral):
        return "a text, not a number"
    if isinstance(expression, MatrixSelector | SubqueryExpr):
        return "a range of samples over time, not a number"
    return None


def misaggregations(query: str) -> Iterator[Misaggregation]:
    """Find aggregations that are written as functions of several arguments."""
    masked = _without_strings(query)
    calls = [call for call in _CALL.finditer(masked) if masked[call.start() - 1 : call.start()] != ":"]
    # What follows a colon is the end of a recording rule's name.
    arguments = _arguments(masked) if calls else {}
    for call in calls:
        split = arguments.get(call.end() - 1)
        if split is None or len(split) < 3:
            continue
        pieces = [_as_vector(query[a + 1 : b].strip()) for a, b in pairwise(split)]
        yield Misaggregation(
            written=query[call.start() : split[-1] + 1],
            legal=f"{query[call.start() : call.end()]}{' or '.join(pieces)})",
        )


def _refused(query: str, words: str) -> Unparsed:
    """Say in which way the parser refused a query."""
    if not query.strip():
        return Unparsed("the query is empty", 'write PromQL, such as `karpenter_scheduled_capacity{name="…"}`')
    if words == "invalid promql query":
        return Unparsed(f"{shown(query)} is not PromQL")
    if words.startswith("unknown function"):
        # Functions are added to PromQL, and to what resembles it, with every year.
        return Unparsed(f"{shown(query)}: {words}", "use one that your Prometheus has", certain=False)
    if words.startswith("set operator"):
        return Unparsed(f"{shown(query)} is not PromQL: {words}", "make numbers vectors: `a or vector(3)`")
    return Unparsed(f"{shown(query)} is not PromQL: {words}")


def _as_vector(argument: str) -> str:
    """Make a bare number something that `or` can join."""
    return f"vector({argument})" if _NUMBER.fullmatch(argument) else argument


def _without_strings(query: str) -> str:
    """Blank out what stands in quotes, so that commas and brackets there are not taken for syntax.

    A quote that is not closed reaches to the end: else every quote after it would be tried as the first.
    """
    return re.sub(
        r"\"(?:\\.?|[^\"\\])*(?:\"|\Z)|'(?:\\.?|[^'\\])*(?:'|\Z)|`[^`]*(?:`|\Z)",
        lambda quoted: "_" * len(quoted.group()),
        query,
        flags=re.DOTALL,
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
