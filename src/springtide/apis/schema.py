"""Schemas of the declared kinds, which validation, defaulting and CRD generation walk, and suggestions from them.

Suggestions are the nearest known name of a misspelt one, and the field under which a misplaced name belongs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

import msgspec
from msgspec import inspect

from springtide.apis.kinds import CelRule, View


class ValueShape(StrEnum):
    """The JSON shape of a value."""

    OBJECT = "object"
    MAP = "map"
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    ANY = "any"


_SCALARS: dict[ValueShape, tuple[type, ...]] = {
    ValueShape.STRING: (str,),
    ValueShape.INTEGER: (int,),
    ValueShape.NUMBER: (int, float),
    ValueShape.BOOLEAN: (bool,),
    ValueShape.INT_OR_STRING: (str, int),
}
NO_DEFAULT: Any = object()


@dataclass(frozen=True, eq=False)
class ViewSchema:
    """What is valid at one path of an object."""

    shape: ValueShape
    view: type[View] | None = None
    fields: tuple[SchemaField, ...] = ()
    items: ViewSchema | None = None
    enum: tuple[str, ...] = ()
    minimum: int | float | None = None
    maximum: int | float | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    format: str | None = None
    fractions: bool = False
    """Whether a number of an int-or-string may have a fraction, as quantities may."""
    map_keys: tuple[str, ...] = ()
    unique: bool = False
    rules: tuple[CelRule, ...] = ()
    description: str = ""
    extension: bool = False
    stock: tuple[tuple[str, Any], ...] = ()
    stock_required: bool = False
    own_bound: bool = False
    """Whether the maximum length is ours, and upstream has none."""
    keywords: tuple[tuple[str, Any], ...] = ()

    def field(self, name: str) -> SchemaField | None:
        """Find a field of an object by its name on the wire."""
        return self.known.get(name)

    @cached_property
    def known(self) -> dict[str, SchemaField | None]:
        """All field names that this object may have, in their order; None for those that Springtide does not read."""
        fields = {field.name: field for field in self.fields}
        return fields | {name: fields.get(name) for name in (self.view.__opaque__ if self.view is not None else ())}

    @cached_property
    def scalars(self) -> tuple[type, ...]:
        """The types of its values in a decoded tree; empty for mappings, lists and values of any shape."""
        return (*_SCALARS.get(self.shape, ()), *((float,) if self.fractions else ()))

    @cached_property
    def open(self) -> bool:
        """Whether the object may have undeclared fields."""
        return dict(self.keywords).get("x-kubernetes-preserve-unknown-fields", False) is True


@dataclass(frozen=True, eq=False)
class SchemaField:
    """A field of an object."""

    name: str
    schema: ViewSchema
    required: bool
    default: Any = NO_DEFAULT


@cache
def schema_of(view: type[View]) -> ViewSchema:
    """Derive the schema of a view."""
    return _object(inspect.type_info(view))


def _object(info: inspect.Type) -> ViewSchema:
    assert isinstance(info, inspect.StructType)  # noqa: S101 - called for structs only
    view = info.cls
    if not issubclass(view, View):
        msg = f"{view.__name__} is not a View"
        raise TypeError(msg)
    return ViewSchema(
        shape=ValueShape.OBJECT,
        view=view,
        fields=tuple(_field(field) for field in info.fields),
        rules=view.__rules__,
        description=_first_paragraph(view.__doc__),
    )


def _field(field: inspect.Field) -> SchemaField:
    schema, default = _schema(field.type)
    if default is NO_DEFAULT and isinstance(field.default, str | int | bool):
        default = field.default
    return SchemaField(name=field.encode_name, schema=schema, required=field.required, default=default)


def _schema(info: inspect.Type) -> tuple[ViewSchema, Any]:
    """Return the schema of a type, and the default in its annotations."""
    if isinstance(info, inspect.Metadata):
        schema, default = _schema(info.type)
        return _annotated(schema, info), (info.extra or {}).get("default", default)
    if isinstance(info, inspect.UnionType):
        return _union(info)
    return _plain(info), NO_DEFAULT


def _union(info: inspect.UnionType) -> tuple[ViewSchema, Any]:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        return _schema(members[0])
    shapes = {type(member.type if isinstance(member, inspect.Metadata) else member) for member in members}
    if not shapes <= {inspect.StrType, inspect.IntType, inspect.FloatType}:
        msg = f"a union of {sorted(shape.__name__ for shape in shapes)} has no schema"
        raise TypeError(msg)
    texts = (member.type if isinstance(member, inspect.Metadata) else member for member in members)
    longest = next((text.max_length for text in texts if isinstance(text, inspect.StrType)), None)
    fractions = inspect.FloatType in shapes
    return ViewSchema(shape=ValueShape.INT_OR_STRING, fractions=fractions, longest=longest), NO_DEFAULT


def _plain(info: inspect.Type) -> ViewSchema:
    match info:
        case inspect.StructType():
            return _object(info)
        case inspect.VarTupleType() | inspect.ListType():
            items, _ = _schema(info.item_type)
            return ViewSchema(shape=ValueShape.LIST, items=items, shortest=info.min_length, longest=info.max_length)
        case inspect.DictType():
            items, _ = _schema(info.value_type)
            return ViewSchema(shape=ValueShape.MAP, items=items, shortest=info.min_length, longest=info.max_length)
        case inspect.StrType():
            return ViewSchema(
                shape=ValueShape.STRING,
                shortest=info.min_length,
                longest=info.max_length,
                pattern=info.pattern,
            )
        case inspect.IntType():
            return ViewSchema(shape=ValueShape.INTEGER, minimum=info.ge, maximum=info.le)
        case inspect.FloatType():
            return ViewSchema(shape=ValueShape.NUMBER, minimum=info.ge, maximum=info.le)
        case inspect.BoolType():
            return ViewSchema(shape=ValueShape.BOOLEAN)
        case inspect.LiteralType():
            return ViewSchema(shape=ValueShape.STRING, enum=tuple(str(value) for value in info.values))
        case inspect.AnyType():
            return ViewSchema(shape=ValueShape.ANY)
    msg = f"no schema for {info!r}"
    raise TypeError(msg)


def _annotated(schema: ViewSchema, info: inspect.Metadata) -> ViewSchema:
    extra = info.extra or {}
    keywords = dict(info.extra_json_schema or {})
    description = keywords.pop("description", schema.description)
    return replace(
        schema,
        description=description,
        pattern=keywords.pop("pattern", schema.pattern),
        keywords=(*schema.keywords, *keywords.items()),
        format=extra.get("format", schema.format),
        extension=extra.get("extension", schema.extension),
        map_keys=tuple(extra.get("list_map_keys", schema.map_keys)),
        unique=extra.get("list_set", schema.unique),
        rules=(*schema.rules, *extra.get("rules", ())),
        stock=tuple(extra.get("stock", dict(schema.stock)).items()),
        stock_required=extra.get("stock_required", schema.stock_required),
        own_bound=extra.get("own_bound", schema.own_bound),
    )


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().split("\n\n")[0].split())


def with_defaults(value: Any, schema: ViewSchema) -> Any:
    """Return a copy with the defaults that the API server would fill in, at every depth."""
    if schema.shape is ValueShape.OBJECT and isinstance(value, dict):
        filled = dict(value)
        for field in schema.fields:
            if filled.get(field.name) is None and field.default is not NO_DEFAULT:
                filled[field.name] = msgspec.to_builtins(field.default)
            if field.name in filled:
                filled[field.name] = with_defaults(filled[field.name], field.schema)
        return filled
    if schema.items is not None and isinstance(value, dict):
        return {key: with_defaults(item, schema.items) for key, item in value.items()}
    if schema.items is not None and isinstance(value, list):
        return [with_defaults(item, schema.items) for item in value]
    return value


_MAX_DEPTH = 12
_MAX_WORD_LENGTH = 80


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known name that a word means: one in another case, a plural, an abbreviation, or a typing error."""
    if len(word) > _MAX_WORD_LENGTH:
        return None
    names = list(known)
    folded = word.lower()
    for name in names:
        if name.lower() == folded:
            return name
    for name in names:
        if len(folded) >= 3 and name.lower().startswith(folded) and len(name) <= 3 * len(word):
            return name
    best = min(((_distance(folded, name.lower()), name) for name in names), default=None)
    if best is not None and 3 * best[0] <= max(len(word), len(best[1])) and best[0] < min(len(word), len(best[1])):
        return best[1]
    return None


