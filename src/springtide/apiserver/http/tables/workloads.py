"""Tables of workloads and autoscalers."""

from __future__ import annotations

from typing import Any

from springtide.apiserver.http.tables.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    AgeFormatter,
    TableLayout,
    age,
    at,
    columns,
    condition_is_true,
    containers,
    duration,
    labels,
    name,
    read_instant,
    selector,
)
from springtide.cluster.resources import Object

_MAX_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}

_TEMPLATE = ("Containers", "Images", "Selector")
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions in order of precedence; the empty one stands for a job that is being deleted."""

_REPLICAS = columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=_TEMPLATE)


def _cells(item: Object, ages: AgeFormatter) -> list[Any]:
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
    """Return the metrics in the form of version 2; version 1 has only one."""
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
    texts = [_metric(target, currents[index] if index < len(currents) else {}) for index, target in enumerate(targets)]
    left = len(texts) - _MAX_SHOWN
    return ", ".join(texts[:_MAX_SHOWN]) + (f" + {left} more..." if left > 0 else "")


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


AUTOSCALERS = TableLayout(columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _cells)


def _deployment(item: Object, ages: AgeFormatter) -> list[Any]:
    return [
        name(item),
        f"{at(item, 'status.readyReplicas', 0)}/{at(item, 'spec.replicas', 0)}",
        at(item, "status.updatedReplicas", 0),
        at(item, "status.availableReplicas", 0),
        age(item, ages),
        *containers(at(item, "spec.template")),
        selector(at(item, "spec.selector")),
    ]


def _replica_set(item: Object, ages: AgeFormatter) -> list[Any]:
    chosen = at(item, "spec.selector")
    return [
        name(item),
        at(item, "spec.replicas", 0),
        at(item, "status.replicas", 0),
        at(item, "status.readyReplicas", 0),
        age(item, ages),
        *containers(at(item, "spec.template")),
        labels(chosen) if item["kind"] == "ReplicationController" else selector(chosen),
    ]


def _stateful_set(item: Object, ages: AgeFormatter) -> list[Any]:
    ready = f"{at(item, 'status.readyReplicas', 0)}/{at(item, 'spec.replicas', 0)}"
    return [name(item), ready, age(item, ages), *containers(at(item, "spec.template"))]


def _daemon_set(item: Object, ages: AgeFormatter) -> list[Any]:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(item),
        *(at(item, f"status.{count}", 0) for count in counts),
        labels(at(item, "spec.template.spec.nodeSelector", {})),
        age(item, ages),
        *containers(at(item, "spec.template")),
        selector(at(item, "spec.selector")),
    ]


def _job(item: Object, ages: AgeFormatter) -> list[Any]:
    return [
        name(item),
        _job_state(item),
        _completions(item),
        _job_duration(item, ages),
        age(item, ages),
        *containers(at(item, "spec.template")),
        selector(at(item, "spec.selector")),
    ]


def _job_state(item: Object) -> str:
    for condition, word in _JOB_STATES:
        if condition_is_true(item, condition) if condition else "deletionTimestamp" in item["metadata"]:
            return word
    return "Running"


def _completions(item: Object) -> str:
    succeeded, wanted = at(item, "status.succeeded", 0), at(item, "spec.completions", None)
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = at(item, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _job_duration(item: Object, ages: AgeFormatter) -> str:
    started, completed = at(item, "status.startTime"), at(item, "status.completionTime")
    if not started:
        return ""
    if not completed:
        return ages.since(started)
    return duration(int((read_instant(completed) or 0) - (read_instant(started) or 0)))


def _cron_job(item: Object, ages: AgeFormatter) -> list[Any]:
    last = at(item, "status.lastScheduleTime")
    return [
        name(item),
        at(item, "spec.schedule"),
        at(item, "spec.timeZone", NONE),
        str(at(item, "spec.suspend", UNSET)),
        len(at(item, "status.active", [])),
        ages.since(last) if last else NONE,
        age(item, ages),
        *containers(at(item, "spec.jobTemplate.spec.template")),
        selector(at(item, "spec.jobTemplate.spec.selector")),
    ]


def _scale(item: Object, ages: AgeFormatter) -> list[Any]:
    return [name(item), at(item, "spec.replicas", 0), at(item, "status.replicas", 0), age(item, ages)]


WORKLOADS = {
    "Deployment": TableLayout(columns("Name", "Ready", "Up-to-date", "Available", "Age", wide=_TEMPLATE), _deployment),
    "ReplicaSet": TableLayout(_REPLICAS, _replica_set),
    "ReplicationController": TableLayout(_REPLICAS, _replica_set),
    "Scale": TableLayout(columns("Name", "Desired:integer", "Available:integer", "Age"), _scale),
    "StatefulSet": TableLayout(columns("Name", "Ready", "Age", wide=_TEMPLATE[:2]), _stateful_set),
    "DaemonSet": TableLayout(
        columns(
            "Name",
            "Desired:integer",
            "Current:integer",
            "Ready:integer",
            "Up-to-date:integer",
            "Available:integer",
            "Node Selector",
            "Age",
            wide=_TEMPLATE,
        ),
        _daemon_set,
    ),
    "Job": TableLayout(columns("Name", "Status", "Completions", "Duration", "Age", wide=_TEMPLATE), _job),
    "CronJob": TableLayout(
        columns(
            "Name",
            "Schedule",
            "Timezone",
            "Suspend:boolean",
            "Active:integer",
            "Last Schedule",
            "Age",
            wide=_TEMPLATE,
        ),
        _cron_job,
    ),
}
