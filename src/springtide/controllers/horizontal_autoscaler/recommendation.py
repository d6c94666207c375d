"""How many replicas one metric of a HorizontalAutoscaler recommends, and how the status shows the metric."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import PrometheusMetricSource, target_of
from springtide.cluster.resources import Object
from springtide.controllers.decision import ObservedScale
from springtide.quantity import Quantity
from springtide.scaling import MOST, ScalingTolerance, average_value_replicas, proportional_replicas

_NANO = 10**9


@dataclass(frozen=True, slots=True)
class MissingMetric:
    """A metric that could not be read."""

    reason: str
    """Why, in one CamelCase word."""
    message: str


@dataclass(frozen=True, slots=True)
class MetricRecommendation:
    """How many replicas a metric recommends."""

    replicas: int
    message: str


def recommend(
    source: PrometheusMetricSource, value: Fraction, scale: ObservedScale, tolerance: ScalingTolerance
) -> MetricRecommendation:
    """Turn the value of a metric into replicas, by the type of its target."""
    target = target_of(source.target)
    match source.target.type:
        case "AverageValue":
            # Not `present`: the metric is not measured on replicas, whose number differs during a rollout.
            replicas = average_value_replicas(value / target, current=scale.asked, tolerance=tolerance)
            message = f"is {_readable(value)}, at {_readable(target)} for each replica"
        case "Utilization":
            ratio = value * 100 / target
            replicas = proportional_replicas(ratio, asked=scale.asked, present=scale.present, tolerance=tolerance)
            message = f"is {_readable(value * 100)} % with {_count(scale.present)}, target {_readable(target)} %"
        case _:
            ratio = value / target
            replicas = proportional_replicas(ratio, asked=scale.asked, present=scale.present, tolerance=tolerance)
            message = f"is {_readable(value)} with {_count(scale.present)}, target {_readable(target)}"
    return MetricRecommendation(replicas, f"`{source.query}` {message}: {_count(replicas)}")


def metric_status(source: PrometheusMetricSource, reading: Fraction | MissingMetric, scale: ObservedScale) -> Object:
    """Write the entry of a metric in `currentMetrics`; a missing metric has no value."""
    current: Object = {}
    if isinstance(reading, Fraction):
        current["value"] = _quantity(reading)
        if source.target.type == "AverageValue" and scale.present:
            current["averageValue"] = _quantity(reading / scale.present)
        if source.target.type == "Utilization":
            current["averageUtilization"] = max(-MOST, min(MOST, round(reading * 100)))
    return {"prometheus": {"query": source.query, "current": current}}


def _quantity(value: Fraction) -> str:
    """Write a value as a quantity, rounded to thousandths so that tiny changes cause no status write."""
    return str(Quantity(round(value * 1000) * 10**6))


def _readable(value: Fraction) -> str:
    """Write a value for messages, rounded to thousandths."""
    whole, rest = divmod(round(abs(value) * 1000), 1000)
    sign = "-" if value < 0 and (whole or rest) else ""
    return f"{sign}{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"


def _count(replicas: int) -> str:
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"
