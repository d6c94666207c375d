"""Validation of HorizontalPodAutoscalers: bounds, target, metrics and behavior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver.builtin.rules.resources import container_resource, nano_value
from springtide.apiserver.builtin.validation import field_of
from springtide.apiserver.field_errors import forbidden, invalid, required, unsupported
from springtide.apiserver.names import label_problem, path_segment_problems
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The field of the source of a metric, by type, in the order in which sources are validated."""
_OF_RESOURCES = ("resource", "containerResource")
_RAW_OR_UTILIZATION = "a target raw value and a target utilization"
_TARGETS: dict[str, tuple[tuple[str, ...], str]] = {
    "object": (("value", "averageValue"), "must set either a target value or averageValue"),
    "external": (("value", "averageValue"), "must set either a target value for metric or a per-pod target"),
    "pods": (("averageValue",), "must specify a positive target averageValue"),
    "resource": (("averageUtilization", "averageValue"), "must set either a target raw value or a target utilization"),
    "containerResource": (
        ("averageUtilization", "averageValue"),
        "must set either a target raw value or a target utilization",
    ),
}
"""The target fields of each source, and the message if none is set."""
_POLICIES = ("Percent", "Pods")
_MAX_WINDOW_SECONDS = 3600
_MAX_PERIOD_SECONDS = 1800
_POSITIVE = "must be greater than zero"


def autoscaler_bounds(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate `minReplicas` and `maxReplicas`."""
    least, most = field_of(item, "spec.minReplicas"), field_of(item, "spec.maxReplicas") or 0
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def autoscaler_target(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Validate the scale target: only ReplicationControllers have no group."""
    target, before = field_of(item, "spec.scaleTargetRef") or {}, field_of(old, "spec.scaleTargetRef") or {}
    path = "spec.scaleTargetRef"
    yield from _names(target, path)
    if old is None or any(target.get(name) != before.get(name) for name in ("apiVersion", "kind")):
        yield from _api_version(target, path, empty_group=target.get("kind") == "ReplicationController")


def _names(reference: Object, path: str) -> Iterator[StatusCause]:
    """Validate kind and name of a reference, which become segments of a path."""
    for field in ("kind", "name"):
        text = reference.get(field) or ""
        yield from (invalid(f"{path}.{field}", text, problem) for problem in path_segment_problems(text))


def _api_version(reference: Object, path: str, *, empty_group: bool) -> Iterator[StatusCause]:
    version = reference.get("apiVersion") or ""
    group, slash, name = version.partition("/")
    if "/" in name:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif not empty_group and not (slash and group):
        yield invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def autoscaler_metrics(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the metrics. v1 has a CPU target only."""
    target = field_of(item, "spec.targetCPUUtilizationPercentage")
    if target is not None and target < 1:
        yield invalid("spec.metrics[0].resource.target.averageUtilization", target, "must be greater than 0")
    metrics = field_of(item, "spec.metrics") or ()
    for index, metric in enumerate(metrics):
        yield from _metric(metric, f"spec.metrics[{index}]")
    if field_of(item, "spec.minReplicas") == 0 and not any(
        metric.get("type") in ("Object", "External") for metric in metrics
    ):
        message = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", message)


def autoscaler_behavior(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the behavior: windows, policies and tolerance."""
    for direction in ("scaleUp", "scaleDown"):
        rules, path = field_of(item, f"spec.behavior.{direction}"), f"spec.behavior.{direction}"
        if rules is None:
            continue
        window = rules.get("stabilizationWindowSeconds")
        if window is not None and window < 0:
            yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
        if window is not None and window > _MAX_WINDOW_SECONDS:
            message = f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
            yield invalid(f"{path}.stabilizationWindowSeconds", window, message)
        if not rules.get("policies"):
            yield required(f"{path}.policies", "must specify at least one Policy")
        for index, policy in enumerate(rules.get("policies") or ()):
            yield from _policy(policy or {}, f"{path}.policies[{index}]")
        tolerance = rules.get("tolerance")
        if tolerance is not None and nano_value(tolerance) < 0:
            yield invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0")


def _policy(policy: Object, path: str) -> Iterator[StatusCause]:
    if not policy.get("type"):
        yield unsupported(f"{path}.type", "", *_POLICIES)
    value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
    if value <= 0:
        yield invalid(f"{path}.value", value, _POSITIVE)
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, _POSITIVE)
    if period > _MAX_PERIOD_SECONDS:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_MAX_PERIOD_SECONDS}")


def _metric(metric: Object, path: str) -> Iterator[StatusCause]:
    if not metric.get("type"):
        yield required(f"{path}.type", "must specify a metric source type")
        yield unsupported(f"{path}.type", "", *sorted(_SOURCES))
    present = [name for name in _SOURCES.values() if metric.get(name) is not None]
    for name in present[:1]:
        yield from _source(metric[name], name, f"{path}.{name}")
    expected = _SOURCES.get(metric.get("type") or "")
    if expected is not None and expected not in present:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        for name in present:
            if name != expected:
                yield forbidden(f"{path}.{name}", "must populate the given metric source only")


def _source(source: Object, name: str, path: str) -> Iterator[StatusCause]:
    target: Object = source.get("target") or {}
    if name == "object":
        described: Object = source.get("describedObject") or {}
        yield from _names(described, f"{path}.describedObject")
        yield from _api_version(described, f"{path}.describedObject", empty_group=True)
    if name in _OF_RESOURCES:
        yield from _resource(source, name, path)
    else:
        yield from _metric_name(source.get("metric") or {}, f"{path}.metric")
    yield from _target(target, f"{path}.target")
    ways, message = _TARGETS[name]
    given = [way for way in ways if target.get(way) is not None]
    if not given:
        expected = "averageUtilization" if name in _OF_RESOURCES else "averageValue"
        yield required(f"{path}.target.{expected}", message)
    elif len(given) > 1 and name == "external":
        message = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", message)
    elif len(given) > 1 and name != "object":
        yield forbidden(f"{path}.target.averageValue", f"may not set both {_RAW_OR_UTILIZATION}")


def _resource(source: Object, name: str, path: str) -> Iterator[StatusCause]:
    resource, container = source.get("name") or "", source.get("container") or ""
    if not resource:
        yield required(f"{path}.name", "must specify a resource name")
    if name == "resource":
        return
    if resource:
        yield from container_resource(resource, f"{path}.name")
    if not container:
        yield required(f"{path}.container", "must specify a container")
    elif problem := label_problem(container):
        yield invalid(f"{path}.container", container, problem)


def _metric_name(metric: Object, path: str) -> Iterator[StatusCause]:
    name = metric.get("name") or ""
    if not name:
        yield required(f"{path}.name", "must specify a metric name")
    yield from (invalid(f"{path}.name", name, problem) for problem in path_segment_problems(name))


def _target(target: Object, path: str) -> Iterator[StatusCause]:
    kind, use = target.get("type") or "", target.get("averageUtilization")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        amount: Any = target.get(name)
        if amount is not None and nano_value(amount) <= 0:
            yield invalid(f"{path}.{name}", amount, "must be positive")
    if use is not None and use < 1:
        yield invalid(f"{path}.averageUtilization", use, "must be greater than 0")
