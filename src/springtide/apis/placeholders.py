"""Placeholders for invalid values, so that the checks of a view run on the rest of an object.

A view can only be made of values of the right types, so an invalid value is replaced by a placeholder. There are two
variants, which differ as much as possible: a problem that a view finds with both is not caused by the placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from springtide.apis.kinds import INT32_MAX
from springtide.apis.problems import Path, Problem
from springtide.apis.schema import ValueShape, ViewSchema

_CANDIDATE_TEXTS = (
    "xxxx",
    "yyyy",
    "a",
    "b",
    "0",
    "1",
    "1h",
    "2h",
    "10%",
    "20%",
    "2000-01-01",
    "2000-01-02",
    "01-01",
    "01-02",
)
"""Placeholders for strings: the first two that have the required form."""


class PartialValue(msgspec.Struct, frozen=True):
    """A value of which a view can be made, and how its paths differ from those in the manifest."""

    value: Any
    parts: dict[str | int, PartialValue] | None = None
    positions: tuple[int, ...] = ()
    """For lists: the original positions of the entries that are left."""
    names: dict[str, str] = {}
    """For objects: the misspelt names, by the correct ones."""
    clean: bool = True
    """Whether it has no placeholders and no malformed strings."""
    replaced: tuple[Path, ...] = ()
    """Paths of the placeholders."""
    other: Any = None
    """For a placeholder: the other variant."""

    def written(self, path: Path) -> Path:
        """Turn a path of this part into one of the manifest."""
        steps: list[str | int] = []
        part: PartialValue | None = self
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

    def cleaned(self) -> PartialValue | None:
        """Return it without unclean list entries; None for an object with an unclean field."""
        if self.clean or self.parts is None:
            return self if self.clean else None
        cleaned = {key: part.cleaned() for key, part in self.parts.items()}
        left = {key: part for key, part in cleaned.items() if part is not None}
        if isinstance(self.value, list):
            return partial_list([(self.positions[int(key)], part) for key, part in left.items()]) if left else None
        return partial_object(left, self.names) if len(left) == len(cleaned) else None

    def entries_left(self) -> dict[str, tuple[int, ...]]:
        """Return the original positions of the entries that are left, for each shortened list of an object."""
        return {
            str(name): part.positions
            for name, part in (self.parts or {}).items()
            if part.positions and part.positions != tuple(range(len(part.positions)))
        }

    def variant(self) -> Any:
        """Return the value with the other placeholders."""
        if self.parts is None:
            return self.other if self.replaced else self.value
        if isinstance(self.value, list):
            return [part.variant() for part in self.parts.values()]
        return {str(key): part.variant() for key, part in self.parts.items()}

    def unrelated(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Leave out problems of a placeholder or of a part around it, which have been reported already."""
        replaced = frozenset(self.replaced)
        around = frozenset(path[:length] for path in replaced for length in range(1, len(path) + 1))
        for problem in problems:
            inner = (problem.path[:length] for length in range(len(problem.path) + 1))
            if problem.path not in around and replaced.isdisjoint(inner):
                yield problem


def partial_object(parts: dict[str | int, PartialValue], names: dict[str, str]) -> PartialValue:
    """Make an object of its fields."""
    value = {str(key): part.value for key, part in parts.items()}
    return PartialValue(
        value, parts, names=names, clean=all(part.clean for part in parts.values()), replaced=tuple(_replaced(parts))
    )


def partial_list(entries: list[tuple[int, PartialValue]]) -> PartialValue:
    """Make a list of its entries, each with its original position."""
    parts: dict[str | int, PartialValue] = {number: part for number, (_, part) in enumerate(entries)}
    return PartialValue(
        [part.value for _, part in entries],
        parts,
        positions=tuple(position for position, _ in entries),
        clean=all(part.clean for _, part in entries),
        replaced=tuple(_replaced(parts)),
    )


def _replaced(parts: dict[str | int, PartialValue]) -> Iterator[Path]:
    for key, part in parts.items():
        for path in part.replaced:
            yield (key, *path)


def placeholder(schema: ViewSchema) -> PartialValue | None:
    """Return a placeholder that a view accepts; None if there is no simple one."""
    variants = _variants(schema)
    return None if variants is None else PartialValue(variants[0], clean=False, replaced=((),), other=variants[1])


def _variants(schema: ViewSchema) -> tuple[Any, Any] | None:
    match schema.shape:
        case ValueShape.INTEGER | ValueShape.NUMBER | ValueShape.INT_OR_STRING:
            return max(0, schema.minimum or 0), INT32_MAX if schema.maximum is None else schema.maximum
        case ValueShape.BOOLEAN:
            return False, True
        case ValueShape.STRING if schema.enum:
            return schema.enum[0], schema.enum[-1]
        case ValueShape.STRING:
            fitting = [text for text in _CANDIDATE_TEXTS if _fits(text, schema)]
            return (fitting[0], fitting[1]) if len(fitting) > 1 else None
        case ValueShape.LIST:
            entries = _variants(schema.items) if schema.items is not None else None
            least = schema.shortest or 0
            if entries is None:
                return ([], []) if not least else None
            return [entries[0]] * least, [entries[1]] * max(least, 1)
        case ValueShape.MAP if not schema.shortest:
            return {}, {}
        case ValueShape.OBJECT:
            fields = {field.name: _variants(field.schema) for field in schema.fields if field.required}
            made = {name: variants for name, variants in fields.items() if variants is not None}
            if len(made) < len(fields):
                return None
            return {name: one for name, (one, _) in made.items()}, {name: other for name, (_, other) in made.items()}
        case _:
            return None


def _fits(text: str, schema: ViewSchema) -> bool:
    long_enough = (schema.shortest or 0) <= len(text) <= (schema.longest or len(text))
    return long_enough and (schema.pattern is None or re.search(schema.pattern, text) is not None)
