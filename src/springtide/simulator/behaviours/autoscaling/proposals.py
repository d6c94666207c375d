"""How many replicas one metric proposes, and which pods count: measured, unready or missing.

Ratios are exact fractions, so nothing depends on the rounding of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from springtide import scaling
from springtide.apis.meta.times import parse_instant
from springtide.apiserver.selectors import LabelSelector, selector_of
from springtide.cluster.resources import Object
from springtide.quantity import Quantity
from springtide.scaling import MOST, average_value_replicas
from springtide.simulator.behaviours.autoscaling.metrics import Metrics
from springtide.simulator.behaviours.pod_status import condition, is_ready, is_terminating, phase

WARM_UP = 300
"""Seconds after the start of a pod in which its CPU use counts only while it is ready."""
FIRST_READINESS = 30
"""A pod whose Ready condition last changed within this time after its start was never ready."""
WINDOW = 30
"""The window of a reading in seconds; a reading that began before the pod was ready does not count."""


@dataclass(frozen=True, slots=True)
class PodsByReadiness:
    """The pods of a workload: with readings, unready, and without readings."""

    readings: dict[str, int]
    """Readings of ready pods."""
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    """Pods without a reading."""


def group_by_readiness(pods: Sequence[Object], readings: Mapping[str, int], metric: str, now: int) -> PodsByReadiness:
    """Group pods; terminating and failed pods are left out."""
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
    return PodsByReadiness(counted, tuple(unready), tuple(missing))


def _warms_up(pod: Object, now: int) -> bool:
    ready = condition(pod, "Ready")
    started = (pod.get("status") or {}).get("startTime")
    if ready is None or started is None:
        return True
    start, changed = parse_instant(started), parse_instant(ready["lastTransitionTime"])
    if start + WARM_UP > now:
        return ready["status"] == "False" or now < changed + WINDOW
    return ready["status"] == "False" and start + FIRST_READINESS > changed


_UNREADY = "did not receive metrics for targeted pods (pods might be unready)"
_EVERYTHING = LabelSelector()


class MetricUnavailable(Exception):
    """A metric has no value; `reason` is that of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Tolerance(scaling.ScalingTolerance):
    """The deviation of a ratio from 1 that causes no change; 10 % by default."""

    down: Fraction = Fraction(1, 10)
    up: Fraction = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class ScaledWorkload:
    """The target, as its scale subresource and its pods show it."""

    namespace: str
    replicas: int
    """The wanted number, `spec.replicas`."""
    present: int
    """The present number, `status.replicas`."""
    pods: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class ReplicaProposal:
    """What a metric proposes."""

    replicas: int
    metric: str
    """The metric as named in messages."""
    status: Object
    """The entry of `status.currentMetrics`."""


