"""Minimal edits of a text: rename a key, replace a value, insert or remove an entry or item.

`TextLayout` finds where entries, items and comments begin and end on their lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from springtide.apis.yaml.dump import block_lines, entry_lines, flow_entry, flow_text, item_lines, scalar_text
from springtide.apis.yaml.nodes import AliasNode, MappingNode, Node, ScalarNode, SequenceNode, scalars

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)


class LayoutPart(NamedTuple):
    """An entry of a mapping or an item of a list: where it begins, where its value may begin, and the value."""

    start: int
    after_label: int
    value: Node


class LayoutComment(NamedTuple):
    """A comment, and whether it is alone on its line."""

    start: int
    text: str
    is_line: bool


@dataclass(frozen=True)
class TextLayout:
    """The layout of one text and its tree."""

    text: str
    root: Node

    @cached_property
    def comments(self) -> list[LayoutComment]:
        """All comments, in the order of the text."""
        masked = list(self.text)
        for scalar in scalars(self.root):
            masked[scalar.start : scalar.end] = re.sub("[^\n]", "x", self.text[scalar.start : scalar.end])
        return [
            LayoutComment(match.start(), match[0].rstrip(), self.is_first_on_line(match.start()))
            for match in _COMMENT.finditer("".join(masked))
        ]

    @property
    def newline(self) -> str:
        """The line break that the text uses."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def line_start(self, offset: int) -> int:
        """Return the offset at which the line of an offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Return the offset at which the line of an offset ends, before its line break."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def is_first_on_line(self, offset: int) -> bool:
        """Return whether an offset is preceded only by spaces on its line."""
        return not self.text[self.line_start(offset) : offset].strip()

    def column(self, offset: int) -> int:
        """Return the distance of an offset from the beginning of its line."""
        return offset - self.line_start(offset)

    def content_end(self, node: Node) -> int:
        """Return the end of a node's own text, without comments and blank lines after it."""
        if isinstance(node, ScalarNode) and node.style in {"|", ">"}:
            return len(self.text[: node.end].rstrip())
        if isinstance(node, ScalarNode | AliasNode) or node.flow:
            return node.end
        last = node.items[-1] if isinstance(node, SequenceNode) else node.entries[-1][1]
        return self.content_end(last)

    def next_line(self, node: Node) -> int:
        """Return the offset of the line that follows a node."""
        return min(self.line_end(self.content_end(node)) + 1, len(self.text))

    def parts(self, node: MappingNode | SequenceNode) -> list[LayoutPart]:
        """Return the entries or items of a node."""
        if isinstance(node, MappingNode):
            return [LayoutPart(key.start, self._after_colon(key, value), value) for key, value in node.entries]
        if node.flow:
            return [LayoutPart(item.start, item.start, item) for item in node.items]
        dashes = [self._dash(node, item) for item in node.items]
        return [LayoutPart(dash, dash + 1, item) for dash, item in zip(dashes, node.items, strict=True)]

    def start_with_comments(self, offset: int) -> int:
        """Return the offset of a part's first line, or of the comment lines directly above it."""
        lines = {self.line_start(comment.start) for comment in self.comments if comment.is_line}
        start = self.line_start(offset)
        while start and self.line_start(start - 1) in lines:
            start = self.line_start(start - 1)
        return start

    def _after_colon(self, key: Node, value: Node) -> int:
        colon = self.text.find(":", key.end, max(value.start, key.end + 1))
        return key.end if colon < 0 else colon + 1

    def _dash(self, node: SequenceNode, item: Node) -> int:
        """Return the offset of an item's dash: in the column of the list, on the item's line or above."""
        column = self.column(node.start)
        line = self.line_start(item.start)
        while self.text[line + column : line + column + 1] != "-" and line > node.start:
            line = self.line_start(line - 1)
        return line + column


class TextEdit(NamedTuple):
    """A replacement of a part of the text; comments up to `drops_until` are removed on purpose, with their part."""

    start: int
    end: int
    text: str
    drops_until: int = 0


class ValueSlot(NamedTuple):
    """The place of a value: its parent node, and the part of it."""

    parent: MappingNode | SequenceNode
    part: LayoutPart


def rename(key: Node, name: str, *, flow: bool) -> TextEdit:
    """Rename a key and keep its quotes."""
    style = key.style if isinstance(key, ScalarNode) else ""
    return TextEdit(key.start, key.end, scalar_text(name, flow=flow, style=style))


