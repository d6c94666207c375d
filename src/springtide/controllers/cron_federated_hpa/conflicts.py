"""Who else scales the target of a CronFederatedHPA: an autoscaler that would undo what rules set, and the other way."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.karmada.targets import CronTarget, CronTargetKind
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Permission
from springtide.cluster.store import Delta
from springtide.controllers.conflicts import (
    AUTOSCALERS,
    BY_TARGET,
    FEDERATED_HPAS,
    HORIZONTAL_AUTOSCALERS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    AutoscalerRecord,
    ScaleTargetKey,
)
from springtide.controllers.cron_federated_hpa.records import ALL_CRONS

_WITH_BOUNDS = (FEDERATED_HPAS.kind, HORIZONTAL_POD_AUTOSCALERS.kind, SCALED_OBJECTS.kind)

PERMISSIONS = (
    Permission(HORIZONTAL_POD_AUTOSCALERS, ("get", "list", "watch", "patch")),
    Permission(FEDERATED_HPAS, ("get", "list", "watch", "patch")),
    Permission(SCALED_OBJECTS, ("get", "list", "watch", "patch")),
    Permission(HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
)


def requeue_on_conflict_change(context: ControllerContext) -> None:
    """Wake objects whose target an autoscaler begins or ceases to scale, or is; not at each of its writes."""

    def told(delta: Delta[AutoscalerRecord]) -> None:
        # Equal records bring no delta, so that every one of these is news.
        for one in (delta.old, delta.new):
            if one is None:
                continue
            itself = ScaleTargetKey(delta.key.namespace, _GROUPS[one.kind], one.kind, one.name)
            for target in (one.target, itself):
                for key in context.store(ALL_CRONS).keys_by(BY_TARGET, target):
                    context.enqueue(key)

    for cached in AUTOSCALERS:
        context.follow(cached, told)


_GROUPS = {cached.selection.resource.kind: cached.selection.resource.group for cached in AUTOSCALERS}


def conflict_condition(reference: CronTarget, others: Sequence[AutoscalerRecord]) -> Condition:
    """Say whether the rules have their target for themselves, and what to do if not."""
    target = f"{reference.kind} `{reference.name}`"
    names = [_autoscaler_name(one) for one in others]
    if not names:
        message = f"nobody else is known to scale {target}"
        return Condition("Unopposed", ConditionStatus.TRUE, "NoOtherAutoscaler", message)
    if reference.target_kind is not CronTargetKind.WORKLOAD:
        message = f"{target} is made by {names[0]}, which undoes what rules set: let `scaleTargetRef` name that instead"
        return Condition("Unopposed", ConditionStatus.FALSE, "AlsoScaled", message)
    message = (
        f"{target} is also scaled by {' and by '.join(names)}, and each undoes what the other sets: {_hint(others)}"
    )
    return Condition("Unopposed", ConditionStatus.FALSE, "AlsoScaled", message)


def _hint(others: Sequence[AutoscalerRecord]) -> str:
    for one in others:
        if one.made_by or one.kind in _WITH_BOUNDS:
            name = _autoscaler_name(one)
            return (
                f"let `scaleTargetRef` name {name}, and rules set its bounds with"
                " `targetMinReplicas` and `targetMaxReplicas`"
            )
    return "remove one of the two, or let the autoscaler follow a schedule of a MetricsProducer as well"


def _autoscaler_name(one: AutoscalerRecord) -> str:
    return f"{SCALED_OBJECTS.kind} `{one.made_by}`" if one.made_by else f"{one.kind} `{one.name}`"
