"""FederatedHPA: an autoscaler over several clusters, which cron rules can target.

Its metrics are those of Kubernetes' HorizontalPodAutoscaler, version 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from springtide.apis.core.resources import name_problems
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
    by_key,
    doc,
    text_format,
)
from springtide.apis.meta.scaling import DirectionRules, ScaleTargetSpec, SpeedLimit
from springtide.apis.meta.types import Generation, LabelSelectorView, Object, ScaleTargetReference
from springtide.apis.problems import Problem, error, warning
from springtide.quantity import Quantity as Amount

_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_TARGETS = {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}
_TYPES = {name: type_ for type_, name in _TARGETS.items()}
_ALLOWED_TARGETS = {
    "Resource": ("averageUtilization", "averageValue"),
    "ContainerResource": ("averageUtilization", "averageValue"),
    "Pods": ("averageValue",),
    "Object": ("value", "averageValue"),
    "External": ("value", "averageValue"),
}
"""The target fields that each source accepts."""

_SECOND_TARGET = {"Resource": "averageValue", "ContainerResource": "averageValue", "External": "value"}
"""The field that the API server names where both targets of a HorizontalPodAutoscaler are set."""

MetricType = Literal["Resource", "ContainerResource", "Pods", "Object", "External"]


class MetricIdentifier(View, kw_only=True):
    """A metric by name."""

    name: Annotated[NonEmpty, doc("Name of the metric."), text_format("path-segment")]
    selector: Annotated[LabelSelectorView | None, doc("Labels of the series; all of the name if not set.")] = None


class FederatedMetricTarget(View, kw_only=True):
    """The target value of the metric."""

    type: Annotated[
        Literal["Utilization", "Value", "AverageValue"],
        doc("Utilization is a percentage of requests, Value the whole, AverageValue the part of each pod."),
    ]
    value: Annotated[Quantity | None, doc("The target of type Value.")] = None
    average_value: Annotated[Quantity | None, doc("The target of type AverageValue.")] = None
    average_utilization: Annotated[PositiveCount | None, doc("The percentage of type Utilization.")] = None

    def problems_for(self, source: str) -> Iterator[Problem]:
        """Find targets that a source of this type does not accept.

        The rules are those of HorizontalPodAutoscalers. The controller uses the field that is set, whatever the type
        says, so a wrong type is only a warning.
        """
        amounts = {"averageValue": self.average_value, "value": self.value}
        for name, amount in amounts.items():
            if amount is not None and Amount.parse(amount).sign <= 0:
                yield error((name,), f"a target must be positive, is {amount}")
        numbers = {"averageUtilization": self.average_utilization, **amounts}
        taken = _ALLOWED_TARGETS[source]
        given = [name for name, number in numbers.items() if number is not None and name in taken]
        if not given:
            listed = " or ".join(f"`{name}`" for name in taken)
            yield error((taken[0],), f"the target of a metric of type {source} needs {listed}", f"write {listed}")
        elif len(given) > 1 and source != "Object":
            both = " and ".join(f"`{name}`" for name in given)
            message = f"the target of a metric of type {source} cannot have both {both}"
            yield error((_SECOND_TARGET[source],), message, "keep one of them")
        elif _TARGETS[self.type] not in given:
            message = f"the type is {self.type}, but the target is given as `{given[0]}`, which is used"
            yield warning(("type",), message, f"write `type: {_TYPES[given[0]]}`")


_ONE_RESOURCE_TARGET = CelRule(
    "!has(self.target.averageUtilization) || !has(self.target.averageValue)",
    "Set either averageUtilization or averageValue in the target of a resource.",
    extension=True,
)


class ResourceMetricSource(View, kw_only=True):
    """CPU or memory of the pods."""

    __rules__ = (_ONE_RESOURCE_TARGET,)

    name: Annotated[NonEmpty, doc("The resource: cpu or memory.")]
    target: Annotated[FederatedMetricTarget, doc("The target value.")]


class ContainerResourceMetricSource(View, kw_only=True):
    """CPU or memory of one container of the pods."""

    __rules__ = (_ONE_RESOURCE_TARGET,)

    name: Annotated[NonEmpty, doc("The resource: cpu or memory.")]
    container: Annotated[NonEmpty, doc("The container."), text_format("dns-label")]
    target: Annotated[FederatedMetricTarget, doc("The target value.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find resources that no container has."""
        for problem in name_problems({self.name: None}):
            yield error(("name",), problem.message, problem.hint)


