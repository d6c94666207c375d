"""Which values are owned in parts, and what the parts are.

Maps and lists of the kinds SET and MAP are owned part by part; scalars and everything atomic are owned as a whole.
Where the structure says nothing, maps have parts and lists have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from springtide.simulator.api.patches.managed import elements
from springtide.simulator.api.structure import ANYTHING, ListKind, Node, Type


def is_map(node: Node, value: Any) -> bool:
    """Tell whether a value is a map that is owned field by field."""
    return isinstance(value, dict) and not node.atomic and (node.type is Type.OBJECT or node.type is Type.ANY)


def is_list(node: Node, value: Any) -> bool:
    """Tell whether a value is a list that is owned entry by entry."""
    return isinstance(value, list) and node.type is Type.LIST and node.list_kind is not ListKind.ATOMIC


def item_node(node: Node) -> Node:
    """Give the node of the entries of a list."""
    return node.items or ANYTHING


def element_of(node: Node, item: Any) -> str:
    """Spell the step to an entry of a list that is owned entry by entry."""
    return elements.of_entry(item, node) if node.list_kind is ListKind.MAP else elements.of_value(item)


def entries(node: Node, items: Iterable[Any]) -> dict[str, list[Any]]:
    """Group entries by their steps, in order; more than one under a step are duplicates of each other."""
    grouped: dict[str, list[Any]] = {}
    for item in items:
        grouped.setdefault(element_of(node, item), []).append(item)
    return grouped
