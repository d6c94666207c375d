"""The PromQL parser, with every way in which it fails told as an exception."""

from __future__ import annotations

import promql_parser
from promql_parser import Expr


class ParserBroke(Exception):
    """A text on which the parser itself goes wrong; the message says how."""


def parsed(text: str) -> Expr:
    """Make an expression of a text; raises `ValueError` where it is no PromQL, and `ParserBroke`."""
    try:
        expression: Expr = promql_parser.parse(text)
    except ValueError:
        raise
    except BaseException as failure:
        # What goes wrong within the parser is no Exception, so that nobody catches it who does not mean to.
        if type(failure).__name__ != "PanicException":
            raise
        raise ParserBroke(str(failure)) from None
    return expression
