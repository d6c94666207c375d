"""MetricsProducers as tests write them: only what a test is about."""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec

WEEKDAYS = "Mon,Tue,Wed,Thu,Fri"

WEEKEND = {"replicas": 1, "start": {"weekdays": "Fri", "hours": 17}, "end": {"weekdays": "Mon", "hours": 9}}
DAYTIME = {"replicas": 3, "start": {"weekdays": WEEKDAYS, "hours": 9}, "end": {"weekdays": WEEKDAYS, "hours": 17}}
NIGHT = {"replicas": 2, "start": {"weekdays": WEEKDAYS, "hours": 17}, "end": {"weekdays": WEEKDAYS, "hours": 9}}


def at(**fields: Any) -> dict[str, Any]:
    return fields


def behavior(start: dict[str, Any], end: dict[str, Any], replicas: int = 9, **more: Any) -> dict[str, Any]:
    return {"replicas": replicas, "start": start, "end": end, **more}


def daily(start: int, end: int, replicas: int = 9, **more: Any) -> dict[str, Any]:
    return behavior({"hours": start}, {"hours": end}, replicas, **more)


def schedule(*behaviors: dict[str, Any], default: int = 1, **more: Any) -> dict[str, Any]:
    return {"behaviors": list(behaviors), "defaultReplicas": default, **more}


def producer(spec: dict[str, Any], name: str = "test") -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": name},
        "spec": spec,
    }


def scheduled(*behaviors: dict[str, Any], default: int = 1, **more: Any) -> dict[str, Any]:
    return producer({"schedule": schedule(*behaviors, default=default, **more)})


def as_spec(value: dict[str, Any]) -> ScheduleSpec:
    return msgspec.convert(value, ScheduleSpec)


def as_producer(value: dict[str, Any]) -> MetricsProducer:
    return msgspec.convert(value, MetricsProducer)
