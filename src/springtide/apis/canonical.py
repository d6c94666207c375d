"""The canonical form of manifests, which `springtide convert` writes.

The text changes as little as possible. YAML mistakes that prevent parsing are repaired in place, then pure functions
turn every object into its canonical tree, and the text is edited until it parses to that tree. The changes are
reported by line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from springtide.apis import scheme
from springtide.apis.kinds import Kind, KindVersion, NormalizedTree, View
from springtide.apis.local_times import with_offsets
from springtide.apis.meta.repair import TreeRepair, replace_at
from springtide.apis.objects import members_of, misspelled_key, type_field
from springtide.apis.problems import Path, Problem, format_path, original_path, warning
from springtide.apis.schema import ViewSchema, schema_of
from springtide.apis.yaml import Document, UnreadableDocument, comments, read, repair, rewrite, same

_SHORT = 40


class Difference(NamedTuple):
    """A difference between two trees, and its path in the old one."""

    path: Path
    message: str


def differences(old: Any, new: Any) -> list[Difference]:
    """List what was removed, added, changed or moved; a part that moved is listed once."""
    removed = dict(_missing(old, new, ()))
    added = dict(_missing(new, old, ()))
    found: list[Difference] = []
    for path, part in removed.items():
        place = next((other for other, there in added.items() if other[-1] == path[-1] and same(part, there)), None)
        if place is None:
            found.append(Difference(path, f"`{format_path(path)}` was removed"))
        else:
            del added[place]
            found.append(Difference(path, f"`{format_path(path)}` was moved to `{format_path(place)}`"))
    for path, part in added.items():
        shown = f": {part}" if isinstance(part, str | int | bool) and len(str(part)) <= _SHORT else ""
        found.append(Difference(path[:-1], f"`{format_path(path)}{shown}` was added"))
    found += (
        Difference(path, f"`{format_path(path)}` was {was}, is {now}") for path, was, now in _changed(old, new, ())
    )
    return found


def _missing(tree: Any, other: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the parts of a tree that another one does not have, each as a whole."""
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
    """A change of a manifest, and the line that it was on."""

    line: int
    message: str


def lost_comments(document: Document, edited: str) -> Iterator[ManifestChange]:
    """List comments that were removed with their field; one document may have become several."""
    left = Counter[str]()
    for written in read(edited):
        if isinstance(written, Document):
            left += comments(written.text)
    lines = document.text.splitlines()
    for comment in (comments(document.text) - left).elements():
        line = next((number for number, line in enumerate(lines) if comment in line), 0)
        yield ManifestChange(document.segment.first_line + line, f"the comment `{comment}` was removed with its field")


