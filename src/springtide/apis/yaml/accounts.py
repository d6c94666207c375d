"""A parser's account of its failure, told in the words of the person who wrote the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from springtide.apis.yaml.wording import clipped

if TYPE_CHECKING:
    from springtide.apis.yaml.failures import Failure

_ENTRY: Final = re.compile(r"(?P<lead>\s*(?:- +)*)(?P<key>[^\s#:'\"][^#:]*?):\s+(?P<value>\S.*?)(?:\s+#.*|\s*)$")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|(?<!\S)#.*|(?<![^\s:,\[{])[\[{]|[\]}]')
_CLOSING: Final = {"[": "]", "{": "}"}


class Cause(NamedTuple):
    """What is wrong with a text, where (counted from zero), and what to do about it."""

    line: int
    column: int
    message: str
    hint: str = ""


def in_words(text: str, failure: Failure) -> Cause:
    """Translate the parser's account of why it cannot read a text."""
    lines = text.splitlines()
    line = _line(lines, failure.line)
    indentation = line[: len(line) - len(line.lstrip())]
    here = line[failure.column : failure.column + 1]
    if "\t" in indentation:
        return Cause(failure.line, indentation.index("\t"), "a tab indents this line", "indent with spaces")
    if failure.is_open_quote:
        message, hint = "the quote that opens here is never closed", "end the text with the same quote"
        return Cause(failure.context_line, failure.context_column, message, hint)
    if "escape" in failure.problem:
        message = "this is not an escape that double quotes know"
        hint = "write `\\\\` for a backslash, or put the text in single quotes"
        return Cause(failure.line, max(line.rfind("\\", 0, failure.column + 1), 0), message, hint)
    if failure.is_open_bracket:
        return _open_bracket(lines, failure)
    if "scanning an alias" in failure.context or "scanning an anchor" in failure.context:
        return _special_start(_line(lines, failure.context_line), failure.context_line, failure.context_column)
    if "cannot start any token" in failure.problem:
        return _special_start(line, failure.line, failure.column)
    if "mapping values are not allowed" in failure.problem:
        return _misplaced_colon(line, failure)
    if "block sequence entries are not allowed" in failure.problem:
        message = "a list cannot begin after other text on its line"
        hint = "begin the list on a line of its own, or write it in brackets"
        return Cause(failure.line, failure.column, message, hint)
    if here == ":":
        message, hint = "no name stands before this colon", "write one, or quote the text"
        return Cause(failure.line, failure.column, message, hint)
    if here in {"]", "}"}:
        message = f"`{here}` closes nothing"
        return Cause(failure.line, failure.column, message, "remove it, or quote the value")
    if "expected ':'" in failure.problem:
        word = clipped(_line(lines, failure.context_line)[failure.context_column :].strip())
        message, hint = f"`{word}` is neither a key nor a value here", "write `key: value`, or remove it"
        return Cause(failure.context_line, failure.context_column, message, hint)
    if "document start" in failure.problem:
        message = f"`{clipped(line[failure.column :].strip())}` stands after a complete document"
        return Cause(failure.line, failure.column, message, "begin another one with `---`, or remove this part")
    if "block" in failure.context:
        return _misfit(lines, failure)
    return Cause(failure.line, failure.column, f"{failure.context} {failure.problem}".strip())


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _special_start(line: str, number: int, column: int) -> Cause:
    message = f"`{line[column : column + 1]}` cannot begin an unquoted value"
    return Cause(number, column, message, _quote_hint(line))


def _open_bracket(lines: list[str], failure: Failure) -> Cause:
    """Point at the bracket that is still open, or into it where it goes wrong on its own line."""
    before = [*lines[: failure.line], _line(lines, failure.line)[: failure.column]]
    unclosed = _last_unclosed(before)
    if unclosed is None:
        message = "`,` or a closing bracket was expected here"
        return Cause(failure.line, failure.column, message, "quote values with special characters")
    line, column, bracket = unclosed
    closing = _CLOSING[bracket]
    if failure.line > line:
        message = f"the `{bracket}` that opens here is not closed"
        return Cause(line, column, message, f"write `{closing}` where it ends")
    hint = f"separate the parts with `,` and end with `{closing}`; quote values with special characters"
    return Cause(failure.line, failure.column, f"`,` or `{closing}` was expected here", hint)


def _last_unclosed(lines: list[str]) -> tuple[int, int, str] | None:
    """The innermost bracket still open at the end; texts that span lines are not seen."""
    still_open: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines):
        for part in _BRACKETS.finditer(line):
            if part[0] in _CLOSING:
                still_open.append((number, part.start(), part[0]))
            elif part[0] in _CLOSING.values() and still_open:
                still_open.pop()
    return still_open[-1] if still_open else None


def _misplaced_colon(line: str, failure: Failure) -> Cause:
    if ": " in line[: failure.column]:
        message = "a second `:` stands in an unquoted value"
        return Cause(failure.line, failure.column, message, _quote_hint(line))
    column = len(line) - len(line.lstrip())
    message = "this line is indented deeper than the one above, which already holds a value"
    return Cause(failure.line, column, message, "give both lines the same indentation")


def _misfit(lines: list[str], failure: Failure) -> Cause:
    line = _line(lines, failure.line)
    indent = len(line) - len(line.lstrip())
    if failure.column > indent:
        message = f"`{clipped(line[failure.column :].strip())}` stands after a complete value"
        return Cause(failure.line, failure.column, message, "quote the whole value, or remove this part")
    message = f"this line is indented by {indent}, which fits nothing above it"
    return Cause(failure.line, failure.column, message, _alignment_hint(lines, failure.line, indent))


def _alignment_hint(lines: list[str], number: int, indent: int) -> str:
    """Name the indentations next to the wrong one: that of the line above, and of the nearest one further left."""
    fitting: list[str] = []
    for above in range(number - 1, -1, -1):
        line = lines[above]
        depth = len(line) - len(line.lstrip())
        if line.strip() and line.strip()[0] != "#" and (not fitting or depth < indent):
            fitting.append(f"`{clipped(line.strip())}` ({depth} spaces)")
        if len(fitting) == 2 or (fitting and depth < indent):
            break
    return f"line it up with {' or '.join(fitting)}" if fitting else "remove the indentation"


def _quote_hint(line: str) -> str:
    if entry := _ENTRY.match(line):
        value = entry["value"].replace("\\", "\\\\").replace('"', '\\"')
        return f'write `{clipped(entry["key"])}: "{clipped(value)}"`'
    return "put quotes around the value"
