"""Who else scales the target of an autoscaler: two of them undo each other's work for ever, and only people can choose.

So nothing is held back because of it; but it is told, to all of them that are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from springtide.apis.meta.types import ScaleTargetReference
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Permission, Watch, cache_only
from springtide.cluster.resources import Key
from springtide.cluster.store import Delta
from springtide.controllers.conflicts import (
    ALL_HORIZONTAL_AUTOSCALERS,
    AUTOSCALERS,
    BY_TARGET,
    HORIZONTAL_AUTOSCALERS,
    AutoscalerRecord,
    ScaleTargetKey,
    autoscalers_of,
)

WATCHES = tuple(Watch(cached, cache_only, optional=True) for cached in AUTOSCALERS)
PERMISSIONS = tuple(
    Permission(cached.selection.resource, ("get", "list", "watch"))
    for cached in AUTOSCALERS
    if cached is not ALL_HORIZONTAL_AUTOSCALERS
)


def requeue_on_conflict_change(context: ControllerContext, wake: Callable[[Sequence[Key]], None]) -> None:
    """Wake autoscalers whose target another one begins or ceases to scale; not at each of its writes."""
    ours = context.store(ALL_HORIZONTAL_AUTOSCALERS)

    def told(delta: Delta[AutoscalerRecord]) -> None:
        before = delta.old.target if delta.old is not None else None
        after = delta.new.target if delta.new is not None else None
        itself = {(one.kind, delta.key) for one in (delta.old, delta.new) if one is not None}
        for target in (before, after) if before != after else ():
            concerned = ours.keys_by(BY_TARGET, target) if target is not None else []
            wake([key for key in concerned if (HORIZONTAL_AUTOSCALERS.kind, key) not in itself])

    for cached in AUTOSCALERS:
        context.follow(cached, told)


def conflicting_autoscalers(context: ControllerContext, key: Key, reference: ScaleTargetReference) -> list[str]:
    """Name the other autoscalers of a target."""
    written = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name}
    others = autoscalers_of(context, ScaleTargetKey.of(key.namespace, written))
    own = (HORIZONTAL_AUTOSCALERS.kind, key.name)
    return [f"{one.kind} {one.name}" for one in others if (one.kind, one.name) != own]


def conflict_condition(reference: ScaleTargetReference, others: Sequence[str]) -> Condition:
    """Say whether an autoscaler has its target for itself, and what to do if not."""
    target = f"{reference.kind} {reference.name}"
    if not others:
        return Condition(
            "Unopposed", ConditionStatus.TRUE, "NoOtherAutoscaler", f"no other autoscaler is known to scale {target}"
        )
    message = (
        f"{target} is also scaled by {' and by '.join(others)}, and each undoes what the other sets:"
        " let one of them follow all metrics, and remove the rest"
    )
    return Condition("Unopposed", ConditionStatus.FALSE, "AlsoScaled", message)
