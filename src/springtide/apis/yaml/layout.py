"""How a document is laid out on its lines: where parts begin and end, and which comments are whose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from springtide.apis.yaml.nodes import AliasNode, MappingNode, Node, ScalarNode, SequenceNode, scalars

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)


class Part(NamedTuple):
    """An entry of a mapping or an item of a list: where it begins, where its value may begin, and the value."""

    start: int
    after_label: int
    value: Node


class Comment(NamedTuple):
    """A comment, and whether it has its line for itself."""

    start: int
    text: str
    is_line: bool


@dataclass(frozen=True)
class Layout:
    """The geometry of one text and its tree."""

    text: str
    root: Node

    @cached_property
    def comments(self) -> list[Comment]:
        """Every comment, in the order of the text."""
        masked = list(self.text)
        for scalar in scalars(self.root):
            masked[scalar.start : scalar.end] = re.sub("[^\n]", "x", self.text[scalar.start : scalar.end])
        return [
            Comment(match.start(), match[0].rstrip(), self.is_first_on_line(match.start()))
            for match in _COMMENT.finditer("".join(masked))
        ]

    @property
    def newline(self) -> str:
        """The line break that the text uses."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def line_start(self, offset: int) -> int:
        """Where the line of an offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Where the line of an offset ends, before its line break."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def is_first_on_line(self, offset: int) -> bool:
        """Tell whether only spaces stand before an offset."""
        return not self.text[self.line_start(offset) : offset].strip()

    def column(self, offset: int) -> int:
        """How far an offset is from the beginning of its line."""
        return offset - self.line_start(offset)

    def content_end(self, node: Node) -> int:
        """Where the last character of a node's own text ends; comments and blank lines after it do not count."""
        if isinstance(node, ScalarNode) and node.style in {"|", ">"}:
            return len(self.text[: node.end].rstrip())
        if isinstance(node, ScalarNode | AliasNode) or node.flow:
            return node.end
        last = node.items[-1] if isinstance(node, SequenceNode) else node.entries[-1][1]
        return self.content_end(last)

    def next_line(self, node: Node) -> int:
        """Where the line after a node's last one begins."""
        return min(self.line_end(self.content_end(node)) + 1, len(self.text))

    def parts(self, node: MappingNode | SequenceNode) -> list[Part]:
        """The entries or items of a node."""
        if isinstance(node, MappingNode):
            return [Part(key.start, self._after_colon(key, value), value) for key, value in node.entries]
        if node.flow:
            return [Part(item.start, item.start, item) for item in node.items]
        dashes = [self._dash(node, item) for item in node.items]
        return [Part(dash, dash + 1, item) for dash, item in zip(dashes, node.items, strict=True)]

    def start_with_comments(self, offset: int) -> int:
        """Where a part's lines begin, together with the comment lines that stand directly above it."""
        lines = {self.line_start(comment.start) for comment in self.comments if comment.is_line}
        start = self.line_start(offset)
        while start and self.line_start(start - 1) in lines:
            start = self.line_start(start - 1)
        return start

    def _after_colon(self, key: Node, value: Node) -> int:
        colon = self.text.find(":", key.end, max(value.start, key.end + 1))
        return key.end if colon < 0 else colon + 1

    def _dash(self, node: SequenceNode, item: Node) -> int:
        """The dash of an item: in the column of the list, on the item's line or above."""
        column = self.column(node.start)
        line = self.line_start(item.start)
        while self.text[line + column : line + column + 1] != "-" and line > node.start:
            line = self.line_start(line - 1)
        return line + column