def insert(layout: TextLayout, node: MappingNode | SequenceNode, index: int, name: str | None, value: Any) -> TextEdit:
    """Insert a part before the one at `index`, or after the last; an item of a list has no name."""
    parts = layout.parts(node)
    if node.flow:
        text = flow_entry(name, value) if name is not None else flow_text([value])[1:-1]
        if index:
            end = _flow_end(layout, parts[index - 1])
            return TextEdit(end, end, f", {text}")
        return TextEdit(parts[0].start, parts[0].start, f"{text}, ")
    lines = entry_lines(name, value) if name is not None else item_lines(value)
    indent = " " * layout.column(parts[0].start)
    if index:
        at = layout.next_line(parts[index - 1].value)
        return TextEdit(at, at, "".join(f"{indent}{line}{layout.newline}" for line in lines))
    at = parts[0].start
    if layout.is_first_on_line(at):
        at = layout.start_with_comments(at)
        return TextEdit(at, at, "".join(f"{indent}{line}{layout.newline}" for line in lines))
    # The first part of a list item shares the line of the dash.
    return TextEdit(at, at, "".join(f"{line}{layout.newline}{indent}" for line in lines))


def remove(layout: TextLayout, node: MappingNode | SequenceNode, index: int) -> TextEdit:
    """Remove a part with its comments: at its end, and on the lines directly above."""
    parts = layout.parts(node)
    part = parts[index]
    if node.flow:
        if index + 1 < len(parts):
            return TextEdit(part.start, parts[index + 1].start, "")
        return TextEdit(_flow_end(layout, parts[index - 1]), _flow_end(layout, part), "")
    end = layout.next_line(part.value)
    if layout.is_first_on_line(part.start) or index + 1 == len(parts):
        return TextEdit(layout.start_with_comments(part.start), end, "", drops_until=end)
    # The next part moves to the line of the dash; comments above it stay above it.
    following = parts[index + 1].start
    between = layout.text[end : layout.line_start(following)].strip()
    indent = " " * layout.column(following)
    kept = f"{between}{layout.newline}{indent}" if between else ""
    return TextEdit(part.start, following, kept, drops_until=end)


def _flow_end(layout: TextLayout, part: LayoutPart) -> int:
    return max(part.after_label, layout.content_end(part.value))


def replace(layout: TextLayout, node: Node, value: Any, slot: ValueSlot) -> TextEdit:
    """Replace the value of a node."""
    end = layout.content_end(node)
    is_word = isinstance(node, ScalarNode) and node.style not in {"|", ">"} and end > node.start
    if not slot.parent.flow and not (is_word and len(block_lines(value)) == 1 and not _is_block(value)):
        return _replace_lines(layout, node, value, slot)
    if isinstance(value, dict | list):
        text = flow_text(value)
    else:
        style = node.style if isinstance(node, ScalarNode) else ""
        text = scalar_text(value, flow=slot.parent.flow, style=style)
    return TextEdit(node.start, end, text if end > node.start else f" {text}")


def _is_block(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _replace_lines(layout: TextLayout, node: Node, value: Any, slot: ValueSlot) -> TextEdit:
    """Rewrite a value after its label; a comment on the label's line stays there."""
    label_end = slot.part.after_label
    end = layout.content_end(node)
    tail_start = end if layout.line_start(end) == layout.line_start(label_end) else label_end
    comment = next((c for c in layout.comments if tail_start <= c.start <= layout.line_end(label_end)), None)
    comment_text = f" {comment.text}" if comment else ""
    indent = " " * layout.column(slot.part.start)
    lines = block_lines(value)
    if not _is_block(value):
        text = f" {lines[0]}{comment_text}" + _below(layout, indent, lines[1:])
    elif isinstance(slot.parent, MappingNode):
        step = "  " if isinstance(value, dict) else ""
        text = comment_text + _below(layout, indent + step, lines)
    elif comment:
        text = comment_text + _below(layout, indent + "  ", lines)
    else:
        text = f" {lines[0]}" + _below(layout, indent + "  ", lines[1:])
    # The comment after the old value on its last line is part of the new text.
    return TextEdit(label_end, layout.line_end(end) if tail_start == end else end, text)


def _below(layout: TextLayout, indent: str, lines: list[str]) -> str:
    return "".join(f"{layout.newline}{indent}{line}" for line in lines)
