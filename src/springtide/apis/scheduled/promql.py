"""PromQL as far as its text tells: what is not PromQL at all, and what can never have a number as its result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from promql_parser import Expr, MatrixSelector, ParenExpr, StringLiteral, SubqueryExpr

from springtide.apis.problems import Path, Problem, error, warning
from springtide.apis.scheduled.misaggregations import Misaggregation, misaggregations
from springtide.apis.scheduled.promql_parsing import ParserBroke, parsed
from springtide.apis.scheduled.unions import never_read

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
            _instead(found),
            certain=False,  # servers that only resemble Prometheus take the highest of all arguments
        )
    try:
        return parsed(query)
    except ValueError as failure:
        raise _refused(query, str(failure)) from failure
    except ParserBroke as failure:
        raise Unparsed(f"{shown(query)} cannot be parsed here: {failure}", certain=False) from failure


def query_problems(query: str, path: Path) -> Iterator[Problem]:
    """Find queries that Prometheus will refuse, whose result is never a number, or of which a part is never read."""
    try:
        expression = parse(query)
    except Unparsed as unparsed:
        kind = error if unparsed.certain else warning
        yield kind(path, unparsed.message, unparsed.hint)
        return
    if nature := not_a_number(expression):
        yield error(path, f"{shown(query)} is {nature}", "write a query whose result is one number")
    for unread in never_read(expression):
        yield warning(
            path,
            f"{shown(unread.prettify())} is never read: what stands before `or` has the same labels, and counts alone",
            "list both as metrics of their own, of which the highest counts",
        )


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


def _instead(found: Misaggregation) -> str:
    """Say what to write in place of an aggregation with several arguments."""
    listed = "list the queries as metrics of their own, of which the highest counts"
    if found.legal is not None:
        # What is cut off could not be typed.
        union = shown(found.legal) if len(found.legal) <= _MOST_SHOWN else "`or` between the arguments"
        return f"write {union}" + (f", or {listed}" if found.operator == "max" else "")
    warned = "`a or b` leaves out samples of `b` that have the same labels as one of `a`"
    if found.operator == "max":
        return f"{listed} ({warned})"
    return f"aggregate one vector; to join two, make sure that a label differs: {warned}"


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
