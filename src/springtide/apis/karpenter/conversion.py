"""NodePool and NodeClaim from `karpenter.sh/v1beta1` to `v1` and back, losing nothing.

Each direction is a plain translation of what the target version can say. What it cannot say is found by translating
back and comparing: every difference is noted in an annotation of the result, with what the translation gives there
and what stood there before. The way back translates and then restores the noted parts, as long as they are what the
translation gave: if a user edited the object in between, the edit wins.

The functions work on plain trees, keep what they do not know, and never raise.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from springtide.apis.problems import Path

Tree: TypeAlias = dict[str, Any]

V1 = "karpenter.sh/v1"
V1BETA1 = "karpenter.sh/v1beta1"
V1BETA1_FIELDS = "springtide.dev/v1beta1-fields"
"""The annotation of a v1 object that keeps what only v1beta1 can say."""
V1_FIELDS = "springtide.dev/v1-fields"
"""The annotation of a v1beta1 object that keeps what only v1 can say."""

_POLICIES_UP = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
_POLICIES_DOWN = {"WhenEmptyOrUnderutilized": "WhenUnderutilized", "Balanced": "WhenUnderutilized"}
_NODE_CLASS_VERSIONS = {"springtide.dev": "v1alpha1"}

_ABSENT: Any = object()


def to_v1(value: Tree) -> Tree:
    """Convert a v1beta1 object to v1."""
    return _convert(value, _up, _down, restore_from=V1_FIELDS, note_in=V1BETA1_FIELDS)


def to_v1beta1(value: Tree) -> Tree:
    """Convert a v1 object to v1beta1."""
    return _convert(value, _down, _up, restore_from=V1BETA1_FIELDS, note_in=V1_FIELDS)


def _convert(
    value: Tree,
    there: Callable[[Tree], Tree],
    back: Callable[[Tree], Tree],
    *,
    restore_from: str,
    note_in: str,
) -> Tree:
    source, noted = _without_notes(value, restore_from)
    converted = there(source)
    _restore(converted, noted)
    differences = list(_differences(back(_tidy(converted)), source, ()))
    return _with_notes(converted, note_in, differences)


# Translation


def _up(value: Tree) -> Tree:
    made = copy.deepcopy(value)
    if made.get("apiVersion") == V1BETA1:
        made["apiVersion"] = V1
    spec = made.get("spec")
    if not isinstance(spec, dict):
        return made
    if made.get("kind") == "NodeClaim":
        _claim_up(spec)
        return made
    disruption = spec.get("disruption")
    if disruption is None:
        disruption = spec["disruption"] = {}
    if isinstance(disruption, dict):
        _disruption_up(disruption)
        _move_expiry_up(spec, disruption)
    if isinstance(template_spec := _inner(spec, "template", "spec"), dict):
        _claim_up(template_spec)
    return made


def _down(value: Tree) -> Tree:
    made = copy.deepcopy(value)
    if made.get("apiVersion") == V1:
        made["apiVersion"] = V1BETA1
    spec = made.get("spec")
    if not isinstance(spec, dict):
        return made
    if made.get("kind") == "NodeClaim":
        _claim_down(spec)
        return made
    disruption = spec.get("disruption")
    if disruption is None:
        disruption = spec["disruption"] = {}
    if isinstance(disruption, dict):
        _disruption_down(disruption)
        template_spec = _inner(spec, "template", "spec")
        if isinstance(template_spec, dict) and "expireAfter" in template_spec:
            disruption["expireAfter"] = template_spec.pop("expireAfter")
        if not disruption:
            del spec["disruption"]
    if isinstance(template_spec := _inner(spec, "template", "spec"), dict):
        _claim_down(template_spec)
    return made


def _disruption_up(disruption: Tree) -> None:
    disruption.setdefault("budgetDefault", "Fallback")
    disruption.setdefault("expirationPolicy", "Graceful")
    _replace(disruption, "consolidationPolicy", _POLICIES_UP)
    budgets = disruption.get("budgets")
    for budget in budgets if isinstance(budgets, list) else ():
        if isinstance(budget, dict) and "schedule" in budget and "duration" not in budget:
            # Always active in v1beta1, rejected in v1.
            del budget["schedule"]
            budget.pop("timeZone", None)


def _disruption_down(disruption: Tree) -> None:
    for name, here, there in (("budgetDefault", "Floor", "Fallback"), ("expirationPolicy", "Forceful", "Graceful")):
        if disruption.setdefault(name, here) == there:
            del disruption[name]
    _replace(disruption, "consolidationPolicy", _POLICIES_DOWN)


def _move_expiry_up(spec: Tree, disruption: Tree) -> None:
    if "expireAfter" not in disruption:
        return
    inner = spec
    for step in ("template", "spec"):
        inner = inner.setdefault(step, {})
        if not isinstance(inner, dict):
            return
    inner["expireAfter"] = disruption.pop("expireAfter")


def _claim_up(spec: Tree) -> None:
    spec.pop("kubelet", None)
    reference = spec.get("nodeClassRef")
    if not isinstance(reference, dict) or "group" in reference:
        return
    group, slash, _ = _text(reference.get("apiVersion")).rpartition("/")
    if slash:
        spec["nodeClassRef"] = {
            "group" if key == "apiVersion" else key: group if key == "apiVersion" else part
            for key, part in reference.items()
        }


def _claim_down(spec: Tree) -> None:
    reference = spec.get("nodeClassRef")
    if not isinstance(reference, dict) or "apiVersion" in reference or not _text(reference.get("group")):
        return
    group = reference["group"]
    version = f"{group}/{_NODE_CLASS_VERSIONS.get(group, 'v1beta1')}"
    spec["nodeClassRef"] = {
        "apiVersion" if key == "group" else key: version if key == "group" else part for key, part in reference.items()
    }


def _replace(tree: Tree, key: str, values: dict[str, str]) -> None:
    if isinstance(given := tree.get(key), str) and given in values:
        tree[key] = values[given]


def _inner(tree: Any, *steps: str) -> Any:
    for step in steps:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# Round-trip annotations: fields that the target version does not have


class _Note(NamedTuple):
    """A path of the source object: the value after translating back, and the original value."""

    path: Path
    given: Any
    stood: Any


def _differences(given: Any, stood: Any, path: Path) -> Iterator[_Note]:
    """Compare two trees; list entries are compared as a whole, so that a note never mixes two of them."""
    if isinstance(given, dict) and isinstance(stood, dict):
        for key in sorted(given.keys() | stood.keys()):
            yield from _differences(given.get(key, _ABSENT), stood.get(key, _ABSENT), (*path, key))
    elif isinstance(given, list) and isinstance(stood, list) and len(given) == len(stood):
        for position, (one, other) in enumerate(zip(given, stood, strict=True)):
            if not _same(one, other):
                yield _Note((*path, position), one, other)
    elif not _same(given, stood):
        yield _Note(path, given, stood)


def _restore(tree: Tree, notes: list[_Note]) -> None:
    for note in notes:
        parent: Any = tree
        for step in note.path[:-1]:
            parent = _at(parent, step)
        last = note.path[-1]
        if not _same(_at(parent, last), note.given):
            continue
        if note.stood is _ABSENT:
            if isinstance(parent, dict):
                parent.pop(last, None)
        elif isinstance(parent, dict) or (isinstance(parent, list) and isinstance(last, int)):
            parent[last] = copy.deepcopy(note.stood)  # type: ignore[index]


def _at(tree: Any, step: str | int) -> Any:
    if isinstance(tree, dict):
        return tree.get(step, _ABSENT)
    if isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree):
        return tree[step]
    return _ABSENT


def _same(one: Any, other: Any) -> bool:
    if one is _ABSENT or other is _ABSENT:
        return one is other
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def _with_notes(value: Tree, annotation: str, notes: list[_Note]) -> Tree:
    if not notes:
        return value
    metadata = _opened(value, "metadata")
    annotations = _opened(metadata, "annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        annotations[annotation] = _canonical([_written(note) for note in notes])
    return value


def _opened(tree: Tree, key: str) -> Any:
    """Return a part of a tree to write into; a missing part or null is created empty."""
    if tree.get(key) is None:
        tree[key] = {}
    return tree[key]


def _written(note: _Note) -> Tree:
    parts = {"path": list(note.path), "given": note.given, "stood": note.stood}
    return {key: part for key, part in parts.items() if part is not _ABSENT}


def _without_notes(value: Tree, annotation: str) -> tuple[Tree, list[_Note]]:
    """Remove the annotation from a copy of an object, and parse it; one in another format is kept."""
    text = _inner(value, "metadata", "annotations", annotation)
    notes = _read_notes(text) if isinstance(text, str) else None
    if notes is None:
        return copy.deepcopy(value), []
    left = copy.deepcopy(value)
    del left["metadata"]["annotations"][annotation]
    return _tidy(left), notes


def _read_notes(text: str) -> list[_Note] | None:
    try:
        notes = [
            _Note(tuple(entry["path"]), entry.get("given", _ABSENT), entry.get("stood", _ABSENT))
            for entry in json.loads(text)
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    legible = all(note.path and all(isinstance(step, str | int) for step in note.path) for note in notes)
    return notes if notes and legible else None


def _tidy(value: Tree) -> Tree:
    """Remove empty annotations and metadata, which removing an annotation may leave."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return value
    tidied = {key: part for key, part in metadata.items() if key != "annotations" or part != {}}
    return {**value, "metadata": tidied} if tidied else {k: v for k, v in value.items() if k != "metadata"}
