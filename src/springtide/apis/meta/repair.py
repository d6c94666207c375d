"""Repairs of an object's tree, each with a warning.

Every repair makes a new tree. A value that cannot be repaired, because it is missing or of an unexpected type, is left
for validation to report.
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
        """Return the value at a path, or None."""
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
        """Return the paths of the entries of a list; none if there is no list."""
        found = self.at(path)
        return [(*path, position) for position in range(len(found))] if isinstance(found, list) else []

    def rename(self, place: Path, old: str, new: str, message: str) -> None:
        """Rename a field in place, unless the new name is taken."""
        holder = self.at(place)
        if not isinstance(holder, dict) or old not in holder or new in holder:
            return
        self._problems.append(warning((*self._written(place), old), message, f"write `{new}`"))
        self._origins[(*place, new)] = (*self._written(place), old)
        self.value = replace_at(self.value, place, {new if key == old else key: held for key, held in holder.items()})

    def replace(self, path: Path, new: Any, message: str) -> None:
        """Replace the value at a path."""
        self._problems.append(warning(self._written(path), message))
        self.value = replace_at(self.value, path, new)

    def result(self) -> NormalizedTree:
        """Return the repaired object and a warning for each repair."""
        return NormalizedTree(self.value, tuple(self._problems), dict(self._origins))

    def _written(self, path: Path) -> Path:
        """Turn a path of the repaired tree into that of the original one."""
        return original_path(path, self._origins)


def replace_at(tree: Any, path: Path, part: Any) -> Any:
    """Return a copy of a tree with another value at an existing path."""
    if not path:
        return part
    head, rest = path[0], path[1:]
    if isinstance(tree, dict):
        return {key: replace_at(held, rest, part) if key == head else held for key, held in tree.items()}
    return [replace_at(held, rest, part) if position == head else held for position, held in enumerate(tree)]
