"""The metadata that an object will have, from that which somebody wants and that which was.

What is wrong with the result is told by `springtide.simulator.api.metadata_rules`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.timestamps import instant

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
_NOTHING: dict[str, Any] = {}
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_FROM_OLD = ("creationTimestamp", "deletionTimestamp", "generation")

_DESCRIPTION = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
"""What authors write into metadata."""
_STATUS_WRITES_KEEP = {
    ("", "Pod"): ("ownerReferences",),
    ("apiregistration.k8s.io", "APIService"): _DESCRIPTION,
    ("apps", "Deployment"): ("labels",),
    ("storage.k8s.io", "VolumeAttachment"): _DESCRIPTION,
}
"""What of that a write to the status of a built-in kind leaves alone; of kinds that are not listed here, nothing."""


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
        for key, value in tidy.get(name, _NOTHING).items():
            if value is None:
                tidy[name] = {**tidy[name], key: ""}
            elif type(value) is not str:
                raise BadRequest(f"metadata.{name}.{key} is {_shown(value)}, expected a string")
    if any(type(finalizer) is not str for finalizer in tidy.get("finalizers", ())):
        raise BadRequest("metadata.finalizers: expected strings")
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in tidy and not _is_time(tidy[name]):
            raise BadRequest(f"metadata.{name} is {_shown(tidy[name])}, expected a time such as 2006-01-02T15:04:05Z")
    if "ownerReferences" in tidy:
        tidy["ownerReferences"] = _sound_owners(tidy["ownerReferences"])
    return tidy


def distinct_owners(owners: list[Any]) -> tuple[list[Any], list[Any]]:
    """Divide references: the ones that say something, and the ones that only say it once more."""
    first: dict[str, Any] = {}
    repeated: list[Any] = []
    for owner in owners:
        told = json.dumps(owner, sort_keys=True)
        if told in first:
            repeated.append(owner)
        else:
            first[told] = owner
    return list(first.values()), repeated


def _sound_owners(owners: list[Any]) -> list[Object]:
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


def of_new(metadata: Object, *, namespace: str, name: str, uid: str, created: str, generation: int | None) -> Object:
    """Give the metadata of a new object."""
    # Kinds whose changes nobody counts keep the number that they are born with, if their author gives one.
    fresh = {field: value for field, value in metadata.items() if field not in _SET_BY_SERVER}
    fresh |= {"name": name, "uid": uid, "creationTimestamp": created}
    if namespace:
        fresh["namespace"] = namespace
    if generation is not None:
        fresh["generation"] = generation
    return fresh


def kept_by_status(kind: ServedKind) -> tuple[str, ...]:
    """Name the fields that a write to the status of a kind cannot change."""
    if not kind.strategic:
        return _DESCRIPTION
    return _STATUS_WRITES_KEEP.get((kind.resource.group, kind.resource.kind), ())


def of_changed(metadata: Object, old: Object, kept: tuple[str, ...] = ()) -> Object:
    """Give the metadata of an object after a write: what is the server's own stays as it was, and so do the `kept`."""
    changed = {name: value for name, value in metadata.items() if name not in kept} if kept else dict(metadata)
    for name in (*_FROM_OLD, *kept):
        if name in old:
            changed[name] = old[name]
        elif name in changed and name != "deletionTimestamp":
            # What only the server dates and counts is not written; a deletion that is, is for the rules to refuse.
            del changed[name]
    changed.setdefault("uid", old["uid"])
    if "deletionGracePeriodSeconds" in old:
        changed.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    return changed


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.40}"
