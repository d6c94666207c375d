"""Parts of an object that a view can be made of, whatever is wrong with them.

Validation must not stop at the first mistake, yet a view can only be made of values of the right types. So a value
that cannot be used is replaced by a stand-in, and the part remembers where: what a view then finds wrong is believed
only where no stand-in can have led to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from springtide.apis.problems import Path, Problem
from springtide.apis.schema import Schema, Shape


@dataclass(frozen=True, slots=True)
class StandIn:
    """A place whose value was replaced, and by what."""

    path: Path
    value: Any
    chooses: bool
    """Whether it is one of a few words, on which the meaning of the fields beside it may depend."""


@dataclass(frozen=True, slots=True)
class Part:
    """A value that a view can be made of, and how its places differ from those in the tree as it was written."""

    value: Any
    parts: dict[str | int, Part] | None = None
    positions: tuple[int, ...] = ()
    """For lists: where the entries stood that are left."""
    names: dict[str, str] = field(default_factory=dict)
    """For objects: what fields were called whose name was misspelt."""
    clean: bool = True
    """Whether every value in it is as it was written, and every text what its format asks for."""
    replaced: tuple[StandIn, ...] = ()

    def written(self, path: Path) -> Path:
        """Turn a path of this part into one of the tree as it was written."""
        steps: list[str | int] = []
        part: Part | None = self
        for step in path:
            if part is None:
                steps.append(step)
                continue
            if isinstance(step, int):
                steps.append(part.positions[step] if step < len(part.positions) else step)
            else:
                steps.append(part.names.get(step, step))
            part = part.parts.get(step) if part.parts is not None else None
        return tuple(steps)

    def cleaned(self) -> Part | None:
        """Leave out the entries of lists that are not clean; nothing is left of an object with such a field."""
        if self.clean or self.parts is None:
            return self if self.clean else None
        cleaned = {key: part.cleaned() for key, part in self.parts.items()}
        left = {key: part for key, part in cleaned.items() if part is not None}
        if isinstance(self.value, list):
            return list_of([(self.positions[int(key)], part) for key, part in left.items()]) if left else None
        return object_of(left, self.names) if len(left) == len(cleaned) else None

    def entries_left(self) -> dict[str, tuple[int, ...]]:
        """Give, for the lists of an object, where the entries stood that are left."""
        return {
            str(name): part.positions
            for name, part in (self.parts or {}).items()
            if part.positions != tuple(range(len(part.positions)))
        }

    def believes(self, problem: Problem) -> bool:
        """Tell whether something that a view found wrong cannot come from a stand-in."""
        words = set(re.findall(r"\w+", f"{problem.message} {problem.hint}"))
        return not any(
            (problem.path and problem.path[0] == made.path[0])
            or made.path[-1] in words
            or made.value in words
            or (made.chooses and len(made.path) == 1)
            for made in self.replaced
            if made.path
        )


def object_of(parts: dict[str | int, Part], names: dict[str, str]) -> Part:
    """Make an object of its fields."""
    value = {str(key): part.value for key, part in parts.items()}
    return Part(
        value, parts, names=names, clean=all(part.clean for part in parts.values()), replaced=tuple(_replaced(parts))
    )


def list_of(entries: list[tuple[int, Part]]) -> Part:
    """Make a list of its entries, each with the position it had."""
    parts: dict[str | int, Part] = {number: part for number, (_, part) in enumerate(entries)}
    return Part(
        [part.value for _, part in entries],
        parts,
        positions=tuple(position for position, _ in entries),
        clean=all(part.clean for _, part in entries),
        replaced=tuple(_replaced(parts)),
    )


def _replaced(parts: dict[str | int, Part]) -> Iterator[StandIn]:
    for key, part in parts.items():
        for made in part.replaced:
            yield replace(made, path=(key, *made.path))


def stand_in(schema: Schema) -> Part | None:
    """Give a value that a view accepts in the place of one that it does not; none where nothing simple would do."""
    value: Any
    match schema.shape:
        case Shape.INTEGER | Shape.NUMBER | Shape.INT_OR_STRING:
            value = max(0, schema.minimum or 0)
        case Shape.BOOLEAN:
            value = False
        case Shape.STRING if schema.pattern is None:
            value = schema.enum[0] if schema.enum else "x" * max(4, schema.shortest or 0)
        case Shape.LIST if not schema.shortest:
            value = []
        case Shape.MAP if not schema.shortest:
            value = {}
        case _:
            return None
    return Part(
        value, clean=False, replaced=(StandIn((), value if isinstance(value, str) else None, bool(schema.enum)),)
    )
