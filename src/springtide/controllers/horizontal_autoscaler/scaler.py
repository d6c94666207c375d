"""Finds the targets of autoscalers, and sets their scale."""

from __future__ import annotations

from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster.client import Mode
from springtide.cluster.context import ControllerContext
from springtide.cluster.errors import ApiError, Conflict, Forbidden
from springtide.cluster.events import normal
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object
from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS, AutoscalerRecord, ScaleTargetKey, ScaleTargets
from springtide.controllers.horizontal_autoscaler.decide import HorizontalAutoscalerDecision, SetReplicas, refused
from springtide.controllers.horizontal_autoscaler.scaling_history import Rescale, ScalingHistory
from springtide.controllers.targets import TargetScale, find_target, missing_right


class TargetScaler:
    """Carries out the actions of autoscalers."""

    def __init__(self, context: ControllerContext, registry: KindRegistry) -> None:
        self._context = context
        self._registry = registry
        self._targets = context.state(ScaleTargets)

    async def find(self, spec: HorizontalAutoscalerSpec, namespace: str) -> TargetScale:
        """Read the scale of a target; raises `TargetNotScalable`."""
        reference = spec.scale_target_ref
        key = Key(namespace, reference.name)
        return await find_target(self._context.client, self._registry, reference.api_version, reference.kind, key)

    def other_autoscalers(self, key: Key, spec: HorizontalAutoscalerSpec) -> list[AutoscalerRecord]:
        """Find what else scales the target of an autoscaler."""
        reference = spec.scale_target_ref
        written = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name}
        others = self._targets.autoscalers_of(ScaleTargetKey.of(key.namespace, written))
        return [one for one in others if (one.kind, one.name) != (HORIZONTAL_AUTOSCALERS.kind, key.name)]

    def resolve_in_flight(self, autoscaler: Object, target: TargetScale, history: ScalingHistory) -> None:
        """Record a change whose answer was lost, if the target shows that it took effect."""
        rescale = history.resolve_in_flight(target.scale.asked)
        if rescale is not None:
            self._record(autoscaler, target, rescale)

    async def scale(
        self,
        autoscaler: Object,
        target: TargetScale,
        decision: HorizontalAutoscalerDecision,
        action: SetReplicas,
        history: ScalingHistory,
        now: int,
    ) -> HorizontalAutoscalerDecision:
        """Set the scale; where the API server refuses, the decision that is given says so in its conditions."""
        rescale = Rescale(now, action.before, action.after, "; ".join(decision.reasons))
        observing = self._context.client.mode is Mode.OBSERVE
        history.in_flight = None if observing else rescale
        try:
            await self._context.client.scale(target.resource, rescale.after, of=target.object, because=rescale.because)
        except ApiError as failure:
            if isinstance(failure, Conflict) or failure.retriable:
                raise
            history.in_flight = None
            why = missing_right(target.resource, failure) if isinstance(failure, Forbidden) else failure.message
            change = f"from {rescale.before} to {rescale.after}"
            return refused(decision, f"{target.label} could not be scaled {change}: {why}")
        if not observing:
            history.done(rescale)
            self._record(autoscaler, target, rescale)
        return decision

    def _record(self, autoscaler: Object, target: TargetScale, rescale: Rescale) -> None:
        message = f"scaled {target.label} from {rescale.before} to {rescale.after}: {rescale.because}"
        self._context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, normal("SuccessfulRescale", message))
