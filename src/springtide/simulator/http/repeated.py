"""Fields that stand twice in the same object. Readers of JSON keep the last and say nothing; the API tells the writer.

Nearly no body has any, so the common case is one pass in C that finds none; only then is it found out where they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from springtide.apis.yaml.nodes import MappingNode, Node, SequenceNode, resolved
from springtide.apis.yaml.values import name_of

Path = tuple[str | int, ...]


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, in the order in which they are written."""


class _Repeated(Exception):
    """A field stands twice somewhere."""


def _look(fields: list[tuple[str, Any]]) -> None:
    if len(dict(fields)) < len(fields):
        raise _Repeated


def _reader(pairs: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    # Numbers do not matter here, and reading a long one takes long.
    return json.JSONDecoder(object_pairs_hook=pairs, parse_int=str, parse_float=str)


_LOOKING = _reader(_look)
_PLACING = _reader(_Pairs)


def repeated_in_json(body: bytes) -> list[Path]:
    """Give the places of fields that stand more than once, in the order of the text; the text is known to be JSON."""
    text = body.decode()
    try:
        _LOOKING.decode(text)
    except _Repeated:
        return list(_walk(_PLACING.decode(text), ()))
    return []


def repeated_in_yaml(root: Node) -> list[str]:
    """Tell of keys that stand more than once, each with its line."""
    return [f'line {line}: key "{name}" already set in map' for line, name in _walk_nodes(root)]


def _walk(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, part in value:
            if name in seen:
                yield (*path, name)
            seen.add(name)
            yield from _walk(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, (*path, index))


def _walk_nodes(node: Node) -> Iterator[tuple[int, str]]:
    inner = resolved(node)
    if isinstance(inner, MappingNode):
        seen: set[str] = set()
        for key, value in inner.entries:
            name = name_of(key)
            if name is not None and name in seen:
                yield key.line + 1, name
            elif name is not None:
                seen.add(name)
            yield from _walk_nodes(value)
    elif isinstance(inner, SequenceNode):
        for item in inner.items:
            yield from _walk_nodes(item)
