"""Where and why a parser fails, and the common mistakes that may have caused it, each with the corrected text.

A suspected mistake need not be one: `//` may be part of a script. So the caller parses the corrected text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from springtide.apis.yaml.nodes import ParserFactory, RefusedError, clipped, compose, fastest_parser

if TYPE_CHECKING:
    from collections.abc import Iterator


_START: Final = yaml.Mark("", 0, 0, 0, None, 0)


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A parser's error: the problem and its position (counted from zero), and the construct that it was parsing."""

    line: int
    column: int
    problem: str
    context: str = ""
    context_line: int = 0
    context_column: int = 0

    @property
    def is_open_quote(self) -> bool:
        """Whether the text ended inside a quoted scalar; the closing quote may be missing much earlier."""
        return "quoted scalar" in self.context and ("end of stream" in self.problem or "document" in self.problem)

    @property
    def is_open_bracket(self) -> bool:
        """Whether the failure is inside a list in brackets or a mapping in braces."""
        return "parsing a flow" in self.context


def failure_of(error: yaml.YAMLError) -> ParseFailure:
    """Convert PyYAML's exception, which differs between its parsers."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None) or _START
    context = getattr(error, "context_mark", None) or mark
    return ParseFailure(
        line=mark.line,
        column=mark.column,
        problem=getattr(error, "problem", None) or str(error),
        context=getattr(error, "context", None) or "",
        context_line=context.line,
        context_column=context.column,
    )


def find_failure(text: str, parser: ParserFactory = fastest_parser) -> ParseFailure | None:
    """Return the failure to parse a text, or None if it can be parsed."""
    try:
        for _ in compose(text, parser):
            pass
    except yaml.YAMLError as error:
        return failure_of(error)
    except RefusedError as refused:
        return ParseFailure(refused.line, refused.column, refused.message)
    return None


_LINES_ABOVE: Final = 4
_LEAD: Final = r"(?P<lead>[ ]*(?:- +)*)"
_WORD: Final = r"(?P<word>[A-Za-z_][\w./-]*)"
_BARE_WORD: Final = re.compile(_LEAD + _WORD + r"[ \t]*(?:(?:#|//).*)?$")
_WORD_AND_VALUE: Final = re.compile(_LEAD + _WORD + r"[ \t]+(?P<value>[^\s:#'\"][^:#'\"]*)$")
_TIGHT_COLON: Final = re.compile(_LEAD + _WORD + r":(?P<value>[^\s/:][^:]*)$")
COMMENT_REPAIR: Final = "wrote `#` for `//`"
_SLASH_LINE: Final = re.compile(r"\s*//")
_TRAILING_SLASHES: Final = re.compile(r"(?<=\S)\s+//")
_ENTRY: Final = re.compile(r"-(?:\s|$)|[^\s#].*?:(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake and its position, counted from zero; `repair` describes the correction if only one is possible."""

    line: int
    column: int
    message: str
    hint: str
    corrected: str
    repair: str = ""


def suspected_mistakes(text: str, failure: ParseFailure) -> Iterator[Mistake]:
    """Yield the mistakes that may have caused a failure, the most likely first."""
    lines = text.splitlines(keepends=True)
    numbers = _suspicious_lines(lines, failure)
    for number in numbers:
        yield from _slash_comment(lines, number)
    for number in numbers:
        yield from _missing_colon(lines, number)
    for number in numbers:
        yield from _odd_quote(lines, number)


def _suspicious_lines(lines: list[str], failure: ParseFailure) -> list[int]:
    """Return the line of the failure, the lines just above it, and the line on which its context begins."""
    last = min(failure.line, len(lines) - 1)
    above = (number for number in range(last, -1, -1) if lines[number].strip() and lines[number].lstrip()[0] != "#")
    nearest = [number for _, number in zip(range(_LINES_ABOVE), above, strict=False)]
    return list(dict.fromkeys([*nearest, min(failure.context_line, len(lines) - 1)]))


def _slash_comment(lines: list[str], number: int) -> Iterator[Mistake]:
    message, hint = "`//` does not start a comment in YAML", "write `#` instead"
    line = lines[number]
    if _SLASH_LINE.match(line):
        first = number
        while first and _SLASH_LINE.match(lines[first - 1]):
            first -= 1
        commented = [line.replace("//", "#", 1) for line in lines[first : number + 1]]
        corrected = "".join([*lines[:first], *commented, *lines[number + 1 :]])
        yield Mistake(first, lines[first].index("//"), message, hint, corrected, COMMENT_REPAIR)
    for slashes in _TRAILING_SLASHES.finditer(line):
        column = slashes.end() - 2
        corrected = _replaced(lines, number, f"{line[:column]}#{line[column + 2 :].rstrip()}")
        yield Mistake(number, column, message, hint, corrected, COMMENT_REPAIR)


def _missing_colon(lines: list[str], number: int) -> Iterator[Mistake]:
    line = lines[number].rstrip()
    if bare := _BARE_WORD.match(line):
        word, column, end = bare["word"], bare.start("word"), bare.end("word")
        rest = line[end:] if "#" in line[end:] else line[end:].replace("//", "#", 1)
        yield Mistake(
            number,
            column,
            f"`{word}` is not followed by a colon",
            f"write `{word}:`",
            _replaced(lines, number, f"{line[:end]}:{rest}"),
            # Without a block beneath it, the word may also be a misplaced value.
            f"wrote `{word}:` for `{word}`" if _has_block_beneath(lines, number, column) else "",
        )
    elif pair := _WORD_AND_VALUE.match(line) or _TIGHT_COLON.match(line):
        what = "no space after its colon" if pair.re is _TIGHT_COLON else "no colon"
        expected = f"{pair['word']}: {pair['value']}"
        yield Mistake(
            number,
            pair.start("word"),
            f"`{clipped(line[pair.start('word') :])}` has {what}",
            f"write `{clipped(expected)}`",
            _replaced(lines, number, f"{pair['lead']}{expected}"),
        )


def _odd_quote(lines: list[str], number: int) -> Iterator[Mistake]:
    line = lines[number].rstrip()
    for quote in ('"', "'"):
        opening = re.search(rf"(?:^|[\s:\[,{{-])({quote})", line)
        if opening and line.count(quote) % 2:
            yield Mistake(
                number,
                opening.start(1),
                f"the quote {quote} that opens here is not closed",
                f"end the text with {quote}",
                _replaced(lines, number, line + quote),
            )


def _has_block_beneath(lines: list[str], number: int, column: int) -> bool:
    for line in lines[number + 1 :]:
        content = line.strip()
        if content and content[0] != "#":
            indent = len(line) - len(line.lstrip(" "))
            is_list = content.startswith("-")
            return bool(_ENTRY.match(content)) and (indent > column or (is_list and indent == column))
    return False


def _replaced(lines: list[str], number: int, line: str) -> str:
    """Return the text with one line replaced, which keeps its line break."""
    line_break = lines[number][len(lines[number].rstrip()) :]
    return "".join([*lines[:number], line, line_break, *lines[number + 1 :]])
