"""The rules of `metadata`, which are the same for every kind.

All functions are pure: they take the metadata that somebody wants and that which was, and give the metadata that will
be, or what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from springtide.cluster.errors import BadRequest, Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.names import (
    label_problem,
    label_value_problem,
    qualified_name_problem,
    service_name_problem,
    subdomain_problem,
)

ORPHAN = "orphan"
"""The finalizer under which the garbage collector makes dependents forget their owner."""
FOREGROUND = "foregroundDeletion"
"""The finalizer under which the garbage collector deletes dependents before their owner."""

_FIELDS: dict[str, type] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "generation": int,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "deletionGracePeriodSeconds": int,
    "labels": dict,
    "annotations": dict,
    "ownerReferences": list,
    "finalizers": list,
    "managedFields": list,
}
_EMPTY: tuple[Any, ...] = (None, "", {}, [])
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_FROM_OLD = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_STATUS_KEEPS_FROM_NEW = ("managedFields", "resourceVersion")

_MOST_ANNOTATION_BYTES = 256 * 1024

_NAME_PROBLEM: dict[tuple[str, str], Callable[[str], str]] = {
    ("", "Namespace"): label_problem,
    ("", "Service"): service_name_problem,
}


def tidied(metadata: Any) -> Object:
    """Give metadata with the fields that exist, without those that say nothing; types that are wrong are refused."""
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"metadata is {_shown(metadata)}, expected an object")
    tidy: Object = {}
    for name, value in metadata.items():
        expected = _FIELDS.get(name)
        if expected is None or value in _EMPTY:
            continue
        if type(value) is not expected:
            raise BadRequest(f"metadata.{name} is {_shown(value)}, expected {expected.__name__}")
        tidy[name] = value
    for name in ("labels", "annotations"):
        for key, value in tidy.get(name, {}).items():
            if type(value) is not str:
                raise BadRequest(f"metadata.{name}.{key} is {_shown(value)}, expected a string")
    if any(type(finalizer) is not str for finalizer in tidy.get("finalizers", ())):
        raise BadRequest("metadata.finalizers: expected strings")
    if any(type(owner) is not dict for owner in tidy.get("ownerReferences", ())):
        raise BadRequest("metadata.ownerReferences: expected objects")
    return tidy


def of_new(metadata: Object, *, namespace: str, name: str, uid: str, created: str, generation: int | None) -> Object:
    """Give the metadata of a new object."""
    fresh = {field: value for field, value in metadata.items() if field not in _SET_BY_SERVER}
    fresh |= {"name": name, "uid": uid, "creationTimestamp": created}
    if namespace:
        fresh["namespace"] = namespace
    if generation is not None:
        fresh["generation"] = generation
    return fresh


def of_changed(metadata: Object, old: Object, *, status_only: bool) -> Object:
    """Give the metadata of an object after a write: what is the server's own stays as it was."""
    if status_only:
        kept = {name: metadata[name] for name in _STATUS_KEEPS_FROM_NEW if name in metadata}
        return {name: value for name, value in old.items() if name not in _STATUS_KEEPS_FROM_NEW} | kept
    changed = {name: value for name, value in metadata.items() if name not in _FROM_OLD}
    for name in _FROM_OLD:
        if name in old:
            changed[name] = old[name]
    changed.setdefault("uid", old["uid"])
    return changed


def problems(metadata: Object, old: Object | None, group: str, kind: str) -> Iterator[Cause]:
    """Find what is wrong with metadata, given what it was before."""
    if old is None:
        name = metadata["name"]
        if problem := _NAME_PROBLEM.get((group, kind), subdomain_problem)(name):
            yield _invalid("metadata.name", name, problem)
    else:
        yield from _immutable(metadata, old)
    for key, value in metadata.get("labels", {}).items():
        if problem := qualified_name_problem(key):
            yield _invalid("metadata.labels", key, problem)
        if problem := label_value_problem(value):
            yield _invalid("metadata.labels", value, problem)
    yield from _annotation_problems(metadata.get("annotations", {}))
    for finalizer in metadata.get("finalizers", ()):
        if problem := qualified_name_problem(finalizer):
            yield _invalid("metadata.finalizers", finalizer, problem)
    if {ORPHAN, FOREGROUND} <= set(metadata.get("finalizers", ())):
        message = f"Invalid value: finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        yield Cause("metadata.finalizers", message)
    yield from _owner_problems(metadata.get("ownerReferences", ()))


def _immutable(metadata: Object, old: Object) -> Iterator[Cause]:
    for field in ("name", "namespace", "uid"):
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


def _annotation_problems(annotations: dict[str, str]) -> Iterator[Cause]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if problem := qualified_name_problem(key.lower()):
            yield _invalid("metadata.annotations", key, problem)
    if size > _MOST_ANNOTATION_BYTES:
        message = f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes"
        yield Cause("metadata.annotations", message, "FieldValueTooLong")


def _owner_problems(owners: Any) -> Iterator[Cause]:
    controller = ""
    for owner in owners:
        if not str(owner.get("apiVersion", "")).rpartition("/")[2]:
            yield _invalid("metadata.ownerReferences.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield _invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                yield Cause(
                    "metadata.ownerReferences",
                    'Invalid value: Only one reference can have Controller set to true. Found "true" in references '
                    f"for {controller} and {this}",
                )
            controller = controller or this


def _invalid(field: str, value: str, problem: str) -> Cause:
    return Cause(field, f'Invalid value: "{value}": {problem}')


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.40}"
