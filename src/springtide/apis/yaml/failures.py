"""Where and why the parser gave up on a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import yaml

from springtide.apis.yaml.compose import compose
from springtide.apis.yaml.parsers import ParserFactory, fastest_parser
from springtide.apis.yaml.refusal import RefusedError

_START: Final = yaml.Mark("", 0, 0, 0, None, 0)


@dataclass(frozen=True, slots=True)
class Failure:
    """A parser's own account: what is wrong where (counted from zero), and what it was in the middle of."""

    line: int
    column: int
    problem: str
    context: str = ""
    context_line: int = 0
    context_column: int = 0

    @property
    def is_open_quote(self) -> bool:
        """The text ended inside a quoted scalar, which says nothing of where the closing quote is missing."""
        return "quoted scalar" in self.context and ("end of stream" in self.problem or "document" in self.problem)

    @property
    def is_open_bracket(self) -> bool:
        """A list in brackets or a mapping in braces did not go on as it must."""
        return "parsing a flow" in self.context


def failure_of(error: yaml.YAMLError) -> Failure:
    """Give PyYAML's exception in one shape, whichever of its parsers raised it."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None) or _START
    context = getattr(error, "context_mark", None) or mark
    return Failure(
        line=mark.line,
        column=mark.column,
        problem=getattr(error, "problem", None) or str(error),
        context=getattr(error, "context", None) or "",
        context_line=context.line,
        context_column=context.column,
    )


def find_failure(text: str, parser: ParserFactory = fastest_parser) -> Failure | None:
    """Give what keeps a text from being read, or None."""
    try:
        for _ in compose(text, parser):
            pass
    except yaml.YAMLError as error:
        return failure_of(error)
    except RefusedError as refused:
        return Failure(refused.line, refused.column, refused.message)
    return None
