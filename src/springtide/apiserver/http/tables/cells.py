"""Columns, layouts and the common cells of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from springtide.apiserver.selectors import selector_of
from springtide.apiserver.values import value_at
from springtide.cluster.resources import Object

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


class AgeFormatter:
    """Formats ages relative to the current time."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def since(self, written: str | None) -> str:
        """Return the age of a timestamp, or `<unknown>` where there is none."""
        if not written:
            return "<unknown>"
        instant = read_instant(written)
        return "<invalid>" if instant is None else duration(int(self._now() - instant))


def read_instant(written: str) -> float | None:
    """Parse a timestamp; None where it is invalid."""
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        return None
    return read.timestamp() if read.tzinfo is not None else None


def duration(seconds: int) -> str:
    """Format a duration, the coarser the longer it is."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(seconds, large)
    return f"{whole}{large_name}" + (f"{rest // small}{small_name}" if rest >= small else "")


Cells = Callable[[Object, AgeFormatter], list[Any]]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column; those with a priority above 0 are shown in wide output only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """Return the column definition of the API."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table, and the cells of an object."""

    columns: tuple[TableColumn, ...]
    cells: Cells
    conditions: Callable[[Object], list[Object]] = lambda _: []
    """The conditions of a row."""


def columns(*named: str, wide: tuple[str, ...] = ()) -> tuple[TableColumn, ...]:
    """Return columns by name; a type other than string follows a colon."""
    return (*(_column(text, 0) for text in named), *(_column(text, 1) for text in wide))


def _column(text: str, priority: int) -> TableColumn:
    name, _, type_ = text.partition(":")
    return TableColumn(name, type_ or "string", "name" if name == "Name" else "", priority)


def name(item: Object) -> str:
    """Return the name of an object."""
    return str(item["metadata"]["name"])


def age(item: Object, ages: AgeFormatter) -> str:
    """Return the age of an object."""
    return ages.since(item["metadata"].get("creationTimestamp"))


def at(item: Object, path: str, otherwise: Any = "") -> Any:
    """Return the value at a dotted path."""
    value = value_at(item, tuple(path.split(".")))
    return otherwise if value is None else value


def labels(given: Any) -> str:
    """Format labels."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def selector(given: Any) -> str:
    """Format a label selector."""
    return str(selector_of(given)) or NONE if isinstance(given, dict) else NONE


def containers(template: Any) -> list[str]:
    """Return the names and the images of the containers of a pod template."""
    listed = value_at(template, ("spec", "containers")) or []
    return [",".join(str(each.get(field, "")) for each in listed) for field in ("name", "image")]


def access_modes(modes: Any) -> str:
    """Abbreviate the access modes of a volume."""
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def condition_is_true(item: Object, condition: str) -> bool:
    """Return whether a condition is true."""
    listed = at(item, "status.conditions", [])
    return any(each.get("type") == condition and each.get("status") == "True" for each in listed)
