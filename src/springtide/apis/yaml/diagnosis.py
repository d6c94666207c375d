"""Why a text is not YAML: messages that name the cause and its position.

A parser reports where it failed, which is often lines after the mistake, and in terms of its grammar. So the common
mistakes are tried first: one is confirmed if the parser gets further with the corrected text. For all other failures
the parser's error is translated.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from springtide.apis.yaml.failures import Mistake, ParseFailure, find_failure, suspected_mistakes
from springtide.apis.yaml.nodes import clipped, fastest_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from springtide.apis.yaml.nodes import ParserFactory


_ENTRY: Final = re.compile(r"(?P<lead>\s*(?:- +)*)(?P<key>[^\s#:'\"][^#:]*?):\s+(?P<value>\S.*)$")
_COMMENT: Final = re.compile(r"\s#")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|(?<!\S)#.*|(?<![^\s:,\[{])[\[{]|[\]}]')
_CLOSING: Final = {"[": "]", "{": "}"}
_ITEM: Final = re.compile(r" *-(?:\s|$)")
_LEAD: Final = re.compile(r" *(?:- +)*")
_DASHES: Final = re.compile(r"- +")
_MOST_SUSPECTS: Final = 32
"""How many mistakes are tried: each means to parse the text once more."""
_TEMPLATE: Final = re.compile(r"\{\{|\{%")


class Diagnosis(NamedTuple):
    """What is wrong with a text, where (counted from zero), and what to do about it."""

    line: int
    column: int
    message: str
    hint: str = ""


def diagnose(text: str, failure: ParseFailure, parser: ParserFactory = fastest_parser) -> Diagnosis:
    """Return the cause of a parser's failure on this text."""
    if template := _template(text, failure):
        return template
    if mistake := find_mistake(text, failure, parser):
        return Diagnosis(mistake.line, mistake.column, mistake.message, mistake.hint)
    cause = _translate(text, failure)
    lines = text.splitlines()
    # A failure beyond the last line is reported at the end of the text.
    return cause if cause.line < len(lines) else cause._replace(line=len(lines) - 1, column=len(lines[-1]))


def find_mistake(text: str, failure: ParseFailure, parser: ParserFactory = fastest_parser) -> Mistake | None:
    """Return the mistake that caused a failure, confirmed by correcting it, or None if it is not a known one."""
    for mistake in islice(suspected_mistakes(text, failure), _MOST_SUSPECTS):
        left = find_failure(mistake.corrected, parser)
        if left is None or _is_further(left, failure):
            return mistake
    return None


def _is_further(now: ParseFailure, before: ParseFailure) -> bool:
    # An open quote fails only at the end of the text, so the position at which it opens is compared.
    if before.is_open_quote:
        return now.is_open_quote and now.context_line > before.context_line
    return now.line > before.line and not (now.is_open_quote and now.context_line <= before.line)


def _template(text: str, failure: ParseFailure) -> Diagnosis | None:
    lines = text.splitlines()
    for number in (failure.line, failure.line - 1, failure.context_line):
        if 0 <= number < len(lines) and (opening := _TEMPLATE.search(lines[number])):
            message = f"`{opening[0]}` opens a template, which is not YAML"
            return Diagnosis(number, opening.start(), message, "render the template first, or quote the value")
    return None


def _translate(text: str, failure: ParseFailure) -> Diagnosis:
    """Translate a parser's error."""
    lines = text.splitlines()
    line = _line(lines, failure.line)
    indentation = line[: len(line) - len(line.lstrip())]
    here = line[failure.column : failure.column + 1]
    if "\t" in indentation:
        return Diagnosis(failure.line, indentation.index("\t"), "a tab indents this line", "indent with spaces")
    if failure.is_open_quote:
        message, hint = "the quote that opens here is never closed", "end the text with the same quote"
        return Diagnosis(failure.context_line, failure.context_column, message, hint)
    if "escape" in failure.problem:
        message = "this escape does not exist in double quotes"
        hint = "write `\\\\` for a backslash, or put the text in single quotes"
        return Diagnosis(failure.line, max(line.rfind("\\", 0, failure.column + 1), 0), message, hint)
    if failure.is_open_bracket:
        return _open_bracket(lines, failure)
    if "scanning an alias" in failure.context or "scanning an anchor" in failure.context:
        return _special_start(_line(lines, failure.context_line), failure.context_line, failure.context_column)
    if "cannot start any token" in failure.problem:
        return _special_start(line, failure.line, failure.column)
    if "mapping values are not allowed" in failure.problem:
        return _misplaced_colon(lines, failure)
    if "block sequence entries are not allowed" in failure.problem:
        message = "a list cannot begin after other text on its line"
        hint = "begin the list on a line of its own, or write it in brackets"
        return Diagnosis(failure.line, failure.column, message, hint)
    if here == ":":
        message, hint = "there is no key before this colon", "write one, or quote the text"
        return Diagnosis(failure.line, failure.column, message, hint)
    if here in {"]", "}"}:
        message = f"`{here}` has no opening bracket"
        return Diagnosis(failure.line, failure.column, message, "remove it, or quote the value")
    if "expected ':'" in failure.problem:
        word = clipped(_line(lines, failure.context_line)[failure.context_column :].strip())
        message, hint = f"`{word}` is neither a key nor a value here", "write `key: value`, or remove it"
        return Diagnosis(failure.context_line, failure.context_column, message, hint)
    if "document start" in failure.problem:
        message = f"`{clipped(line[failure.column :].strip())}` follows a complete document"
        return Diagnosis(failure.line, failure.column, message, "begin another one with `---`, or remove this part")
    if "block" in failure.context:
        return _wrong_indentation(lines, failure)
    return Diagnosis(failure.line, failure.column, f"{failure.context} {failure.problem}".strip())


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _special_start(line: str, number: int, column: int) -> Diagnosis:
    message = f"`{line[column : column + 1]}` cannot begin an unquoted value"
    return Diagnosis(number, column, message, _quote_hint(line))


