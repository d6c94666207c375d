"""Conversion of HorizontalPodAutoscalers between v1 and v2, the only built-in kind that is served in two versions.

v1 has a CPU target and nothing else. All other fields of v2 are kept in annotations, so that a round trip loses nothing
but the order of metrics: the CPU metric comes last. The annotations have the format of a kube-apiserver, because other
programs read them: metrics as v1 has them, behavior with the names of the internal Go type.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from springtide.cluster.resources import Object

_Shape = tuple[tuple[str, str], ...]

_TARGETS: dict[str, _Shape] = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("targetValue", "target.value"),
        ("selector", "metric.selector"),
        ("averageValue", "target.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("targetAverageValue", "target.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
    ),
    "containerResource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
        ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("targetValue", "target.value"),
        ("targetAverageValue", "target.averageValue"),
    ),
}
"""The fields of each metric source in v1, and their paths in v2."""

_CURRENT_METRICS: dict[str, _Shape] = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("currentValue", "current.value"),
        ("selector", "metric.selector"),
        ("averageValue", "current.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("currentAverageValue", "current.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"),
        ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue"),
    ),
    "containerResource": (
        ("name", "name"),
        ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue"),
        ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("currentValue", "current.value"),
        ("currentAverageValue", "current.averageValue"),
    ),
}

_POLICY = ("type", "value", "periodSeconds")
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_TARGET_TYPES = (("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value"))


def annotated_metric(metric: Object) -> Object:
    """Return a metric of v2 in the format of v1."""
    return _flattened(metric, _TARGETS)


def metric_of(written: Object) -> Object:
    """Return a metric of v1 in the format of v2. The type of its target follows from the field that is set."""
    metric = _unfolded(written, _TARGETS)
    for name in _TARGETS:
        if name in metric:
            target = metric[name].setdefault("target", {})
            kind = next((kind for field, kind in _TARGET_TYPES if field in target), "Value")
            metric[name]["target"] = {"type": kind} | target
    return metric


def annotated_current_metric(metric: Object) -> Object:
    """Return a current metric of v2 in the format of v1."""
    return _flattened(metric, _CURRENT_METRICS)


def current_metric_of(written: Object) -> Object:
    """Return a current metric of v1 in the format of v2."""
    return _unfolded(written, _CURRENT_METRICS)


def annotated_behavior(behavior: Object) -> Object:
    """Return a behavior with the field names of the Go type. Unset fields are written as null."""
    return {_go_name(name): _annotated_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def behavior_of(written: Object) -> Object | None:
    """Return the behavior that an annotation holds, or None if it is empty."""
    found = {name: _rules_of(written.get(_go_name(name))) for name in ("scaleUp", "scaleDown")}
    return {name: rules for name, rules in found.items() if rules is not None} or None


def _annotated_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    found = {_go_name(name): rules.get(name) for name in _RULES}
    if found["Policies"] is not None:
        found["Policies"] = [{_go_name(name): policy.get(name) for name in _POLICY} for policy in found["Policies"]]
    return found


def _rules_of(written: Object | None) -> Object | None:
    if written is None:
        return None
    found = {name: written[_go_name(name)] for name in _RULES if written.get(_go_name(name)) is not None}
    if "policies" in found:
        found["policies"] = [{name: policy[_go_name(name)] for name in _POLICY} for policy in found["policies"]]
    return found


def _go_name(name: str) -> str:
    return name[0].upper() + name[1:]


def _flattened(metric: Object, shapes: dict[str, _Shape]) -> Object:
    flat: Object = {"type": metric.get("type")}
    for source, shape in shapes.items():
        given = metric.get(source)
        if given is not None:
            found = {name: _at(given, path) for name, path in shape}
            flat[source] = {name: value for name, value in found.items() if value is not None}
    return flat


def _unfolded(written: Object, shapes: dict[str, _Shape]) -> Object:
    metric: Object = {"type": written.get("type")}
    for source, shape in shapes.items():
        given = written.get(source)
        if given is None:
            continue
        unfolded: Object = {}
        for name, path in shape:
            if given.get(name) is not None:
                outer, _, inner = path.rpartition(".")
                (unfolded.setdefault(outer, {}) if outer else unfolded)[inner] = given[name]
        metric[source] = unfolded
    return metric


def _at(value: Object, path: str) -> Any:
    found: Any = value
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


_PREFIX = "autoscaling.alpha.kubernetes.io/"
_DEFAULT_UTILIZATION = 80


def _each(change: Callable[[Object], Object]) -> Callable[[list[Object]], list[Object]]:
    return lambda entries: [change(entry) for entry in entries]


_ANNOTATED: tuple[tuple[str, str, str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    ("spec", "metrics", "metrics", _each(annotated_metric), _each(metric_of)),
    ("spec", "behavior", "behavior", annotated_behavior, behavior_of),
    ("status", "currentMetrics", "current-metrics", _each(annotated_current_metric), _each(current_metric_of)),
    ("status", "conditions", "conditions", _each(dict), _each(dict)),
)
"""The fields of v2 that v1 keeps in annotations: part, field, annotation, conversion to v1, conversion to v2."""


def convert(item: Object, api_version: str) -> Object:
    """Return an object in another version of its kind. The given object is not changed."""
    ways = {("autoscaling/v1", "autoscaling/v2"): _to_v2, ("autoscaling/v2", "autoscaling/v1"): _to_v1}
    way = ways.get((item["apiVersion"], api_version)) if item["kind"] == "HorizontalPodAutoscaler" else None
    return {**(item if way is None else way(item)), "apiVersion": api_version}


def _to_v2(item: Object) -> Object:
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
    return _assemble(item, parts, annotations)


def _to_v1(item: Object) -> Object:
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
    return _assemble(item, parts, annotations)


def _read(text: str | None, back: Callable[[Any], Any]) -> Any:
    """Decode an annotation. An annotation that cannot be decoded is ignored."""
    try:
        return None if text is None else back(json.loads(text))
    except (AttributeError, TypeError, ValueError):
        return None


def _utilization(metric: Object, part: str) -> Any:
    """Return the CPU utilization of a metric, or None if the metric is about something else."""
    resource = metric.get("resource") or {}
    return (resource.get(part) or {}).get("averageUtilization") if resource.get("name") == "cpu" else None


def _assemble(item: Object, parts: dict[str, Object], annotations: dict[str, str]) -> Object:
    metadata = {name: value for name, value in item["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**item, "metadata": metadata, **parts}
