"""Problems of objects, which the admission webhook, `springtide check` and the controllers' conditions all show.

Pure code finds problems by field path; the line and column in a file are looked up afterwards, so validation does not
depend on where an object comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from springtide.apis.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Severity: TypeAlias = Literal["error", "warning"]

Path: TypeAlias = tuple[str | int, ...]
"""A field: mapping keys and list positions from the root of the object."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong (error) or surprising (warning), and what to do about it."""

    path: Path
    message: str
    hint: str = ""
    severity: Severity = "error"

    def under(self, *prefix: str | int) -> Problem:
        """Return the same problem with a prefix before its path."""
        return msgspec.structs.replace(self, path=(*prefix, *self.path))


def error(path: Path, message: str, hint: str = "") -> Problem:
    """Make a problem that must be fixed before the object can work."""
    return Problem(path=path, message=redacted(message), hint=redacted(hint))


def warning(path: Path, message: str, hint: str = "") -> Problem:
    """Make a problem with which the object works, but probably not as the user expects."""
    return Problem(path=path, message=redacted(message), hint=redacted(hint), severity="warning")


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any of these problems is an error."""
    return any(problem.severity == "error" for problem in problems)


def original_path(path: Path, origins: Mapping[Path, Path]) -> Path:
    """Return the path that a field had before parts were moved; `origins` has the original paths of moved parts."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return (*origins[path[:length]], *path[length:])
    return path


def format_path(path: Path) -> str:
    """Format a path as Kubernetes does: ``spec.rules[0].name``; keys with dots go into brackets."""
    text = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step or not step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
