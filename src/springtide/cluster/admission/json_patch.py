"""The JSON patch from one tree to another, as small as can be told without searching.

Mappings are compared key by key. Lists are compared from both ends; what is left in the middle is replaced entry by
entry, and the rest of it removed or added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.resources import Object


def json_patch(old: Any, new: Any) -> tuple[Object, ...]:
    """Give operations that, in this order, turn one tree into the other; none where they are the same."""
    return tuple(_operations(old, new, ""))


def _operations(old: Any, new: Any, path: str) -> Iterator[Object]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _in_mapping(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _in_list(old, new, path)
    elif not _same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _in_mapping(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Object]:
    for key, part in old.items():
        place = f"{path}/{_escaped(key)}"
        if key in new:
            yield from _operations(part, new[key], place)
        else:
            yield {"op": "remove", "path": place}
    for key, part in new.items():
        if key not in old:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": part}


def _in_list(old: list[Any], new: list[Any], path: str) -> Iterator[Object]:
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if not _same(old[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not _same(old[-1 - at], new[-1 - at])), shorter - head)
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    both = min(len(removed), len(added))
    for at in range(both):
        yield from _operations(removed[at], added[at], f"{path}/{head + at}")
    for at in range(len(removed) - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{head + at}"}
    for at in range(both, len(added)):
        yield {"op": "add", "path": f"{path}/{head + at}", "value": added[at]}


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: `true` is not 1, although Python says so."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(part, other[key]) for key, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