class PodsMetricSource(View, kw_only=True):
    """A metric that every pod has."""

    metric: Annotated[MetricIdentifier, doc("Which metric.")]
    target: Annotated[FederatedMetricTarget, doc("The target value.")]


class ObjectMetricSource(View, kw_only=True):
    """A metric of one other object."""

    described_object: Annotated[ScaleTargetReference, doc("The object.")]
    metric: Annotated[MetricIdentifier, doc("Which metric.")]
    target: Annotated[FederatedMetricTarget, doc("The target value.")]


class ExternalMetricSource(View, kw_only=True):
    """A metric from outside the cluster."""

    __rules__ = (
        CelRule(
            "!has(self.target.value) || !has(self.target.averageValue)",
            "Set either value or averageValue in the target of an external metric.",
            extension=True,
        ),
    )

    metric: Annotated[MetricIdentifier, doc("Which metric.")]
    target: Annotated[FederatedMetricTarget, doc("The target value.")]


class MetricSpec(View, kw_only=True):
    """One metric: its type, and the source of that type."""

    type: Annotated[MetricType, doc("Which of the sources is set.")]
    resource: Annotated[ResourceMetricSource | None, doc("Of the pods' requests.")] = None
    container_resource: Annotated[ContainerResourceMetricSource | None, doc("Of one container's requests.")] = None
    pods: Annotated[PodsMetricSource | None, doc("Of every pod.")] = None
    object: Annotated[ObjectMetricSource | None, doc("Of another object.")] = None
    external: Annotated[ExternalMetricSource | None, doc("From outside the cluster.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find metrics whose source does not match their type."""
        given = {
            "resource": self.resource,
            "containerResource": self.container_resource,
            "pods": self.pods,
            "object": self.object,
            "external": self.external,
        }
        wanted = _SOURCES[self.type]
        if given[wanted] is None:
            yield error((wanted,), f"a metric of type {self.type} needs `{wanted}`", f"write `{wanted}`")
        for name, source in given.items():
            if source is None:
                continue
            if name != wanted:
                yield error((name,), f"`{name}` does not go with type {self.type}", f"remove `{name}`")
            else:
                for problem in source.target.problems_for(self.type):
                    yield problem.under(name, "target")


class FederatedMetricValueStatus(View, kw_only=True):
    """A value of a metric."""

    value: Annotated[Quantity | None, doc("The whole.")] = None
    average_value: Annotated[Quantity | None, doc("The part of each pod.")] = None
    average_utilization: Annotated[Int32 | None, doc("The percentage of requests.")] = None


class ResourceMetricStatus(View, kw_only=True):
    """The latest value of a resource."""

    name: Annotated[str, doc("The resource.")]
    current: Annotated[FederatedMetricValueStatus, doc("Its value.")]


class ContainerResourceMetricStatus(View, kw_only=True):
    """The latest value of a container's resource."""

    name: Annotated[str, doc("The resource.")]
    container: Annotated[str, doc("The container.")]
    current: Annotated[FederatedMetricValueStatus, doc("Its value.")]


class NamedMetricStatus(View, kw_only=True):
    """The latest value of a metric with a name."""

    metric: Annotated[MetricIdentifier, doc("The metric.")]
    current: Annotated[FederatedMetricValueStatus, doc("Its value.")]


class ObjectMetricStatus(View, kw_only=True):
    """The latest value of another object's metric."""

    described_object: Annotated[ScaleTargetReference, doc("The object.")]
    metric: Annotated[MetricIdentifier, doc("The metric.")]
    current: Annotated[FederatedMetricValueStatus, doc("Its value.")]


class FederatedMetricStatus(View, kw_only=True):
    """The latest value of one metric."""

    type: Annotated[MetricType, doc("Which of the sources is set.")]
    resource: Annotated[ResourceMetricStatus | None, doc("Of the pods' requests.")] = None
    container_resource: Annotated[ContainerResourceMetricStatus | None, doc("Of one container's requests.")] = None
    pods: Annotated[NamedMetricStatus | None, doc("Of every pod.")] = None
    object: Annotated[ObjectMetricStatus | None, doc("Of another object.")] = None
    external: Annotated[NamedMetricStatus | None, doc("From outside the cluster.")] = None


class FederatedScalingPolicy(SpeedLimit, kw_only=True):
    """How much may change within a period."""

    type: Annotated[Literal["Pods", "Percent"], doc("Whether `value` is a number of pods or a percentage.")]


class FederatedScalingRules(DirectionRules, kw_only=True):
    """How replicas may change in one direction."""

    policies: Annotated[
        Annotated[tuple[FederatedScalingPolicy, ...], Meta(min_length=1)] | None,
        doc("Limits of the speed, at least one."),
    ] = None
    tolerance: Annotated[
        Quantity | None, doc("The relative deviation from the target without any change; 0.1 if not set.")
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find negative tolerances."""
        if self.tolerance is not None and Amount.parse(self.tolerance).sign < 0:
            yield error(("tolerance",), f"a tolerance cannot be negative, is {self.tolerance}", "write a part, as 0.1")


class FederatedBehavior(View, kw_only=True):
    """How replicas may change."""

    scale_up: Annotated[FederatedScalingRules | None, doc("Rules for more replicas.")] = None
    scale_down: Annotated[FederatedScalingRules | None, doc("Rules for fewer replicas.")] = None


class FederatedHPASpec(View, kw_only=True):
    """What is scaled, between which bounds, and by what."""

    __rules__ = (
        CelRule("self.minReplicas <= self.maxReplicas", "Set maxReplicas to at least minReplicas.", extension=True),
    )

    scale_target_ref: Annotated[ScaleTargetSpec, doc("What is scaled.")]
    min_replicas: Annotated[PositiveCount, doc("Never fewer replicas than this.")] = 1
    max_replicas: Annotated[PositiveCount, doc("Never more replicas than this.")]
    metrics: Annotated[tuple[MetricSpec, ...] | None, doc("What is followed; 80 % of requested CPU if not set.")] = None
    behavior: Annotated[FederatedBehavior | None, doc("How fast replicas may change.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find a maximum below the minimum."""
        if self.max_replicas < self.min_replicas:
            yield error(
                ("maxReplicas",),
                f"maxReplicas {self.max_replicas} is smaller than minReplicas {self.min_replicas}",
                f"raise `maxReplicas` to {self.min_replicas} or more, or lower `minReplicas`",
            )


class AutoscalerCondition(View, kw_only=True):
    """One observation about an autoscaler."""

    type: Annotated[str, doc("What is observed: ScalingActive, AbleToScale or ScalingLimited.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    last_transition_time: Annotated[Time | None, doc("When the status last changed.")] = None
    reason: Annotated[str | None, doc("Why, in one CamelCase word.")] = None
    message: Annotated[str | None, doc("Why, in a sentence.")] = None


class FederatedHPAStatus(View, kw_only=True):
    """The last observation and action of the autoscaler."""

    observed_generation: Annotated[Generation | None, doc("The generation that this is about.")] = None
    last_scale_time: Annotated[Time | None, doc("When replicas were changed last.")] = None
    current_replicas: Annotated[Count | None, doc("Replicas that were observed.")] = None
    desired_replicas: Annotated[Count | None, doc("Replicas that were requested.")] = None
    current_metrics: Annotated[tuple[FederatedMetricStatus, ...] | None, doc("The latest values of the metrics.")] = (
        None
    )
    conditions: Annotated[
        Annotated[tuple[AutoscalerCondition, ...], by_key("type")] | None, doc("Whether and how it can scale.")
    ] = None


class FederatedHPA(Object, kw_only=True):
    """Scales a workload that runs in several clusters, by metrics of all of them."""

    spec: Annotated[FederatedHPASpec, doc("What is scaled, and by what.")]
    status: Annotated[FederatedHPAStatus | None, doc("The last observation and action.")] = None
