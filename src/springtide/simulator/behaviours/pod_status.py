"""Conditions in the status of built-in kinds, and whether a pod is active, finished, ready or available."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Object


def condition(item: Object, kind: str) -> Object | None:
    """Return the condition of a type."""
    for found in (item.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return dict(found)
    return None


def is_true(item: Object, kind: str) -> bool:
    """Whether a condition has status True."""
    found = condition(item, kind)
    return found is not None and found.get("status") == "True"


def with_conditions(present: Sequence[Object] | None, wanted: Sequence[Object], now: str) -> list[Object]:
    """Merge conditions into a list by type; the transition time changes only with the status."""
    left = {entry["type"]: entry for entry in wanted}
    merged = [_merged_condition(entry, left.pop(entry["type"], None), now) for entry in present or ()]
    return merged + [{**entry, "lastTransitionTime": now} for entry in left.values()]


def _merged_condition(old: Object, new: dict[str, Any] | None, now: str) -> Object:
    if new is None:
        return old
    stays = old.get("status") == new["status"] and "lastTransitionTime" in old
    return {**new, "lastTransitionTime": old["lastTransitionTime"] if stays else now}


def phase(pod: Object) -> str:
    """Return the phase; Pending if not set."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminating(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Object) -> bool:
    """Whether the phase is Succeeded or Failed."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Whether the pod counts as a replica: neither finished nor terminating."""
    return not is_terminating(pod) and not is_finished(pod)


def is_ready(pod: Object) -> bool:
    """Whether the Ready condition is True."""
    return is_true(pod, "Ready")


def created_at(item: Object) -> int:
    """Return the creation time."""
    return parse_instant(item["metadata"]["creationTimestamp"])


def ready_since(pod: Object) -> int | None:
    """Return the time since which the pod is ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return parse_instant(ready["lastTransitionTime"]) if "lastTransitionTime" in ready else created_at(pod)


def available_at(pod: Object, min_ready_seconds: int) -> int | None:
    """Return when a ready pod becomes available; None while it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + min_ready_seconds


def restarts(pod: Object) -> int:
    """Return the highest restart count of the containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount", 0)) for status in statuses), default=0)
