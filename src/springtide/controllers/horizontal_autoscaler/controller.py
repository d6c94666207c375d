"""The HorizontalAutoscaler controller: reads the scale and the metrics, decides, and sets the scale.

It reads every few seconds, as scale and metrics may change without a watch event; at once when a series changes that
this process exports; and exactly when a window or a policy allows a change that it delayed. After a change of the scale
it waits for the whole period: a proportional metric was measured before the change, and would ask for it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster import kinds
from springtide.cluster.client import Mode
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch, cache_only
from springtide.cluster.errors import ApiError, Conflict, Forbidden
from springtide.cluster.events import normal
from springtide.cluster.kinds import DEFINITIONS, KindRegistry
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
    AutoscalerDecision,
    SetReplicas,
    behaviour_of,
    decide,
    decide_invalid,
    decide_not_scalable,
    refused,
    sources_of,
)
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex, read_metrics
from springtide.controllers.horizontal_autoscaler.recommendation import MissingMetric, is_proportional
from springtide.controllers.horizontal_autoscaler.scaling_history import (
    ALL_AUTOSCALERS,
    LastReconcile,
    Rescale,
    ScalingHistory,
    SpecCache,
    has_condition,
    is_reported,
    recent_changes_field,
    restore_changes,
)
from springtide.controllers.targets import TargetNotScalable, TargetScale, find_target, missing_right
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesStore
from springtide.scaling import ReplicaHistory

_EMPTY_STATUS: dict[str, Any] = {"currentReplicas": None, "desiredReplicas": None, "currentMetrics": None}
_SERIES_PATIENCE = 30
"""Seconds after the series store was marked as synced in which values of producers may still be missing."""
_SYNC_PATIENCE = 300
"""Seconds for which the controller waits for the series store to be marked: producers need all nodes and pods first."""


class HorizontalAutoscalerController(Controller):
    """Keeps targets at the replicas that the metrics of their HorizontalAutoscalers recommend."""

    name = "horizontal-autoscaler"
    independent = True
    watches = (Watch(ALL_AUTOSCALERS), Watch(DEFINITIONS, cache_only))
    states = (Grants, ScaleTargets)
    needs = (MetricReader, SeriesStore)
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
        self._series = context.dependency(SeriesStore)
        self._registry = KindRegistry(context.store(DEFINITIONS))
        self._grants, self._targets = context.state(Grants), context.state(ScaleTargets)
        self._specs = SpecCache(context.default_zone)
        self._index = MetricIndex(self._reader)
        self._histories: dict[Key, ScalingHistory] = {}
        self._last: dict[Key, LastReconcile] = {}
        self._changed: set[Key] = set()
        """Autoscalers whose metrics, Grants or conflicts have changed since their last reconcile."""
        self._began = self._seen_closed = context.clock.monotonic()
        context.follow(ALL_AUTOSCALERS, self._index.follow)
        context.follow(ALL_AUTOSCALERS, self._follow_pause)
        context.subscribe(Grants, lambda _: self._enqueue(self._index.of_grants()))
        context.subscribe(ScaleTargets, self._enqueue_conflicting)
        context.on_release(self._series.listen(lambda key, names: self._enqueue(self._index.of_series(key, names))))

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
        reference = spec.scale_target_ref
        target = await find_target(
            self.context.client,
            self._registry,
            reference.api_version,
            reference.kind,
            Key(key.namespace, reference.name),
        )
        keep = behaviour_of(spec).longest_period
        history = self._history(key, autoscaler, target, now, keep)
        history.forget_after_gap(now)
        answered = history.resolve_in_flight(target.scale.asked)
        if answered is not None:
            self._record_rescale(autoscaler, target, answered)
        readings = await read_metrics(self._grants, self._reader, sources_of(spec), key.namespace)
        decision = decide(
            spec,
            target.scale,
            readings,
            history.history,
            now,
            conflicts=self._conflicts(key, spec),
            pushed=self._is_pushed(spec),
        )
        history.decided(decision.history, now)
        for action in decision.actions:
            decision = await self._set_scale(autoscaler, target, decision, action, history, now)
        if not decision.actions and self._is_early(autoscaler, spec, readings):
            return LastReconcile.of(autoscaler, now, now + PERIOD)
        changes = recent_changes_field(history.history.changes, now, keep=keep)
        await self._write(autoscaler, decision, now, recent_changes=changes, last_scale=history.last_scale)
        due = now + PERIOD if decision.requeue_at is None else decision.requeue_at
        return LastReconcile.of(autoscaler, now, due, settling=decision.settling)

    async def _set_scale(
        self,
        autoscaler: Object,
        target: TargetScale,
        decision: AutoscalerDecision,
        action: SetReplicas,
        history: ScalingHistory,
        now: int,
    ) -> AutoscalerDecision:
        """Set the scale; where the API server refuses, the decision that is given says so in its conditions."""
        rescale = Rescale(now, action.before, action.after, "; ".join(decision.reasons))
        observing = self.context.client.mode is Mode.OBSERVE
        history.in_flight = None if observing else rescale
        try:
            await self.context.client.scale(target.resource, rescale.after, of=target.object, because=rescale.because)
        except ApiError as failure:
            if isinstance(failure, Conflict) or failure.retriable:
                raise
            history.in_flight = None
            why = missing_right(target.resource, failure) if isinstance(failure, Forbidden) else failure.message
            change = f"from {rescale.before} to {rescale.after}"
            return refused(decision, f"{target.label} could not be scaled {change}: {why}")
        if not observing:
            history.done(rescale)
            self._record_rescale(autoscaler, target, rescale)
        return decision

    def _record_rescale(self, autoscaler: Object, target: TargetScale, rescale: Rescale) -> None:
        message = f"scaled {target.label} from {rescale.before} to {rescale.after}: {rescale.because}"
        self.context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, normal("SuccessfulRescale", message))

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
        kept = recent_changes if isinstance(decision, AutoscalerDecision) else before.get("recentChanges")
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

    def _history(self, key: Key, autoscaler: Object, target: TargetScale, now: int, keep: int) -> ScalingHistory:
        """Give the past of an autoscaler and its target, which is empty if either is new; the status begins it."""
        subject = (str(autoscaler["metadata"].get("uid", "")), target.uid)
        history = self._histories.get(key)
        if history is None:
            changes = restore_changes(autoscaler.get("status") or {}, target.scale.asked, now, keep=keep)
            history = self._histories[key] = ScalingHistory(subject, ReplicaHistory(changes=changes))
        elif history.subject != subject:
            history = self._histories[key] = ScalingHistory(subject)
        return history

    def _conflicts(self, key: Key, spec: HorizontalAutoscalerSpec) -> list[AutoscalerRecord]:
        reference = spec.scale_target_ref
        written = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name}
        others = self._targets.autoscalers_of(ScaleTargetKey.of(key.namespace, written))
        return [one for one in others if (one.kind, one.name) != (HORIZONTAL_AUTOSCALERS.kind, key.name)]

    def _is_pushed(self, spec: HorizontalAutoscalerSpec) -> bool:
        """Tell whether every change of a recommendation enqueues the autoscaler; no event tells of present replicas."""
        return all(
            not is_proportional(source) and self._reader.sources(source.query) is not None
            for source in sources_of(spec)
        )

    def _is_early(
        self, autoscaler: Object, spec: HorizontalAutoscalerSpec, readings: Sequence[Fraction | MissingMetric]
    ) -> bool:
        """Tell whether metrics may only be missing because producers start later than this controller."""
        moment = self.context.clock.monotonic()
        if not self._series.is_open and moment - self._began < _SYNC_PATIENCE:
            self._seen_closed = moment
        pairs = zip(sources_of(spec), readings, strict=True)
        missing = [source for source, reading in pairs if isinstance(reading, MissingMetric)]
        return (
            bool(missing)
            and all(self._reader.sources(source.query) is not None for source in missing)
            and moment - self._seen_closed < _SERIES_PATIENCE
            and has_condition(autoscaler, "Active", ConditionStatus.TRUE)
        )

    def _forget(self, key: Key) -> None:
        self._specs.forget(key)
        self._histories.pop(key, None)
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
