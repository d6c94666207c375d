"""From text to tree, through the parser's events and not its composer.

That keeps quoting, aliases and places, needs no recursion, and stops a text that nests or repeats itself without
end before it costs anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from springtide.apis.yaml.characters import check_characters
from springtide.apis.yaml.nodes import AliasNode, MappingNode, Node, ScalarNode, SequenceNode
from springtide.apis.yaml.parsers import EventSource, ParserFactory, fastest_parser
from springtide.apis.yaml.refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 100
"""How many lists and mappings may stand inside each other."""

MAX_ALIASED: Final = 100_000
"""How many values all aliases of a document together may stand for."""

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def compose(text: str, parser: ParserFactory = fastest_parser) -> Iterator[Node]:
    """Yield the root of each document; raise YAMLError or RefusedError where the text cannot be read."""
    check_characters(text)
    source = parser(text)
    while source.check_event():
        event = source.get_event()
        if isinstance(event, yaml.DocumentStartEvent):
            yield _Composer(source).document()


class _Composer:
    """Builds one document's tree; containers that are still open stand on a stack."""

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self._anchors: dict[str, Node] = {}
        self._open: list[SequenceNode | MappingNode] = []
        self._pending_keys: list[Node | None] = []
        self._aliased = 0

    def document(self) -> Node:
        while True:
            node = self._take(self._source.get_event())
            if node is not None and not self._open:
                return node

    def _take(self, event: Any) -> Node | None:
        """Handle one event; give the node that it completes, if it completes one."""
        if isinstance(event, yaml.ScalarEvent):
            return self._complete(_scalar(event))
        if isinstance(event, yaml.MappingStartEvent):
            self._begin(MappingNode(*_place(event), event.tag, event.anchor, flow=bool(event.flow_style)))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin(SequenceNode(*_place(event), event.tag, event.anchor, flow=bool(event.flow_style)))
        elif isinstance(event, yaml.AliasEvent):
            return self._complete(self._alias(event))
        else:
            return self._finish(_place(event)[1])
        return None

    def _begin(self, node: SequenceNode | MappingNode) -> None:
        self._open.append(node)
        self._pending_keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise _too_deep(node)

    def _finish(self, end: int) -> Node:
        node = self._open.pop()
        self._pending_keys.pop()
        node.end = end
        if isinstance(node, SequenceNode):
            children = node.items
        else:
            children = [part for entry in node.entries for part in entry]
        node.height = 1 + max((child.height for child in children), default=0)
        node.size = 1 + sum(child.size for child in children)
        return self._complete(node)

    def _complete(self, node: Node) -> Node:
        if node.anchor is not None:
            self._anchors[node.anchor] = node
        if self._open:
            parent = self._open[-1]
            if isinstance(parent, SequenceNode):
                parent.items.append(node)
            elif (key := self._pending_keys[-1]) is None:
                self._pending_keys[-1] = node
            else:
                parent.entries.append((key, node))
                self._pending_keys[-1] = None
        return node

    def _alias(self, event: Any) -> AliasNode:
        start, end, line, column = _place(event)
        name = event.anchor
        target = self._anchors.get(name)
        if target is None:
            if any(node.anchor == name for node in self._open):
                message, hint = f"`*{name}` stands inside of what it repeats", "write the value out"
            else:
                message, hint = f"`*{name}` repeats nothing", f"mark a value above with `&{name}`, or quote it"
            raise RefusedError(line, column, message, hint)
        self._aliased += target.size
        if self._aliased > MAX_ALIASED:
            message = f"the aliases stand for more than {MAX_ALIASED} values"
            raise RefusedError(line, column, message, "write the values out")
        node = AliasNode(start, end, line, column, target=target, height=target.height, size=target.size)
        if len(self._open) + node.height > MAX_DEPTH:
            raise _too_deep(node)
        return node


def _scalar(event: Any) -> ScalarNode:
    # `! 5` asks for text without quoting it.
    tag = "tag:yaml.org,2002:str" if event.tag == "!" else event.tag
    node = ScalarNode(*_place(event), tag, event.anchor, text=event.value, style=event.style or "")
    if node.style == '"' and _HALF_CHARACTER.search(node.text):
        message = "an escape in these quotes is only half a character"
        raise RefusedError(node.line, node.column, message, "write the character itself")
    return node


def _place(event: Any) -> tuple[int, int, int, int]:
    start = event.start_mark
    return start.index, event.end_mark.index, start.line, start.column


def _too_deep(node: Node) -> RefusedError:
    message = f"lists and mappings are nested more than {MAX_DEPTH} deep"
    return RefusedError(node.line, node.column, message, "is a bracket repeated by mistake?")
