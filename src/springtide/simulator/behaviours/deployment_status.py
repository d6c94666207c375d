"""What a Deployment tells of its rollout: counts, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.conditions import condition
from springtide.simulator.behaviours.rollout import Bounds, size, told

_DONE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"


def status_of(
    deployment: Object, limits: Bounds, new: Object | None, replica_sets: Sequence[Object], now: int
) -> dict[str, Any]:
    """Write the whole status; what counts nothing is not there, as Kubernetes leaves it out."""
    available = sum(told(item, "availableReplicas") for item in replica_sets)
    status: dict[str, Any] = {
        "observedGeneration": deployment["metadata"].get("generation"),
        "replicas": sum(told(item, "replicas") for item in replica_sets) or None,
        "updatedReplicas": (told(new, "replicas") if new is not None else 0) or None,
        "readyReplicas": sum(told(item, "readyReplicas") for item in replica_sets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, sum(map(size, replica_sets)) - available) or None,
        "terminatingReplicas": sum(told(item, "terminatingReplicas") for item in replica_sets) or None,
    }
    conditions = {entry["type"]: entry for entry in (deployment.get("status") or {}).get("conditions") or ()}
    _put(conditions, _availability(limits, available), now)
    progress = _progress(deployment, status, limits, new, now)
    if progress is not None:
        _put(conditions, progress, now)
    _tell_failure(conditions, replica_sets)
    return {**status, "conditions": list(conditions.values())}


def gives_up_at(deployment: Object, status: dict[str, Any]) -> int | None:
    """Tell when a rollout that makes no progress any more is given up; None: it is over, or given up already."""
    progressing = condition({"status": status}, "Progressing")
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    if deadline is None or progressing is None or progressing["reason"] in (_DONE, _TIMED_OUT):
        return None
    return parse_instant(progressing["lastUpdateTime"]) + int(deadline) + 1


def _availability(limits: Bounds, available: int) -> Object:
    if available >= limits.least:
        reason, message, truth = "MinimumReplicasAvailable", "Deployment has minimum availability.", "True"
    else:
        reason, message, truth = "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", "False"
    return {"type": "Available", "status": truth, "reason": reason, "message": message}


def _progress(
    deployment: Object, status: dict[str, Any], limits: Bounds, new: Object | None, now: int
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
    """Bring a condition in; one of the same status and reason stays as it is, unless the rollout has moved."""
    moved = wanted.pop("moved", False)
    before = conditions.get(wanted["type"])
    same = before is not None and before["status"] == wanted["status"]
    if before is not None and same and before["reason"] == wanted["reason"] and not moved:
        return
    at = format_instant(now)
    since = before["lastTransitionTime"] if before is not None and same else at
    conditions[wanted["type"]] = {**wanted, "lastUpdateTime": at, "lastTransitionTime": since}


def _tell_failure(conditions: dict[str, Object], replica_sets: Sequence[Object]) -> None:
    """Pass on what a ReplicaSet says of pods that could not be made; the newest one's word goes before the others'."""
    told_of = [found for item in replica_sets if (found := condition(item, "ReplicaFailure")) is not None]
    if told_of:
        conditions["ReplicaFailure"] = {**told_of[-1], "lastUpdateTime": told_of[-1]["lastTransitionTime"]}
    else:
        conditions.pop("ReplicaFailure", None)
