"""What a HorizontalAutoscaler decides: a pure function of its spec, the scale, the readings, the past and the present.

A metric that cannot be read might ask for anything. So nothing is taken away as long as one is missing, and what is
added is what is certain without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec, PrometheusMetricSource, ScalingRules
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.events import EventContent, warning
from springtide.cluster.resources import Object
from springtide.controllers.horizontal_autoscaler import messages
from springtide.controllers.horizontal_autoscaler.recommendation import (
    MetricRecommendation,
    MissingMetric,
    ObservedScale,
    exact_quantity,
    metric_status,
    recommend,
)
from springtide.scaling import (
    DOWN_WINDOW,
    UP_WINDOW,
    ChangePolicy,
    DirectionLimits,
    PolicySelect,
    ReplicaHistory,
    ScalingBehavior,
    ScalingBounds,
    ScalingTolerance,
    combine_known,
    combine_recommendations,
    move,
)


@dataclass(frozen=True, slots=True)
class AutoscalerDecision:
    """How many replicas there should be now, and why."""

    replicas: int
    because: str
    conditions: tuple[Condition, ...]
    """Active, AbleToScale and ScalingUnbounded."""
    metrics: tuple[Object, ...]
    """The entries of `currentMetrics`."""
    history: ReplicaHistory
    """The past with this decision in it; a change of the scale must be added when it is made."""
    trouble: EventContent | None = None
    """What people should be warned of, in words that stay the same as long as it does."""
    wake_at: int | None = None
    """The instant at which what is held back now may be done, if nothing else changes."""


def decide(
    spec: HorizontalAutoscalerSpec,
    scale: ObservedScale,
    readings: Sequence[Fraction | MissingMetric],
    history: ReplicaHistory,
    now: int,
) -> AutoscalerDecision:
    """Decide how many replicas there should be; the readings are those of the metrics, in their order."""
    sources = sources_of(spec)
    metrics = tuple(metric_status(source, reading, scale) for source, reading in zip(sources, readings, strict=True))
    if not sources:
        conditions = (
            messages.no_metrics_condition(),
            messages.able_to_scale_condition(),
            messages.unbounded_condition(spec),
        )
        advice = warning(conditions[0].reason, conditions[0].message)
        return AutoscalerDecision(scale.asked, "there are no metrics", conditions, metrics, history, advice)
    tolerance = tolerance_of(spec)
    known = [
        recommend(source, reading, scale, tolerance)
        for source, reading in zip(sources, readings, strict=True)
        if isinstance(reading, Fraction)
    ]
    missing = [reading for reading in readings if isinstance(reading, MissingMetric)]
    behaviour = behaviour_of(spec)
    numbers = [one.replicas for one in known]
    bounds = ScalingBounds(spec.min_replicas, spec.max_replicas)
    if missing:
        wanted = combine_known(numbers, scale.asked, up=behaviour.up.select, overruled=history.overruled)
        bounds = ScalingBounds(bounds.least, max(bounds.most, scale.asked))
    else:
        up, down = behaviour.up.select, behaviour.down.select
        agreement = combine_recommendations(numbers, scale.asked, up=up, down=down, overruled=history.overruled)
        wanted, history = agreement.replicas, replace(history, overruled=agreement.overruled)
    moved = move(scale.asked, wanted, behaviour, bounds, history, now)
    active = messages.active_condition(known) if not missing else messages.inactive_condition(missing, known)
    conditions = (
        active,
        messages.able_to_scale_condition(moved, behaviour),
        messages.unbounded_condition(spec, wanted, moved),
    )
    because = _because(known, missing, wanted, conditions)
    trouble = warning(active.reason, messages.missing_metrics_message(missing)) if missing else None
    return AutoscalerDecision(moved.replicas, because, conditions, metrics, moved.history, trouble, moved.again)


def sources_of(spec: HorizontalAutoscalerSpec) -> tuple[PrometheusMetricSource, ...]:
    """List the queries of an autoscaler; one without a query is not sound."""
    return tuple(metric.prometheus for metric in spec.metrics or () if metric.prometheus is not None)


def behaviour_of(spec: HorizontalAutoscalerSpec) -> ScalingBehavior:
    """Read how replicas may change, with what holds where nothing is written."""
    written = spec.behavior
    return ScalingBehavior(
        up=_rules(written.scale_up if written is not None else None, UP_WINDOW),
        down=_rules(written.scale_down if written is not None else None, DOWN_WINDOW),
    )


def tolerance_of(spec: HorizontalAutoscalerSpec) -> ScalingTolerance:
    """Read how far metrics may be from their targets; not at all where nothing is written."""
    written = spec.behavior
    down, up = (written.scale_down, written.scale_up) if written is not None else (None, None)
    return ScalingTolerance(down=_part(down), up=_part(up))


def _part(written: ScalingRules | None) -> Fraction:
    return exact_quantity(written.tolerance) if written is not None and written.tolerance is not None else Fraction(0)


def _rules(written: ScalingRules | None, window: int) -> DirectionLimits:
    if written is None:
        return DirectionLimits(window)
    given = written.stabilization_window_seconds
    return DirectionLimits(
        window if given is None else given,
        PolicySelect(written.select_policy or PolicySelect.MAX),
        tuple(ChangePolicy(one.value, one.period_seconds, one.type == "Percent") for one in written.policies or ()),
    )


def _because(
    known: Sequence[MetricRecommendation],
    missing: Sequence[MissingMetric],
    wanted: int,
    conditions: Sequence[Condition],
) -> str:
    """Give the metric that decided, and what kept its word from being followed."""
    decisive = next((one.words for one in known if one.replicas == wanted), "")
    limits = [one.message for one in conditions[1:] if one.status is ConditionStatus.FALSE]
    words = [decisive] if decisive else [one.message for one in missing] or [messages.disagreement_message(known)]
    return "; ".join([*words, *limits])
