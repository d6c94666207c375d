"""An object without some of its paths."""

from __future__ import annotations

from typing import Any

from springtide.simulator.api.patches.managed.fieldsets import SELF, FieldSet
from springtide.simulator.api.patches.managed.shape import element_of, is_list, is_map, item_node
from springtide.simulator.api.structure import Node


def without(node: Node, value: Any, paths: FieldSet) -> Any:
    """Give a value without the places of a set, and without what is below them; containers stay, be they empty."""
    if is_map(node, value):
        kept = {}
        for name, part in value.items():
            below = paths.get("f:" + name)
            if below is None:
                kept[name] = part
            elif below and SELF not in below:
                kept[name] = without(node.child(name), part, below)
        return kept
    if is_list(node, value):
        rest = []
        for item in value:
            below = paths.get(element_of(node, item))
            if below is None:
                rest.append(item)
            elif below and SELF not in below:
                rest.append(without(item_node(node), item, below))
        return rest
    return value
