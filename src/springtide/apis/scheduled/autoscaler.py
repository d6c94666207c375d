"""HorizontalAutoscaler: scales any object with a scale subresource by Prometheus queries.

At the end are the functions that turn a spec without errors into the terms of `springtide.scaling`, for the controller,
for `explain` and for forecasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from springtide.apis.kinds import (
    CelRule,
    Count,
    Int32,
    NonEmpty,
    PositiveCount,
    Quantity,
    Time,
    ValidationContext,
    View,
    at_most,
    doc,
    extension,
)
from springtide.apis.meta.scaling import DirectionRules, ScaleTargetSpec, SpeedLimit, api_group_of
from springtide.apis.meta.types import KnativeConditions, Object
from springtide.apis.problems import Problem, error, warning
from springtide.apis.scheduled.promql import MAX_QUERY, query_problems
from springtide.quantity import Quantity as Amount
from springtide.scaling import (
    DOWN_WINDOW,
    UP_WINDOW,
    ChangePolicy,
    DirectionLimits,
    PolicySelect,
    ScalingBehavior,
    ScalingBounds,
    ScalingTolerance,
)

MOST_METRICS = 32
_MOST_POLICIES = 32
"""Limits for the work that one object causes on every reconcile."""
_WITHOUT_REPLICAS = {
    "CronFederatedHPA": "autoscaling.karmada.io",
    "FederatedHPA": "autoscaling.karmada.io",
    "HorizontalAutoscaler": "autoscaling.karpenter.sh",
    "HorizontalPodAutoscaler": "autoscaling",
    "ScaledObject": "keda.sh",
}
"""Autoscalers, which have no scale subresource, with their groups; those of another group may have one."""
_WHOLE = 10**9
"""One, in billionths."""
_FIELD_OF_TYPE = {"Value": "value", "AverageValue": "averageValue", "Utilization": "averageUtilization"}


class MetricTarget(View, kw_only=True):
    """The target value of the metric, and how replicas are computed from it."""

    __rules__ = (
        CelRule(
            "has(self.value) || has(self.averageValue) || has(self.averageUtilization)",
            "Set value, which goes with every type.",
            extension=True,
        ),
    )

    type: Annotated[
        Literal["Value", "AverageValue", "Utilization"],
        doc(
            "Value and Utilization keep the metric at the target by changing replicas in proportion;"
            " AverageValue divides the metric by the target."
        ),
    ]
    value: Annotated[Quantity | None, doc("The target, for every type; a percentage for Utilization.")] = None
    average_value: Annotated[Quantity | None, doc("The target of type AverageValue, if `value` is not set.")] = None
    average_utilization: Annotated[
        PositiveCount | None, doc("The percentage of type Utilization, if `value` is not set.")
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find targets that are absent, that do not fit the type, or that nothing can be divided by."""
        given = {
            name: target
            for name, target in (
                ("value", self.value),
                ("averageValue", self.average_value),
                ("averageUtilization", self.average_utilization),
            )
            if target is not None
        }
        fitting = [name for name in ("value", _FIELD_OF_TYPE[self.type]) if name in given]
        if not fitting:
            written = " and ".join(f"`{name}`" for name in given)
            yield error(
                (next(iter(given)),) if given else ("value",),
                f"a target of type {self.type} does not read {written}" if given else "the target has no value",
                "write `value`",
            )
            return
        for name, target in given.items():
            if name != fitting[0]:
                yield warning((name,), f"`{name}` is not read: `{fitting[0]}` is the target", f"remove `{name}`")
            elif Amount.parse(target).sign <= 0:
                yield error((name,), f"a target must be positive, is {target}")


