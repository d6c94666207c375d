"""The documents of a file: their values, and the position of every field.

Documents are parsed one by one, so that an unreadable one does not hide the others. A line that begins with `---` ends
a document in any context, even inside an open quote, so the file is split there before anything is parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from springtide.apis.yaml.diagnosis import diagnose
from springtide.apis.yaml.failures import failure_of
from springtide.apis.yaml.nodes import (
    BYTE_ORDER_MARK,
    LINE_BREAK,
    MappingNode,
    Node,
    ParserFactory,
    RefusedError,
    SequenceNode,
    compose,
    fastest_parser,
    resolved,
)
from springtide.apis.yaml.values import Entry, fields, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from springtide.apis.problems import Path, Problem


class Position(NamedTuple):
    """A position in a file as editors count it: lines and columns from 1."""

    line: int
    column: int


class PlacedProblem(NamedTuple):
    """A problem of the notation, with its position, because a repeated key has the same path twice."""

    problem: Problem
    position: Position


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """A part of a file that is not YAML: the position and the cause of the failure, and the fix."""

    line: int
    column: int
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A part of a file that is parsed on its own: its text, and where it begins."""

    text: str
    offset: int = 0
    first_line: int = 1
    first_column: int = 1

    def position(self, line: int, column: int) -> Position:
        """Convert the parser's position in this text, counted from zero, to a position in the file."""
        return Position(line + self.first_line, column + (self.first_column if line == 0 else 1))


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; `text` is all of the file from `offset` on that belongs to it."""

    value: Any
    root: Node = field(repr=False, compare=False)
    segment: FileSegment = field(repr=False)
    problems: tuple[PlacedProblem, ...] = ()
    _fields: dict[int, dict[str, Entry]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The entries of the mappings in which a position was looked up, by the identity of their nodes."""

    @property
    def text(self) -> str:
        """The text of the document with its comments, without the `---` around it."""
        return self.segment.text

    @property
    def offset(self) -> int:
        """The offset of the text in the file, in characters."""
        return self.segment.offset

    @property
    def first_line(self) -> int:
        """The line of the file on which the first value begins."""
        return self._position_of(self.root).line

    def position(self, path: Path) -> Position:
        """Return the position of a field's key or of a list item; for a missing field, that of its nearest parent."""
        return self._position_of(self._find(path)[0])

    def value_position(self, path: Path) -> Position:
        """Return the position of a field's value; for a missing field, that of its nearest parent."""
        return self._position_of(self._find(path)[1])

    def _find(self, path: Path) -> tuple[Node, Node]:
        """Return the nodes of the last step of a path: the key (for a list item the item itself), and the value."""
        label = value = self.root
        for step in path:
            inner = resolved(value)
            if isinstance(inner, MappingNode) and isinstance(step, str):
                entries = self._fields.get(id(inner))
                if entries is None:
                    entries = self._fields[id(inner)] = fields(inner)
                entry = entries.get(step)
                if entry is None:
                    break
                label, value = entry
            elif isinstance(inner, SequenceNode) and isinstance(step, int) and 0 <= step < len(inner.items):
                label = value = inner.items[step]
            else:
                break
        return label, value

    def _position_of(self, node: Node) -> Position:
        return self.segment.position(node.line, node.column)


def document_of(root: Node, segment: FileSegment) -> Document:
    """Make a document of a tree."""
    value, findings = value_of(root, segment.first_line)
    placed = [PlacedProblem(problem, segment.position(node.line, node.column)) for problem, node in findings]
    return Document(value, root, segment, tuple(sorted(placed, key=lambda found: found.position)))


def document_without_text(value: Any) -> Document:
    """Make a document for a value without a text; the position of every field is the first one."""
    return Document(value, MappingNode(0, 0, 0, 0), FileSegment(""))


_MARKER: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[ \t]*(?:\r?\n)?", re.MULTILINE)
_DIRECTIVES: Final = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*%[^\n]*\n(?:[ \t\r]*(?:[#%][^\n]*)?\n)*")


def read(
    text: str, parser: ParserFactory = fastest_parser, *, most: int | None = None
) -> list[Document | UnreadableDocument]:
    """Parse every document of a file, in order; empty documents are left out.

    `most` is how many values and keys a document may have.
    """
    return [result for segment in segments(text) for result in read_segment(segment, parser, most=most)]


def segments(text: str) -> Iterator[FileSegment]:
    """Split a file at its document markers; YAML directives stay with their document."""
    start = 1 if text.startswith(BYTE_ORDER_MARK) else 0
    line, column = 1, 1
    for marker in _MARKER.finditer(text, start):
        before = text[start : marker.start()]
        if _DIRECTIVES.fullmatch(before):
            continue
        yield FileSegment(before, start, line, column)
        line += _count_lines(text[start : marker.end()])
        column = 1 if marker[0].endswith("\n") else len(marker[0]) + 1
        start = marker.end()
    yield FileSegment(text[start:], start, line, column)


def _count_lines(text: str) -> int:
    return sum(1 for _ in LINE_BREAK.finditer(text))


def read_segment(
    segment: FileSegment, parser: ParserFactory = fastest_parser, *, most: int | None = None
) -> Iterator[Document | UnreadableDocument]:
    """Parse one part of a file."""
    try:
        roots = list(compose(segment.text, parser, most=most))
    except RefusedError as refused:
        position = segment.position(refused.line, refused.column)
        yield UnreadableDocument(*position, refused.message, refused.hint)
    except yaml.YAMLError as error:
        cause = diagnose(segment.text, failure_of(error), parser)
        yield UnreadableDocument(*segment.position(cause.line, cause.column), cause.message, cause.hint)
    else:
        for document in (document_of(root, segment) for root in roots):
            if document.value is not None or document.problems:
                yield document
