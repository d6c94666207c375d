"""The HorizontalAutoscaler controller: reads the scale and the metrics, decides, and sets the scale.

It looks every few seconds, since both may change without anybody telling; at once when a series of ours changes that
it reads; and exactly when something ends that holds a change back. In between it does not: a metric that is kept in
proportion was measured before the last change, and would ask for the same change again. So would one of ours that
changes meanwhile, which is why after a change of the scale nobody looks sooner than usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec, PrometheusMetricSource
from springtide.cluster import kinds
from springtide.cluster.client import Mode
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch, cache_only
from springtide.cluster.errors import ApiError, Conflict, Forbidden
from springtide.cluster.events import EventContent, normal, warning
from springtide.cluster.kinds import DEFINITIONS, KindRegistry
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers import grants
from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS
from springtide.controllers.decision import with_ready
from springtide.controllers.grants import ALL_GRANTS
from springtide.controllers.horizontal_autoscaler import conflicts as rivalry
from springtide.controllers.horizontal_autoscaler import messages
from springtide.controllers.horizontal_autoscaler import scaling_history as recent_changes
from springtide.controllers.horizontal_autoscaler.decide import AutoscalerDecision, behaviour_of, decide, sources_of
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex, read_all
from springtide.controllers.horizontal_autoscaler.recommendation import MissingMetric, is_proportional
from springtide.controllers.horizontal_autoscaler.scaling_history import (
    ALL_AUTOSCALERS,
    LastReconcile,
    Rescale,
    ScalingHistory,
    SpecCache,
    has_condition,
    is_reported,
)
from springtide.controllers.horizontal_autoscaler.targets import (
    ScaleTarget,
    TargetNotScalable,
    find_target,
    missing_right,
)
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesStore
from springtide.scaling import ReplicaHistory


class HorizontalAutoscalerController(Controller):
    """Keeps targets at what the metrics of their HorizontalAutoscalers ask for."""

    name = "horizontal-autoscaler"
    independent = True
    watches = (
        Watch(ALL_AUTOSCALERS),
        Watch(DEFINITIONS, cache_only),
        Watch(ALL_GRANTS, cache_only, optional=True),
        *rivalry.WATCHES,
    )
    permissions = (
        Permission(HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
        Permission(HORIZONTAL_AUTOSCALERS, ("patch",), subresource="status"),
        *kinds.PERMISSIONS,
        *grants.PERMISSIONS,
        *rivalry.PERMISSIONS,
    )
    workers = 16
    scales = True
    period: ClassVar[int] = 15
    """Seconds between two looks."""
    quiet_period: ClassVar[int] = 60
    """The same where nothing is under way and all that is read tells of its changes: only hands can move the target."""
    longest_gap: ClassVar[int] = 180
    """Seconds between two looks after which nobody knows what was asked for meanwhile: somebody had paused it, or there
    was nothing to look at."""
    patience: ClassVar[int] = 30
    """Seconds from the beginning of our leading in which series of ours may still be on their way."""
    long_patience: ClassVar[int] = 300
    """Seconds in which producers may not have begun yet: they wait for all nodes and pods."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._reader = context.services.get(MetricReader)
        self._specs = SpecCache(context.default_zone)
        self._memories: dict[Key, ScalingHistory] = {}
        self._looks: dict[Key, LastReconcile] = {}
        self._woken: set[Key] = set()
        self._audience = MetricIndex(self._reader)
        self._book = context.services.get(SeriesStore)
        self._began = self._seen_closed = context.clock.monotonic()
        context.follow(ALL_AUTOSCALERS, self._audience.follow)
        context.follow(ALL_AUTOSCALERS, self._paused_or_not)
        context.follow(ALL_GRANTS, lambda _: self._wake(self._audience.of_grants()))
        rivalry.requeue_on_conflict_change(context, self._wake)
        context.on_release(self._book.listen(self._changed))

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Look at the metrics and the scale, bring the scale to where it should be, and say so."""
        autoscaler = self.context.store(ALL_AUTOSCALERS).get(key)
        if autoscaler is None or autoscaler["metadata"].get("deletionTimestamp"):
            # What somebody still holds back from going has no say any more.
            self._forget(key)
            return None
        last = self._looks.get(key)
        if last is not None and last.suffices(autoscaler, now, woken=key in self._woken):
            return _requeue_at(last.due, now)
        # A look that fails is made again, and what changes from here on is looked at again.
        self._looks.pop(key, None)
        self._woken.discard(key)
        verdict = self._specs.read(key, autoscaler, now)
        if verdict.sound is None:
            conditions = messages.invalid_conditions(verdict.words)
            await self._write(autoscaler, {}, conditions, now, trouble=_warning_for(conditions[0]))
            return None
        try:
            look = await self._look(key, autoscaler, verdict.sound.spec, now)
        except TargetNotScalable as problem:
            conditions = messages.not_scalable_conditions(problem.reason, str(problem))
            alone = self._unopposed(key, verdict.sound.spec)
            await self._write(autoscaler, {}, conditions, now, trouble=_warning_for(conditions[1]), remarks=(alone,))
            look = LastReconcile.at(autoscaler, now, now + self.period)
        self._looks[key] = look
        return _requeue_at(look.due, now)

    async def _look(self, key: Key, autoscaler: Object, spec: HorizontalAutoscalerSpec, now: int) -> LastReconcile:
        """Do all that is to be done now."""
        target = await find_target(self.context, spec.scale_target_ref, key.namespace)
        kept = behaviour_of(spec).longest_period
        memory = self._remember(key, autoscaler, target, now, kept)
        memory.gap(now, self.longest_gap)
        settled = memory.settle(target.scale.asked)
        if settled is not None:
            self._tell(autoscaler, target, settled)
        sources = sources_of(spec)
        readings = await read_all(self.context, self._reader, sources, key.namespace)
        decision = decide(spec, target.scale, readings, memory.history, now)
        memory.decided(decision.history, now)
        conditions = decision.conditions
        trouble = decision.trouble
        if decision.replicas != target.scale.asked:
            refusal = await self._rescale(autoscaler, target, decision, memory, now)
            if refusal is not None:
                conditions, trouble = (conditions[0], refusal, conditions[2]), _warning_for(refusal)
        elif self._is_early(autoscaler, sources, readings):
            return LastReconcile.at(autoscaler, now, now + self.period)
        fields = {
            "currentReplicas": target.scale.present,
            "desiredReplicas": decision.replicas,
            "currentMetrics": list(decision.metrics) or None,
            "recentChanges": recent_changes.recent_changes_field(memory.history.changes, now, keep=kept),
        }
        remarks = (self._unopposed(key, spec),)
        await self._write(
            autoscaler, fields, conditions, now, last_scale=memory.last_scale, trouble=trouble, remarks=remarks
        )
        missing = any(isinstance(reading, MissingMetric) for reading in readings)
        quiet = target.scale.present == decision.replicas and not missing and self._is_told_of_all(spec)
        due = now + (self.quiet_period if quiet else self.period)
        due = due if decision.wake_at is None else min(due, decision.wake_at)
        settling = decision.replicas != target.scale.asked and any(is_proportional(source) for source in sources)
        return LastReconcile.at(autoscaler, now, due, settling=settling)

    def _unopposed(self, key: Key, spec: HorizontalAutoscalerSpec) -> Condition:
        reference = spec.scale_target_ref
        return rivalry.conflict_condition(reference, rivalry.conflicting_autoscalers(self.context, key, reference))

    def _is_told_of_all(self, spec: HorizontalAutoscalerSpec) -> bool:
        """Tell whether nothing can change what is asked for without our being told.

        What is kept in proportion depends on the replicas that are there as well, and of those nobody tells.
        """
        return all(
            not is_proportional(source) and self._reader.sources(source.query) is not None
            for source in sources_of(spec)
        )

    def _is_early(
        self,
        autoscaler: Object,
        sources: Sequence[PrometheusMetricSource],
        readings: Sequence[Fraction | MissingMetric],
    ) -> bool:
        """Tell whether only such metrics are missing that were there before we began to lead, and may come yet.

        Producers begin later than we do, and tell their values one after the other. To call them missing meanwhile
        would be a false alarm at every restart; whoever is concerned is woken when they come.
        """
        missing = [
            source for source, reading in zip(sources, readings, strict=True) if isinstance(reading, MissingMetric)
        ]
        moment = self.context.clock.monotonic()
        if not self._book.synced and moment - self._began < self.long_patience:
            self._seen_closed = moment
        return (
            bool(missing)
            and all(self._reader.sources(source.query) is not None for source in missing)
            and moment - self._seen_closed < self.patience
            and has_condition(autoscaler, "Active", ConditionStatus.TRUE)
        )

    async def _rescale(
        self, autoscaler: Object, target: ScaleTarget, decision: AutoscalerDecision, memory: ScalingHistory, now: int
    ) -> Condition | None:
        """Set the scale; gives the condition that says why it was refused."""
        rescale = Rescale(now, target.scale.asked, decision.replicas, decision.because)
        observing = self.context.client.mode is Mode.OBSERVE
        memory.under_way = None if observing else rescale
        try:
            await self.context.client.scale(target.resource, rescale.after, of=target.read, because=rescale.because)
        except ApiError as failure:
            if isinstance(failure, Conflict) or failure.retriable:
                raise
            memory.under_way = None
            words = missing_right(target.resource, failure) if isinstance(failure, Forbidden) else failure.message
            message = f"{target.words} could not be scaled from {rescale.before} to {rescale.after}: {words}"
            return Condition("AbleToScale", ConditionStatus.FALSE, "FailedRescale", message)
        if not observing:
            memory.done(rescale)
            self._tell(autoscaler, target, rescale)
        return None

    def _tell(self, autoscaler: Object, target: ScaleTarget, rescale: Rescale) -> None:
        message = f"scaled {target.words} from {rescale.before} to {rescale.after}: {rescale.because}"
        self.context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, normal("SuccessfulRescale", message))

    async def _write(
        self,
        autoscaler: Object,
        fields: dict[str, Any],
        conditions: Sequence[Condition],
        now: int,
        *,
        last_scale: int | None = None,
        trouble: EventContent | None,
        remarks: Sequence[Condition] = (),
    ) -> None:
        """Write the status, and tell people of the trouble it shows; remarks are conditions that leave it Ready."""
        before = autoscaler.get("status") or {}
        if last_scale is None:
            last_scale = instant_in(before.get("lastScaleTime"))
        empty = {"currentReplicas": None, "desiredReplicas": None, "currentMetrics": None}
        # Policies go on counting while nothing is decided.
        kept = {"recentChanges": before.get("recentChanges")}
        status = {
            **empty,
            **kept,
            **fields,
            "lastScaleTime": None if last_scale is None else format_instant(last_scale),
        }
        listed = (*with_ready(*conditions), *remarks)
        changed = await self.context.client.apply_status(
            HORIZONTAL_AUTOSCALERS,
            KindRegistry(self.context.store(DEFINITIONS)).declared(HORIZONTAL_AUTOSCALERS, status),
            listed,
            of=autoscaler,
            now=now,
            because=listed[0].message,
            observes_generation=False,
        )
        warnings = [trouble, *(_warning_for(one) for one in remarks if one.status is ConditionStatus.FALSE)]
        for notice in warnings if changed else ():
            if notice is not None and not is_reported(autoscaler, notice):
                self.context.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, notice)

    def _remember(self, key: Key, autoscaler: Object, target: ScaleTarget, now: int, kept: int) -> ScalingHistory:
        """Give the past of an autoscaler and its target, which is empty if either is new; the status begins it."""
        subject = (str(autoscaler["metadata"].get("uid", "")), target.uid)
        memory = self._memories.get(key)
        if memory is None:
            changes = recent_changes.restore_changes(autoscaler.get("status") or {}, target.scale.asked, now, keep=kept)
            memory = self._memories[key] = ScalingHistory(subject, ReplicaHistory(changes=changes))
        elif memory.subject != subject:
            memory = self._memories[key] = ScalingHistory(subject)
        return memory

    def _forget(self, key: Key) -> None:
        self._specs.forget(key)
        self._memories.pop(key, None)
        self._looks.pop(key, None)
        self._woken.discard(key)

    def _paused_or_not(self, delta: Delta[Object]) -> None:
        """Look at once at what was paused: much may have happened meanwhile."""
        if delta.new is None or _is_paused(delta.old) != _is_paused(delta.new):
            self._looks.pop(delta.key, None)

    def _changed(self, key: Key, metrics: frozenset[str]) -> None:
        self._wake(self._audience.of_series(key, metrics))

    def _wake(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._woken.add(key)
            self.context.enqueue(key)


def _warning_for(condition: Condition) -> EventContent:
    return warning(condition.reason, condition.message)


def _requeue_at(due: int, now: int) -> Result:
    """Come again when so much time has passed, and not at an instant: the clock may be set back meanwhile."""
    return Result(requeue_after=due - now)


def _is_paused(autoscaler: Object | None) -> bool:
    annotations = (autoscaler or {}).get("metadata", {}).get("annotations") or {}
    return bool(annotations.get(PAUSED) == "true")
