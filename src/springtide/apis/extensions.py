"""Extension fields on clusters where somebody else owns the CRD.

There they stand as a YAML document in one annotation and are merged into the spec before anything else looks at it.
"""

from __future__ import annotations

from typing import Any

from springtide.apis.problems import Path, Problem, error
from springtide.apis.yaml import Unreadable, read

ANNOTATION = "springtide.dev/extensions"
ANNOTATION_PATH: Path = ("metadata", "annotations", ANNOTATION)


def merge_extensions(value: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Merge the annotation of an object into its spec; the object itself is left as it is."""
    text = _annotation(value)
    if text is None:
        return value, []
    documents = read(text)
    if not documents:
        return value, []
    first = documents[0]
    if isinstance(first, Unreadable):
        problem = error(ANNOTATION_PATH, f"line {first.line} of the annotation: {first.message}", first.hint)
        return value, [problem]
    if len(documents) > 1 or not isinstance(first.value, dict):
        hint = "write the extension fields as they would stand under `spec`"
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
        merged = list(base)
        for entry in added:
            name = entry.get("name")
            position = positions.get(name) if isinstance(name, str) else None
            if position is None:
                names = ", ".join(positions)
                message = f"the annotation {ANNOTATION} extends an entry that does not exist: {name}"
                problems.append(error(path, message, f"the entries here are {names}"))
            else:
                merged[position] = _merge(base[position], entry, (*path, position), problems)
        return merged
    if len(base) != len(added):
        message = f"the annotation {ANNOTATION} has {len(added)} entries for a list of {len(base)}"
        problems.append(error(path, message, "give one entry for each, `{}` where nothing is extended"))
        return base
    return [_merge(one, other, (*path, i), problems) for i, (one, other) in enumerate(zip(base, added, strict=True))]
