"""A manifest as it was read: its value, and where in the file each part of it stands.

Reading files of manifests: every document for itself, so that an unreadable one never hides the others.

A line that begins with `---` ends a document whatever stands before it, even an open quote.
So a file can be cut there before anything is parsed, and each part gets its own parser and its own verdict.
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
from springtide.apis.yaml.values import fields, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from springtide.apis.problems import Path, Problem


class Position(NamedTuple):
    """A place in a file as editors count it: lines and columns from 1."""

    line: int
    column: int


class PlacedProblem(NamedTuple):
    """A problem of how the text is written, which only its place can tell apart from its double."""

    problem: Problem
    position: Position


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """A part of a file that is not YAML: where it goes wrong, why, and the fix."""

    line: int
    column: int
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A stretch of a file that stands for itself: its text, and where it begins."""

    text: str
    offset: int = 0
    first_line: int = 1
    first_column: int = 1

    def position(self, line: int, column: int) -> Position:
        """Turn the parser's place in this text, counted from zero, into a place in the file."""
        return Position(line + self.first_line, column + (self.first_column if line == 0 else 1))


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; `text` is all of the file from `offset` on that belongs to it."""

    value: Any
    root: Node = field(repr=False, compare=False)
    segment: FileSegment = field(repr=False)
    problems: tuple[PlacedProblem, ...] = ()

    @property
    def text(self) -> str:
        """The document's own text, comments included, without the `---` around it."""
        return self.segment.text

    @property
    def offset(self) -> int:
        """Where the text begins in the file, in characters."""
        return self.segment.offset

    @property
    def first_line(self) -> int:
        """The line of the file on which the first value stands."""
        return self._position_of(self.root).line

    def position(self, path: Path) -> Position:
        """Where a field stands: its key, or the list item; where there is none, the nearest field around it."""
        return self._position_of(self._find(path)[0])

    def value_position(self, path: Path) -> Position:
        """Where the value of a field begins; where there is none, the nearest field around it."""
        return self._position_of(self._find(path)[1])

    def _find(self, path: Path) -> tuple[Node, Node]:
        """The nodes of the last step of a path: the key (for a list item the item itself), and the value."""
        label = value = self.root
        for step in path:
            inner = resolved(value)
            if isinstance(inner, MappingNode) and isinstance(step, str):
                entry = fields(inner).get(step)
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
    """Give the document that a tree stands for."""
    value, findings = value_of(root, segment.first_line)
    placed = [PlacedProblem(problem, segment.position(node.line, node.column)) for problem, node in findings]
    return Document(value, root, segment, tuple(sorted(placed, key=lambda found: found.position)))


def document_without_text(value: Any) -> Document:
    """Give a document for a value that was not read from a text: all of it stands at the first place."""
    return Document(value, MappingNode(0, 0, 0, 0), FileSegment(""))


_MARKER: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[ \t]*(?:\r?\n)?", re.MULTILINE)
_DIRECTIVES: Final = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*%[^\n]*\n(?:[ \t\r]*(?:[#%][^\n]*)?\n)*")


def read(text: str, parser: ParserFactory = fastest_parser) -> list[Document | UnreadableDocument]:
    """Read every document of a file, in order; empty ones are left out."""
    return [result for segment in segments(text) for result in read_segment(segment, parser)]


def segments(text: str) -> Iterator[FileSegment]:
    """Cut a file at its document markers; YAML directives stay with the document they are for."""
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
    segment: FileSegment, parser: ParserFactory = fastest_parser
) -> Iterator[Document | UnreadableDocument]:
    """Read the document of one part of a file."""
    try:
        roots = list(compose(segment.text, parser))
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
