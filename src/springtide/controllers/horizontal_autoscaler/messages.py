"""What the conditions of a HorizontalAutoscaler say.

True means healthy. Active: the metrics are read. AbleToScale: the target can be scaled to what they recommend now; it
is False while a stabilization window or a policy delays that, or while the target cannot be scaled. ScalingUnbounded:
it can be scaled to that at all; it is False where bounds or a disabled direction never allow it.
"""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.forecast import format_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.controllers.horizontal_autoscaler.recommendation import MetricRecommendation, MissingMetric
from springtide.scaling import ScalingBehavior, ScalingMove


def active_condition(known: Sequence[MetricRecommendation]) -> Condition:
    """Say what each metric recommends."""
    return Condition("Active", ConditionStatus.TRUE, "MetricsRead", "; ".join(one.message for one in known))


def inactive_condition(missing: Sequence[MissingMetric], known: Sequence[MetricRecommendation]) -> Condition:
    """Say which metrics are missing, what follows from that, and what the others recommend."""
    return Condition(
        "Active",
        ConditionStatus.FALSE,
        missing[0].reason,
        "; ".join([missing_metrics_message(missing), *(one.message for one in known)]),
    )


def missing_metrics_message(missing: Sequence[MissingMetric]) -> str:
    """Say which metrics are missing; without the other recommendations, which change all the time."""
    return "; ".join([*(one.message for one in missing), "nothing is scaled down meanwhile"])


def no_metrics_condition() -> Condition:
    """Say that the autoscaler never scales, since it has no metrics."""
    message = "spec.metrics is empty, so the target is left as it is: add a `prometheus` metric"
    return Condition("Active", ConditionStatus.FALSE, "NoMetrics", message)


def no_metrics_conditions() -> tuple[Condition, ...]:
    """Say that nothing is asked for, since there are no metrics."""
    return (
        no_metrics_condition(),
        Condition("AbleToScale", ConditionStatus.TRUE, "NoMetrics", "the target can be scaled"),
        Condition("ScalingUnbounded", ConditionStatus.TRUE, "NoMetrics", "no metric asks for any replicas"),
    )


def invalid_conditions(message: str) -> tuple[Condition, ...]:
    """Say that the object has errors."""
    return (
        Condition("Active", ConditionStatus.FALSE, "Invalid", message),
        Condition(
            "AbleToScale", ConditionStatus.UNKNOWN, "Invalid", "the target is not read before the object is corrected"
        ),
        _bounds_unknown("Invalid"),
    )


def not_scalable_conditions(reason: str, message: str, missing: Sequence[MissingMetric]) -> tuple[Condition, ...]:
    """Say that the target cannot be scaled, and which metrics are missing as well."""
    if missing:
        causes = "; ".join(one.message for one in missing)
        active = Condition("Active", ConditionStatus.FALSE, missing[0].reason, causes)
    else:
        unused = "what the metrics ask for is not computed before the target can be scaled"
        active = Condition("Active", ConditionStatus.UNKNOWN, reason, unused)
    return (
        active,
        Condition("AbleToScale", ConditionStatus.FALSE, reason, message),
        _bounds_unknown(reason),
    )


def _bounds_unknown(reason: str) -> Condition:
    return Condition("ScalingUnbounded", ConditionStatus.UNKNOWN, reason, "it is not known what the metrics ask for")


def able_to_scale_condition(moved: ScalingMove, behaviour: ScalingBehavior) -> Condition:
    """Say whether a window or a policy delays the change, and until when."""
    if moved.window is None and moved.speed is None:
        return Condition(
            "AbleToScale", ConditionStatus.TRUE, "ReadyForNewScale", "what the metrics ask for can be done now"
        )
    which, rules = ("scaleUp", behaviour.up) if moved.up else ("scaleDown", behaviour.down)
    more, best = ("more", "fewer") if moved.up else ("fewer", "more")
    limits = []
    if moved.speed is not None:
        until = format_instant(moved.speed.until)
        limits.append(f"{more} than {moved.speed.at} not before {until}: the policies of {which} allow no more at once")
    if moved.window is not None:
        until = format_instant(moved.window.until)
        why = (
            f"the metrics have not been watched for {rules.window} s yet"
            if moved.window.unseen
            else f"within the last {rules.window} s {best} replicas were asked for than now"
        )
        limits.append(f"{more} than {moved.window.at} not before {until}: {why}")
    direction = "ScaleUp" if moved.up else "ScaleDown"
    reason = f"{direction}{'Stabilized' if moved.window is not None else 'Limited'}"
    return Condition("AbleToScale", ConditionStatus.FALSE, reason, "; ".join(limits))


def unbounded_condition(spec: HorizontalAutoscalerSpec, wanted: int, moved: ScalingMove) -> Condition:
    """Say whether bounds or a disabled direction prevent the change."""
    least, most = spec.min_replicas, spec.max_replicas
    if moved.disabled:
        direction = "Up" if moved.up else "Down"
        message = f"{wanted} replicas are asked for, and `selectPolicy` of scale{direction} is Disabled"
        return Condition("ScalingUnbounded", ConditionStatus.FALSE, f"Scale{direction}Disabled", message)
    if wanted > most:
        message = f"{wanted} replicas are asked for, more than maxReplicas {most}"
        return Condition("ScalingUnbounded", ConditionStatus.FALSE, "TooManyReplicas", message)
    if wanted < least:
        message = f"{wanted} replicas are asked for, fewer than minReplicas {least}"
        return Condition("ScalingUnbounded", ConditionStatus.FALSE, "TooFewReplicas", message)
    message = f"what is asked for lies between minReplicas {least} and maxReplicas {most}"
    return Condition("ScalingUnbounded", ConditionStatus.TRUE, "WithinBounds", message)


def disagreement_message(known: Sequence[MetricRecommendation]) -> str:
    """Say that the recommendations differ, so that none of them is followed."""
    numbers = [one.replicas for one in known]
    return f"the metrics ask for {min(numbers)} to {max(numbers)} replicas, and agree on no change"
