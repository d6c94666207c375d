"""Preconditions of writes, in the words that a server understands: in the body of the write.

A merge patch that says which version or uid the object has is refused if it has another; a JSON patch begins with
tests. What the server answers then is a conflict, although it may word it otherwise.
"""

from __future__ import annotations

from typing import Any

from springtide.cluster.errors import Invalid
from springtide.cluster.port import UNCONDITIONAL, Patch, PatchType, Precondition, Propagation, Write
from springtide.cluster.resources import Key, Object, Resource

_VERSION = "resourceVersion"


def demanding(patch: Patch, precondition: Precondition) -> Any:
    """Give the body of a patch with its precondition in it; the patch itself is left as it is."""
    demands = _demands(precondition)
    if not demands:
        return patch.body
    if patch.type is PatchType.JSON:
        tests = [{"op": "test", "path": f"/metadata/{name}", "value": value} for name, value in demands.items()]
        return [*tests, *patch.body]
    metadata = patch.body.get("metadata") or {}
    return patch.body | {"metadata": metadata | demands}


def delete_options(
    write: Write, precondition: Precondition, propagation: Propagation | None, grace_seconds: int | None
) -> Object:
    """Give the body of a deletion."""
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if demands := _demands(precondition):
        options["preconditions"] = demands
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if write.dry_run:
        options["dryRun"] = ["All"]
    return options


def means_conflict(error: Invalid, precondition: Precondition) -> bool:
    """Tell whether a server finds invalid what is a conflict: it says so of a patch whose uid is not the object's."""
    return bool(precondition.uid) and any(cause.field == "metadata.uid" for cause in error.causes)


def may_mean_conflict(error: Invalid, patch: Patch, precondition: Precondition) -> bool:
    """Tell whether a failed test of ours may be behind an answer; servers do not say which operation failed."""
    return patch.type is PatchType.JSON and precondition != UNCONDITIONAL and not error.causes


def modified(resource: Resource, key: Key) -> str:
    """Word a conflict as servers do."""
    return (
        f'Operation cannot be fulfilled on {resource} "{key.name}": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )


def is_met(precondition: Precondition, found: Object) -> bool:
    """Compare a precondition with an object as it is now."""
    metadata = found.get("metadata") or {}
    return all(metadata.get(name) == value for name, value in _demands(precondition).items())


def _demands(precondition: Precondition) -> dict[str, str]:
    demands = {_VERSION: precondition.version, "uid": precondition.uid}
    return {name: value for name, value in demands.items() if value}
