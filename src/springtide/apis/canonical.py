"""What changed between two trees, in words: for people whose manifests were rewritten.

Editing a text of manifests: what was changed, told by lines, and the form that the text had before.

The canonical form of manifests: what `springtide convert` writes.

The text is changed as little as possible: slips that keep it from being read are mended in place, then every object
is turned into its canonical tree by pure functions, and the text is edited until it reads as that tree.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from springtide.apis import scheme as registry
from springtide.apis.kinds import Kind, KindVersion, NormalizedTree, View
from springtide.apis.meta.repair import TreeRepair, replace_at
from springtide.apis.objects import members_of, misspelled_key, type_field
from springtide.apis.problems import Path, Problem, format_path, original_path, warning
from springtide.apis.schema import ViewSchema, schema_of
from springtide.apis.yaml import Document, UnreadableDocument, comments, read, repair, rewrite, same

_SHORT = 40


class Difference(NamedTuple):
    """Something that changed, and the place in the old tree where it shows."""

    path: Path
    message: str


def differences(old: Any, new: Any) -> list[Difference]:
    """Tell what is gone, new, changed or somewhere else; what moved is told once."""
    gone = dict(_missing(old, new, ()))
    come = dict(_missing(new, old, ()))
    found: list[Difference] = []
    for path, part in gone.items():
        place = next((other for other, there in come.items() if other[-1] == path[-1] and same(part, there)), None)
        if place is None:
            found.append(Difference(path, f"`{format_path(path)}` was removed"))
        else:
            del come[place]
            found.append(Difference(path, f"`{format_path(path)}` was moved to `{format_path(place)}`"))
    for path, part in come.items():
        shown = f": {part}" if isinstance(part, str | int | bool) and len(str(part)) <= _SHORT else ""
        found.append(Difference(path[:-1], f"`{format_path(path)}{shown}` was added"))
    found += (
        Difference(path, f"`{format_path(path)}` was {was}, is {now}") for path, was, now in _changed(old, new, ())
    )
    return found


def _missing(tree: Any, other: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Give the parts of a tree that another one does not have, each as a whole."""
    if isinstance(tree, dict) and isinstance(other, dict):
        for key, part in tree.items():
            if key in other:
                yield from _missing(part, other[key], (*path, key))
            else:
                yield (*path, key), part
    elif isinstance(tree, list) and isinstance(other, list):
        for position, part in enumerate(tree):
            if position < len(other):
                yield from _missing(part, other[position], (*path, position))
            else:
                yield (*path, position), part


