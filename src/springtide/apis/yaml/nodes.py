"""The tree of a YAML text: what stands where, quoting and aliases included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class _Placed:
    """What every node knows: where it begins and ends in the text, and how much it stands for."""

    start: int
    end: int
    line: int
    column: int
    tag: str | None = None
    anchor: str | None = None
    height: int = field(default=0, kw_only=True)
    size: int = field(default=1, kw_only=True)


@dataclass(slots=True)
class ScalarNode(_Placed):
    """A word, number or text; `style` is empty unless it is quoted or a block."""

    text: str = ""
    style: str = ""


@dataclass(slots=True)
class SequenceNode(_Placed):
    """A list; `flow` when it is written in brackets."""

    flow: bool = False
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class MappingNode(_Placed):
    """Keys with values in the order of the text; `flow` when it is written in braces."""

    flow: bool = False
    entries: list[tuple[Node, Node]] = field(default_factory=list)


@dataclass(slots=True)
class AliasNode(_Placed):
    """`*name`: another node, once more."""

    target: Node = field(kw_only=True)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode | AliasNode


def resolved(node: Node) -> ScalarNode | SequenceNode | MappingNode:
    """The node itself, or what it is an alias of."""
    while isinstance(node, AliasNode):
        node = node.target
    return node


def scalars(node: Node) -> Iterator[ScalarNode]:
    """Every scalar that is written in a tree, keys included, in the order of the text."""
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from scalars(item)
    elif isinstance(node, MappingNode):
        for key, value in node.entries:
            yield from scalars(key)
            yield from scalars(value)
