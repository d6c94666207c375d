"""The row of a HorizontalPodAutoscaler: each metric as what it is and what it should be."""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.layouts import NONE, UNKNOWN, UNSET, Layout, columns
from springtide.simulator.http.tables.parts import age, at, name

_MOST_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _cells(item: Object, ages: Ages) -> list[Any]:
    return [
        name(item),
        f"{at(item, 'spec.scaleTargetRef.kind')}/{at(item, 'spec.scaleTargetRef.name')}",
        _metrics(*_listed(item)),
        str(at(item, "spec.minReplicas", UNSET)),
        at(item, "spec.maxReplicas", 0),
        at(item, "status.currentReplicas", 0),
        age(item, ages),
    ]


def _listed(item: Object) -> tuple[list[Object], list[Object]]:
    """Give the metrics as version 2 has them; version 1 knows only one."""
    if item["apiVersion"] != "autoscaling/v1":
        return at(item, "spec.metrics", []), at(item, "status.currentMetrics", [])
    target = at(item, "spec.targetCPUUtilizationPercentage", None)
    current = at(item, "status.currentCPUUtilizationPercentage", None)
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": target}}}
    present = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current}}}
    return ([] if target is None else [metric]), ([] if current is None else [present])


def _metrics(targets: list[Object], currents: list[Object]) -> str:
    if not targets:
        return NONE
    told = [_metric(target, currents[index] if index < len(currents) else {}) for index, target in enumerate(targets)]
    left = len(told) - _MOST_SHOWN
    return ", ".join(told[:_MOST_SHOWN]) + (f" + {left} more..." if left > 0 else "")


def _metric(target: Object, present: Object) -> str:
    type_ = target.get("type", "")
    source = _SOURCES.get(type_)
    if source is None:
        return "<unknown type>"
    part, current = target.get(source) or {}, at(present, f"{source}.current", {})
    wanted = part.get("target") or {}
    if type_.endswith("Resource"):
        if "averageValue" in wanted:
            return f"{part.get('name')}: {current.get('averageValue', UNKNOWN)}/{wanted['averageValue']}"
        return f"{part.get('name')}: {_percent(current, UNKNOWN)}/{_percent(wanted, '<auto>')}"
    if "averageValue" in wanted:
        average = "" if type_ == "Pods" else " (avg)"
        return f"{current.get('averageValue', UNKNOWN)}/{wanted['averageValue']}{average}"
    return f"{current.get('value', UNKNOWN)}/{wanted.get('value', UNSET)}"


def _percent(part: Object, otherwise: str) -> str:
    value = part.get("averageUtilization")
    return otherwise if value is None else f"{value}%"


AUTOSCALERS = Layout(columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _cells)