class PrometheusMetricSource(View, kw_only=True):
    """A query, and what its result shall be."""

    query: Annotated[Annotated[NonEmpty, at_most(MAX_QUERY)], doc("PromQL with exactly one sample as its result.")]
    target: Annotated[MetricTarget, doc("What the result shall be.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find queries that Prometheus will refuse."""
        yield from query_problems(self.query, ("query",))


class Metric(View, kw_only=True):
    """One source of recommendations."""

    __rules__ = (CelRule("has(self.prometheus)", "Set prometheus, the one source there is.", extension=True),)

    prometheus: Annotated[PrometheusMetricSource | None, doc("A query of Prometheus.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find metrics without a source."""
        if self.prometheus is None:
            yield error(("prometheus",), "the metric has no source", "set `prometheus`")


class ScalingPolicy(SpeedLimit, kw_only=True):
    """How much may change within a period."""

    type: Annotated[Literal["Count", "Percent"], doc("Whether `value` is a number of replicas or a percentage.")]


class ScalingRules(DirectionRules, kw_only=True):
    """How replicas may change in one direction."""

    policies: Annotated[
        Annotated[tuple[ScalingPolicy, ...], at_most(_MOST_POLICIES)] | None, doc("Limits of the speed.")
    ] = None
    tolerance: Annotated[
        Quantity | None,
        doc("The relative deviation from the target without any change in this direction; 0 if not set."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find negative tolerances."""
        if self.tolerance is not None and Amount.parse(self.tolerance).sign < 0:
            yield error(("tolerance",), f"a tolerance cannot be negative, is {self.tolerance}", "write a part, as 0.1")


class Behavior(View, kw_only=True):
    """How replicas may change."""

    scale_up: Annotated[ScalingRules | None, doc("Rules for more replicas.")] = None
    scale_down: Annotated[ScalingRules | None, doc("Rules for fewer replicas.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find behaviours that forbid every change."""
        directions = (self.scale_up, self.scale_down)
        if all(rules is not None and rules.select_policy == "Disabled" for rules in directions):
            yield warning((), "both directions are Disabled: nothing will ever be scaled")
        down = self.scale_down.tolerance if self.scale_down is not None else None
        if down is not None and Amount.parse(down).nano >= _WHOLE:
            hint = "write a part, as 0.1; `selectPolicy: Disabled` disables scaling down"
            yield warning(("scaleDown", "tolerance"), f"no metric is ever {down} below its target", hint)


class HorizontalAutoscalerSpec(View, kw_only=True):
    """What is scaled, between which bounds, and by what."""

    __rules__ = (
        CelRule("self.minReplicas <= self.maxReplicas", "Set maxReplicas to at least minReplicas.", extension=True),
    )

    scale_target_ref: Annotated[ScaleTargetSpec, doc("What is scaled.")]
    min_replicas: Annotated[Count, doc("Never fewer replicas than this; 0 is allowed.")]
    max_replicas: Annotated[Count, doc("Never more replicas than this.")]
    metrics: Annotated[
        Annotated[tuple[Metric, ...], at_most(MOST_METRICS)] | None,
        doc("Where recommendations come from; the highest counts, if not said otherwise."),
    ] = None
    behavior: Annotated[Behavior | None, doc("How fast replicas may change.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find a maximum below the minimum, targets that cannot be scaled, and autoscalers without metrics."""
        target = self.scale_target_ref
        group = _WITHOUT_REPLICAS.get(target.kind)
        if group is not None and api_group_of(target.api_version or "") in ("", group):
            yield error(
                ("scaleTargetRef", "kind"),
                f"a {target.kind} has no replicas to set",
                "name the workload itself; or let a CronFederatedHPA move the bounds of an autoscaler",
            )
        if self.max_replicas < self.min_replicas:
            yield error(
                ("maxReplicas",),
                f"maxReplicas {self.max_replicas} is smaller than minReplicas {self.min_replicas}",
                f"raise `maxReplicas` to {self.min_replicas} or more, or lower `minReplicas`",
            )
        if not self.metrics:
            yield warning(("metrics",), "there are no metrics: the target is never scaled", "add a `prometheus` metric")


class MetricValueStatus(View, kw_only=True):
    """A value of a metric."""

    value: Annotated[Quantity | None, doc("The value.")] = None
    average_value: Annotated[Quantity | None, doc("The value for each replica.")] = None
    average_utilization: Annotated[Int32 | None, doc("The percentage.")] = None


class PrometheusMetricStatus(View, kw_only=True):
    """What a query answered."""

    query: Annotated[str, doc("The query.")]
    current: Annotated[MetricValueStatus, doc("Its latest result.")]


class MetricStatus(View, kw_only=True):
    """The latest result of a metric."""

    prometheus: Annotated[PrometheusMetricStatus | None, doc("Of a query of Prometheus.")] = None


class ReplicaChange(View, kw_only=True):
    """A change of the replicas."""

    time: Annotated[Time, doc("When it was made.")]
    change: Annotated[Int32, doc("By how many replicas; fewer are negative.")]
    doubtful: Annotated[bool | None, doc("Whether another client may have made it, while no controller ran.")] = None


class HorizontalAutoscalerStatus(View, kw_only=True):
    """The last observation and action of the autoscaler."""

    last_scale_time: Annotated[Time | None, doc("When replicas were changed last.")] = None
    current_replicas: Annotated[Count | None, doc("Replicas that were observed.")] = None
    desired_replicas: Annotated[Count | None, doc("Replicas that were requested.")] = None
    current_metrics: Annotated[
        tuple[MetricStatus, ...] | None, doc("The latest results, in the order of the spec.")
    ] = None
    recent_changes: Annotated[
        tuple[ReplicaChange, ...] | None,
        doc("Changes that still count against a policy; absent without policies."),
        extension,
    ] = None
    conditions: Annotated[
        KnativeConditions | None, doc("Active, AbleToScale, ScalingUnbounded; Ready is all of them.")
    ] = None


class HorizontalAutoscaler(Object, kw_only=True):
    """Scales an object by metrics, such as one that a MetricsProducer makes."""

    spec: Annotated[HorizontalAutoscalerSpec, doc("What is scaled, and by what.")]
    status: Annotated[HorizontalAutoscalerStatus | None, doc("The last observation and action.")] = None


def sources_of(spec: HorizontalAutoscalerSpec) -> tuple[PrometheusMetricSource, ...]:
    """List the queries of an autoscaler; validation refuses a metric without one."""
    return tuple(metric.prometheus for metric in spec.metrics or () if metric.prometheus is not None)


def bounds_of(spec: HorizontalAutoscalerSpec) -> ScalingBounds:
    """Read minimum and maximum."""
    return ScalingBounds(spec.min_replicas, spec.max_replicas)


def behaviour_of(spec: HorizontalAutoscalerSpec) -> ScalingBehavior:
    """Read how replicas may change, with the defaults for what the spec leaves out."""
    written = spec.behavior
    return ScalingBehavior(
        up=_limits(written.scale_up if written is not None else None, UP_WINDOW),
        down=_limits(written.scale_down if written is not None else None, DOWN_WINDOW),
    )


def tolerance_of(spec: HorizontalAutoscalerSpec) -> ScalingTolerance:
    """Read how far metrics may be from their targets without a change; the default is not at all."""
    written = spec.behavior
    down, up = (written.scale_down, written.scale_up) if written is not None else (None, None)
    return ScalingTolerance(down=_tolerated(down), up=_tolerated(up))


def _tolerated(written: ScalingRules | None) -> Fraction:
    return exact_quantity(written.tolerance) if written is not None and written.tolerance is not None else Fraction(0)


def _limits(written: ScalingRules | None, window: int) -> DirectionLimits:
    if written is None:
        return DirectionLimits(window)
    given = written.stabilization_window_seconds
    return DirectionLimits(
        window if given is None else given,
        PolicySelect(written.select_policy or PolicySelect.MAX),
        tuple(ChangePolicy(one.value, one.period_seconds, one.type == "Percent") for one in written.policies or ()),
    )


def is_proportional(source: PrometheusMetricSource) -> bool:
    """Return whether the recommendation of a metric depends on the replicas that are present."""
    return source.target.type != "AverageValue"


def target_of(target: MetricTarget) -> Fraction:
    """Return the target value of a metric: `value` counts for every type, else the field of the type does."""
    own = target.average_utilization if target.type == "Utilization" else target.average_value
    written = target.value if target.value is not None else own
    assert written is not None  # noqa: S101 - validation refuses a target without one
    return exact_quantity(written)


def exact_quantity(quantity: str | int | float) -> Fraction:
    """Return a quantity as an exact number."""
    return Fraction(Amount.parse(quantity).nano, _WHOLE)
