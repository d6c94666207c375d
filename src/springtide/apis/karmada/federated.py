"""FederatedHPA: an autoscaler over several clusters, here as the target of cron rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from springtide.apis.fields import (
    Context,
    Count,
    PositiveCount,
    Quantity,
    Rule,
    Time,
    View,
    by_key,
    doc,
)
from springtide.apis.karmada.metrics import MetricSpec, MetricStatus
from springtide.apis.meta.scale_targets import ScaleTarget
from springtide.apis.meta.scaling import DirectionRules, SpeedLimit
from springtide.apis.meta.types import Generation, Object
from springtide.apis.problems import Problem, error


class ScalingPolicy(SpeedLimit, kw_only=True):
    """How much may change within a period."""

    type: Annotated[Literal["Pods", "Percent"], doc("Whether `value` is a number of pods or a percentage.")]


class ScalingRules(DirectionRules, kw_only=True):
    """How replicas may change in one direction."""

    policies: Annotated[
        Annotated[tuple[ScalingPolicy, ...], Meta(min_length=1)] | None, doc("Limits of the speed, at least one.")
    ] = None
    tolerance: Annotated[
        Quantity | None, doc("By which part a metric may miss its target without any change; 0.1 if not set.")
    ] = None


class Behavior(View, kw_only=True):
    """How replicas may change."""

    scale_up: Annotated[ScalingRules | None, doc("Rules for more replicas.")] = None
    scale_down: Annotated[ScalingRules | None, doc("Rules for fewer replicas.")] = None


class FederatedHPASpec(View, kw_only=True):
    """What is scaled, between which bounds, and by what."""

    __rules__ = (
        Rule("self.minReplicas <= self.maxReplicas", "Set maxReplicas to at least minReplicas.", extension=True),
    )

    scale_target_ref: Annotated[ScaleTarget, doc("What is scaled.")]
    min_replicas: Annotated[PositiveCount, doc("Never fewer replicas than this.")] = 1
    max_replicas: Annotated[PositiveCount, doc("Never more replicas than this.")]
    metrics: Annotated[tuple[MetricSpec, ...] | None, doc("What is followed; 80 % of requested CPU if not set.")] = None
    behavior: Annotated[Behavior | None, doc("How fast replicas may change.")] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find bounds that leave no number of replicas."""
        if self.max_replicas < self.min_replicas:
            yield error(
                ("maxReplicas",),
                f"maxReplicas {self.max_replicas} is smaller than minReplicas {self.min_replicas}",
                "swap them",
            )


class AutoscalerCondition(View, kw_only=True):
    """One observation about an autoscaler."""

    type: Annotated[str, doc("What is observed: ScalingActive, AbleToScale or ScalingLimited.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    last_transition_time: Annotated[Time | None, doc("When the status last changed.")] = None
    reason: Annotated[str | None, doc("Why, in one CamelCase word.")] = None
    message: Annotated[str | None, doc("Why, in a sentence.")] = None


class FederatedHPAStatus(View, kw_only=True):
    """What the autoscaler saw and did last."""

    observed_generation: Annotated[Generation | None, doc("The generation that this is about.")] = None
    last_scale_time: Annotated[Time | None, doc("When replicas were changed last.")] = None
    current_replicas: Annotated[Count | None, doc("Replicas that were observed.")] = None
    desired_replicas: Annotated[Count | None, doc("Replicas that were asked for.")] = None
    current_metrics: Annotated[tuple[MetricStatus, ...] | None, doc("The latest values of the metrics.")] = None
    conditions: Annotated[
        Annotated[tuple[AutoscalerCondition, ...], by_key("type")] | None, doc("Whether and how it can scale.")
    ] = None


class FederatedHPA(Object, kw_only=True):
    """Scales a workload that runs in several clusters, by metrics of all of them."""

    spec: Annotated[FederatedHPASpec, doc("What is scaled, and by what.")]
    status: Annotated[FederatedHPAStatus | None, doc("What was seen and done.")] = None
