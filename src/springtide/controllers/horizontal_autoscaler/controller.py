"""The HorizontalAutoscaler controller: reads the scale and the metrics, decides, and sets the scale.

It reads every few seconds, as scale and metrics may change without a watch event; at once when a series changes that
this process exports; and exactly when a window or a policy allows a change that it delayed. After a change of the scale
it waits for the whole period: a proportional metric was measured before the change, and would ask for it once more.
"""

from __future__ import annotations

from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec, behaviour_of, sources_of
from springtide.cluster import kinds
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object
from springtide.controllers.conflicts import (
    ALL_HORIZONTAL_AUTOSCALERS,
    AUTOSCALERS,
    HORIZONTAL_AUTOSCALERS,
    ScaleTargets,
)
from springtide.controllers.grant import state as grants
from springtide.controllers.grant.state import Grants
from springtide.controllers.horizontal_autoscaler.decide import (
    decide,
    decide_invalid,
    decide_not_scalable,
)
from springtide.controllers.horizontal_autoscaler.due_times import DueTimes, LastReconcile
from springtide.controllers.horizontal_autoscaler.metric_index import is_pending, is_pushed, read_metrics
from springtide.controllers.horizontal_autoscaler.scaler import TargetScaler
from springtide.controllers.horizontal_autoscaler.scaling_history import (
    ALL_AUTOSCALERS,
    ScalingHistories,
    SpecCache,
    recent_changes_field,
)
from springtide.controllers.horizontal_autoscaler.status import StatusWriter, was_active
from springtide.controllers.targets import TargetNotScalable
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesStore
from springtide.scaling import EVALUATION_PERIOD


class HorizontalAutoscalerController(Controller):
    """Keeps targets at the replicas that the metrics of their HorizontalAutoscalers recommend."""

    name = "horizontal-autoscaler"
    independent = True
    watches = (Watch(ALL_AUTOSCALERS),)
    states = (KindRegistry, Grants, ScaleTargets, SeriesStore)
    needs = (MetricReader,)
    permissions = (
        Permission(HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
        Permission(HORIZONTAL_AUTOSCALERS, ("patch",), subresource="status"),
        *kinds.PERMISSIONS,
        *grants.PERMISSIONS,
        *(
            Permission(cached.selection.resource, ("get", "list", "watch"))
            for cached in AUTOSCALERS
            if cached is not ALL_HORIZONTAL_AUTOSCALERS
        ),
    )
    workers = 16
    scales = True

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._reader = context.dependency(MetricReader)
        self._series = context.state(SeriesStore)
        self._grants = context.state(Grants)
        registry = context.state(KindRegistry)
        self._scaler = TargetScaler(context, registry)
        self._status = StatusWriter(context, registry)
        self._specs = SpecCache(context.default_zone)
        self._histories = ScalingHistories()
        self._due_times = DueTimes(context, self._reader)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Read the scale and the metrics, set the scale, and write the status."""
        autoscaler = self.context.store(ALL_AUTOSCALERS).get(key)
        if autoscaler is None or autoscaler["metadata"].get("deletionTimestamp"):
            # Also while a finalizer keeps the object: a deleted autoscaler scales nothing any more.
            self._forget(key)
            return None
        early = self._due_times.begin(key, autoscaler, now)
        if early is not None:
            return early
        verdict = self._specs.read(key, autoscaler, now)
        if verdict.sound is None:
            await self._status.write(autoscaler, decide_invalid(verdict.error_message), now)
            return None
        spec = verdict.sound.spec
        try:
            last = await self._scale(key, autoscaler, spec, now)
        except TargetNotScalable as problem:
            others = self._scaler.other_autoscalers(key, spec)
            readings = await read_metrics(self._grants, self._reader, sources_of(spec), key.namespace)
            decision = decide_not_scalable(spec, problem.reason, str(problem), readings, now, others)
            await self._status.write(autoscaler, decision, now)
            last = LastReconcile.of(autoscaler, now, now + EVALUATION_PERIOD)
        return self._due_times.end(key, last, now)

    async def _scale(self, key: Key, autoscaler: Object, spec: HorizontalAutoscalerSpec, now: int) -> LastReconcile:
        target = await self._scaler.find(spec, key.namespace)
        keep = behaviour_of(spec).longest_period
        history = self._histories.get(key, autoscaler, target.uid, target.scale.asked, now, keep=keep)
        history.forget_after_gap(now)
        self._scaler.resolve_in_flight(autoscaler, target, history)
        readings = await read_metrics(self._grants, self._reader, sources_of(spec), key.namespace)
        decision = decide(
            spec,
            target.scale,
            readings,
            history.history,
            now,
            conflicts=self._scaler.other_autoscalers(key, spec),
            pushed=is_pushed(self._reader, spec),
        )
        history.decided(decision.history, now)
        for action in decision.actions:
            decision = await self._scaler.scale(autoscaler, target, decision, action, history, now)
        pending = is_pending(self._reader, self._series, sources_of(spec), readings, key.namespace)
        if not decision.actions and pending and history.is_new(now) and was_active(autoscaler):
            # Producers read queues in the background: a value that comes in a moment is not reported as missing.
            return LastReconcile.of(autoscaler, now, now + EVALUATION_PERIOD)
        changes = recent_changes_field(history.history.changes, now, keep=keep)
        await self._status.write(autoscaler, decision, now, recent_changes=changes, last_scale=history.last_scale)
        due = now + EVALUATION_PERIOD if decision.requeue_at is None else decision.requeue_at
        return LastReconcile.of(autoscaler, now, due, settling=decision.settling)

    def _forget(self, key: Key) -> None:
        self._specs.forget(key)
        self._histories.forget(key)
        self._due_times.forget(key)
