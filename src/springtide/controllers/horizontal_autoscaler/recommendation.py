"""What one metric of a HorizontalAutoscaler asks for, and what its status and people are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import MetricTarget, PrometheusMetricSource
from springtide.cluster.resources import Object
from springtide.quantity import Quantity
from springtide.scaling import MOST, ScalingTolerance, average_value_replicas, proportional_replicas

_NANO = 10**9


@dataclass(frozen=True, slots=True)
class ObservedScale:
    """The scale of a target, as it was read."""

    asked: int
    """How many replicas there should be."""
    present: int
    """How many there are."""


@dataclass(frozen=True, slots=True)
class MissingMetric:
    """A metric that could not be read."""

    reason: str
    """Why, in one CamelCase word."""
    message: str


@dataclass(frozen=True, slots=True)
class MetricRecommendation:
    """What a metric asks for."""

    replicas: int
    words: str


def recommend(
    source: PrometheusMetricSource, value: Fraction, scale: ObservedScale, tolerance: ScalingTolerance
) -> MetricRecommendation:
    """Turn the value of a metric into a number of replicas, by the type of its target."""
    target = target_of(source.target)
    match source.target.type:
        case "AverageValue":
            # Nothing was measured on those that are present: during a rollout there are more or fewer for a while.
            replicas = average_value_replicas(value / target, current=scale.asked, tolerance=tolerance)
            words = f"is {_readable(value)}, at {_readable(target)} for each replica"
        case "Utilization":
            ratio = value * 100 / target
            replicas = proportional_replicas(ratio, asked=scale.asked, present=scale.present, tolerance=tolerance)
            words = f"is {_readable(value * 100)} % with {_count(scale.present)}, and shall be {_readable(target)} %"
        case _:
            ratio = value / target
            replicas = proportional_replicas(ratio, asked=scale.asked, present=scale.present, tolerance=tolerance)
            words = f"is {_readable(value)} with {_count(scale.present)}, and shall be {_readable(target)}"
    return MetricRecommendation(replicas, f"`{source.query}` {words}: {_count(replicas)}")


def is_proportional(source: PrometheusMetricSource) -> bool:
    """Tell whether what a metric asks for depends on the replicas that are there."""
    return source.target.type != "AverageValue"


def target_of(target: MetricTarget) -> Fraction:
    """Give what a metric shall be: `value` goes with every type, else the type has a field of its own."""
    own = target.average_utilization if target.type == "Utilization" else target.average_value
    written = target.value if target.value is not None else own
    assert written is not None  # noqa: S101 - an object without it is not sound
    return exact_quantity(written)


def exact_quantity(quantity: str | int | float) -> Fraction:
    """Give a quantity as the number that it is."""
    return Fraction(Quantity.parse(quantity).nano, _NANO)


def metric_status(source: PrometheusMetricSource, reading: Fraction | MissingMetric, scale: ObservedScale) -> Object:
    """Write the entry of a metric in `currentMetrics`; one that could not be read has no value."""
    current: Object = {}
    if isinstance(reading, Fraction):
        current["value"] = _shown(reading)
        if source.target.type == "AverageValue" and scale.present:
            current["averageValue"] = _shown(reading / scale.present)
        if source.target.type == "Utilization":
            current["averageUtilization"] = max(-MOST, min(MOST, round(reading * 100)))
    return {"prometheus": {"query": source.query, "current": current}}


def _shown(value: Fraction) -> str:
    """Write a value as a quantity, to the nearest thousandth: finer changes are no news."""
    return str(Quantity(round(value * 1000) * 10**6))


def _readable(value: Fraction) -> str:
    """Write a value as people say it, to the nearest thousandth."""
    whole, rest = divmod(round(abs(value) * 1000), 1000)
    sign = "-" if value < 0 and (whole or rest) else ""
    return f"{sign}{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"


def _count(replicas: int) -> str:
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"
