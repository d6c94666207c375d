"""The canonical form of manifests: what `springtide convert` writes.

The text is changed as little as possible: slips that keep it from being read are mended in place, then every object
is turned into its canonical tree by pure functions, and the text is edited until it reads as that tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from springtide.apis import registry
from springtide.apis.differences import differences
from springtide.apis.fields import View
from springtide.apis.kinds import Kind, Reading, Version
from springtide.apis.meta.mending import put
from springtide.apis.objects import head_of, members_of
from springtide.apis.problems import Path, Problem, format_path, warning
from springtide.apis.schema import Schema, schema_of
from springtide.apis.yaml import Document, Unreadable, comments, read, repair, rewrite


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed, and the line it was on."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text in canonical form, what was changed, and what could not be read and so stays as it was."""

    text: str
    changes: tuple[Change, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def canonical_text(text: str) -> Rewritten:
    """Rewrite every object of a text in its canonical form; everything else is left as it is."""
    repaired, repairs = repair(text)
    changes = [Change(made.position.line, made.done) for made in repairs]
    documents = read(repaired)
    # From the last to the first, so that the places of the earlier ones stay true.
    for document in reversed([document for document in documents if isinstance(document, Document)]):
        meant, found = _canonical_document(document)
        if meant == document.value:
            continue
        edited = _json_text(document.text, meant)
        if edited is None:
            edited, _ = rewrite(document.text, document.value, meant)
        end = document.offset + len(document.text)
        repaired = repaired[: document.offset] + edited + repaired[end:]
        changes += (*found, *_lost_comments(document, edited))
    unreadable = tuple(document for document in documents if isinstance(document, Unreadable))
    return Rewritten(repaired, tuple(sorted(changes, key=lambda change: change.line)), unreadable)


def _json_text(text: str, meant: Any) -> str | None:
    """Write a document as JSON, in the indentation it has, if that is what it is."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        json.loads(text)
    except ValueError:
        return None
    indentation = re.search(r'\n( +|\t+)"', text)
    indent = None if indentation is None else indentation[1]
    return json.dumps(meant, indent=indent, ensure_ascii=False) + text[len(text.rstrip()) :]


def _lost_comments(document: Document, edited: str) -> Iterator[Change]:
    """Tell which comments have gone with what they were about."""
    lines = document.text.splitlines()
    for comment in (comments(document.text) - comments(edited)).elements():
        line = next((number for number, line in enumerate(lines) if comment in line), 0)
        yield Change(document.segment.first_line + line, f"the comment `{comment}` has gone with what it was about")


def _canonical_document(document: Document) -> tuple[Any, list[Change]]:
    meant = document.value
    changes: list[Change] = []
    for root, value in members_of(document.value):
        if not isinstance(value, dict):
            continue
        reading = canonical(value)
        meant = put(meant, root, reading.value)
        changes += (
            Change(document.position((*root, *problem.path)).line, _message(problem)) for problem in reading.problems
        )
    return meant, changes


def _message(problem: Problem) -> str:
    place = format_path(problem.path)
    return problem.message if f"`{place}" in problem.message else f"{place} {problem.message}".lstrip()


def canonical(value: dict[str, Any]) -> Reading:
    """Turn an object into its canonical form: slips with one meaning, aliases, then the version that is stored."""
    value, problems = _mended_head(value)
    found = registry.find(head_of(value, "apiVersion"), head_of(value, "kind"))
    if found is None or found[0].builtin:
        return Reading(value, tuple(problems))
    kind, version = found
    value, renamed = _renamed_fields(value, version.view)
    problems += renamed
    for step in (registry.FIXES.get(kind.group), version.lenient):
        if step is not None:
            reading = step(value)
            value = reading.value
            problems += (problem for problem in reading.problems if problem not in problems)
    stored = next(candidate for candidate in kind.versions if candidate.storage)
    if version is not stored:
        written, value = value, _stored(value, kind, version, stored)
        problems.append(warning(("apiVersion",), f"was converted to {kind.api_version(stored)}"))
        moved = differences({**written, "apiVersion": ""}, {**value, "apiVersion": ""})
        problems += (warning(difference.path, difference.message) for difference in moved)
    return Reading(value, tuple(problems))


def _stored(value: dict[str, Any], kind: Kind, version: Version, stored: Version) -> dict[str, Any]:
    if version.to_storage is not None:
        return version.to_storage(value)
    return {**value, "apiVersion": kind.api_version(stored)}


def _mended_head(value: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Mend the names of the fields that say what an object is."""
    problems: list[Problem] = []
    for key in ("apiVersion", "kind"):
        slip = next((name for name in value if name != key and name.lower() == key.lower()), None)
        if slip is not None and key not in value:
            value = {key if name == slip else name: part for name, part in value.items()}
            problems.append(warning((slip,), f"`{slip}` is now `{key}`"))
    return value, problems


def _renamed_fields(value: dict[str, Any], view: type[View]) -> tuple[dict[str, Any], list[Problem]]:
    """Rename fields whose name differs from a known one only in case, or whose right name is declared."""
    problems: list[Problem] = []
    renamed = _rename(value, schema_of(view), (), problems)
    assert isinstance(renamed, dict)  # noqa: S101 - an object stays one
    return renamed, problems


def _rename(value: Any, schema: Schema, path: Path, problems: list[Problem]) -> Any:
    match value:
        case dict() if schema.fields:
            names = dict(_right_names(value, schema))
            problems += (warning((*path, old), f"`{old}` is now `{new}`") for old, new in names.items())
            renamed: dict[str, Any] = {}
            for name, part in value.items():
                right = str(names.get(name, name))
                field = schema.field(right)
                renamed[right] = part if field is None else _rename(part, field.schema, (*path, name), problems)
            return renamed
        case dict() if schema.items is not None:
            return {name: _rename(part, schema.items, (*path, name), problems) for name, part in value.items()}
        case list() if schema.items is not None:
            return [_rename(part, schema.items, (*path, i), problems) for i, part in enumerate(value)]
    return value


def _right_names(value: dict[str, Any], schema: Schema) -> Iterator[tuple[str, str]]:
    known = schema.known
    mistaken = schema.view.__mistaken__ if schema.view is not None else {}
    for name in value:
        if name in known:
            continue
        same = [other for other in known if other.lower() == name.lower()]
        declared = [other for other in known if mistaken.get(name) == f"write `{other}`"]
        for right in same or declared:
            if right not in value:
                yield name, right
                break
