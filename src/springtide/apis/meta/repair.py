"""Repairs of a tree that somebody wrote, each with a word about it.

The tree itself is left as it is: every repair makes a new one. Whatever cannot be repaired, because it is not there or
not of the expected form, is left for validation to report.
"""

from __future__ import annotations

from typing import Any

from springtide.apis.kinds import NormalizedTree
from springtide.apis.problems import Path, Problem, original_path, warning


class TreeRepair:
    """Collects repairs of one object."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self._problems: list[Problem] = []
        self._origins: dict[Path, Path] = {}

    def at(self, path: Path) -> Any:
        """Give what stands at a path now, or None."""
        found: Any = self.value
        for step in path:
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def entries(self, path: Path) -> list[Path]:
        """Give the paths of the entries of a list, none where there is no list."""
        found = self.at(path)
        return [(*path, position) for position in range(len(found))] if isinstance(found, list) else []

    def rename(self, place: Path, old: str, new: str, message: str) -> None:
        """Rename a field where it stands; one whose new name is taken stays as it is."""
        holder = self.at(place)
        if not isinstance(holder, dict) or old not in holder or new in holder:
            return
        self._problems.append(warning((*self._written(place), old), message, f"write `{new}`"))
        self._origins[(*place, new)] = (*self._written(place), old)
        self.value = replace_at(self.value, place, {new if key == old else key: held for key, held in holder.items()})

    def replace(self, path: Path, new: Any, message: str) -> None:
        """Put another value where one stands."""
        self._problems.append(warning(self._written(path), message))
        self.value = replace_at(self.value, path, new)

    def reading(self) -> NormalizedTree:
        """Give the repaired object and everything that was done to it."""
        return NormalizedTree(self.value, tuple(self._problems), dict(self._origins))

    def _written(self, path: Path) -> Path:
        """Turn a path of the repaired tree into that of the written one."""
        return original_path(path, self._origins)


def replace_at(tree: Any, path: Path, part: Any) -> Any:
    """Give a copy of a tree with another part at a path that it has."""
    if not path:
        return part
    head, rest = path[0], path[1:]
    if isinstance(tree, dict):
        return {key: replace_at(held, rest, part) if key == head else held for key, held in tree.items()}
    return [replace_at(held, rest, part) if position == head else held for position, held in enumerate(tree)]
