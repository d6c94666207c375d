"""Objects of one version as another: autoscalers, the one built-in kind that is served in two.

Version 1 knows a target for the use of CPU and nothing else. What it cannot say stands in annotations, so that nothing
is lost on the way there and back; only the order of metrics is, for the use of CPU comes last on the way back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.annotated import (
    annotated_behavior,
    annotated_metric,
    annotated_reading,
    behavior_of,
    metric_of,
    reading_of,
)

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_DEFAULT_UTILIZATION = 80


def _each(change: Callable[[Object], Object]) -> Callable[[list[Object]], list[Object]]:
    return lambda entries: [change(entry) for entry in entries]


_ANNOTATED: tuple[tuple[str, str, str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    ("spec", "metrics", "metrics", _each(annotated_metric), _each(metric_of)),
    ("spec", "behavior", "behavior", annotated_behavior, behavior_of),
    ("status", "currentMetrics", "current-metrics", _each(annotated_reading), _each(reading_of)),
    ("status", "conditions", "conditions", _each(dict), _each(dict)),
)
"""Where version 1 keeps fields of version 2: in which part, under which name, in which annotation; there and back."""


def convert(item: Object, api_version: str) -> Object:
    """Give an object in another version of its kind; what it is made from stays as it is."""
    ways = {("autoscaling/v1", "autoscaling/v2"): _newer, ("autoscaling/v2", "autoscaling/v1"): _older}
    way = ways.get((item["apiVersion"], api_version)) if item["kind"] == "HorizontalPodAutoscaler" else None
    return {**(item if way is None else way(item)), "apiVersion": api_version}


def _newer(item: Object) -> Object:
    parts: dict[str, Object] = {"spec": dict(item.get("spec") or {}), "status": dict(item.get("status") or {})}
    spec, status = parts["spec"], parts["status"]
    annotations = dict(item["metadata"].get("annotations") or {})
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": used}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    for part, name, annotation, _, back in _ANNOTATED:
        written = _read(annotations.pop(f"{_PREFIX}{annotation}", None), back)
        if written is not None:
            parts[part][name] = written
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is None and not spec.get("metrics"):
        target = _DEFAULT_UTILIZATION
    if target is not None:
        goal = {"type": "Utilization", "averageUtilization": target}
        cpu = {"type": "Resource", "resource": {"name": "cpu", "target": goal}}
        spec["metrics"] = [*(spec.get("metrics") or ()), cpu]
    return _put_together(item, parts, annotations)


def _older(item: Object) -> Object:
    parts: dict[str, Object] = {"spec": dict(item.get("spec") or {}), "status": dict(item.get("status") or {})}
    annotations = dict(item["metadata"].get("annotations") or {})
    metrics: list[Object] = parts["spec"].get("metrics") or []
    targets = [_utilization(metric, "target") for metric in metrics]
    parts["spec"]["metrics"] = [metric for metric, target in zip(metrics, targets, strict=True) if target is None]
    for target in targets:
        if target is not None:
            parts["spec"]["targetCPUUtilizationPercentage"] = target
            break
    for metric in parts["status"].get("currentMetrics") or ():
        used = _utilization(metric, "current")
        if used is not None:
            parts["status"]["currentCPUUtilizationPercentage"] = used
    for part, name, annotation, there, _ in _ANNOTATED:
        value = parts[part].pop(name, None)
        annotations.pop(f"{_PREFIX}{annotation}", None)
        if value:
            annotations[f"{_PREFIX}{annotation}"] = json.dumps(there(value), separators=(",", ":"), ensure_ascii=False)
    return _put_together(item, parts, annotations)


def _read(text: str | None, back: Callable[[Any], Any]) -> Any:
    """Read an annotation; one that somebody has made unreadable says nothing."""
    try:
        return None if text is None else back(json.loads(text))
    except (AttributeError, TypeError, ValueError):
        return None


def _utilization(metric: Object, part: str) -> Any:
    """Give the use of CPU that a metric is about, where it is about nothing else."""
    resource = metric.get("resource") or {}
    return (resource.get(part) or {}).get("averageUtilization") if resource.get("name") == "cpu" else None


def _put_together(item: Object, parts: dict[str, Object], annotations: dict[str, str]) -> Object:
    metadata = {name: value for name, value in item["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**item, "metadata": metadata, **parts}
