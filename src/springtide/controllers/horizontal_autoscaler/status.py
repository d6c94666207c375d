"""The status of HorizontalAutoscalers: writes it, and records the events of what it did not say before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.events import EventContent
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS
from springtide.controllers.decision import Decision
from springtide.controllers.horizontal_autoscaler.decide import HorizontalAutoscalerDecision, SetReplicas

_EMPTY_STATUS: dict[str, Any] = {"currentReplicas": None, "desiredReplicas": None, "currentMetrics": None}


class StatusWriter:
    """Writes the status of autoscalers."""

    def __init__(self, context: ControllerContext, registry: KindRegistry) -> None:
        self._context = context
        self._registry = registry

    async def write(
        self,
        autoscaler: Object,
        decision: Decision[SetReplicas],
        now: int,
        *,
        recent_changes: Sequence[Object] | None = None,
        last_scale: int | None = None,
    ) -> None:
        """Write the status, and record the warnings that the status did not show before."""
        before = autoscaler.get("status") or {}
        if last_scale is None:
            last_scale = instant_in(before.get("lastScaleTime"))
        # Policies go on counting while nothing is decided.
        kept = recent_changes if isinstance(decision, HorizontalAutoscalerDecision) else before.get("recentChanges")
        status = {
            **_EMPTY_STATUS,
            **decision.status,
            "recentChanges": kept,
            "lastScaleTime": None if last_scale is None else format_instant(last_scale),
        }
        changed = await self._context.client.apply_status(
            HORIZONTAL_AUTOSCALERS,
            self._registry.declared(HORIZONTAL_AUTOSCALERS, status),
            decision.conditions,
            of=autoscaler,
            now=now,
            because=decision.conditions[0].message,
            observes_generation=False,
        )
        for event in decision.events if changed else ():
            if not is_reported(autoscaler, event):
                self._context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, event)


def was_active(autoscaler: Object) -> bool:
    """Return whether the status says that all metrics were read."""
    return any(
        entry.get("type") == "Active" and entry.get("status") == ConditionStatus.TRUE
        for entry in _conditions_of(autoscaler)
    )


def is_reported(autoscaler: Object, event: EventContent) -> bool:
    """Return whether the status says already what an event would say; a condition may have more text after it."""
    return any(
        entry.get("status") == ConditionStatus.FALSE
        and entry.get("reason") == event.reason
        and str(entry.get("message", "")).startswith(event.message)
        for entry in _conditions_of(autoscaler)
        if entry.get("type") != "Ready"
    )


def _conditions_of(autoscaler: Object) -> list[Object]:
    return (autoscaler.get("status") or {}).get("conditions") or []