def propose(
    metric: Object, workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> ReplicaProposal:
    """Evaluate one metric of the spec; raises `MetricUnavailable`."""
    kind = metric["type"]
    match kind:
        case "Resource" | "ContainerResource":
            source = metric["resource" if kind == "Resource" else "containerResource"]
            return _resource(kind, source, workload, metrics, tolerance, now)
        case "Pods":
            return _pods(metric["pods"], workload, metrics, tolerance, now)
        case "Object":
            return _object(metric["object"], workload, metrics, tolerance, now)
        case "External":
            return _external(metric["external"], workload, metrics, tolerance, now)
        case _:
            raise MetricUnavailable("InvalidMetricSourceType", f'unknown metric source type "{kind}"')


def _resource(
    kind: str, source: Object, workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> ReplicaProposal:
    name, target, container = source["name"], source["target"], source.get("container", "")
    reason = f"FailedGet{kind}Metric"
    readings = _readings(name, workload, metrics, container, now)
    if not readings:
        message = f"unable to get metrics for resource {name}: no metrics returned from resource metrics API"
        raise MetricUnavailable(reason, f"failed to get {name} utilization: {message}")
    identity = {"name": name} | ({"container": container} if container else {})
    field = kind[0].lower() + kind[1:]
    if target.get("averageValue") is not None:
        goal = Quantity.parse(target["averageValue"]).milli
        replicas, average = _by_value(reason, name, workload, readings, goal, tolerance, now)
        status = {"type": kind, field: identity | {"current": {"averageValue": _amount(name, average)}}}
        return ReplicaProposal(replicas, f"{name} resource", status)
    goal = target.get("averageUtilization")
    if goal is None:
        message = "neither an average utilization target nor an average value (usage) target was set"
        raise MetricUnavailable(reason, f"invalid resource metric source: {message}")
    requests = {pod["metadata"]["name"]: _request(pod, name, container, reason) for pod in workload.pods}
    replicas, share, average = _by_utilization(reason, name, workload, readings, requests, goal, tolerance, now)
    current = {"averageUtilization": share, "averageValue": _amount(name, average)}
    of = "container resource" if container else "resource"
    words = f"{name} {of} utilization (percentage of request)"
    return ReplicaProposal(replicas, words, {"type": kind, field: identity | {"current": current}})


def _by_utilization(
    reason: str,
    metric: str,
    workload: ScaledWorkload,
    readings: Mapping[str, int],
    requests: Mapping[str, int],
    goal: int,
    tolerance: Tolerance,
    now: int,
) -> tuple[int, int, int]:
    """Compare usage with requests; return replicas, utilization in percent and average use."""
    groups = _grouped(reason, workload, readings, metric, now)

    def measure(use: Mapping[str, int]) -> tuple[Fraction, int]:
        asked = sum(requests[name] for name in use)
        if not asked:
            raise MetricUnavailable(reason, "no metrics returned matched known pods")
        share = sum(use.values()) * 100 // asked
        return Fraction(share, goal), share

    ratio, share = measure(groups.readings)
    average = sum(groups.readings.values()) // len(groups.readings)
    missing = {name: requests[name] * max(100, goal) // 100 for name in groups.missing}
    replicas = _weighed(workload.replicas, groups, ratio, missing, lambda use: measure(use)[0], tolerance)
    return replicas, share, average


def _by_value(
    reason: str,
    metric: str,
    workload: ScaledWorkload,
    readings: Mapping[str, int],
    goal: int,
    tolerance: Tolerance,
    now: int,
) -> tuple[int, int]:
    """Compare the average of pods with a target; return replicas and the average."""
    groups = _grouped(reason, workload, readings, metric, now)

    def measure(use: Mapping[str, int]) -> Fraction:
        return Fraction(sum(use.values()) // len(use), goal)

    average = sum(groups.readings.values()) // len(groups.readings)
    missing = dict.fromkeys(groups.missing, goal)
    return _weighed(workload.replicas, groups, measure(groups.readings), missing, measure, tolerance), average


def _weighed(
    current: int,
    groups: PodsByReadiness,
    ratio: Fraction,
    missing: Mapping[str, int],
    measure: Callable[[Mapping[str, int]], Fraction],
    tolerance: Tolerance,
) -> int:
    """Scale by a ratio, with conservative assumptions about unmeasured pods.

    Pods without readings count with their full target when scaling down and with 0 when scaling up; unready pods count
    with 0 when scaling up. If this reverses the direction, the number stays.
    """
    grows_with_unready = bool(groups.unready) and ratio > 1
    if not grows_with_unready and not groups.missing:
        return current if tolerance.holds(ratio) else ceil(ratio * len(groups.readings))
    use = dict(groups.readings)
    if ratio < 1:
        use |= missing
    elif ratio > 1:
        use |= dict.fromkeys(groups.missing, 0)
    if grows_with_unready:
        use |= dict.fromkeys(groups.unready, 0)
    careful = measure(use)
    if tolerance.holds(careful) or (ratio < 1 < careful) or (careful < 1 < ratio):
        return current
    replicas = ceil(careful * len(use))
    turned = (careful < 1 and replicas > current) or (careful > 1 and replicas < current)
    return current if turned else replicas


def _pods(
    source: Object, workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> ReplicaProposal:
    name, reason = source["metric"]["name"], "FailedGetPodsMetric"
    readings = _readings(name, workload, metrics, "", now)
    if not readings:
        raise MetricUnavailable(reason, f"unable to get metric {name}: no metrics returned from custom metrics API")
    goal = _goal(source["target"], "averageValue", reason)
    # Only CPU use depends on whether a pod is still starting, not a custom metric named cpu.
    replicas, average = _by_value(reason, "", workload, readings, goal, tolerance, now)
    current = {"averageValue": _amount(name, average)}
    return ReplicaProposal(
        replicas, f"pods metric {name}", {"type": "Pods", "pods": {"metric": source["metric"], "current": current}}
    )


def _object(
    source: Object, workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> ReplicaProposal:
    name, described, reason = source["metric"]["name"], source["describedObject"], "FailedGetObjectMetric"
    value = metrics.of_object(name, workload.namespace, described["kind"], described["name"], now)
    if value is None:
        where = f"{described['kind']} {workload.namespace}/{described['name']}"
        raise MetricUnavailable(
            reason, f"unable to get metric {name}: no metrics returned from custom metrics API on {where}"
        )
    replicas, current = _by_total(value, source["target"], workload, tolerance, reason)
    status = {"describedObject": described, "metric": source["metric"], "current": current}
    return ReplicaProposal(replicas, f"{described['kind']} metric {name}", {"type": "Object", "object": status})


def _external(
    source: Object, workload: ScaledWorkload, metrics: Metrics, tolerance: Tolerance, now: int
) -> ReplicaProposal:
    name, reason = source["metric"]["name"], "FailedGetExternalMetric"
    selector = source["metric"].get("selector")
    selects = (selector_of(selector) if selector is not None else _EVERYTHING).matches
    value = metrics.external(name, workload.namespace, selects, now)
    if value is None:
        message = f"unable to get external metric {workload.namespace}/{name}"
        raise MetricUnavailable(reason, f"{message}: no metrics returned from external metrics API")
    replicas, current = _by_total(value, source["target"], workload, tolerance, reason)
    status = {"metric": source["metric"], "current": current}
    return ReplicaProposal(replicas, f"external metric {name}", {"type": "External", "external": status})


def _by_total(
    value: int, target: Object, workload: ScaledWorkload, tolerance: Tolerance, reason: str
) -> tuple[int, Object]:
    """Compare one value with a target total, or a target per pod."""
    if target.get("averageValue") is not None:
        goal = _goal(target, "averageValue", reason)
        present = workload.present
        average = ceil(Fraction(value, present)) if present else value
        replicas = average_value_replicas(Fraction(value, goal), current=present, tolerance=tolerance)
        return replicas, {"averageValue": _amount("", average)}
    ratio = Fraction(value, _goal(target, "value", reason))
    current = {"value": _amount("", value)}
    if not workload.replicas:
        return ceil(ratio), current
    if tolerance.holds(ratio):
        return workload.replicas, current
    if not workload.pods:
        raise MetricUnavailable(reason, "no pods returned by selector while calculating replica count")
    ready = sum(phase(pod) == "Running" and is_ready(pod) for pod in workload.pods)
    return min(MOST, ceil(ratio * ready)), current


def _goal(target: Object, field: str, reason: str) -> int:
    if target.get(field) is None:
        raise MetricUnavailable(reason, f"invalid metric source: no {field} target was set")
    return Quantity.parse(target[field]).milli


def _readings(metric: str, workload: ScaledWorkload, metrics: Metrics, container: str, now: int) -> Mapping[str, int]:
    """Read the metrics of running pods."""
    running = [pod["metadata"]["name"] for pod in workload.pods if phase(pod) == "Running"]
    return metrics.of_pods(metric, workload.namespace, running, container, now)


def _grouped(
    reason: str, workload: ScaledWorkload, readings: Mapping[str, int], metric: str, now: int
) -> PodsByReadiness:
    groups = group_by_readiness(workload.pods, readings, metric, now)
    if not groups.readings:
        raise MetricUnavailable(reason, _UNREADY)
    return groups


def _request(pod: Object, resource: str, container: str, reason: str) -> int:
    """Sum the requests of the long-running containers of a pod in thousandths, or return that of one."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = (spec.get("resources") or {}).get("requests")
    if own and not container:
        if resource not in own:
            raise MetricUnavailable(reason, f"missing pod-level request for {resource} in Pod {name}")
        return Quantity.parse(own[resource]).milli
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    chosen: Sequence[Object] = [each for each in (*spec["containers"], *sidecars) if container in ("", each["name"])]
    if not chosen:
        raise MetricUnavailable(reason, f"container {container} not found in Pod {name}")
    total = 0
    for each in chosen:
        requests = (each.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise MetricUnavailable(reason, f"missing request for {resource} in container {each['name']} of Pod {name}")
        total += Quantity.parse(requests[resource]).milli
    return total


def _amount(resource: str, milli: int) -> str:
    """Format thousandths as a quantity; memory in binary units where exact."""
    units, rest = divmod(milli, 1000)
    if resource == "memory" and not rest and units and units % 1024 == 0:
        return str(Quantity.parse("1Ki") * (units // 1024))
    return str(Quantity.parse(f"{milli}m"))
