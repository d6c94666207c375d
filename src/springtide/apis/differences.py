"""What changed between two trees, in words: for people whose manifests were rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from springtide.apis.problems import Path, format_path
from springtide.apis.yaml import same

_SHORT = 40


class Difference(NamedTuple):
    """Something that changed, and the place in the old tree where it shows."""

    path: Path
    message: str


def differences(old: Any, new: Any) -> list[Difference]:
    """Tell what is gone, new, changed or somewhere else; what moved is told once."""
    gone = dict(_missing(old, new, ()))
    come = dict(_missing(new, old, ()))
    found: list[Difference] = []
    for path, part in gone.items():
        place = next((other for other, there in come.items() if other[-1] == path[-1] and same(part, there)), None)
        if place is None:
            found.append(Difference(path, f"`{format_path(path)}` was removed"))
        else:
            del come[place]
            found.append(Difference(path, f"`{format_path(path)}` was moved to `{format_path(place)}`"))
    for path, part in come.items():
        shown = f": {part}" if isinstance(part, str | int | bool) and len(str(part)) <= _SHORT else ""
        found.append(Difference(path[:-1], f"`{format_path(path)}{shown}` was added"))
    found += (
        Difference(path, f"`{format_path(path)}` was {was}, is {now}") for path, was, now in _changed(old, new, ())
    )
    return found


def _missing(tree: Any, other: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Give the parts of a tree that another one does not have, each as a whole."""
    if isinstance(tree, dict) and isinstance(other, dict):
        for key, part in tree.items():
            if key in other:
                yield from _missing(part, other[key], (*path, key))
            else:
                yield (*path, key), part
    elif isinstance(tree, list) and isinstance(other, list):
        for position, part in enumerate(tree):
            if position < len(other):
                yield from _missing(part, other[position], (*path, position))
            else:
                yield (*path, position), part


def _changed(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key, part in old.items():
            if key in new:
                yield from _changed(part, new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for position, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _changed(one, other, (*path, position))
    elif not same(old, new):
        yield path, old, new
