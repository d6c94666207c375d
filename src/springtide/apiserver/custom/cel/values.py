"""Objects as rules see them.

Numbers have the type that the schema declares, field names are escaped where CEL cannot write them, and objects show
only declared fields that are set. Lists whose order does not matter are equal in any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from springtide.apiserver.custom.correlation import entry_key, old_entries
from springtide.apiserver.custom.structural_schema import META_FIELDS, SchemaNode

_RESERVED: Final = (
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
)  # fmt: skip
_MARKS: Final = {"__": "underscores", ".": "dot", "-": "dash", "/": "slash"}
_CHARACTERS: Final = {word: mark for mark, word in _MARKS.items()}
_SPECIAL: Final = re.compile(r"__|[-./]")
_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_ESCAPE: Final = re.compile(r"__([^_]+)__")


def escape(name: str) -> str:
    """Escape the name of a field for CEL. Names that cannot be escaped are returned as they are."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return name
    return _SPECIAL.sub(lambda mark: f"__{_MARKS[mark.group()]}__", name)


def unescape(name: str) -> str:
    """Undo `escape`."""
    return _ESCAPE.sub(lambda found: _CHARACTERS.get(found[1], found[1] if found[1] in _RESERVED else found[0]), name)


Conversion: TypeAlias = Callable[[Any], Any]


def conversion(node: SchemaNode, *, resource: bool = False) -> Conversion | None:
    """Return the function that converts values for rules; None if they are used as they are.

    A resource shows its type and, of its metadata, only the name.
    """
    if resource:
        return _resource(node)
    if node.type == "number":
        return _double
    if node.type == "object" or node.properties:
        return _resource(node) if node.embedded else _object(node)
    items = conversion(node.items) if node.items is not None else None
    return None if items is None else lambda value: [items(part) for part in value] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _double(value: Any) -> Any:
    return float(value) if value.__class__ is int else value


def _resource(node: SchemaNode) -> Conversion:
    text = SchemaNode(type="string")
    metadata = SchemaNode(type="object", open=True, properties={"name": text, "generateName": text})
    implied = dict(zip(META_FIELDS, (text, text, metadata), strict=True))
    whole = _object(SchemaNode(type="object", open=True, properties=node.properties | implied))
    assert whole is not None  # noqa: S101 - metadata is always shown in part only
    return whole


def _object(node: SchemaNode) -> Conversion | None:
    values = conversion(node.values) if node.values is not None else None
    if values is not None:
        return lambda value: {name: values(part) for name, part in value.items()} if isinstance(value, dict) else value
    shown = {name: (escape(name), conversion(part)) for name, part in node.properties.items()}
    plain = all(seen_as == name and convert is None for name, (seen_as, convert) in shown.items())
    if not shown or (plain and not node.open and not any(part.nullable for part in node.properties.values())):
        return None

    def show(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        seen = {}
        for name, part in value.items():
            if name in shown and part is not None:
                seen_as, convert = shown[name]
                seen[seen_as] = part if convert is None else convert(part)
        return seen

    return show


def in_new_order(old: Any, new: Any, node: SchemaNode) -> Any:
    """Return an old value in the order of the new one, where the schema says that order does not matter."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            name: in_new_order(part, new[name], child)
            if name in new and (child := node.child(name)) is not None
            else part
            for name, part in old.items()
        }
    if not (isinstance(old, list) and isinstance(new, list)) or len(old) != len(new):
        return old
    if node.list_type == "set":
        return new if sorted(map(repr, old)) == sorted(map(repr, new)) else old
    if node.list_type == "map" and node.items is not None:
        entries = old_entries(old, node.list_keys)
        keys = [entry_key(entry, node.list_keys) for entry in new]
        if len(entries) == len(old) and all(key in entries for key in keys):
            items = node.items
            return [
                in_new_order(entries[key], entry, items)
                for key, entry in zip(keys, new, strict=True)
                if key is not None
            ]
    return old