def _distance(a: str, b: str) -> int:
    """Return the edit distance; swapping two neighbours is one edit."""
    older: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        older, previous = previous, row
    return previous[-1]


def enclosing_field(name: str, root: type[View], path: tuple[str | int, ...]) -> str | None:
    """Find the field under which a misplaced name belongs: the one that shares most of the path."""
    steps = tuple(step for step in path if isinstance(step, str))
    places = _places(root).get(name)
    if not places:
        return None
    best = max(places, key=lambda place: (_shared(place, steps), -len(place)))
    return ".".join(best)


def _shared(place: tuple[str, ...], steps: tuple[str, ...]) -> int:
    shared = 0
    for a, b in zip(place, steps, strict=False):
        if a.removesuffix("[]") != b:
            break
        shared += 1
    return shared


@cache
def _places(root: type[View]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Index every field of a kind by its name: the objects that may hold it."""
    found: dict[str, list[tuple[str, ...]]] = {}

    def walk(schema: ViewSchema, place: tuple[str, ...]) -> None:
        if len(place) > _MAX_DEPTH:
            return
        if schema.items is not None:
            mark = "[]" if schema.shape == "list" else ""
            walk(schema.items, (*place[:-1], place[-1] + mark) if place else place)
        for name in schema.known:
            found.setdefault(name, []).append(place)
        for field in schema.fields:
            walk(field.schema, (*place, field.name))

    walk(schema_of(root), ())
    return {name: tuple(place for place in places if place) for name, places in found.items()}
