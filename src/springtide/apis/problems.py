"""What is wrong with an object, in one shape for every reader.

The admission webhook, `springtide check`, the editor and the controllers' conditions all show the same list.
A problem is found by pure code that knows only the path of a field; where that field stands in a file is looked up
afterwards, so validation never depends on how an object was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Severity: TypeAlias = Literal["error", "warning"]

Path: TypeAlias = tuple[str | int, ...]
"""Where a field is: mapping keys and list positions from the root of the object."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong (error) or surprising (warning), and what to do about it."""

    path: Path
    message: str
    hint: str = ""
    severity: Severity = "error"

    def under(self, *prefix: str | int) -> Problem:
        """The same problem, seen from an object that holds the one it was found in."""
        return msgspec.structs.replace(self, path=(*prefix, *self.path))


def error(path: Path, message: str, hint: str = "") -> Problem:
    """Make a problem that must be mended before the object can work."""
    return Problem(path=path, message=message, hint=hint)


def warning(path: Path, message: str, hint: str = "") -> Problem:
    """Make a problem that the object works with, but probably not as its author thinks."""
    return Problem(path=path, message=message, hint=hint, severity="warning")


def has_errors(problems: Iterable[Problem]) -> bool:
    """Tell whether any of these problems keeps the object from working."""
    return any(problem.severity == "error" for problem in problems)


def original_path(path: Path, origins: Mapping[Path, Path]) -> Path:
    """Turn a path into the one it had before parts moved; `origins` gives the earlier places of those that did."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return (*origins[path[:length]], *path[length:])
    return path


def format_path(path: Path) -> str:
    """Write a path as Kubernetes does: ``spec.rules[0].name``; keys that hold dots go into brackets."""
    text = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step or not step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
