"""The node tree of a YAML text, with positions, quoting and aliases, and how it is composed from a parser's events.

The events of the parser are used, not its composer. That keeps quoting, aliases and positions, needs no recursion, and
stops a text that nests too deeply, or whose aliases expand to too many values, before it uses time or memory.

The parser is libyaml's where it is installed, because it is ten times as fast, and PyYAML's otherwise. Both must accept
the same texts, so `PortableParser` adapts PyYAML's. The differences that remain are inside unquoted values: a tab, or a
question mark alone, which only libyaml accepts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import yaml
from yaml.scanner import ScannerError

if TYPE_CHECKING:
    from collections.abc import Iterator


class RefusedError(Exception):
    """A text that is rejected although YAML's grammar may allow it: where (counted from zero), why, and the fix."""

    def __init__(self, line: int, column: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message
        self.hint = hint


_MAX_LENGTH: Final = 60


def clipped(text: str) -> str:
    """Shorten a text to the length that a message has room for."""
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
BYTE_ORDER_MARK: Final = "\ufeff"
_NOT_TEXT: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def check_characters(text: str) -> None:
    """Raise `RefusedError` for control characters, halves of surrogate pairs, and bytes that are not UTF-8."""
    match = _NOT_TEXT.search(text)
    if match is None:
        return
    breaks = list(LINE_BREAK.finditer(text, 0, match.start()))
    column = match.start() - (breaks[-1].end() if breaks else 0)
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        message, hint = f"the byte 0x{code - 0xDC00:02X} is not UTF-8", "save the file as UTF-8"
    elif match[0] == BYTE_ORDER_MARK:
        message, hint = "a byte order mark is inside the file", "remove it; were two files joined here?"
    else:
        message, hint = f"the character U+{code:04X} is not allowed in YAML", "remove it"
    raise RefusedError(len(breaks), column, message, hint)


class EventSource(Protocol):
    """A parser's stream of events."""

    def check_event(self) -> bool:
        """Return whether another event follows."""
        ...

    def get_event(self) -> Any:
        """Return the next event."""
        ...


class ParserFactory(Protocol):
    """Creates a parser for a text."""

    def __call__(self, stream: str, /) -> EventSource:
        """Return the events of a text."""
        ...


class PortableParser(yaml.SafeLoader):
    """PyYAML's parser, adapted to accept and reject the same texts as libyaml."""

    def scan_to_next_token(self) -> None:
        """Skip tabs too, except in indentation."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_flow_scalar(self, style: str) -> Any:
        """Raise a YAML error for an escape that is not a Unicode character."""
        try:
            return super().scan_flow_scalar(style)
        except (ValueError, OverflowError):
            problem = "found invalid Unicode character escape code"
            raise ScannerError("while parsing a quoted scalar", None, problem, self.get_mark()) from None


fastest_parser: Final[ParserFactory] = getattr(yaml, "CSafeLoader", PortableParser)


@dataclass(slots=True)
class _BaseNode:
    """The common fields of nodes: where the node begins and ends, its height, and how many nodes it expands to."""

    start: int
    end: int
    line: int
    column: int
    tag: str | None = None
    anchor: str | None = None
    height: int = field(default=0, kw_only=True)
    size: int = field(default=1, kw_only=True)


@dataclass(slots=True)
class ScalarNode(_BaseNode):
    """A scalar; `style` is empty unless it is quoted or a block scalar."""

    text: str = ""
    style: str = ""


@dataclass(slots=True)
class SequenceNode(_BaseNode):
    """A sequence; `flow` if it is written in brackets."""

    flow: bool = False
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class MappingNode(_BaseNode):
    """A mapping, with its entries in the order of the text; `flow` if it is written in braces."""

    flow: bool = False
    entries: list[tuple[Node, Node]] = field(default_factory=list)


@dataclass(slots=True)
class AliasNode(_BaseNode):
    """An alias, such as `*name`, and the node that it refers to."""

    target: Node = field(kw_only=True)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode | AliasNode


def resolved(node: Node) -> ScalarNode | SequenceNode | MappingNode:
    """Return the node itself or, for an alias, its target."""
    while isinstance(node, AliasNode):
        node = node.target
    return node


def scalars(node: Node) -> Iterator[ScalarNode]:
    """Yield every scalar of a tree, keys included, in the order of the text."""
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from scalars(item)
    elif isinstance(node, MappingNode):
        for key, value in node.entries:
            yield from scalars(key)
            yield from scalars(value)


MAX_DEPTH: Final = 100
"""How deeply lists and mappings may be nested."""

MAX_ALIASED: Final = 100_000
"""How many values all aliases of a document together may expand to."""

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def compose(text: str, parser: ParserFactory = fastest_parser, *, most: int | None = None) -> Iterator[Node]:
    """Yield the root of each document; raises YAMLError or RefusedError where the text cannot be parsed.

    A document may have at most this many values and keys: a parser is slower by the value than by the character.
    """
    check_characters(text)
    source = parser(text)
    while source.check_event():
        event = source.get_event()
        if isinstance(event, yaml.DocumentStartEvent):
            yield _Composer(source, most).document()


class _Composer:
    """Builds the tree of one document, with a stack of the containers that are still open."""

    def __init__(self, source: EventSource, most: int | None) -> None:
        self._source = source
        self._left = math.inf if most is None else most
        self._most = most
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
        """Handle one event; return the node that it completes, if any."""
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
        self._left -= 1
        if self._left < 0:
            message = f"there are more than {self._most} values and keys"
            raise RefusedError(node.line, node.column, message, "write it as JSON")
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
                message, hint = f"`*{name}` is inside the value that it refers to", "write the value out"
            else:
                message, hint = f"`*{name}` refers to no anchor", f"mark a value above with `&{name}`, or quote it"
            raise RefusedError(line, column, message, hint)
        self._aliased += target.size
        if self._aliased > MAX_ALIASED:
            message = f"the aliases expand to more than {MAX_ALIASED} values"
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
