"""The metadata of objects: normalized, completed on create and update, and validated.

Validation is almost the same for all kinds. Field manager names are validated here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.names import (
    label_problem,
    label_value_problem,
    path_segment_problems,
    qualified_name_problems,
    subdomain_problem,
)
from springtide.apiserver.values import instant
from springtide.cluster.errors import BadRequest, StatusCause
from springtide.cluster.resources import Object

ORPHAN = "orphan"
"""The finalizer of the deletion policy Orphan."""
FOREGROUND = "foregroundDeletion"
"""The finalizer of the deletion policy Foreground."""

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
_OWNER_FIELDS: dict[str, type] = {
    "apiVersion": str,
    "kind": str,
    "name": str,
    "uid": str,
    "controller": bool,
    "blockOwnerDeletion": bool,
}
_EMPTY: tuple[Any, ...] = (None, "", {}, [])
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch
_EMPTY_MAP: dict[str, Any] = {}
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_FROM_OLD = ("creationTimestamp", "deletionTimestamp", "generation")

_AUTHOR_FIELDS = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
"""The metadata fields that authors write."""
_STATUS_WRITES_KEEP = {
    ("", "Pod"): ("ownerReferences",),
    ("apiregistration.k8s.io", "APIService"): _AUTHOR_FIELDS,
    ("apps", "Deployment"): ("labels",),
    ("storage.k8s.io", "VolumeAttachment"): _AUTHOR_FIELDS,
}
"""Those that a write to the status of a built-in kind does not change; kinds not listed: none."""

_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")

_MAX_ANNOTATION_BYTES = 256 * 1024

_NAMED_BY_LABELS = (("", "Namespace"), ("", "Service"))
_NAMED_BY_PATH_SEGMENTS = "rbac.authorization.k8s.io"
"""The group whose names may have colons, as in `system:node`."""

_REFERENCE_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")

_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_FREE_FINALIZERS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
)
"""Groups of built-in kinds whose finalizers need no domain, as those of custom kinds."""


def normalized(metadata: Any) -> Object:
    """Return metadata with known fields that are not empty; refuse wrong types."""
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"metadata is {_shown(metadata)}, expected an object")
    normal: Object = {}
    for name, value in metadata.items():
        expected = _FIELDS.get(name)
        if expected is None or value in _EMPTY:
            continue
        if type(value) is not expected:
            raise BadRequest(f"metadata.{name} is {_shown(value)}, expected {expected.__name__}")
        normal[name] = value
    for name in ("labels", "annotations"):
        for key, value in normal.get(name, _EMPTY_MAP).items():
            if value is None:
                normal[name] = {**normal[name], key: ""}
            elif type(value) is not str:
                raise BadRequest(f"metadata.{name}.{key} is {_shown(value)}, expected a string")
    if any(type(finalizer) is not str for finalizer in normal.get("finalizers", ())):
        raise BadRequest("metadata.finalizers: expected strings")
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in normal and not _is_time(normal[name]):
            raise BadRequest(f"metadata.{name} is {_shown(normal[name])}, expected a time such as 2006-01-02T15:04:05Z")
    if "ownerReferences" in normal:
        normal["ownerReferences"] = _valid_owners(normal["ownerReferences"])
    return normal


def distinct_owners(owners: list[Any]) -> tuple[list[Any], list[Any]]:
    """Split owner references into distinct ones and duplicates."""
    first: dict[str, Any] = {}
    duplicates: list[Any] = []
    for owner in owners:
        encoded = json.dumps(owner, sort_keys=True)
        if encoded in first:
            duplicates.append(owner)
        else:
            first[encoded] = owner
    return list(first.values()), duplicates


def _valid_owners(owners: list[Any]) -> list[Object]:
    for owner in owners:
        if type(owner) is not dict:
            raise BadRequest("metadata.ownerReferences: expected objects")
        for name, value in owner.items():
            expected = _OWNER_FIELDS.get(name)
            if expected is not None and value is not None and type(value) is not expected:
                raise BadRequest(f"metadata.ownerReferences.{name} is {_shown(value)}, expected {expected.__name__}")
    return owners if len(owners) == 1 else distinct_owners(owners)[0]


@lru_cache(maxsize=4096)
def _is_time(text: str) -> bool:
    if not _TIME(text):
        return False
    try:
        instant(text)
    except (OverflowError, ValueError):
        return False
    return True


def created_metadata(
    metadata: Object, *, namespace: str, name: str, uid: str, created: str, generation: int | None
) -> Object:
    """Return the metadata of a new object."""
    # Where the server does not count changes, the author may set the generation.
    fresh = {field: value for field, value in metadata.items() if field not in _SET_BY_SERVER}
    fresh |= {"name": name, "uid": uid, "creationTimestamp": created}
    if namespace:
        fresh["namespace"] = namespace
    if generation is not None:
        fresh["generation"] = generation
    return fresh


def fields_kept_by_status(kind: ServedKind) -> tuple[str, ...]:
    """Return the metadata fields that a write to the status of a kind does not change."""
    if not kind.strategic:
        return _AUTHOR_FIELDS
    return _STATUS_WRITES_KEEP.get((kind.resource.group, kind.resource.kind), ())


def updated_metadata(metadata: Object, old: Object, kept: tuple[str, ...] = ()) -> Object:
    """Return metadata after an update: fields of the server, and `kept` ones, are taken from the old object."""
    changed = {name: value for name, value in metadata.items() if name not in kept} if kept else dict(metadata)
    for name in (*_FROM_OLD, *kept):
        if name in old:
            changed[name] = old[name]
        elif name in changed and name != "deletionTimestamp":
            # Clients cannot set what the server writes; a new deletionTimestamp is left for validation to refuse.
            del changed[name]
    changed.setdefault("uid", old["uid"])
    if "deletionGracePeriodSeconds" in old:
        changed.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    return changed


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.40}"


def _object_name_problem(name: str, kind: ServedKind) -> str:
    if kind.resource.group == _NAMED_BY_PATH_SEGMENTS:
        return ", ".join(path_segment_problems(name))
    by_label = (kind.resource.group, kind.resource.kind) in _NAMED_BY_LABELS
    return label_problem(name) if by_label else subdomain_problem(name)


def metadata_problems(metadata: Object, old: Object | None, kind: ServedKind) -> Iterator[StatusCause]:
    """Yield what is wrong with metadata, given the metadata before the write."""
    if old is None:
        name = metadata["name"]
        if problem := _object_name_problem(name, kind):
            yield _invalid("metadata.name", name, problem)
        if problem and (prefix := metadata.get("generateName")):
            yield _invalid("metadata.generateName", prefix, problem)
    else:
        yield from _immutable(metadata, old)
    for key, value in metadata.get("labels", {}).items():
        yield from _name_problems("metadata.labels", key)
        if problem := label_value_problem(value):
            yield _invalid("metadata.labels", value, problem)
    yield from _annotation_problems(metadata.get("annotations", {}))
    if "finalizers" in metadata:
        yield from _finalizer_problems(metadata["finalizers"], kind, new=old is None)
    yield from _owner_problems(metadata.get("ownerReferences", ()))


def _immutable(metadata: Object, old: Object) -> Iterator[StatusCause]:
    for field in _IMMUTABLE:
        if metadata.get(field) != old.get(field):
            yield _invalid(f"metadata.{field}", metadata.get(field, ""), "field is immutable")
    if "deletionTimestamp" in old:
        before = old.get("finalizers", ())
        added = [finalizer for finalizer in metadata.get("finalizers", ()) if finalizer not in before]
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            yield StatusCause(
                "metadata.finalizers",
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}",
                "FieldValueForbidden",
            )


def _finalizer_problems(finalizers: list[str], kind: ServedKind, *, new: bool) -> Iterator[StatusCause]:
    if new:
        for finalizer in finalizers:
            yield from _name_problems("metadata.finalizers", finalizer)
        if ORPHAN in finalizers and FOREGROUND in finalizers:
            message = f"Invalid value: {_display(finalizers)}: finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
            yield StatusCause("metadata.finalizers", message)
    if kind.strategic and kind.resource.group not in _FREE_FINALIZERS:
        for index, finalizer in enumerate(finalizers):
            if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
                problem = "name is neither a standard finalizer name nor is it fully qualified"
                yield _invalid(f"metadata.finalizers[{index}]", finalizer, problem)


def _annotation_problems(annotations: dict[str, str]) -> Iterator[StatusCause]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        yield from _name_problems("metadata.annotations", key, key.lower())
    if size > _MAX_ANNOTATION_BYTES:
        message = f"Too long: may not be more than {_MAX_ANNOTATION_BYTES} bytes"
        yield StatusCause("metadata.annotations", message, "FieldValueTooLong")


def _owner_problems(owners: Any) -> Iterator[StatusCause]:
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version.rpartition("/")[2] or version.count("/") > 1:
            yield _invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield _invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            shown = _display(_ordered(owner))
            problem = "/v1, Kind=Event is disallowed from being an owner"
            yield StatusCause("metadata.ownerReferences", f"Invalid value: {shown}: {problem}")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                yield StatusCause(
                    "metadata.ownerReferences",
                    f"Invalid value: {_display([_ordered(each) for each in owners])}: Only one reference can have "
                    f'Controller set to true. Found "true" in references for {controller} and {this}',
                )
            controller = controller or this


def _ordered(owner: Object) -> Object:
    """Return the fields of an owner reference in the order of messages."""
    return {name: owner[name] for name in _REFERENCE_FIELDS if name in owner}


def _display(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _name_problems(field: str, name: str, validated: str | None = None) -> Iterator[StatusCause]:
    """Yield what is wrong with a qualified name; `validated` is validated in its place."""
    for problem in qualified_name_problems(name if validated is None else validated):
        yield _invalid(field, name, problem)


def _invalid(field: str, value: str | int, problem: str) -> StatusCause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return StatusCause(field, f"Invalid value: {shown}: {problem}")
