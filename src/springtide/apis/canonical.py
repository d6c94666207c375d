"""The canonical form of manifests: what `springtide convert` writes.

The text is changed as little as possible: slips that keep it from being read are mended in place, then every object
is turned into its canonical tree by pure functions, and the text is edited until it reads as that tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis import registry
from springtide.apis.differences import differences
from springtide.apis.edits import Change, as_json, json_indentation, lost_comments
from springtide.apis.fields import View
from springtide.apis.kinds import Kind, Reading, Version
from springtide.apis.meta.mending import Mending, put
from springtide.apis.objects import head_of, members_of, slip_of
from springtide.apis.problems import Path, Problem, earlier_path, format_path, warning
from springtide.apis.schema import Schema, schema_of
from springtide.apis.yaml import Document, Unreadable, read, repair, rewrite


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
        indentation = json_indentation(document.text)
        if indentation is None:
            edited, _ = rewrite(document.text, document.value, meant)
        else:
            edited = as_json(meant, indentation, document.text)
        end = document.offset + len(document.text)
        repaired = repaired[: document.offset] + edited + repaired[end:]
        changes += (*found, *lost_comments(document, edited))
    unreadable = tuple(document for document in documents if isinstance(document, Unreadable))
    return Rewritten(repaired, tuple(sorted(changes, key=lambda change: change.line)), unreadable)


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
    work = _Rewriting(value)
    work.take(_mended_head)
    found = registry.find(head_of(work.value, "apiVersion"), head_of(work.value, "kind"))
    if found is None or found[0].builtin:
        return work.reading()
    kind, version = found
    work.take(lambda tree: _renamed_fields(tree, version.view))
    for step in (registry.FIXES.get(kind.group), version.lenient):
        if step is not None:
            work.take(step)
    stored = next(candidate for candidate in kind.versions if candidate.storage)
    if version is not stored:
        work.take(lambda tree: _stored(tree, kind, version, stored))
    return work.reading()


class _Rewriting:
    """An object on its way through several steps, and what they say about it, in terms of what its author wrote."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self._problems: list[Problem] = []
        self._moves: list[dict[Path, Path]] = []

    def take(self, step: Callable[[dict[str, Any]], Reading]) -> None:
        """Take one step."""
        reading = step(self.value)
        for problem in reading.problems:
            placed = msgspec.structs.replace(problem, path=self._written(problem.path))
            if placed not in self._problems:
                self._problems.append(placed)
        self.value = reading.value
        self._moves.append(reading.origins)

    def reading(self) -> Reading:
        """Give the object as it is now, and all that was said."""
        return Reading(self.value, tuple(self._problems))

    def _written(self, path: Path) -> Path:
        for origins in reversed(self._moves):
            path = earlier_path(path, origins)
        return path


def _stored(value: dict[str, Any], kind: Kind, version: Version, stored: Version) -> Reading:
    """Convert an object to the version that is stored, and tell what that moves, adds and removes."""
    api_version = kind.api_version(stored)
    made = version.to_storage(value) if version.to_storage is not None else {**value, "apiVersion": api_version}
    moved = differences({**value, "apiVersion": ""}, {**made, "apiVersion": ""})
    told = (warning(difference.path, difference.message) for difference in moved)
    return Reading(made, (warning(("apiVersion",), f"was converted to {api_version}"), *told))


def _mended_head(value: dict[str, Any]) -> Reading:
    """Mend the names of the fields that say what an object is."""
    mending = Mending(value)
    for key in ("apiVersion", "kind"):
        slip = slip_of(key, mending.value) if key not in mending.value else None
        if slip is not None:
            mending.rename((), slip, key, f"`{slip}` is now `{key}`")
    return mending.reading()


def _renamed_fields(value: dict[str, Any], view: type[View]) -> Reading:
    """Rename fields whose name differs from a known one only in case, or whose right name is declared."""
    mending = Mending(value)
    _rename(mending, value, schema_of(view), ())
    return mending.reading()


def _rename(mending: Mending, value: Any, schema: Schema, path: Path) -> None:
    match value:
        case dict() if schema.fields:
            names = dict(_right_names(value, schema))
            for old, new in names.items():
                mending.rename(path, old, new, f"`{old}` is now `{new}`")
            for name, part in value.items():
                right = str(names.get(name, name))
                if (field := schema.field(right)) is not None:
                    _rename(mending, part, field.schema, (*path, right))
        case dict() if schema.items is not None:
            for name, part in value.items():
                _rename(mending, part, schema.items, (*path, name))
        case list() if schema.items is not None:
            for position, part in enumerate(value):
                _rename(mending, part, schema.items, (*path, position))


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
