"""Which pods an autoscaler counts: those that run and are measured, apart from those that are still warming up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springtide.apis.meta.instants import parse_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.conditions import condition
from springtide.simulator.behaviours.pods import is_terminating, phase

WARM_UP = 300
"""Seconds after its start in which the use of CPU of a pod counts only while it is ready."""
FIRST_READINESS = 30
"""A pod whose Ready condition has not changed since this long after its start was never ready."""
WINDOW = 30
"""Seconds over which a reading is taken: one that began before the pod was ready says nothing about it."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The pods of a workload, by what they mean to the arithmetic."""

    readings: dict[str, int]
    """Of the pods that count."""
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    """Pods that should be measured and are not."""


def group(pods: Sequence[Object], readings: Mapping[str, int], metric: str, now: int) -> Grouped:
    """Tell pods apart; those that go or have failed are left out altogether."""
    counted: dict[str, int] = {}
    unready: list[str] = []
    missing: list[str] = []
    for pod in pods:
        name = pod["metadata"]["name"]
        if is_terminating(pod) or phase(pod) == "Failed":
            continue
        if phase(pod) == "Pending":
            unready.append(name)
        elif name not in readings:
            missing.append(name)
        elif metric == "cpu" and _warms_up(pod, now):
            unready.append(name)
        else:
            counted[name] = readings[name]
    return Grouped(counted, tuple(unready), tuple(missing))


def _warms_up(pod: Object, now: int) -> bool:
    ready = condition(pod, "Ready")
    started = (pod.get("status") or {}).get("startTime")
    if ready is None or started is None:
        return True
    start, changed = parse_instant(started), parse_instant(ready["lastTransitionTime"])
    if start + WARM_UP > now:
        return ready["status"] == "False" or now < changed + WINDOW
    return ready["status"] == "False" and start + FIRST_READINESS > changed
