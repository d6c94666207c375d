"""What a conversion of one object is, and the words in which it tells what it did."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from springtide.apis.fields import INT32_MAX
from springtide.apis.problems import Path, Problem, error, has_errors, warning

Tree: TypeAlias = dict[str, Any]

_DIGITS = re.compile(r"-?\d{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting:
    """What an object of a peer does not say itself."""

    now: int
    """The present: what happens once, the next time, needs it."""
    zone: str | None = None
    """The zone of the peer's controller, if it was given."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What becomes of one object."""

    kept: Tree | None
    """The object itself, as it stays beside the new ones; None where they take its place."""
    made: tuple[Tree, ...]
    """The new objects."""
    problems: tuple[Problem, ...]
    """What differs from before; with an error the object stays as it was, and nothing is made."""

    @property
    def failed(self) -> bool:
        """Whether the object cannot be converted."""
        return has_errors(self.problems)


Converter: TypeAlias = Callable[[Tree, Setting], Conversion | None]
"""Converts an object, or gives None where it is no business of the peer; pure, never raises."""


class Notes:
    """Collects what is found on the way through an object."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def error(self, path: Path, message: str, hint: str = "") -> None:
        """Say why the object cannot be converted."""
        self._found.append(error(path, message, hint))

    def warn(self, path: Path, message: str, hint: str = "") -> None:
        """Say what will be different."""
        self._found.append(warning(path, message, hint))

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return has_errors(self._found)

    def refused(self, value: Tree) -> Conversion:
        """Leave the object as it is."""
        return Conversion(value, (), tuple(self._found))

    def done(self, kept: Tree | None, *made: Tree) -> Conversion:
        """Give the result."""
        return Conversion(kept, made, tuple(self._found))


def part(value: Any, *path: str) -> Tree:
    """Give the mapping at a path, an empty one where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def head(value: Tree) -> tuple[str, str]:
    """Give the API group and the kind of an object."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def whole(value: Any) -> int | None:
    """Read a whole number of 32 bits that may stand in quotes; None for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= INT32_MAX else None
