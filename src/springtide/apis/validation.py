"""Validation of one object: extension fields are merged, aliases resolved, and all problems found.

On clusters where another project owns the CRD, extension fields are a YAML document in one annotation, which is merged
into the spec first. Validation needs only the tree of the object; for a manifest, `springtide.apis.objects` adds
positions in the text, while the admission webhook shows the same problems without positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from springtide.apis.kinds import Kind, KindVersion, ValidationContext, View
from springtide.apis.local_times import with_offsets
from springtide.apis.problems import Path, Problem, error, original_path, warning
from springtide.apis.structural_validation import check_structure, shorten
from springtide.apis.yaml import UnreadableDocument, read

ANNOTATION = "springtide.dev/extensions"
MAX_ANNOTATION = 64 * 1024
"""The maximum length of the annotation; the whole spec of an object with the most extension fields needs less."""
ANNOTATION_PATH: Path = ("metadata", "annotations", ANNOTATION)


def merge_extensions(value: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Merge the annotation of an object into a copy of its spec."""
    text = _annotation(value)
    if text is None:
        return value, []
    if len(text) > MAX_ANNOTATION:
        message = f"the annotation must have at most {MAX_ANNOTATION} characters, has {len(text)}"
        return value, [error(ANNOTATION_PATH, message, "split the object")]
    documents = read(text)
    if not documents:
        return value, []
    first = documents[0]
    if isinstance(first, UnreadableDocument):
        problem = error(ANNOTATION_PATH, f"line {first.line} of the annotation: {first.message}", first.hint)
        return value, [problem]
    if len(documents) > 1 or not isinstance(first.value, dict):
        hint = "write the extension fields as they would be under `spec`"
        return value, [error(ANNOTATION_PATH, "the annotation must hold one YAML mapping", hint)]
    spec = value.get("spec")
    problems: list[Problem] = []
    merged = _merge(spec if isinstance(spec, dict) else {}, first.value, ("spec",), problems)
    return {**value, "spec": merged}, problems


def _annotation(value: dict[str, Any]) -> str | None:
    node: Any = value
    for step in ANNOTATION_PATH:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, str) else None


_MOST_NAMES = 20
_MOST_SHOWN = 400
"""How many entries of a list, and characters of their names, a hint shows."""


def _merge(base: Any, added: Any, path: Path, problems: list[Problem]) -> Any:
    if isinstance(base, dict) and isinstance(added, dict):
        merged = dict(base)
        for key, value in added.items():
            merged[key] = _merge(base[key], value, (*path, key), problems) if key in base else value
        return merged
    if isinstance(base, list) and isinstance(added, list):
        return _merge_lists(base, added, path, problems)
    return added


def _merge_lists(base: list[Any], added: list[Any], path: Path, problems: list[Problem]) -> list[Any]:
    if not all(isinstance(entry, dict) for entry in (*base, *added)):
        return added
    if base and all(isinstance(entry.get("name"), str) for entry in base):
        positions = {entry["name"]: position for position, entry in enumerate(base)}
        names = shorten(", ".join(islice(positions, _MOST_NAMES)), _MOST_SHOWN)
        merged = list(base)
        for entry in added:
            name = entry.get("name")
            position = positions.get(name) if isinstance(name, str) else None
            if position is None:
                message = f"the annotation {ANNOTATION} extends an entry that does not exist: {shorten(name)}"
                problems.append(error(path, message, f"the entries here are {names}"))
            else:
                merged[position] = _merge(base[position], entry, (*path, position), problems)
        return merged
    if len(base) != len(added):
        message = f"the annotation {ANNOTATION} has {len(added)} entries for a list of {len(base)}"
        problems.append(error(path, message, "give one entry for each, `{}` where nothing is extended"))
        return base
    return [_merge(one, other, (*path, i), problems) for i, (one, other) in enumerate(zip(base, added, strict=True))]


@dataclass(frozen=True, slots=True)
class ValidatedTree:
    """The canonical tree, the view and the problems of an object of a known kind."""

    value: dict[str, Any]
    """The canonical tree: extensions merged, aliases resolved."""
    view: View | None
    """The typed view; None if the structure does not allow one."""
    problems: tuple[Problem, ...]
    """All problems, at the paths that the user wrote."""
    origins: dict[Path, Path]
    """The original paths of moved parts of the canonical tree."""


def validate_object(
    value: dict[str, Any], kind: Kind, version: KindVersion, context: ValidationContext
) -> ValidatedTree:
    """Validate an object; the given tree is not changed."""
    canonical, problems = merge_extensions(value)
    origins: dict[Path, Path] = {}
    if version.normalizer is not None:
        normalized = version.normalizer(canonical)
        canonical, origins = normalized.value, normalized.origins
        problems += normalized.problems
    completed = with_offsets(canonical, version.view, context.default_zone)
    canonical = completed.value
    problems += (
        msgspec.structs.replace(problem, path=original_path(problem.path, origins)) for problem in completed.problems
    )
    checked = check_structure(canonical, version.view, context, foreign=kind.builtin)
    problems += (
        msgspec.structs.replace(problem, path=original_path(problem.path, origins))
        for problem in (*checked.problems, *_metadata_problems(canonical, kind))
    )
    misspelt = {right: original_path(wrong, origins) for right, wrong in checked.misspelt.items()}
    return ValidatedTree(checked.value, checked.view, tuple(problems), {**origins, **misspelt})


def _metadata_problems(value: dict[str, Any], kind: Kind) -> Iterator[Problem]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return
    if metadata.get("name") is None and metadata.get("generateName") is None:
        yield error(("metadata", "name"), "is missing", "every object needs a name")
    if kind.scope == "Cluster" and metadata.get("namespace") is not None:
        hint = "remove `metadata.namespace`"
        yield warning(("metadata", "namespace"), f"{kind.kind} objects have no namespace: this is ignored", hint)
