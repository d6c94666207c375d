"""Structural validation of manifests against the declared kinds: all problems in one pass.

The tree is walked once. For every part of which a view can be made, the view's own checks run. One mistake hides no
other: invalid list entries are removed, misspelt fields are read under their correct name, malformed strings stay
strings, and values of a wrong type are replaced by placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec

from springtide.apis.formats import FORMATS
from springtide.apis.kinds import ValidationContext, View
from springtide.apis.placeholders import PartialValue, partial_list, partial_object, placeholder
from springtide.apis.problems import Path, Problem, error, has_errors, warning
from springtide.apis.schema import SchemaField, ValueShape, ViewSchema, enclosing_field, nearest, schema_of

_SHAPE_NAMES = {
    ValueShape.OBJECT: "a mapping",
    ValueShape.MAP: "a mapping",
    ValueShape.LIST: "a list",
    ValueShape.STRING: "a string",
    ValueShape.INTEGER: "a whole number",
    ValueShape.NUMBER: "a number",
    ValueShape.BOOLEAN: "true or false",
    ValueShape.INT_OR_STRING: "a number or a string",
}


class StructuralResult(NamedTuple):
    """The view of an object, if one could be made, all problems, and its tree.

    In the tree, misspelt fields have their correct name; `misspelt` maps the path with the correct name to the
    written one.
    """

    view: View | None
    problems: list[Problem]
    value: Any
    misspelt: dict[Path, Path]


MAX_TEXT = 10_000
"""The maximum length of a text that is checked, of fields that declare none. Users write texts, and neither patterns,
formats nor hints may take long."""
_MOST_GUESSES = 50
"""For how many unknown fields of an object a similar name is searched."""


def check_structure(
    value: Any, view: type[View], context: ValidationContext, *, foreign: bool = False
) -> StructuralResult:
    """Find every problem of an object.

    ``foreign`` is for kinds that other projects define: an unknown field may belong to a newer version, so it is an
    error only if it is a likely misspelling.
    """
    walk = _StructureChecker(root=view, context=context, foreign=foreign, problems=[], renames={})
    part = walk.visit(value, schema_of(view), ())
    made = walk.check_view(part, view, ()) if part is not None else None
    misspelt: dict[Path, Path] = {}
    corrected = _with_corrected_names(value, walk.renames, (), (), misspelt) if walk.renames else value
    return StructuralResult(made, walk.problems, corrected, misspelt)


def _with_corrected_names(
    value: Any, renames: dict[Path, dict[str, str]], written: Path, corrected: Path, origins: dict[Path, Path]
) -> Any:
    if isinstance(value, dict):
        right = {wrong: name for name, wrong in renames.get(written, {}).items()}
        made: dict[str, Any] = {}
        for key, part in value.items():
            name = str(right.get(key, key))
            if name != key:
                origins[(*corrected, name)] = (*written, key)
            made[name] = _with_corrected_names(part, renames, (*written, key), (*corrected, name), origins)
        return made
    if isinstance(value, list):
        return [
            _with_corrected_names(part, renames, (*written, i), (*corrected, i), origins)
            for i, part in enumerate(value)
        ]
    return value


@dataclass(slots=True)
class _StructureChecker:
    root: type[View]
    context: ValidationContext
    foreign: bool
    problems: list[Problem]
    renames: dict[Path, dict[str, str]]
    known: set[Problem] = field(default_factory=set)
    """The problems found so far, for comparison."""
    compared: int = 0
    """How many of the problems are in `known`."""

    def visit(self, value: Any, schema: ViewSchema, path: Path) -> PartialValue | None:
        """Check one value; None if neither it nor a placeholder can be part of a view."""
        if not schema.scalars:
            match schema.shape:
                case ValueShape.OBJECT:
                    return self._object(value, schema, path)
                case ValueShape.MAP:
                    return self._map(value, schema, path)
                case ValueShape.LIST:
                    return self._list(value, schema, path)
                case _:
                    return PartialValue(value)
        found = _scalar_problems(value, schema, own=not self.foreign and path[:1] != ("metadata",))
        if found and has_errors(found):
            self.problems += (problem.under(*path) for problem in found)
            return placeholder(schema)
        malformed = _format_problems(value, schema)
        self.problems += (problem.under(*path) for problem in (*found, *malformed))
        return PartialValue(value, clean=not has_errors(malformed))

    def _object(self, value: Any, schema: ViewSchema, path: Path) -> PartialValue | None:
        if not isinstance(value, dict):
            self.problems.append(wrong_shape(value, schema, path))
            return placeholder(schema)
        misspelt, mentioned = self._unknown(value, schema, path)
        if misspelt:
            self.renames[path] = misspelt
        parts: dict[str | int, PartialValue] = {}
        usable = True
        for field_ in schema.fields:
            name = misspelt.get(field_.name, field_.name)
            given = value.get(name)
            if not path and name == "status":
                continue  # the API server ignores the status of a manifest
            if given is not None:
                part = self.visit(given, field_.schema, (*path, name))
            elif field_.required:
                part = placeholder(field_.schema)
                if name not in mentioned:
                    self.problems.append(error((*path, name), "is missing", _missing_field_hint(field_)))
            else:
                continue
            if part is None:
                usable = False
            else:
                parts[field_.name] = part
        if not usable:
            return None
        whole = partial_object(parts, misspelt)
        if path and schema.view is not None:
            self.check_view(whole, schema.view, path)
        return whole

    def check_view(self, part: PartialValue, view: type[View], path: Path) -> View | None:
        """Make the view of a part and add the problems that its checks find.

        If the part has problems already, the checks also run without the invalid list entries, which could make them
        raise.
        """
        cleaned = part.cleaned()
        made = None
        if cleaned is not None:
            try:
                made = msgspec.convert(cleaned.value, view)
            except msgspec.ValidationError as mismatch:
                self.problems.append(error(path, str(mismatch)))
                return None
            self._add(cleaned, self._view_problems(made, cleaned, path), path)
        if not part.clean:
            self._add(part, self._certain_problems(part, view, path), path)
        return made

    def _certain_problems(self, part: PartialValue, view: type[View], path: Path) -> list[Problem]:
        """Find problems of an invalid part that are not caused by its placeholders."""
        values = [part.value, part.variant()] if part.replaced else [part.value]
        found: list[list[Problem]] = []
        for value in values:
            try:
                made = msgspec.convert(value, view)
            except msgspec.ValidationError:
                return []
            found.append(self._view_problems(made, part, path))
        confirmed = frozenset(found[-1])
        return list(part.unrelated(problem for problem in found[0] if problem in confirmed))

    def _view_problems(self, made: View, part: PartialValue, path: Path) -> list[Problem]:
        context = self.context
        left = part.entries_left()
        if left or part.replaced:
            replaced = frozenset(str(place[0]) for place in part.replaced if place)
            context = msgspec.structs.replace(context, entries_left=left, replaced=replaced)
        found: list[Problem] = []
        try:
            for problem in made.problems(context):
                found.append(problem)  # noqa: PERF402 - keeps what was found before an exception
        except ValueError:
            # The checks of a view may raise because of a value that has been reported already.
            known = (*self.problems, *(problem.under(*path) for problem in found))
            if not has_errors(problem for problem in known if problem.path[: len(path)] == path):
                raise
        return found

    def _add(self, part: PartialValue, found: list[Problem], path: Path) -> None:
        for problem in found:
            placed = msgspec.structs.replace(problem, path=(*path, *part.written(problem.path)))
            if not self._is_known(placed):
                self.problems.append(placed)

    def _is_known(self, problem: Problem) -> bool:
        """Return whether a problem has been found before; a set, because an object can have very many."""
        self.known.update(self.problems[self.compared :])
        self.compared = len(self.problems)
        return problem in self.known

    def _unknown(self, value: dict[str, Any], schema: ViewSchema, path: Path) -> tuple[dict[str, str], set[str]]:
        """Report fields that do not exist.

        Return the misspelt ones by their correct name, and all names that a hint mentions.
        """
        misspelt: dict[str, str] = {}
        mentioned: set[str] = set()
        known = schema.known
        if schema.open or value.keys() <= known.keys():
            return misspelt, mentioned
        mistaken = schema.view.__mistaken__ if schema.view is not None else {}
        unknown = 0
        for name in value:
            if name in known:
                continue
            unknown += 1
            free = [other for other in known if other not in value and other not in misspelt]
            guess = nearest(name, free) if unknown <= _MOST_GUESSES else None
            if name in mistaken:
                hint = mistaken[name]
                mentioned.update(other for other in free if f"`{other}`" in hint)
                guess = next((other for other in free if re.match(f"write `{other}`(;|$)", hint)), None)
            elif guess is not None:
                hint = f"did you mean `{guess}`?"
            elif (home := enclosing_field(name, self.root, path)) is not None:
                hint = f"`{name}` belongs under `{home}`"
            else:
                hint = "known here: " + ", ".join(sorted(known)) if known else "no fields are allowed here"
                if self.foreign:
                    self.problems.append(warning((*path, name), f"unknown field `{name}`", hint))
                    continue
            self.problems.append(error((*path, name), f"unknown field `{name}`", hint))
            if guess is not None:
                mentioned.add(guess)
                intended = schema.field(guess)
                if intended is not None and _could_be(value[name], intended.schema):
                    misspelt[guess] = name
        return misspelt, mentioned

    def _map(self, value: Any, schema: ViewSchema, path: Path) -> PartialValue | None:
        if not isinstance(value, dict):
            self.problems.append(wrong_shape(value, schema, path))
            return placeholder(schema)
        usable = self._sizes(value, schema, path)
        parts: dict[str | int, PartialValue] = {}
        items = schema.items
        assert items is not None  # noqa: S101 - every map has a type of values
        for name, given in value.items():
            part = self.visit(given, items, (*path, name))
            if part is None:
                usable = False
            else:
                parts[name] = part
        whole = partial_object(parts, {})
        found = _format_problems(whole.value, schema)
        self.problems += (problem.under(*path) for problem in found)
        if not usable:
            return placeholder(schema)
        return msgspec.structs.replace(whole, clean=whole.clean and not has_errors(found))

    def _list(self, value: Any, schema: ViewSchema, path: Path) -> PartialValue | None:
        if not isinstance(value, list):
            self.problems.append(wrong_shape(value, schema, path))
            return placeholder(schema)
        usable = self._sizes(value, schema, path)
        items = schema.items
        assert items is not None  # noqa: S101 - every list has a type of entries
        left = [
            (position, part)
            # Not beyond the maximum length, so that validating one object takes bounded time.
            for position, given in enumerate(value[: schema.longest])
            if (part := self.visit(given, items, (*path, position))) is not None
        ]
        self.problems += _duplicate_problems(value, schema, path)
        if not usable or (value and not left):
            return placeholder(schema)  # a list whose entries are all wrong is not an empty one
        return partial_list(left)

    def _sizes(self, value: Any, schema: ViewSchema, path: Path) -> bool:
        if schema.shortest is not None and len(value) < schema.shortest:
            self.problems.append(error(path, f"must have at least {_entries(schema.shortest)}, has {len(value)}"))
            return False
        if schema.longest is not None and len(value) > schema.longest:
            self.problems.append(error(path, f"must have at most {_entries(schema.longest)}, has {len(value)}"))
            return False
        return True


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _scalar_problems(value: Any, schema: ViewSchema, *, own: bool) -> list[Problem]:
    if not _fits(value, schema):
        return [wrong_shape(value, schema, ())]
    if schema.enum and value not in schema.enum:
        return [_enum_problem(value, schema)]
    if isinstance(value, str):
        bounded = own or schema.format is not None or schema.pattern is not None
        return _text_problems(value, schema, MAX_TEXT if schema.longest is None and bounded else schema.longest)
    found = []
    if not isinstance(value, bool):
        if schema.minimum is not None and value < schema.minimum:
            found.append(error((), f"must be at least {schema.minimum}, is {value}"))
        if schema.maximum is not None and value > schema.maximum:
            found.append(error((), f"must be at most {schema.maximum}, is {value}"))
    return found


def _text_problems(value: str, schema: ViewSchema, longest: int | None) -> list[Problem]:
    if schema.shortest is not None and len(value) < schema.shortest:
        return [error((), "must not be empty" if schema.shortest == 1 else f"is shorter than {schema.shortest}")]
    if longest is not None and len(value) > longest:
        return [error((), f"must have at most {longest} characters, has {len(value)}")]
    # The message of a format is better than that of a pattern.
    if schema.pattern is not None and schema.format is None and not _compiled(schema.pattern).search(value):
        return [error((), f'"{shorten(value)}" does not have the form {schema.pattern}')]
    return []


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _format_problems(value: Any, schema: ViewSchema) -> list[Problem]:
    return [] if schema.format is None else list(FORMATS[schema.format](value))


def _could_be(value: Any, schema: ViewSchema) -> bool:
    """Return whether a value has the shape that the schema asks for."""
    match value:
        case dict():
            return schema.shape in (ValueShape.OBJECT, ValueShape.MAP, ValueShape.ANY)
        case list():
            return schema.shape in (ValueShape.LIST, ValueShape.ANY)
    return schema.shape not in (ValueShape.OBJECT, ValueShape.MAP, ValueShape.LIST)


def _missing_field_hint(field_: SchemaField) -> str:
    """Describe a missing field."""
    about = field_.schema.description
    return f"write `{field_.name}`: {about[:1].lower()}{about[1:].rstrip('.')}" if about else f"write `{field_.name}`"


def _fits(value: Any, schema: ViewSchema) -> bool:
    if isinstance(value, bool):
        return bool in schema.scalars
    return isinstance(value, schema.scalars)


def wrong_shape(value: Any, schema: ViewSchema, path: Path) -> Problem:
    """Report a value of another shape than the expected one."""
    expected = _SHAPE_NAMES[schema.shape]
    hint = ""
    if schema.shape is ValueShape.STRING and isinstance(value, bool | int | float):
        written = str(value).lower() if isinstance(value, bool) else str(value)
        hint = f'put it in quotes: "{written}"'
    elif schema.shape is ValueShape.INTEGER and isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        hint = f"remove the quotes: {value}"
    elif schema.shape is ValueShape.LIST and isinstance(value, dict):
        hint = "start the entry with `- `"
    elif schema.shape is ValueShape.LIST:
        hint = f"write a list: [{shorten(value)}]"
    elif schema.shape is ValueShape.OBJECT and 0 < len(schema.known) <= _MOST_LISTED_KEYS:
        hint = _mapping_hint(value, schema)
    return error(path, f"must be {expected}, is {_describe(value)}", hint)


def _mapping_hint(value: Any, schema: ViewSchema) -> str:
    """Name the keys of the expected mapping; where the value fits each of them, show it under the first one."""
    names = ", ".join(schema.known)
    formats = {field.schema.format for field in schema.fields}
    fits = len(formats) == 1 and formats != {None} and all(_fits(value, field.schema) for field in schema.fields)
    if not fits or isinstance(value, dict | list):
        return f"write a mapping, with keys of {names}"
    place = f"{{{schema.fields[0].name}: {shorten(value)}}}"
    return f"write a mapping such as `{place}`, with keys of {names}"


_MOST_LISTED_KEYS = 8


def _describe(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return f'the string "{shorten(value)}"'
        case None:
            return "null"
    return shorten(value)


def shorten(value: Any, most: int = 60) -> str:
    """Quote a value in a message, shortened to this many characters."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _enum_problem(value: Any, schema: ViewSchema) -> Problem:
    listed = ", ".join(str(choice) for choice in schema.enum)
    guess = nearest(str(value), (str(choice) for choice in schema.enum))
    hint = f"did you mean {guess}?" if guess is not None else ""
    return error((), f'must be one of {listed}, is "{shorten(value)}"', hint)


def _duplicate_problems(value: list[Any], schema: ViewSchema, path: Path) -> Iterator[Problem]:
    """Find duplicate entries of an associative list or a set."""
    if not schema.map_keys and not schema.unique:
        return
    seen: dict[str, int] = {}
    for position, entry in enumerate(value):
        if schema.unique:
            key, place, what = repr(entry), (*path, position), shorten(entry)
        elif isinstance(entry, dict) and all(isinstance(entry.get(k), str | int) for k in schema.map_keys):
            key = repr([entry[k] for k in schema.map_keys])
            place = (*path, position, schema.map_keys[0])
            what = ", ".join(shorten(entry[k]) for k in schema.map_keys)
        else:
            continue
        if key in seen:
            yield error(place, f'"{what}" is listed twice, first at position {seen[key]}', "each must be unique")
        seen.setdefault(key, position)
