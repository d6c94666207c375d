"""The table of pods: the status column summarizes the states of all containers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from springtide.apiserver.http.tables.cells import NONE, AgeFormatter, TableLayout, columns
from springtide.cluster.resources import Object

_ENDED = ("Succeeded", "Failed")


def _cells(pod: Object, ages: AgeFormatter) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    starting, initial = _init_status(spec, status)
    sidecars = {each.get("name") for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}
    inits, mains = status.get("initContainerStatuses") or [], status.get("containerStatuses") or []
    ready = sum(1 for each in inits if each.get("name") in sidecars and each.get("started") and each.get("ready"))
    reason, counted = initial or _phase(status), inits
    if not starting or _condition_is_true(status, "Initialized"):
        counted = [*(each for each in inits if each.get("name") in sidecars), *mains]
        running = sum(1 for each in mains if each.get("ready") and _state(each, "running") is not None)
        ready += running
        reason = _main_reason(mains, reason, running=bool(running), healthy=_condition_is_true(status, "Ready"))
    total = len(spec.get("containers") or ()) + len(sidecars)
    metadata = pod["metadata"]
    return [
        metadata["name"],
        f"{ready}/{total}",
        _deletion_status(metadata, status) or reason,
        _restarts(counted, ages),
        ages.since(metadata.get("creationTimestamp")),
        next((each.get("ip") for each in status.get("podIPs") or ()), status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _completed(pod: Object) -> list[Object]:
    """Return the condition that marks the row of a finished pod, so that clients can hide it."""
    phase = (pod.get("status") or {}).get("phase")
    if phase not in _ENDED:
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _phase(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _init_status(spec: Object, status: Object) -> tuple[bool, str]:
    """Return whether an init container runs or has failed, and the status for it."""
    declared = {each.get("name"): each for each in spec.get("initContainers") or ()}
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        ended, waiting = _state(each, "terminated"), _state(each, "waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if (declared.get(each.get("name")) or {}).get("restartPolicy") == "Always" and each.get("started"):
            continue
        if ended is not None:
            return True, "Init:" + _exit_reason(ended)
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return True, f"Init:{waiting['reason']}"
        return True, f"Init:{index}/{len(declared)}"
    return False, ""


def _main_reason(statuses: list[Object], reason: str, *, running: bool, healthy: bool) -> str:
    failure = ""
    for each in reversed(statuses):
        waiting, ended = _state(each, "waiting"), _state(each, "terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _exit_reason(ended)
            failure = reason if ended.get("exitCode") else failure
    if reason != "Completed":
        return reason
    if running and healthy:
        return "Running"
    return failure or ("NotReady" if running else reason)


def _exit_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _deletion_status(metadata: Object, status: Object) -> str:
    if "deletionTimestamp" not in metadata:
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _restarts(statuses: Iterable[Object], ages: AgeFormatter) -> str:
    counted = list(statuses)
    restarts = sum(each.get("restartCount", 0) for each in counted)
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "" for each in counted]
    latest = max(ends, default="")
    return f"{restarts} ({ages.since(latest)} ago)" if restarts and latest else str(restarts)


def _gates(spec: Object, status: Object) -> str:
    gates = [each.get("conditionType") for each in spec.get("readinessGates") or ()]
    return f"{sum(_condition_is_true(status, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def _state(status: Object, name: str) -> Object | None:
    return (status.get("state") or {}).get(name)


def _condition_is_true(status: Object, condition: str | None) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ()
    )


PODS = TableLayout(
    columns(
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
        wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    _cells,
    _completed,
)
