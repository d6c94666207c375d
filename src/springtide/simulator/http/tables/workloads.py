"""The rows of workloads: how many there should be, and how many there are."""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.http.tables.ages import Ages, duration, read_instant
from springtide.simulator.http.tables.layouts import NONE, UNSET, Layout, columns
from springtide.simulator.http.tables.parts import age, at, containers, holds, labels, name, selector

_TEMPLATE = ("Containers", "Images", "Selector")
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions in the order in which they decide; the empty one stands for a job that is being deleted."""


def _deployment(item: Object, ages: Ages) -> list[Any]:
    return [
        name(item),
        f"{at(item, 'status.readyReplicas', 0)}/{at(item, 'spec.replicas', 0)}",
        at(item, "status.updatedReplicas", 0),
        at(item, "status.availableReplicas", 0),
        age(item, ages),
        *containers(at(item, "spec.template")),
        selector(at(item, "spec.selector")),
    ]


def _replica_set(item: Object, ages: Ages) -> list[Any]:
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


def _stateful_set(item: Object, ages: Ages) -> list[Any]:
    ready = f"{at(item, 'status.readyReplicas', 0)}/{at(item, 'spec.replicas', 0)}"
    return [name(item), ready, age(item, ages), *containers(at(item, "spec.template"))]


def _daemon_set(item: Object, ages: Ages) -> list[Any]:
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


def _job(item: Object, ages: Ages) -> list[Any]:
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
        if holds(item, condition) if condition else "deletionTimestamp" in item["metadata"]:
            return word
    return "Running"


def _completions(item: Object) -> str:
    succeeded, wanted = at(item, "status.succeeded", 0), at(item, "spec.completions", None)
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = at(item, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _job_duration(item: Object, ages: Ages) -> str:
    started, completed = at(item, "status.startTime"), at(item, "status.completionTime")
    if not started:
        return ""
    if not completed:
        return ages.since(started)
    return duration(int((read_instant(completed) or 0) - (read_instant(started) or 0)))


def _cron_job(item: Object, ages: Ages) -> list[Any]:
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


def _scale(item: Object, ages: Ages) -> list[Any]:
    return [name(item), at(item, "spec.replicas", 0), at(item, "status.replicas", 0), age(item, ages)]


_REPLICAS = columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=_TEMPLATE)

WORKLOADS = {
    "Deployment": Layout(columns("Name", "Ready", "Up-to-date", "Available", "Age", wide=_TEMPLATE), _deployment),
    "ReplicaSet": Layout(_REPLICAS, _replica_set),
    "ReplicationController": Layout(_REPLICAS, _replica_set),
    "Scale": Layout(columns("Name", "Desired:integer", "Available:integer", "Age"), _scale),
    "StatefulSet": Layout(columns("Name", "Ready", "Age", wide=_TEMPLATE[:2]), _stateful_set),
    "DaemonSet": Layout(
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
    "Job": Layout(columns("Name", "Status", "Completions", "Duration", "Age", wide=_TEMPLATE), _job),
    "CronJob": Layout(
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