def json_indentation(text: str) -> str | None:
    """Return the indentation of JSON, empty if it is on one line; None for YAML."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        json.loads(text)
    except ValueError:
        return None
    indentation = re.search(r'\n( +|\t+)"', text)
    return "" if indentation is None else indentation[1]


def format_json(value: Any, indentation: str, before: str) -> str:
    """Format a value as JSON that ends with the same white space as the text before."""
    return json.dumps(value, indent=indentation or None, ensure_ascii=False) + before[len(before.rstrip()) :]


@dataclass(frozen=True, slots=True)
class RewrittenManifest:
    """A text in canonical form, the changes made, and the documents left alone because they cannot be parsed."""

    text: str
    changes: tuple[ManifestChange, ...] = ()
    unreadable: tuple[UnreadableDocument, ...] = ()


def canonical_text(text: str, default_zone: str = "UTC") -> RewrittenManifest:
    """Rewrite every object of a text in its canonical form; all other text stays as it is.

    `default_zone` is the zone of times without an offset in objects that name none.
    """
    repaired, repairs = repair(text)
    changes = [ManifestChange(made.position.line, made.done) for made in repairs]
    documents = read(repaired)
    # From last to first, so that the offsets of earlier documents stay valid.
    for document in reversed([document for document in documents if isinstance(document, Document)]):
        normalized_tree, found = _canonical_document(document, default_zone)
        if normalized_tree == document.value:
            continue
        indentation = json_indentation(document.text)
        if indentation is None:
            edited, _ = rewrite(document.text, document.value, normalized_tree)
        else:
            edited = format_json(normalized_tree, indentation, document.text)
        end = document.offset + len(document.text)
        repaired = repaired[: document.offset] + edited + repaired[end:]
        changes += (*found, *lost_comments(document, edited))
    unreadable = tuple(document for document in documents if isinstance(document, UnreadableDocument))
    return RewrittenManifest(repaired, tuple(sorted(changes, key=lambda change: change.line)), unreadable)


def _canonical_document(document: Document, default_zone: str) -> tuple[Any, list[ManifestChange]]:
    normalized_tree = document.value
    changes: list[ManifestChange] = []
    for root, value in members_of(document.value):
        if not isinstance(value, dict):
            continue
        normalized = canonical(value, default_zone)
        normalized_tree = replace_at(normalized_tree, root, normalized.value)
        changes += (
            ManifestChange(document.position((*root, *problem.path)).line, _message(problem))
            for problem in normalized.problems
        )
    return normalized_tree, changes


def _message(problem: Problem) -> str:
    place = format_path(problem.path)
    return problem.message if f"`{place}" in problem.message else f"{place}: {problem.message}".removeprefix(": ")


def canonical(value: dict[str, Any], default_zone: str = "UTC") -> NormalizedTree:
    """Turn an object into its canonical form: repairs, aliases, offsets of times, then the storage version."""
    work = _NormalizationSteps(value)
    work.apply(_repair_type_fields)
    found = scheme.find_kind(type_field(work.value, "apiVersion"), type_field(work.value, "kind"))
    if found is None or found[0].builtin:
        return work.result()
    kind, version = found
    work.apply(lambda tree: _repair_field_names(tree, version.view))
    for step in (scheme.REPAIRS.get(kind.group), version.normalizer):
        if step is not None:
            work.apply(step)
    work.apply(lambda tree: with_offsets(tree, version.view, default_zone))
    stored = next(candidate for candidate in kind.versions if candidate.storage)
    if version is not stored:
        work.apply(lambda tree: _stored(tree, kind, version, stored))
    return work.result()


class _NormalizationSteps:
    """Applies several steps to an object and collects their problems, at the paths that the user wrote."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self._problems: list[Problem] = []
        self._moves: list[dict[Path, Path]] = []

    def apply(self, step: Callable[[dict[str, Any]], NormalizedTree]) -> None:
        """Apply one step."""
        outcome = step(self.value)
        for problem in outcome.problems:
            placed = msgspec.structs.replace(problem, path=self._written(problem.path))
            if placed not in self._problems:
                self._problems.append(placed)
        self.value = outcome.value
        self._moves.append(outcome.origins)

    def result(self) -> NormalizedTree:
        """Return the object as it is now, and all problems."""
        return NormalizedTree(self.value, tuple(self._problems))

    def _written(self, path: Path) -> Path:
        for origins in reversed(self._moves):
            path = original_path(path, origins)
        return path


def _stored(value: dict[str, Any], kind: Kind, version: KindVersion, stored: KindVersion) -> NormalizedTree:
    """Convert an object to the storage version, and warn of every field that this moves, adds or removes."""
    api_version = kind.api_version(stored)
    made = version.to_storage(value) if version.to_storage is not None else {**value, "apiVersion": api_version}
    moved = differences({**value, "apiVersion": ""}, {**made, "apiVersion": ""})
    warnings = (warning(difference.path, difference.message) for difference in moved)
    return NormalizedTree(made, (warning(("apiVersion",), f"was converted to {api_version}"), *warnings))


def _repair_type_fields(value: dict[str, Any]) -> NormalizedTree:
    """Repair misspelt `apiVersion` and `kind` keys."""
    repair = TreeRepair(value)
    for key in ("apiVersion", "kind"):
        misspelt = misspelled_key(key, repair.value) if key not in repair.value else None
        if misspelt is not None:
            repair.rename((), misspelt, key, f"`{misspelt}` is now `{key}`")
    return repair.result()


def _repair_field_names(value: dict[str, Any], view: type[View]) -> NormalizedTree:
    """Rename fields whose name differs from a known one only in case, or whose right name is declared."""
    repair = TreeRepair(value)
    _rename(repair, value, schema_of(view), ())
    return repair.result()


def _rename(repair: TreeRepair, value: Any, schema: ViewSchema, path: Path) -> None:
    match value:
        case dict() if schema.fields:
            names = dict(_right_names(value, schema))
            for old, new in names.items():
                repair.rename(path, old, new, f"`{old}` is now `{new}`")
            for name, part in value.items():
                right = str(names.get(name, name))
                if (field := schema.field(right)) is not None:
                    _rename(repair, part, field.schema, (*path, right))
        case dict() if schema.items is not None:
            for name, part in value.items():
                _rename(repair, part, schema.items, (*path, name))
        case list() if schema.items is not None:
            for position, part in enumerate(value):
                _rename(repair, part, schema.items, (*path, position))


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
