"""Unions of which the right side never counts: `a or b` of two metrics that one MetricsProducer has.

`or` leaves out what has the labels of a sample of its left side, and the names of metrics are no labels. A producer
that exports the one metric exports the other with the same labels, so nothing of it is ever left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from promql_parser import AggregateExpr, BinaryExpr, Call, Expr, ParenExpr, UnaryExpr, VectorSelector

_TOGETHER = re.compile(r"karpenter_(scheduled|reserved_capacity)_")
"""What the metrics begin with that a producer has all at once; of a queue, only some are known everywhere."""


def never_read(expression: Expr) -> Iterator[Expr]:
    """Find selectors on the right side of a union that reads everything of them on its left side already."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case BinaryExpr() as binary:
                left, right = _bare(binary.lhs), _bare(binary.rhs)
                if str(binary.op) == "or" and _series(left) is not None and _series(left) == _series(right):
                    yield right
                waiting += (binary.rhs, binary.lhs)
            case AggregateExpr() | ParenExpr() | UnaryExpr() as outer:
                waiting.append(outer.expr)
            case Call() as call:
                waiting += reversed(call.args)


def _bare(expression: Expr) -> Expr:
    while isinstance(expression, ParenExpr):
        expression = expression.expr
    return expression


def _series(expression: Expr) -> tuple[str, frozenset[tuple[str, str, str]]] | None:
    """Give what tells of which producers the series are that an expression selects, if it is a selector of ours."""
    if not isinstance(expression, VectorSelector) or expression.offset is not None or expression.at is not None:
        return None
    family = _TOGETHER.match(expression.name or "")
    if family is None or expression.matchers.or_matchers:
        return None
    return family[1], frozenset((one.name, str(one.op), one.value) for one in expression.matchers.matchers)
