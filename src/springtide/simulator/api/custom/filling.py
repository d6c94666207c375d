"""What the server makes of an object before it looks at it: unknown fields and stray nulls go, defaults come.

The order is that of the server: first `prune`, then `fill`. Both change the object that they are given, since it has
just been decoded or copied for this write and is nobody else's yet.
"""

from __future__ import annotations

from typing import Any

from springtide.simulator.api.custom.embedded import drop_unknown_metadata
from springtide.simulator.api.custom.places import ABSENT, META_FIELDS, Place


def prune(value: dict[str, Any], place: Place) -> None:
    """Drop the fields that the schema does not have, and nulls where it allows none and no default stands in.

    The type and the metadata of the resource itself are left alone: they are looked after with those of all kinds.
    """
    _prune_object(value, place, keep=place.open, spared=META_FIELDS)


def _prune(value: Any, place: Place | None, *, keep: bool) -> None:
    if value.__class__ is dict:
        if place is None:
            value.clear()
        else:
            _prune_object(value, place, keep=keep, spared=META_FIELDS if place.embedded else ())
            if place.embedded:
                drop_unknown_metadata(value)
    elif value.__class__ is list:
        items = place.items if place is not None else None
        if items is None and keep:
            return
        for item in value:
            if item.__class__ is dict or item.__class__ is list:
                _prune(item, items, keep=keep or (items is not None and items.open))


def _prune_object(value: dict[str, Any], place: Place, *, keep: bool, spared: tuple[str, ...]) -> None:
    properties, values = place.properties, place.values
    for name in tuple(value):
        if name in spared:
            continue
        child = properties.get(name, values)
        part = value[name]
        if child is None:
            if place.untyped_values is not None:
                _prune(part, None, keep=False)
            elif not keep:
                del value[name]
        elif part is None:
            if not child.nullable and child.default is ABSENT:
                del value[name]
        elif part.__class__ is dict or part.__class__ is list:
            _prune(part, child, keep=child.open)


def fill(value: Any, place: Place) -> None:
    """Put defaults where nothing is, or a null that is not allowed; also inside of what a default brings."""
    if not place.fills:
        return
    if value.__class__ is dict:
        for name, child in place.properties.items():
            if not child.fills:
                continue
            part = value.get(name, ABSENT)
            if child.default is not ABSENT and (part is ABSENT or (part is None and not child.nullable)):
                part = value[name] = tree_copy(child.default)
            if part.__class__ is dict or part.__class__ is list:
                fill(part, child)
        if place.values is not None and place.values.fills:
            for name, part in value.items():
                if name not in place.properties:
                    value[name] = _filled(part, place.values)
    elif value.__class__ is list and place.items is not None and place.items.fills:
        for index, part in enumerate(value):
            value[index] = _filled(part, place.items)


def _filled(part: Any, place: Place) -> Any:
    if part is None and not place.nullable and place.default is not ABSENT:
        part = tree_copy(place.default)
    fill(part, place)
    return part


def tree_copy(value: Any) -> Any:
    """Copy a JSON value; only what can be changed is copied."""
    if value.__class__ is dict:
        return {name: tree_copy(part) for name, part in value.items()}
    if value.__class__ is list:
        return [tree_copy(part) for part in value]
    return value
