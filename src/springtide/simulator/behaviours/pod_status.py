"""Conditions in the status of built-in kinds: a list told apart by type, of which everybody writes only their own.

What the state of a pod means to those who count pods: alive, finished, ready, available.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Object


def condition(item: Object, kind: str) -> Object | None:
    """Find the condition of a type."""
    for found in (item.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return dict(found)
    return None


def is_true(item: Object, kind: str) -> bool:
    """Tell whether a condition is there and holds."""
    found = condition(item, kind)
    return found is not None and found.get("status") == "True"


def with_conditions(present: Sequence[Object] | None, wanted: Sequence[Object], now: str) -> list[Object]:
    """Bring conditions into a list; the time of the transition stays where the status does, as do all others."""
    left = {entry["type"]: entry for entry in wanted}
    merged = [_brought_in(entry, left.pop(entry["type"], None), now) for entry in present or ()]
    return merged + [{**entry, "lastTransitionTime": now} for entry in left.values()]


def _brought_in(old: Object, new: dict[str, Any] | None, now: str) -> Object:
    if new is None:
        return old
    stays = old.get("status") == new["status"] and "lastTransitionTime" in old
    return {**new, "lastTransitionTime": old["lastTransitionTime"] if stays else now}


def phase(pod: Object) -> str:
    """Give the phase; a pod that nobody has looked at is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminating(pod: Object) -> bool:
    """Tell whether the pod was asked to go."""
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Object) -> bool:
    """Tell whether the pod has ended, and will never run again."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Tell whether the pod counts as a replica: neither finished nor about to go."""
    return not is_terminating(pod) and not is_finished(pod)


def is_ready(pod: Object) -> bool:
    """Tell whether the pod passes its readiness probes."""
    return is_true(pod, "Ready")


def created_at(item: Object) -> int:
    """Give the instant at which an object was made."""
    return parse_instant(item["metadata"]["creationTimestamp"])


def ready_since(pod: Object) -> int | None:
    """Give the instant since which the pod is ready without a break."""
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return parse_instant(ready["lastTransitionTime"]) if "lastTransitionTime" in ready else created_at(pod)


def available_at(pod: Object, min_ready_seconds: int) -> int | None:
    """Give the instant at which a pod that stays ready counts as available; None while it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + min_ready_seconds


def restarts(pod: Object) -> int:
    """Count how often the containers of the pod were started again: the most of any of them."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount", 0)) for status in statuses), default=0)