def _changed(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key, part in old.items():
            if key in new:
                yield from _changed(part, new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for position, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _changed(one, other, (*path, position))
    elif not same(old, new):
        yield path, old, new


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """Something that was changed, and the line it was on."""

    line: int
    message: str


def lost_comments(document: Document, edited: str) -> Iterator[ManifestChange]:
    """Tell which comments have gone with what they were about; one document may have become several."""
    left = Counter[str]()
    for written in read(edited):
        if isinstance(written, Document):
            left += comments(written.text)
    lines = document.text.splitlines()
    for comment in (comments(document.text) - left).elements():
        line = next((number for number, line in enumerate(lines) if comment in line), 0)
        yield ManifestChange(
            document.segment.first_line + line, f"the comment `{comment}` has gone with what it was about"
        )


def json_indentation(text: str) -> str | None:
    """Give the indentation of a text that is JSON, an empty one where all stands on a line; None for YAML."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        json.loads(text)
    except ValueError:
        return None
    indentation = re.search(r'\n( +|\t+)"', text)
    return "" if indentation is None else indentation[1]


def format_json(value: Any, indentation: str, before: str) -> str:
    """Write a value as JSON in place of a text, which it ends like."""
    return json.dumps(value, indent=indentation or None, ensure_ascii=False) + before[len(before.rstrip()) :]


@dataclass(frozen=True, slots=True)
class RewrittenManifest:
    """A text in canonical form, what was changed, and what could not be read and so stays as it was."""

    text: str
    changes: tuple[ManifestChange, ...] = ()
    unreadable: tuple[UnreadableDocument, ...] = ()


def canonical_text(text: str) -> RewrittenManifest:
    """Rewrite every object of a text in its canonical form; everything else is left as it is."""
    repaired, repairs = repair(text)
    changes = [ManifestChange(made.position.line, made.done) for made in repairs]
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
            edited = format_json(meant, indentation, document.text)
        end = document.offset + len(document.text)
        repaired = repaired[: document.offset] + edited + repaired[end:]
        changes += (*found, *lost_comments(document, edited))
    unreadable = tuple(document for document in documents if isinstance(document, UnreadableDocument))
    return RewrittenManifest(repaired, tuple(sorted(changes, key=lambda change: change.line)), unreadable)


def _canonical_document(document: Document) -> tuple[Any, list[ManifestChange]]:
    meant = document.value
    changes: list[ManifestChange] = []
    for root, value in members_of(document.value):
        if not isinstance(value, dict):
            continue
        reading = canonical(value)
        meant = replace_at(meant, root, reading.value)
        changes += (
            ManifestChange(document.position((*root, *problem.path)).line, _message(problem))
            for problem in reading.problems
        )
    return meant, changes


def _message(problem: Problem) -> str:
    place = format_path(problem.path)
    return problem.message if f"`{place}" in problem.message else f"{place}: {problem.message}".removeprefix(": ")


def canonical(value: dict[str, Any]) -> NormalizedTree:
    """Turn an object into its canonical form: slips with one meaning, aliases, then the version that is stored."""
    work = _NormalizationSteps(value)
    work.take(_repair_type_fields)
    found = registry.find_kind(type_field(work.value, "apiVersion"), type_field(work.value, "kind"))
    if found is None or found[0].builtin:
        return work.reading()
    kind, version = found
    work.take(lambda tree: _repair_field_names(tree, version.view))
    for step in (registry.REPAIRS.get(kind.group), version.lenient):
        if step is not None:
            work.take(step)
    stored = next(candidate for candidate in kind.versions if candidate.storage)
    if version is not stored:
        work.take(lambda tree: _stored(tree, kind, version, stored))
    return work.reading()


class _NormalizationSteps:
    """An object on its way through several steps, and what they say about it, in terms of what its author wrote."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self._problems: list[Problem] = []
        self._moves: list[dict[Path, Path]] = []

    def take(self, step: Callable[[dict[str, Any]], NormalizedTree]) -> None:
        """Take one step."""
        reading = step(self.value)
        for problem in reading.problems:
            placed = msgspec.structs.replace(problem, path=self._written(problem.path))
            if placed not in self._problems:
                self._problems.append(placed)
        self.value = reading.value
        self._moves.append(reading.origins)

    def reading(self) -> NormalizedTree:
        """Give the object as it is now, and all that was said."""
        return NormalizedTree(self.value, tuple(self._problems))

    def _written(self, path: Path) -> Path:
        for origins in reversed(self._moves):
            path = original_path(path, origins)
        return path


def _stored(value: dict[str, Any], kind: Kind, version: KindVersion, stored: KindVersion) -> NormalizedTree:
    """Convert an object to the version that is stored, and tell what that moves, adds and removes."""
    api_version = kind.api_version(stored)
    made = version.to_storage(value) if version.to_storage is not None else {**value, "apiVersion": api_version}
    moved = differences({**value, "apiVersion": ""}, {**made, "apiVersion": ""})
    told = (warning(difference.path, difference.message) for difference in moved)
    return NormalizedTree(made, (warning(("apiVersion",), f"was converted to {api_version}"), *told))


def _repair_type_fields(value: dict[str, Any]) -> NormalizedTree:
    """Mend the names of the fields that say what an object is."""
    mending = TreeRepair(value)
    for key in ("apiVersion", "kind"):
        slip = misspelled_key(key, mending.value) if key not in mending.value else None
        if slip is not None:
            mending.rename((), slip, key, f"`{slip}` is now `{key}`")
    return mending.reading()


def _repair_field_names(value: dict[str, Any], view: type[View]) -> NormalizedTree:
    """Rename fields whose name differs from a known one only in case, or whose right name is declared."""
    mending = TreeRepair(value)
    _rename(mending, value, schema_of(view), ())
    return mending.reading()


def _rename(mending: TreeRepair, value: Any, schema: ViewSchema, path: Path) -> None:
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


def _right_names(value: dict[str, Any], schema: ViewSchema) -> Iterator[tuple[str, str]]:
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
