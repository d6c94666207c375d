"""What a delete request makes of an object before the object is removed.

An object is removed at once unless finalizers, a grace period or (for a namespace) its contents block that. Otherwise
it gets a deletion timestamp, and is removed with the last blocker. A pod always gets the timestamp, so that watchers
see the same sequence of events with and without a grace period.
"""

from __future__ import annotations

from springtide.apiserver.errors import conflict
from springtide.apiserver.metadata import FOREGROUND, ORPHAN
from springtide.apiserver.strategy import DEFINITION_FINALIZER
from springtide.apiserver.values import instant, timestamp, with_metadata
from springtide.cluster.resources import Object, Resource
from springtide.cluster.transport import Precondition, Propagation

_ORPHANED_BY_DEFAULT = (("", "ReplicationController"), ("batch", "CronJob"), ("batch", "Job"))
"""Kinds older than garbage collection: a delete without a propagation policy orphans their dependents."""

_FINISHED = ("Succeeded", "Failed")


def check_delete(item: Object, precondition: Precondition, resource: Resource) -> None:
    """Refuse a delete whose preconditions do not match the object."""
    metadata = item["metadata"]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    if precondition.uid and precondition.uid != metadata["uid"]:
        raise conflict(
            kind,
            metadata["name"],
            f"the UID in the precondition ({precondition.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if precondition.version and precondition.version != metadata["resourceVersion"]:
        raise conflict(
            kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({precondition.version}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified",
        )


def mark_deleted(
    item: Object, resource: Resource, now: int, *, propagation: Propagation | None, grace_seconds: int | None
) -> Object:
    """Return an object as a delete request leaves it; itself when nothing changes.

    Remove the result unless `is_deletion_blocked`.
    """
    marked = item
    if (resource.group, resource.kind) == ("", "Pod"):
        marked = _with_grace_period(item, now, grace_seconds)
        if marked is item:
            return item
    if _is_definition(resource) and "deletionTimestamp" not in item["metadata"]:
        present = item["metadata"].get("finalizers", [])
        return with_metadata(item, deletionTimestamp=timestamp(now), finalizers=[*present, DEFINITION_FINALIZER])
    finalizers = _finalizers(marked, resource, propagation)
    if finalizers != marked["metadata"].get("finalizers", []):
        marked = with_metadata(marked, finalizers=finalizers or None)
    if is_deletion_blocked(marked) and "deletionTimestamp" not in marked["metadata"]:
        marked = _with_timestamp(marked, now, 0)
    return marked


def is_deletion_blocked(item: Object) -> bool:
    """Return whether finalizers, a grace period or contents block the removal of an object."""
    metadata = item["metadata"]
    if metadata.get("finalizers") or _grace(item) > 0:
        return True
    return bool(item["kind"] == "Namespace" and (item.get("spec") or {}).get("finalizers"))


def _is_definition(resource: Resource) -> bool:
    return (resource.group, resource.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")


def _grace(item: Object) -> int:
    return int(item["metadata"].get("deletionGracePeriodSeconds", 0))


def _with_grace_period(pod: Object, now: int, grace_seconds: int | None) -> Object:
    """Start the grace period of a pod, or shorten a running one; a longer one changes nothing."""
    metadata = pod["metadata"]
    spec = pod.get("spec") or {}
    requested = 1 if grace_seconds is not None and grace_seconds < 0 else grace_seconds
    if "deletionTimestamp" in metadata:
        current = _grace(pod)
        if requested is None or requested >= current:
            return pod
        until = instant(metadata["deletionTimestamp"]) - current + requested
        if until < now:
            until, requested = now, min(requested, 1)
        return with_metadata(pod, deletionTimestamp=timestamp(until), deletionGracePeriodSeconds=requested)
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in _FINISHED:
        return _with_timestamp(pod, now, 0)
    return _with_timestamp(pod, now, spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested)


def _with_timestamp(item: Object, now: int, grace: int) -> Object:
    metadata = item["metadata"]
    generation = metadata.get("generation")
    period: int | None = grace
    if item["kind"] == "Namespace":
        item = {**item, "status": {**(item.get("status") or {}), "phase": "Terminating"}}
        # The deletion of a namespace has no grace period.
        period = None
    return with_metadata(
        item,
        deletionTimestamp=timestamp(now + grace),
        deletionGracePeriodSeconds=period,
        generation=generation + 1 if generation else None,
    )


def _finalizers(item: Object, resource: Resource, propagation: Propagation | None) -> list[str]:
    """Return the finalizers with the one for the propagation policy."""
    present: list[str] = item["metadata"].get("finalizers", [])
    if propagation is None:
        if ORPHAN in present or FOREGROUND in present:
            return present
        orphaned = (resource.group, resource.kind) in _ORPHANED_BY_DEFAULT
        propagation = Propagation.ORPHAN if orphaned else Propagation.BACKGROUND
    wanted = {Propagation.ORPHAN: ORPHAN, Propagation.FOREGROUND: FOREGROUND}.get(propagation)
    kept = [finalizer for finalizer in present if finalizer not in (ORPHAN, FOREGROUND) or finalizer == wanted]
    return kept if wanted is None or wanted in kept else [*kept, wanted]
