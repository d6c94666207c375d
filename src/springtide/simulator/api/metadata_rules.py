"""What is wrong with the metadata of an object; almost the same for every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.metadata import FOREGROUND, ORPHAN
from springtide.simulator.api.names import (
    label_problem,
    label_value_problem,
    qualified_name_problems,
    subdomain_problem,
)

_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")

_MOST_ANNOTATION_BYTES = 256 * 1024

_NAMED_BY_LABELS = (("", "Namespace"), ("", "Service"))

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")

_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_FREE_FINALIZERS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
)
"""Groups of built-in kinds whose finalizers need no domain, just as those of custom kinds."""


def problems(metadata: Object, old: Object | None, kind: ServedKind) -> Iterator[Cause]:
    """Find what is wrong with metadata, given what it was before."""
    if old is None:
        name = metadata["name"]
        by_label = (kind.resource.group, kind.resource.kind) in _NAMED_BY_LABELS
        if problem := label_problem(name) if by_label else subdomain_problem(name):
            yield _invalid("metadata.name", name, problem)
        if problem and (prefix := metadata.get("generateName")):
            yield _invalid("metadata.generateName", prefix, problem)
    else:
        yield from _immutable(metadata, old)
    for key, value in metadata.get("labels", {}).items():
        yield from _misnamed("metadata.labels", key)
        if problem := label_value_problem(value):
            yield _invalid("metadata.labels", value, problem)
    yield from _annotation_problems(metadata.get("annotations", {}))
    if "finalizers" in metadata:
        yield from _finalizer_problems(metadata["finalizers"], kind, new=old is None)
    yield from _owner_problems(metadata.get("ownerReferences", ()))


def _immutable(metadata: Object, old: Object) -> Iterator[Cause]:
    for field in _IMMUTABLE:
        if metadata.get(field) != old.get(field):
            yield _invalid(f"metadata.{field}", metadata.get(field, ""), "field is immutable")
    if "deletionTimestamp" in old:
        before = old.get("finalizers", ())
        added = [finalizer for finalizer in metadata.get("finalizers", ()) if finalizer not in before]
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            yield Cause(
                "metadata.finalizers",
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}",
                "FieldValueForbidden",
            )


def _finalizer_problems(finalizers: list[str], kind: ServedKind, *, new: bool) -> Iterator[Cause]:
    if new:
        for finalizer in finalizers:
            yield from _misnamed("metadata.finalizers", finalizer)
        if ORPHAN in finalizers and FOREGROUND in finalizers:
            message = f"Invalid value: {_shown(finalizers)}: finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
            yield Cause("metadata.finalizers", message)
    if kind.strategic and kind.resource.group not in _FREE_FINALIZERS:
        for index, finalizer in enumerate(finalizers):
            if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
                problem = "name is neither a standard finalizer name nor is it fully qualified"
                yield _invalid(f"metadata.finalizers[{index}]", finalizer, problem)


def _annotation_problems(annotations: dict[str, str]) -> Iterator[Cause]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        yield from _misnamed("metadata.annotations", key, key.lower())
    if size > _MOST_ANNOTATION_BYTES:
        message = f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes"
        yield Cause("metadata.annotations", message, "FieldValueTooLong")


def _owner_problems(owners: Any) -> Iterator[Cause]:
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version.rpartition("/")[2] or version.count("/") > 1:
            yield _invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield _invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            shown = _shown(_ordered(owner))
            problem = "/v1, Kind=Event is disallowed from being an owner"
            yield Cause("metadata.ownerReferences", f"Invalid value: {shown}: {problem}")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                yield Cause(
                    "metadata.ownerReferences",
                    f"Invalid value: {_shown([_ordered(each) for each in owners])}: Only one reference can have "
                    f'Controller set to true. Found "true" in references for {controller} and {this}',
                )
            controller = controller or this


def _ordered(owner: Object) -> Object:
    """Bring the fields of a reference into the order in which messages show them."""
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _misnamed(field: str, name: str, judged: str | None = None) -> Iterator[Cause]:
    """Tell what is wrong with a qualified name, or with what it is judged as."""
    for problem in qualified_name_problems(name if judged is None else judged):
        yield _invalid(field, name, problem)


def _invalid(field: str, value: str | int, problem: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause(field, f"Invalid value: {shown}: {problem}")
