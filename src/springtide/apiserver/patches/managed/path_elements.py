"""Path elements of `fieldsV1`, and the values that are owned in parts.

    f:replicas                                a field, or a key of a map
    k:{"containerPort":80,"protocol":"TCP"}   the entry of a keyed list
    v:"example.com/guard"                     a value of a set
    i:0                                       an index of a list; read, never written

The form is canonical: keys sorted, no spaces, characters that are special in HTML escaped. So two elements are equal
if and only if their strings are.

Granular values are owned in parts: maps, sets and keyed lists. Scalars and atomic values are owned as a whole. Without
a schema, maps are granular and lists are atomic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from springtide.apiserver.kinds import ANYTHING, ListType, StructureNode, ValueType

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class UnidentifiableElement(ValueError):
    """A list entry misses a key, or has the same key as another one."""


def key_element(entry: Any, node: StructureNode) -> str:
    """Return the element of an entry of a keyed list."""
    if entry is None:
        raise UnidentifiableElement("associative list with keys may not have a null element")
    if not isinstance(entry, dict):
        raise UnidentifiableElement("associative list with keys may not have non-map elements")
    keys = {}
    for key in sorted(node.keys):
        value = entry[key] if key in entry else node.key_defaults.get(key)
        if value is not None or key in entry:
            keys[key] = value
    if not keys:
        names = " ".join(json.dumps(key) for key in node.keys)
        raise UnidentifiableElement(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _spell(keys)


def value_element(value: Any) -> str:
    """Return the element of a value of a set."""
    if isinstance(value, dict):
        raise UnidentifiableElement("associative list without keys has an element that's a map type")
    if isinstance(value, list):
        raise UnidentifiableElement("not supported: associative list with lists as elements")
    if value is None:
        raise UnidentifiableElement("associative list without keys has an element that's an explicit null")
    return "v:" + _spell(value)


def canonical(element: str) -> str | None:
    """Return the canonical form of an element that a client sent; None if it is invalid."""
    mark, text = element[:2], element[2:]
    if mark == "f:":
        return element
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if mark == "k:" and isinstance(value, dict):
        return mark + _spell(dict(sorted(value.items())))
    if mark == "v:" or (mark == "i:" and type(value) is int):
        return mark + _spell(value)
    return None


def format_element(element: str) -> str:
    """Format an element as messages show it: `.replicas`, `[name="web"]`, `[="example.com/guard"]`, `[0]`."""
    mark, text = element[:2], element[2:]
    if mark == "f:":
        return "." + text
    value = json.loads(text)
    if mark == "k:":
        return "[" + ",".join(f"{name}={_plain(part)}" for name, part in value.items()) + "]"
    return f"[={_plain(value)}]" if mark == "v:" else f"[{value}]"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _spell(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text.translate(_ESCAPES) if _special(text) else text


def _special(text: str) -> bool:
    """Whether a name needs escapes. Few do, and the check is cheaper than escaping."""
    return "<" in text or ">" in text or "&" in text or not text.isascii()


def is_map(node: StructureNode, value: Any) -> bool:
    """Whether a value is a granular map: its fields have owners of their own."""
    return isinstance(value, dict) and not node.atomic and (node.type is ValueType.OBJECT or node.type is ValueType.ANY)


def is_list(node: StructureNode, value: Any) -> bool:
    """Whether a value is a granular list: its entries have owners of their own."""
    return isinstance(value, list) and node.type is ValueType.LIST and node.list_kind is not ListType.ATOMIC


def item_node(node: StructureNode) -> StructureNode:
    """Return the node of the entries of a list."""
    return node.items or ANYTHING


def element_of(node: StructureNode, item: Any) -> str:
    """Return the element of an entry of a granular list."""
    return key_element(item, node) if node.list_kind is ListType.MAP else value_element(item)


def entries_by_element(node: StructureNode, items: Iterable[Any]) -> dict[str, list[Any]]:
    """Group entries by element, in order. Several entries under one element are duplicates."""
    grouped: dict[str, list[Any]] = {}
    for item in items:
        grouped.setdefault(element_of(node, item), []).append(item)
    return grouped