def _open_bracket(lines: list[str], failure: ParseFailure) -> Diagnosis:
    """Return the position of the open bracket or, for a failure on its own line, the position of that."""
    before = [*lines[: failure.line], _line(lines, failure.line)[: failure.column]]
    unclosed = _last_unclosed(before)
    if unclosed is None:
        message = "`,` or a closing bracket was expected here"
        return Diagnosis(failure.line, failure.column, message, "quote values with special characters")
    line, column, bracket = unclosed
    closing = _CLOSING[bracket]
    if failure.line > line:
        message = f"the `{bracket}` that opens here is not closed"
        return Diagnosis(line, column, message, f"write `{closing}` where it ends")
    hint = f"separate the parts with `,` and end with `{closing}`; quote values with special characters"
    return Diagnosis(failure.line, failure.column, f"`,` or `{closing}` was expected here", hint)


def _last_unclosed(lines: list[str]) -> tuple[int, int, str] | None:
    """Return the innermost bracket that is still open at the end; strings that span lines are not recognised."""
    still_open: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines):
        for part in _BRACKETS.finditer(line):
            if part[0] in _CLOSING:
                still_open.append((number, part.start(), part[0]))
            elif part[0] in _CLOSING.values() and still_open:
                still_open.pop()
    return still_open[-1] if still_open else None


def _misplaced_colon(lines: list[str], failure: ParseFailure) -> Diagnosis:
    line = _line(lines, failure.line)
    if ": " in line[: failure.column]:
        message = "an unquoted value contains a second `:`"
        return Diagnosis(failure.line, failure.column, message, _quote_hint(line))
    column = len(line) - len(line.lstrip())
    message = "this line is indented deeper than the one above, which already holds a value"
    return Diagnosis(failure.line, column, message, _alignment_hint(lines, failure.line, column))


def _wrong_indentation(lines: list[str], failure: ParseFailure) -> Diagnosis:
    line = _line(lines, failure.line)
    indent = len(line) - len(line.lstrip())
    if failure.column > indent:
        message = f"`{clipped(line[failure.column :].strip())}` follows a complete value"
        return Diagnosis(failure.line, failure.column, message, "quote the whole value, or remove this part")
    message = f"this line is indented by {indent}, which matches no line above it"
    return Diagnosis(failure.line, failure.column, message, _alignment_hint(lines, failure.line, indent))


class _Column(NamedTuple):
    """A column at which the line may begin, and the line above that begins there."""

    indent: int
    line: str
    is_item: bool


def _alignment_hint(lines: list[str], number: int, indent: int) -> str:
    """Name the indentation of the siblings: of list items for an item, of keys for a key.

    Where two are equally near, both are named.
    """
    is_item = bool(_ITEM.match(lines[number]))
    above = list(_open_columns(lines, number))
    siblings = [column for column in above if column.is_item is is_item] or above
    if (block := _indent_of_block(lines, number)) is not None:
        siblings = [column for column in siblings if column.indent < block] or siblings
    distance = min((abs(column.indent - indent) for column in siblings), default=None)
    fitting = [column for column in siblings if abs(column.indent - indent) == distance]
    if not fitting:
        return "remove the indentation"
    return "indent it by " + ", or by ".join(f"{each.indent}, like `{clipped(each.line)}`" for each in fitting)


def _open_columns(lines: list[str], number: int) -> Iterator[_Column]:
    """Yield the columns of the blocks that are open above a line, the innermost first."""
    least: int | None = None
    for above in range(number - 1, -1, -1):
        line = lines[above]
        content = line.strip()
        if not content or content[0] == "#" or content in ("---", "..."):
            continue
        lead = _LEAD.match(line)
        columns = [
            len(line) - len(line.lstrip()),
            *((item.end() for item in _DASHES.finditer(lead[0])) if lead else ()),
        ]
        for place, column in reversed(list(enumerate(columns))):
            if least is None or column < least:
                least = column
                yield _Column(
                    column, line[column:].rstrip(), bool(_ITEM.match(line[column:])) or place < len(columns) - 1
                )


def _indent_of_block(lines: list[str], number: int) -> int | None:
    """Return the indentation of the block that a line opens; None if it opens none."""
    own = len(lines[number]) - len(lines[number].lstrip())
    if not lines[number].split(" #")[0].rstrip().endswith(":"):
        return None
    for line in lines[number + 1 :]:
        if line.strip() and line.strip()[0] != "#":
            indent = len(line) - len(line.lstrip())
            return indent if indent > own else None
    return None


def _quote_hint(line: str) -> str:
    if entry := _ENTRY.match(line):
        value = _COMMENT.split(entry["value"], maxsplit=1)[0].rstrip().replace("\\", "\\\\").replace('"', '\\"')
        return f'write `{clipped(entry["key"])}: "{clipped(value)}"`'
    return "put quotes around the value"
