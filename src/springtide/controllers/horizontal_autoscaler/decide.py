"""How many replicas the target of a HorizontalAutoscaler should have, from its metrics, its scale and the past.

A missing metric might recommend any number. While one is missing, the target is never scaled down, and scaled up only
as far as the other metrics recommend without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import (
    HorizontalAutoscalerSpec,
    behaviour_of,
    bounds_of,
    is_proportional,
    sources_of,
    tolerance_of,
)
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.events import EventContent, warning
from springtide.controllers.conflicts import AutoscalerRecord, conflict_condition
from springtide.controllers.decision import Decision, ObservedScale, warning_for, with_ready
from springtide.controllers.horizontal_autoscaler import messages
from springtide.controllers.horizontal_autoscaler.recommendation import (
    MetricRecommendation,
    MissingMetric,
    metric_status,
    recommend,
)
from springtide.scaling import (
    EVALUATION_PERIOD,
    ReplicaHistory,
    ScalingBounds,
    combine_known,
    move,
    move_as_recommended,
)

QUIET_PERIOD = 60
"""The same where nothing is pending and all metrics are pushed: then only users can change the target. In seconds."""

CONFLICT_REMEDY = "let one of them follow all metrics, and remove the rest"


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set the scale of the target."""

    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalAutoscalerDecision(Decision[SetReplicas]):
    """How many replicas the target should have now, and why."""

    replicas: int
    history: ReplicaHistory
    """The past with this decision in it; the controller adds the change of the scale once it is made."""
    held_until: int | None = None
    """The instant at which a window or a policy allows more, if nothing else changes."""
    settling: bool = False
    """Whether the metrics are still those of the former scale: their changes mean nothing before the requeue."""


def decide(
    spec: HorizontalAutoscalerSpec,
    scale: ObservedScale,
    readings: Sequence[Fraction | MissingMetric],
    history: ReplicaHistory,
    now: int,
    *,
    conflicts: Sequence[AutoscalerRecord] = (),
    pushed: bool = False,
) -> HorizontalAutoscalerDecision:
    """Decide about a target whose scale and metrics were read.

    `readings` are those of the metrics, in their order; `conflicts` are other autoscalers of the target; `pushed` says
    whether every change of a metric enqueues the autoscaler.
    """
    sources = sources_of(spec)
    remark = conflicts_of(spec, conflicts)
    status = {
        "currentReplicas": scale.present,
        "desiredReplicas": scale.asked,
        "currentMetrics": [metric_status(*pair, scale) for pair in zip(sources, readings, strict=True)] or None,
    }
    if not sources:
        found = messages.no_metrics_conditions()
        return HorizontalAutoscalerDecision(
            replicas=scale.asked,
            history=history,
            reasons=("there are no metrics",),
            conditions=(*with_ready(*found), remark),
            requeue_at=now + (QUIET_PERIOD if pushed and scale.present == scale.asked else EVALUATION_PERIOD),
            status={**status, "desiredReplicas": None},
            events=_warnings(warning_for(found[0]), remark),
        )
    tolerance = tolerance_of(spec)
    known = [
        recommend(source, reading, scale, tolerance)
        for source, reading in zip(sources, readings, strict=True)
        if isinstance(reading, Fraction)
    ]
    missing = [reading for reading in readings if isinstance(reading, MissingMetric)]
    behaviour = behaviour_of(spec)
    numbers = [one.replicas for one in known]
    bounds = bounds_of(spec)
    if missing:
        wanted = combine_known(numbers, scale.asked, up=behaviour.up.select, overruled=history.overruled)
        bounds = ScalingBounds(bounds.least, max(bounds.most, scale.asked))
        moved = move(scale.asked, wanted, behaviour, bounds, history, now)
    else:
        wanted, moved = move_as_recommended(numbers, scale.asked, behaviour, bounds, history, now)
    active = messages.active_condition(known) if not missing else messages.inactive_condition(missing, known)
    found = (
        active,
        messages.able_to_scale_condition(moved, behaviour),
        messages.unbounded_condition(spec, wanted, moved),
    )
    trouble = warning(active.reason, messages.missing_metrics_message(missing)) if missing else None
    changes = moved.replicas != scale.asked
    quiet = pushed and not missing and scale.present == moved.replicas
    due = now + (QUIET_PERIOD if quiet else EVALUATION_PERIOD)
    return HorizontalAutoscalerDecision(
        replicas=moved.replicas,
        history=moved.history,
        actions=(SetReplicas(scale.asked, moved.replicas),) if changes else (),
        reasons=_reasons(known, missing, wanted, found),
        conditions=(*with_ready(*found), remark),
        requeue_at=due if moved.again is None else min(due, moved.again),
        status={**status, "desiredReplicas": moved.replicas},
        events=_warnings(trouble, remark),
        held_until=moved.again,
        settling=changes and any(is_proportional(source) for source in sources),
    )


def decide_invalid(errors: str) -> Decision[SetReplicas]:
    """Decide about an autoscaler with errors: nothing is read or scaled before a user corrects it."""
    found = messages.invalid_conditions(errors)
    return Decision(reasons=(errors,), conditions=with_ready(*found), events=(warning_for(found[0]),))


def decide_not_scalable(
    spec: HorizontalAutoscalerSpec,
    reason: str,
    message: str,
    readings: Sequence[Fraction | MissingMetric],
    now: int,
    conflicts: Sequence[AutoscalerRecord] = (),
) -> Decision[SetReplicas]:
    """Decide about an autoscaler whose target cannot be scaled; a metric that is missing is told as well."""
    missing = [reading for reading in readings if isinstance(reading, MissingMetric)]
    found = messages.not_scalable_conditions(reason, message, missing)
    remark = conflicts_of(spec, conflicts)
    return Decision(
        reasons=(message,),
        conditions=(*with_ready(*found), remark),
        requeue_at=now + EVALUATION_PERIOD,
        events=_warnings(warning_for(found[1]), remark),
    )


def refused(decision: HorizontalAutoscalerDecision, message: str) -> HorizontalAutoscalerDecision:
    """Say in the conditions of a decision that the API server refused to set the scale."""
    _, active, _, unbounded, remark = decision.conditions
    able = Condition("AbleToScale", ConditionStatus.FALSE, "FailedRescale", message)
    conditions = (*with_ready(active, able, unbounded), remark)
    return replace(decision, conditions=conditions, events=_warnings(warning_for(able), remark))


def conflicts_of(spec: HorizontalAutoscalerSpec, conflicts: Sequence[AutoscalerRecord]) -> Condition:
    """Say whether other autoscalers scale the target."""
    reference = spec.scale_target_ref
    return conflict_condition(f"{reference.kind} {reference.name}", conflicts, CONFLICT_REMEDY)


def _warnings(trouble: EventContent | None, remark: Condition) -> tuple[EventContent, ...]:
    conflict = (warning_for(remark),) if remark.status is ConditionStatus.FALSE else ()
    return (*((trouble,) if trouble is not None else ()), *conflict)


def _reasons(
    known: Sequence[MetricRecommendation],
    missing: Sequence[MissingMetric],
    wanted: int,
    conditions: Sequence[Condition],
) -> tuple[str, ...]:
    """Return the metric that decided, and what delays or prevents the change."""
    decisive = next((one.message for one in known if one.replicas == wanted), "")
    limits = [one.message for one in conditions[1:] if one.status is ConditionStatus.FALSE]
    first = [decisive] if decisive else [one.message for one in missing] or [messages.disagreement_message(known)]
    return (*first, *limits)
