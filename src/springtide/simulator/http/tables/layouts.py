"""The shape of a table: its columns, and how a row is made of an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.http.tables.ages import Ages

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"

Cells = Callable[[Object, Ages], list[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of a priority above 0 are shown in wide output only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """Write it as tables carry it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, and what stands in them for an object."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[Object], list[Object]] = lambda _: []
    """What is to be said about a row besides its cells."""


def columns(*named: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Make columns from names; a type other than text stands after a colon, and the first is the name if so called."""
    return (*(_column(text, 0) for text in named), *(_column(text, 1) for text in wide))


def _column(text: str, priority: int) -> Column:
    name, _, type_ = text.partition(":")
    return Column(name, type_ or "string", "name" if name == "Name" else "", priority)
