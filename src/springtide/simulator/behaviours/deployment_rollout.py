"""Rollouts of Deployments: the next sizes of the ReplicaSets, and the status.

No step exceeds maxSurge or maxUnavailable. Everything is computed from the status of the ReplicaSets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Object
from springtide.quantity import whole_number
from springtide.simulator.behaviours.ownership import scaled_count
from springtide.simulator.behaviours.pod_status import condition, created_at

DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"

ReplicaSetSizes = list[tuple[Object, int]]
"""ReplicaSets to resize, each with its new size."""


@dataclass(frozen=True, slots=True)
class RolloutBounds:
    """What a rollout must keep to."""

    wanted: int
    surge: int
    unavailable: int
    recreate: bool

    @property
    def most(self) -> int:
        """How many pods may exist."""
        return self.wanted + self.surge

    @property
    def least(self) -> int:
        """How many pods must be available."""
        return self.wanted - self.unavailable


def bounds(deployment: Object) -> RolloutBounds:
    """Read the strategy of a Deployment."""
    spec = deployment["spec"]
    wanted = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return RolloutBounds(wanted, 0, 0, recreate=True)
    rolling = strategy.get("rollingUpdate") or {}
    surge = scaled_count(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = scaled_count(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if not surge and not unavailable:
        # Both rounded to nothing: the rollout would never move.
        unavailable = 1
    return RolloutBounds(wanted, surge, min(unavailable, wanted), recreate=False)


def size(replica_set: Object) -> int:
    """Return how many pods a ReplicaSet should have."""
    return int(replica_set["spec"].get("replicas", 1))


def status_count(replica_set: Object, field: str) -> int:
    """Read a count of the status of a ReplicaSet."""
    return int((replica_set.get("status") or {}).get(field) or 0)


def annotated_size(replica_set: Object, annotation: str) -> int | None:
    """Read a number from an annotation of a ReplicaSet."""
    text = (replica_set["metadata"].get("annotations") or {}).get(annotation, "")
    return whole_number(text)


def first_size(limits: RolloutBounds, olds: Sequence[Object]) -> int:
    """Return the first size of a new ReplicaSet."""
    if limits.recreate:
        return limits.wanted
    return max(0, min(limits.most - sum(map(size, olds)), limits.wanted))


def was_scaled(limits: RolloutBounds, replica_sets: Sequence[Object]) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets were last resized."""
    noticed = [annotated_size(item, DESIRED) for item in replica_sets if size(item)]
    return any(count is not None and count != limits.wanted for count in noticed)


def next_sizes(limits: RolloutBounds, new: Object | None, olds: Sequence[Object]) -> ReplicaSetSizes:
    """Return the sizes of the next step of a rollout; `olds` starts with the oldest."""
    if new is None:
        return []
    if limits.recreate:
        return [(old, 0) for old in olds if size(old)] or _to(new, limits.wanted)
    return _grown(limits, new, olds) or _shrunk(limits, new, olds)


def _to(item: Object, wanted: int) -> ReplicaSetSizes:
    return [(item, wanted)] if size(item) != wanted else []


def _grown(limits: RolloutBounds, new: Object, olds: Sequence[Object]) -> ReplicaSetSizes:
    if size(new) >= limits.wanted:
        return _to(new, limits.wanted)
    room = limits.most - size(new) - sum(map(size, olds))
    return _to(new, size(new) + max(0, min(room, limits.wanted - size(new))))


def _shrunk(limits: RolloutBounds, new: Object, olds: Sequence[Object]) -> ReplicaSetSizes:
    """Scale old ReplicaSets down: first unavailable pods, then as many as maxUnavailable allows."""
    not_yet = max(0, size(new) - status_count(new, "availableReplicas"))
    room = sum(map(size, (new, *olds))) - limits.least - not_yet
    if room <= 0:
        return []
    kept = []
    for old in olds:
        useless = max(0, min(room, size(old) - status_count(old, "availableReplicas")))
        kept.append(size(old) - useless)
        room -= useless
    spare = min(room, sum(status_count(item, "availableReplicas") for item in (new, *olds)) - limits.least)
    sizes = []
    for old, count in zip(olds, kept, strict=True):
        taken = max(0, min(count, spare))
        spare -= taken
        if count - taken != size(old):
            sizes.append((old, count - taken))
    return sizes


def scaled_sizes(limits: RolloutBounds, new: Object | None, olds: Sequence[Object]) -> ReplicaSetSizes:
    """Scale a Deployment: during a rollout each ReplicaSet changes in proportion to its size."""
    everything = [*olds, *([new] if new is not None else [])]
    active = [item for item in everything if size(item)]
    if len(active) <= 1:
        # `everything` has the newest last.
        only = active or ([new] if new is not None else everything[-1:])
        return [(item, limits.wanted) for item in only]
    if limits.recreate or (new is not None and _is_saturated(limits, new)):
        return [(old, 0) for old in olds if size(old)]
    return _in_proportion(limits, active)


def _is_saturated(limits: RolloutBounds, new: Object) -> bool:
    return (
        size(new) == limits.wanted
        and annotated_size(new, DESIRED) == limits.wanted
        and status_count(new, "availableReplicas") == limits.wanted
    )


