"""What the conditions of a HorizontalAutoscaler say.

True is happy. Active tells whether the metrics are read. AbleToScale tells whether what they ask for can be done now:
it cannot while something holds it back for a time, or while the target cannot be scaled. ScalingUnbounded tells
whether it can be done at all: bounds and disabled directions never allow it.
"""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.forecast import format_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster.conditions import Condition, Truth
from springtide.controllers.horizontal_autoscaler.recommending import Missing, Recommendation
from springtide.scaling import Behaviour, Move


def active(known: Sequence[Recommendation]) -> Condition:
    """Say what all metrics ask for."""
    return Condition("Active", Truth.TRUE, "MetricsRead", "; ".join(one.words for one in known))


def inactive(missing: Sequence[Missing], known: Sequence[Recommendation]) -> Condition:
    """Say which metrics are missing, what that means, and what the others ask for."""
    return Condition(
        "Active", Truth.FALSE, missing[0].reason, "; ".join([lacking(missing), *(one.words for one in known)])
    )


def lacking(missing: Sequence[Missing]) -> str:
    """Say which metrics are missing, and what that means; what the others ask for changes all the time."""
    return "; ".join([*(one.message for one in missing), "nothing is taken away meanwhile"])


def no_metrics() -> Condition:
    """Say that nothing is ever asked for."""
    message = "spec.metrics is empty, so the target is left as it is: add a `prometheus` metric"
    return Condition("Active", Truth.FALSE, "NoMetrics", message)


def invalid(words: str) -> tuple[Condition, ...]:
    """Say that the object itself is wrong."""
    return (
        Condition("Active", Truth.FALSE, "Invalid", words),
        Condition("AbleToScale", Truth.UNKNOWN, "Invalid", "the target is not looked at before the object is mended"),
        _not_judged("Invalid"),
    )


def unscalable(reason: str, words: str) -> tuple[Condition, ...]:
    """Say that there is nothing that could be scaled."""
    return (
        Condition("Active", Truth.UNKNOWN, reason, "the metrics are not read before the target can be scaled"),
        Condition("AbleToScale", Truth.FALSE, reason, words),
        _not_judged(reason),
    )


def _not_judged(reason: str) -> Condition:
    return Condition("ScalingUnbounded", Truth.UNKNOWN, reason, "it is not known what the metrics ask for")


def able(moved: Move | None = None, behaviour: Behaviour | None = None) -> Condition:
    """Say whether something holds back what is asked for, and until when."""
    if moved is None or behaviour is None or (moved.window is None and moved.speed is None):
        return Condition("AbleToScale", Truth.TRUE, "ReadyForNewScale", "what the metrics ask for can be done now")
    which, rules = ("scaleUp", behaviour.up) if moved.up else ("scaleDown", behaviour.down)
    more, best = ("more", "fewer") if moved.up else ("fewer", "more")
    words = []
    if moved.speed is not None:
        until = format_instant(moved.speed.until)
        words.append(f"{more} than {moved.speed.at} not before {until}: the policies of {which} allow no more at once")
    if moved.window is not None:
        until = format_instant(moved.window.until)
        why = (
            f"the metrics have not been watched for {rules.window} s yet"
            if moved.window.unseen
            else f"within the last {rules.window} s {best} replicas were asked for than now"
        )
        words.append(f"{more} than {moved.window.at} not before {until}: {why}")
    direction = "ScaleUp" if moved.up else "ScaleDown"
    reason = f"{direction}{'Stabilized' if moved.window is not None else 'Limited'}"
    return Condition("AbleToScale", Truth.FALSE, reason, "; ".join(words))


def unbounded(spec: HorizontalAutoscalerSpec, wanted: int | None = None, moved: Move | None = None) -> Condition:
    """Say whether bounds or a disabled direction keep what is asked for from being done."""
    least, most = spec.min_replicas, spec.max_replicas
    if moved is not None and moved.disabled:
        direction = "Up" if moved.up else "Down"
        message = f"{wanted} replicas are asked for, and `selectPolicy` of scale{direction} is Disabled"
        return Condition("ScalingUnbounded", Truth.FALSE, f"Scale{direction}Disabled", message)
    if wanted is not None and wanted > most:
        message = f"{wanted} replicas are asked for, more than maxReplicas {most}"
        return Condition("ScalingUnbounded", Truth.FALSE, "TooManyReplicas", message)
    if wanted is not None and wanted < least:
        message = f"{wanted} replicas are asked for, fewer than minReplicas {least}"
        return Condition("ScalingUnbounded", Truth.FALSE, "TooFewReplicas", message)
    message = f"what is asked for lies between minReplicas {least} and maxReplicas {most}"
    return Condition("ScalingUnbounded", Truth.TRUE, "WithinBounds", message)


def disagreeing(known: Sequence[Recommendation]) -> str:
    """Say that no metric alone decides."""
    numbers = [one.replicas for one in known]
    return f"the metrics ask for {min(numbers)} to {max(numbers)} replicas, and agree on no change"
