"""Objects of one version as another: autoscalers, the one built-in kind that is served in two.

Version 1 knows a target for the use of CPU and nothing else. What it cannot say stands in annotations, so that nothing
is lost on the way there and back.
"""

from __future__ import annotations

import json
from typing import Any

from springtide.cluster.resources import Object

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_ANNOTATED = (
    ("spec", "metrics", f"{_PREFIX}metrics"),
    ("spec", "behavior", f"{_PREFIX}behavior"),
    ("status", "currentMetrics", f"{_PREFIX}current-metrics"),
    ("status", "conditions", f"{_PREFIX}conditions"),
)
"""Where version 1 keeps fields of version 2: in which part, under which name, in which annotation."""
_DEFAULT_UTILIZATION = 80


def convert(item: Object, api_version: str) -> Object:
    """Give an object in another version of its kind; what it is made from stays as it is."""
    ways = {("autoscaling/v1", "autoscaling/v2"): _newer, ("autoscaling/v2", "autoscaling/v1"): _older}
    way = ways.get((item["apiVersion"], api_version)) if item["kind"] == "HorizontalPodAutoscaler" else None
    return {**(item if way is None else way(item)), "apiVersion": api_version}


def _newer(item: Object) -> Object:
    parts: dict[str, Object] = {"spec": dict(item.get("spec") or {}), "status": dict(item.get("status") or {})}
    annotations = dict(item["metadata"].get("annotations") or {})
    for part, name, annotation in _ANNOTATED:
        if annotation in annotations:
            parts[part][name] = json.loads(annotations.pop(annotation))
    target = parts["spec"].pop("targetCPUUtilizationPercentage", None)
    others = parts["spec"].get("metrics") or []
    if target is None and not others:
        target = _DEFAULT_UTILIZATION
    goal = {"type": "Utilization", "averageUtilization": target}
    first = [] if target is None else [{"type": "Resource", "resource": {"name": "cpu", "target": goal}}]
    parts["spec"]["metrics"] = first + others
    used = parts["status"].pop("currentCPUUtilizationPercentage", None)
    if used is not None:
        current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}
        parts["status"].setdefault("currentMetrics", [current])
    return _put_together(item, parts, annotations)


def _older(item: Object) -> Object:
    parts: dict[str, Object] = {"spec": dict(item.get("spec") or {}), "status": dict(item.get("status") or {})}
    annotations = dict(item["metadata"].get("annotations") or {})
    metrics: list[Object] = parts["spec"].get("metrics") or []
    target = _utilization(metrics[0], "target") if metrics else None
    if target is not None:
        parts["spec"]["targetCPUUtilizationPercentage"] = target
        parts["spec"]["metrics"] = metrics[1:]
    used = [_utilization(metric, "current") for metric in parts["status"].get("currentMetrics") or ()]
    if any(share is not None for share in used):
        parts["status"]["currentCPUUtilizationPercentage"] = next(share for share in used if share is not None)
    for part, name, annotation in _ANNOTATED:
        value = parts[part].pop(name, None)
        if value:
            annotations[annotation] = json.dumps(value, separators=(",", ":"))
    return _put_together(item, parts, annotations)


def _utilization(metric: Object, part: str) -> Any:
    """Give the use of CPU that a metric is about, where it is about nothing else."""
    resource = metric.get("resource") or {}
    return (resource.get(part) or {}).get("averageUtilization") if resource.get("name") == "cpu" else None


def _put_together(item: Object, parts: dict[str, Object], annotations: dict[str, str]) -> Object:
    metadata = {name: value for name, value in item["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**item, "metadata": metadata, **parts}