def _in_proportion(limits: RolloutBounds, active: list[Object]) -> ReplicaSetSizes:
    allowed = limits.most if limits.wanted else 0
    change = allowed - sum(map(size, active))
    # The largest first; of equal sizes the newer grows first, and the older shrinks first.
    direction = -1 if change > 0 else 1
    active.sort(key=lambda item: (-size(item), direction * created_at(item), item["metadata"]["name"]))
    left, sizes = change, []
    for item in active:
        part = _part(limits, item) if left else 0
        part = min(part, left) if change > 0 else max(part, left)
        left -= part
        sizes.append((item, size(item) + part))
    largest, grown = sizes[0]
    sizes[0] = (largest, max(0, grown + left))
    return sizes


def _part(limits: RolloutBounds, item: Object) -> int:
    """Return the proportional change of one ReplicaSet; halves round away from zero."""
    if not limits.wanted:
        return -size(item)
    before = annotated_size(item, MOST) or 0
    if not before:
        return 0
    return (2 * size(item) * limits.most + before) // (2 * before) - size(item)


_DONE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"


def status_of(
    deployment: Object, limits: RolloutBounds, new: Object | None, replica_sets: Sequence[Object], now: int
) -> dict[str, Any]:
    """Return the whole status, without counts of zero, as Kubernetes omits them."""
    available = sum(status_count(item, "availableReplicas") for item in replica_sets)
    status: dict[str, Any] = {
        "observedGeneration": deployment["metadata"].get("generation"),
        "replicas": sum(status_count(item, "replicas") for item in replica_sets) or None,
        "updatedReplicas": (status_count(new, "replicas") if new is not None else 0) or None,
        "readyReplicas": sum(status_count(item, "readyReplicas") for item in replica_sets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, sum(map(size, replica_sets)) - available) or None,
        "terminatingReplicas": sum(status_count(item, "terminatingReplicas") for item in replica_sets) or None,
    }
    conditions = {entry["type"]: entry for entry in (deployment.get("status") or {}).get("conditions") or ()}
    _put(conditions, _availability(limits, available), now)
    progress = _progress(deployment, status, limits, new, now)
    if progress is not None:
        _put(conditions, progress, now)
    _set_replica_failure(conditions, replica_sets)
    return {**status, "conditions": list(conditions.values())}


def gives_up_at(deployment: Object, status: dict[str, Any]) -> int | None:
    """Return when a rollout without progress exceeds its deadline; None if it is complete or has failed."""
    progressing = condition({"status": status}, "Progressing")
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    if deadline is None or progressing is None or progressing["reason"] in (_DONE, _TIMED_OUT):
        return None
    return parse_instant(progressing["lastUpdateTime"]) + int(deadline) + 1


def _availability(limits: RolloutBounds, available: int) -> Object:
    if available >= limits.least:
        reason, message, truth = "MinimumReplicasAvailable", "Deployment has minimum availability.", "True"
    else:
        reason, message, truth = "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", "False"
    return {"type": "Available", "status": truth, "reason": reason, "message": message}


def _progress(
    deployment: Object, status: dict[str, Any], limits: RolloutBounds, new: Object | None, now: int
) -> Object | None:
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    before = condition(deployment, "Progressing")
    updated, total = status["updatedReplicas"] or 0, status["replicas"] or 0
    if deadline is None or (before is not None and before["reason"] == _DONE and total == updated):
        return None
    name = (
        f'ReplicaSet "{new["metadata"]["name"]}"'
        if new is not None
        else f'Deployment "{deployment["metadata"]["name"]}"'
    )
    if updated == total == (status["availableReplicas"] or 0) == limits.wanted:
        return _progressing("True", _DONE, f"{name} has successfully progressed.")
    if before is None or _has_moved(deployment.get("status") or {}, status):
        return {**_progressing("True", "ReplicaSetUpdated", f"{name} is progressing."), "moved": True}
    if before["reason"] != _DONE and parse_instant(before["lastUpdateTime"]) + int(deadline) < now:
        return _progressing("False", _TIMED_OUT, f"{name} has timed out progressing.")
    return None


def _progressing(truth: str, reason: str, message: str) -> Object:
    return {"type": "Progressing", "status": truth, "reason": reason, "message": message}


def _has_moved(before: Object, after: dict[str, Any]) -> bool:
    def old_pods(status: Object) -> int:
        return (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0)

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_pods(after) < old_pods(before) or any((after[name] or 0) > (before.get(name) or 0) for name in more)


def _put(conditions: dict[str, Object], wanted: Object, now: int) -> None:
    """Set a condition; one with the same status and reason is kept, unless the rollout has made progress."""
    moved = wanted.pop("moved", False)
    before = conditions.get(wanted["type"])
    same = before is not None and before["status"] == wanted["status"]
    if before is not None and same and before["reason"] == wanted["reason"] and not moved:
        return
    at = format_instant(now)
    since = before["lastTransitionTime"] if before is not None and same else at
    conditions[wanted["type"]] = {**wanted, "lastUpdateTime": at, "lastTransitionTime": since}


def _set_replica_failure(conditions: dict[str, Object], replica_sets: Sequence[Object]) -> None:
    """Copy the ReplicaFailure condition of a ReplicaSet, preferably of the newest."""
    told_of = [found for item in replica_sets if (found := condition(item, "ReplicaFailure")) is not None]
    if told_of:
        conditions["ReplicaFailure"] = {**told_of[-1], "lastUpdateTime": told_of[-1]["lastTransitionTime"]}
    else:
        conditions.pop("ReplicaFailure", None)
