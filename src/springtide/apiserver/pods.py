"""Containers and conditions of pods."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.resources import Object


def containers(spec: Object) -> Iterator[Object]:
    """Iterate over all containers of a pod spec, init containers first; null entries are skipped."""
    for field in ("initContainers", "containers"):
        yield from filter(None, spec.get(field) or ())


def condition(pod: Object, kind: str) -> Object | None:
    """Return a condition of a pod."""
    conditions: list[Object] = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == kind), None)


def is_ready(pod: Object) -> bool:
    """Return whether a pod is ready."""
    ready = condition(pod, "Ready")
    return ready is not None and ready.get("status") == "True"


def with_condition(pod: Object, change: Object, now: str) -> Object:
    """Return the pod with a condition set; an unchanged status keeps its transition time."""
    present = condition(pod, change["type"])
    since = now
    if present is not None and present.get("status") == change["status"]:
        since = present.get("lastTransitionTime") or now
    fresh = {"lastProbeTime": None, **change, "lastTransitionTime": since}
    status: Object = pod.get("status") or {}
    others = [each for each in status.get("conditions") or [] if each.get("type") != change["type"]]
    return {**pod, "status": {**status, "conditions": [*others, fresh]}}
