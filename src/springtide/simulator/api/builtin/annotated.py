"""What version 1 of autoscalers keeps in annotations, in the shape in which a server writes it there.

Metrics stand there as version 1 would have had them, flat and with other names; a behaviour stands there with the names
that the server's own type has. Others read these annotations, so the shapes are not ours to choose.
"""

from __future__ import annotations

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
"""The fields of each source in version 1, and where they stand in version 2."""

_READINGS: dict[str, _Shape] = {
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
    """Write a metric as version 1 has it."""
    return _flattened(metric, _TARGETS)


def metric_of(written: Object) -> Object:
    """Read a metric of version 1; what its target is tells of which type it is."""
    metric = _unfolded(written, _TARGETS)
    for name in _TARGETS:
        if name in metric:
            target = metric[name].setdefault("target", {})
            kind = next((kind for field, kind in _TARGET_TYPES if field in target), "Value")
            metric[name]["target"] = {"type": kind} | target
    return metric


def annotated_reading(metric: Object) -> Object:
    """Write what a metric is now as version 1 has it."""
    return _flattened(metric, _READINGS)


def reading_of(written: Object) -> Object:
    """Read what a metric is now."""
    return _unfolded(written, _READINGS)


def annotated_behavior(behavior: Object) -> Object:
    """Write a behaviour with the names of the server's own type, of which none is left out."""
    return {_own(name): _annotated_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def behavior_of(written: Object) -> Object | None:
    """Read a behaviour; None: it says nothing."""
    found = {name: _rules_of(written.get(_own(name))) for name in ("scaleUp", "scaleDown")}
    return {name: rules for name, rules in found.items() if rules is not None} or None


def _annotated_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    found = {_own(name): rules.get(name) for name in _RULES}
    if found["Policies"] is not None:
        found["Policies"] = [{_own(name): policy.get(name) for name in _POLICY} for policy in found["Policies"]]
    return found


def _rules_of(written: Object | None) -> Object | None:
    if written is None:
        return None
    found = {name: written[_own(name)] for name in _RULES if written.get(_own(name)) is not None}
    if "policies" in found:
        found["policies"] = [{name: policy[_own(name)] for name in _POLICY} for policy in found["policies"]]
    return found


def _own(name: str) -> str:
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
