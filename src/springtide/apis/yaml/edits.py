"""The smallest changes of a text: a key renamed, a value replaced, a part inserted or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from springtide.apis.yaml.dump import block_lines, entry_lines, flow_entry, flow_text, item_lines
from springtide.apis.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from springtide.apis.yaml.quoting import scalar_text

if TYPE_CHECKING:
    from springtide.apis.yaml.layout import Layout, Part


class Edit(NamedTuple):
    """Text to put in the place of other text; comments before `drops_until` go on purpose, with what they are on."""

    start: int
    end: int
    text: str
    drops_until: int = 0


class Slot(NamedTuple):
    """Where a value stands: in which part of what."""

    parent: MappingNode | SequenceNode
    part: Part


def rename(key: Node, name: str, *, flow: bool) -> Edit:
    """Give a key another name; its quotes stay."""
    style = key.style if isinstance(key, ScalarNode) else ""
    return Edit(key.start, key.end, scalar_text(name, flow=flow, style=style))


def insert(layout: Layout, node: MappingNode | SequenceNode, index: int, name: str | None, value: Any) -> Edit:
    """Put a part before the one at `index`, or behind the last; a list's part has no name."""
    parts = layout.parts(node)
    if node.flow:
        text = flow_entry(name, value) if name is not None else flow_text([value])[1:-1]
        if index:
            end = _flow_end(layout, parts[index - 1])
            return Edit(end, end, f", {text}")
        return Edit(parts[0].start, parts[0].start, f"{text}, ")
    lines = entry_lines(name, value) if name is not None else item_lines(value)
    indent = " " * layout.column(parts[0].start)
    if index:
        at = layout.next_line(parts[index - 1].value)
        return Edit(at, at, "".join(f"{indent}{line}{layout.newline}" for line in lines))
    at = parts[0].start
    if layout.is_first_on_line(at):
        at = layout.start_with_comments(at)
        return Edit(at, at, "".join(f"{indent}{line}{layout.newline}" for line in lines))
    # The first part of a list item shares the line of the dash.
    return Edit(at, at, "".join(f"{line}{layout.newline}{indent}" for line in lines))


def remove(layout: Layout, node: MappingNode | SequenceNode, index: int) -> Edit:
    """Take a part out, with its own comments: at its end, and on the lines directly above."""
    parts = layout.parts(node)
    part = parts[index]
    if node.flow:
        if index + 1 < len(parts):
            return Edit(part.start, parts[index + 1].start, "")
        return Edit(_flow_end(layout, parts[index - 1]), _flow_end(layout, part), "")
    end = layout.next_line(part.value)
    if layout.is_first_on_line(part.start) or index + 1 == len(parts):
        return Edit(layout.start_with_comments(part.start), end, "", drops_until=end)
    # The next part takes the place behind the dash; comments above it stay above it.
    following = parts[index + 1].start
    between = layout.text[end : layout.line_start(following)].strip()
    indent = " " * layout.column(following)
    kept = f"{between}{layout.newline}{indent}" if between else ""
    return Edit(part.start, following, kept, drops_until=end)


def _flow_end(layout: Layout, part: Part) -> int:
    return max(part.after_label, layout.content_end(part.value))


def replace(layout: Layout, node: Node, value: Any, slot: Slot) -> Edit:
    """Put another value in the place of a node."""
    end = layout.content_end(node)
    is_word = isinstance(node, ScalarNode) and node.style not in {"|", ">"} and end > node.start
    if not slot.parent.flow and not (is_word and len(block_lines(value)) == 1 and not _is_block(value)):
        return _replace_lines(layout, node, value, slot)
    if isinstance(value, dict | list):
        text = flow_text(value)
    else:
        style = node.style if isinstance(node, ScalarNode) else ""
        text = scalar_text(value, flow=slot.parent.flow, style=style)
    return Edit(node.start, end, text if end > node.start else f" {text}")


def _is_block(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _replace_lines(layout: Layout, node: Node, value: Any, slot: Slot) -> Edit:
    """Write a value behind its label anew; a comment on the label's line stays there."""
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
    # What stands behind the old value on its last line has been taken along.
    return Edit(label_end, layout.line_end(end) if tail_start == end else end, text)


def _below(layout: Layout, indent: str, lines: list[str]) -> str:
    return "".join(f"{layout.newline}{indent}{line}" for line in lines)
