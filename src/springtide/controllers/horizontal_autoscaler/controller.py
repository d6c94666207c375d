"""The HorizontalAutoscaler controller: reads the scale and the metrics, decides, and sets the scale.

It reads every few seconds, as scale and metrics may change without a watch event; at once when a series changes that
this process exports; and exactly when a window or a policy allows a change that it delayed. After a change of the scale
it waits for the whole period: a proportional metric was measured before the change, and would ask for it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster import kinds
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.conflicts import (
    ALL_HORIZONTAL_AUTOSCALERS,
    AUTOSCALERS,
    BY_TARGET,
    HORIZONTAL_AUTOSCALERS,
    AutoscalerRecord,
    ScaleTargetKey,
    ScaleTargets,
)
from springtide.controllers.decision import Decision
from springtide.controllers.grant import state as grants
from springtide.controllers.grant.state import Grants
from springtide.controllers.horizontal_autoscaler.decide import (
    PERIOD,
    HorizontalAutoscalerDecision,
    SetReplicas,
    behaviour_of,
    decide,
    decide_invalid,
    decide_not_scalable,
    sources_of,
)
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex, is_pending, is_pushed, read_metrics
from springtide.controllers.horizontal_autoscaler.scaler import TargetScaler
from springtide.controllers.horizontal_autoscaler.scaling_history import (
    ALL_AUTOSCALERS,
    LastReconcile,
    ScalingHistories,
    SpecCache,
    is_reported,
    recent_changes_field,
    was_active,
)
from springtide.controllers.targets import TargetNotScalable
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesStore

_EMPTY_STATUS: dict[str, Any] = {"currentReplicas": None, "desiredReplicas": None, "currentMetrics": None}


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
        self._registry = context.state(KindRegistry)
        self._scaler = TargetScaler(context, self._registry)
        self._grants, self._targets = context.state(Grants), context.state(ScaleTargets)
        self._specs = SpecCache(context.default_zone)
        self._index = MetricIndex(self._reader)
        self._histories = ScalingHistories()
        self._last: dict[Key, LastReconcile] = {}
        self._changed: set[Key] = set()
        """Autoscalers whose metrics, Grants or conflicts have changed since their last reconcile."""
        context.follow(ALL_AUTOSCALERS, self._index.follow)
        context.follow(ALL_AUTOSCALERS, self._follow_pause)
        context.subscribe(Grants, lambda _: self._enqueue(self._index.of_grants()))
        context.subscribe(ScaleTargets, self._enqueue_conflicting)
        context.subscribe(SeriesStore, lambda change: self._enqueue(self._index.of_series(*change)))

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Read the scale and the metrics, set the scale, and write the status."""
        autoscaler = self.context.store(ALL_AUTOSCALERS).get(key)
        if autoscaler is None or autoscaler["metadata"].get("deletionTimestamp"):
            # Also while a finalizer keeps the object: a deleted autoscaler scales nothing any more.
            self._forget(key)
            return None
        last = self._last.get(key)
        if last is not None and last.suffices(autoscaler, now, metrics_changed=key in self._changed):
            return _requeue_at(last.due, now)
        # Dropped first: a reconcile that fails is made again, and changes from here on count.
        self._last.pop(key, None)
        self._changed.discard(key)
        verdict = self._specs.read(key, autoscaler, now)
        if verdict.sound is None:
            await self._write(autoscaler, decide_invalid(verdict.words), now)
            return None
        spec = verdict.sound.spec
        try:
            last = await self._scale(key, autoscaler, spec, now)
        except TargetNotScalable as problem:
            decision = decide_not_scalable(spec, problem.reason, str(problem), now, self._conflicts(key, spec))
            await self._write(autoscaler, decision, now)
            last = LastReconcile.of(autoscaler, now, now + PERIOD)
        self._last[key] = last
        return _requeue_at(last.due, now)

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
            conflicts=self._conflicts(key, spec),
            pushed=is_pushed(self._reader, spec),
        )
        history.decided(decision.history, now)
        for action in decision.actions:
            decision = await self._scaler.scale(autoscaler, target, decision, action, history, now)
        pending = is_pending(self._reader, self._series, sources_of(spec), readings, key.namespace)
        if not decision.actions and pending and history.is_new(now) and was_active(autoscaler):
            # Producers read queues in the background: a value that comes in a moment is not reported as missing.
            return LastReconcile.of(autoscaler, now, now + PERIOD)
        changes = recent_changes_field(history.history.changes, now, keep=keep)
        await self._write(autoscaler, decision, now, recent_changes=changes, last_scale=history.last_scale)
        due = now + PERIOD if decision.requeue_at is None else decision.requeue_at
        return LastReconcile.of(autoscaler, now, due, settling=decision.settling)

    async def _write(
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
        changed = await self.context.client.apply_status(
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
                self.context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, event)

    def _conflicts(self, key: Key, spec: HorizontalAutoscalerSpec) -> list[AutoscalerRecord]:
        reference = spec.scale_target_ref
        written = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name}
        others = self._targets.autoscalers_of(ScaleTargetKey.of(key.namespace, written))
        return [one for one in others if (one.kind, one.name) != (HORIZONTAL_AUTOSCALERS.kind, key.name)]

    def _forget(self, key: Key) -> None:
        self._specs.forget(key)
        self._histories.forget(key)
        self._last.pop(key, None)
        self._changed.discard(key)

    def _follow_pause(self, delta: Delta[Object]) -> None:
        """Reconcile at once after a pause: much may have changed meanwhile."""
        if delta.new is None or _is_paused(delta.old) != _is_paused(delta.new):
            self._last.pop(delta.key, None)

    def _enqueue_conflicting(self, change: tuple[ScaleTargetKey, AutoscalerRecord]) -> None:
        target, changed = change
        keys = self.context.store(ALL_HORIZONTAL_AUTOSCALERS).keys_by(BY_TARGET, target)
        self._enqueue(key for key in keys if (changed.kind, changed.name) != (HORIZONTAL_AUTOSCALERS.kind, key.name))

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._changed.add(key)
            self.context.enqueue(key)


def _requeue_at(due: int, now: int) -> Result:
    """Requeue after a delay and not at an instant, as the clock may be set back meanwhile."""
    return Result(requeue_after=due - now)


def _is_paused(autoscaler: Object | None) -> bool:
    annotations = (autoscaler or {}).get("metadata", {}).get("annotations") or {}
    return bool(annotations.get(PAUSED) == "true")
