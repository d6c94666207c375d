"""A manifest as it was read: its value, and where in the file each part of it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from springtide.apis.yaml.nodes import MappingNode, Node, SequenceNode, resolved
from springtide.apis.yaml.values import fields, value_of

if TYPE_CHECKING:
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
class Unreadable:
    """A part of a file that is not YAML: where it goes wrong, why, and the fix."""

    line: int
    column: int
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
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
    segment: Segment = field(repr=False)
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


def document_of(root: Node, segment: Segment) -> Document:
    """Give the document that a tree stands for."""
    value, findings = value_of(root, segment.first_line)
    placed = [PlacedProblem(problem, segment.position(node.line, node.column)) for problem, node in findings]
    return Document(value, root, segment, tuple(sorted(placed, key=lambda found: found.position)))


def document_without_text(value: Any) -> Document:
    """Give a document for a value that was not read from a text: all of it stands at the first place."""
    return Document(value, MappingNode(0, 0, 0, 0), Segment(""))
