"""One step of a path: a field, an entry of a list of objects, or a value of a set, as `fieldsV1` spells it.

    f:replicas                                a field, or a key of a map
    k:{"containerPort":80,"protocol":"TCP"}   the entry of a list that has these keys
    v:"example.com/guard"                     a value of a set
    i:0                                       a place in a list; read, never written

The spelling is canonical: keys in order, no spaces, and the characters that are special in HTML written as escapes.
So two steps are the same if, and only if, their spellings are.

Which values are owned in parts, and what the parts are.

Maps and lists of the kinds SET and MAP are owned part by part; scalars and everything atomic are owned as a whole.
Where the structure says nothing, maps have parts and lists have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from springtide.apiserver.kinds import ANYTHING, ListType, StructureNode, ValueType

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class UnidentifiableElement(ValueError):
    """An entry of a list that has nothing to tell it apart by."""


def field_element(name: str) -> str:
    """Spell the step to a field or to a value of a map."""
    return "f:" + name


def key_element(entry: Any, node: StructureNode) -> str:
    """Spell the step to an entry of a list of objects, by the keys of the list."""
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
    """Spell the step to a value of a set."""
    if isinstance(value, dict):
        raise UnidentifiableElement("associative list without keys has an element that's a map type")
    if isinstance(value, list):
        raise UnidentifiableElement("not supported: associative list with lists as elements")
    if value is None:
        raise UnidentifiableElement("associative list without keys has an element that's an explicit null")
    return "v:" + _spell(value)


def canonical(element: str) -> str | None:
    """Spell a step that somebody else wrote canonically; None for what is no step."""
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
    """Write a step as conflicts and errors show it: `.replicas`, `[name="web"]`, `[="example.com/guard"]`, `[0]`."""
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
    """Tell whether escapes are needed: nearly all names do without, and looking is cheaper than rewriting."""
    return "<" in text or ">" in text or "&" in text or not text.isascii()


def is_map(node: StructureNode, value: Any) -> bool:
    """Tell whether a value is a map that is owned field by field."""
    return isinstance(value, dict) and not node.atomic and (node.type is ValueType.OBJECT or node.type is ValueType.ANY)


def is_list(node: StructureNode, value: Any) -> bool:
    """Tell whether a value is a list that is owned entry by entry."""
    return isinstance(value, list) and node.type is ValueType.LIST and node.list_kind is not ListType.ATOMIC


def item_node(node: StructureNode) -> StructureNode:
    """Give the node of the entries of a list."""
    return node.items or ANYTHING


def element_of(node: StructureNode, item: Any) -> str:
    """Spell the step to an entry of a list that is owned entry by entry."""
    return key_element(item, node) if node.list_kind is ListType.MAP else value_element(item)


def entries_by_element(node: StructureNode, items: Iterable[Any]) -> dict[str, list[Any]]:
    """Group entries by their steps, in order; more than one under a step are duplicates of each other."""
    grouped: dict[str, list[Any]] = {}
    for item in items:
        grouped.setdefault(element_of(node, item), []).append(item)
    return grouped
