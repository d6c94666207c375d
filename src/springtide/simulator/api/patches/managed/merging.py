"""An applied configuration laid over a live object.

Maps are merged, and so are lists whose entries are owned one by one; everything else is replaced. Nothing is removed
here. The result shares with the live object whatever the configuration does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.simulator.api.patches.managed.shape import element_of, entries, is_list, is_map, item_node
from springtide.simulator.api.patches.values import equal
from springtide.simulator.api.structure import Node

_ABSENT: Any = object()
_CONTAINERS = (dict, list)


def merge(node: Node, live: Any, applied: Any) -> Any:
    """Give the live value with the applied one laid over it."""
    if is_map(node, live) and live and (applied is None or is_map(node, applied)):
        return _merge_maps(node, live, applied or {})
    if is_list(node, live) and live and (applied is None or is_list(node, applied)):
        return _merge_lists(node, live, applied or [])
    return live if equal(live, applied) else applied


def _merge_maps(node: Node, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    merged = live
    for name, value in applied.items():
        before = live.get(name, _ABSENT)
        if before is _ABSENT:
            after = value
        elif type(before) in _CONTAINERS:
            after = merge(node.child(name), before, value)
        else:
            after = before if equal(before, value) else value
        if after is not before:
            merged = dict(live) if merged is live else merged
            merged[name] = after
    return merged


def _merge_lists(node: Node, live: list[Any], applied: list[Any]) -> list[Any]:
    items = item_node(node)
    steps = [element_of(node, item) for item in live]
    theirs = entries(node, live)
    ours = {element_of(node, item): item for item in applied}
    unmerged = {element: iter(same) for element, same in theirs.items()}
    merged = []
    for element in interleaved(steps, list(ours)):
        if element not in ours:
            merged.append(next(unmerged[element]))
        elif len(theirs.get(element, ())) == 1:
            merged.append(merge(items, theirs[element][0], ours[element]))
        else:
            # New, or there several times over: duplicates are not merged with, they give way.
            merged.append(ours[element])
    if len(merged) == len(live) and all(after is before for after, before in zip(merged, live, strict=True)):
        return live
    return merged


def interleaved(live: Sequence[str], applied: Sequence[str]) -> list[str]:
    """Bring the entries of two lists into one order.

    The applied ones come in their own order. The others keep their places between the neighbours that both lists have,
    as far as the applied order lets them.
    """
    known = frozenset(live)
    wanted = frozenset(applied)
    shared = iter([element for element in applied if element in known])
    awaited = next(shared, None)
    order: list[str] = []
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live):
            element = live[left]
            if element not in wanted:
                order.append(element)
                left += 1
                continue
            if awaited is not None and element != awaited:
                # It stands elsewhere in the applied order, which decides.
                left += 1
                continue
            if element in done or element == applied[right]:
                left += 1
        if right < len(applied):
            element = applied[right]
            right += 1
            order.append(element)
            done.add(element)
            if element == awaited:
                awaited = next(shared, None)
    return order
