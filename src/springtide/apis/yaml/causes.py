"""Why a text is not YAML, in words that name the cause.

A parser reports where it gave up, which is often lines after the mistake and in terms of its own grammar.
So we first suspect the mistakes that people make: one is believed when mending it makes the parser come further.
What has no fix to try is told from the parser's account.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from springtide.apis.yaml.accounts import Cause, in_words
from springtide.apis.yaml.failures import Failure, find_failure
from springtide.apis.yaml.mistakes import Mistake, suspects
from springtide.apis.yaml.parsers import fastest_parser

if TYPE_CHECKING:
    from springtide.apis.yaml.parsers import ParserFactory

_TEMPLATE: Final = re.compile(r"\{\{|\{%")


def explain(text: str, failure: Failure, parser: ParserFactory = fastest_parser) -> Cause:
    """Name the cause of a parser's failure on this text."""
    if template := _template(text, failure):
        return template
    if mistake := find_mistake(text, failure, parser):
        return Cause(mistake.line, mistake.column, mistake.message, mistake.hint)
    cause = in_words(text, failure)
    lines = text.splitlines()
    # Where the parser wanted more than the text has, the mistake is at its end.
    return cause if cause.line < len(lines) else cause._replace(line=len(lines) - 1, column=len(lines[-1]))


def find_mistake(text: str, failure: Failure, parser: ParserFactory = fastest_parser) -> Mistake | None:
    """Give the mistake behind a failure, proven by mending it; None if it is none that we know."""
    for mistake in suspects(text, failure):
        left = find_failure(mistake.mended, parser)
        if left is None or _is_further(left, failure):
            return mistake
    return None


def _is_further(now: Failure, before: Failure) -> bool:
    # An open quote is noticed at the end of the text only, so what counts is where it opens.
    if before.is_open_quote:
        return now.is_open_quote and now.context_line > before.context_line
    return now.line > before.line and not (now.is_open_quote and now.context_line <= before.line)


def _template(text: str, failure: Failure) -> Cause | None:
    lines = text.splitlines()
    for number in (failure.line, failure.line - 1, failure.context_line):
        if 0 <= number < len(lines) and (opening := _TEMPLATE.search(lines[number])):
            message = f"`{opening[0]}` opens a template, which is not YAML"
            return Cause(number, opening.start(), message, "render the template first, or quote the value")
    return None
