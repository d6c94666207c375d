"""The HorizontalAutoscaler controller: reads the scale and the metrics, decides, and sets the scale.

It looks every few seconds, since both may change without anybody telling; at once when a series of ours changes that
it reads; and exactly when something ends that holds a change back. In between it does not: a metric that is kept in
proportion was measured before the last change, and would ask for the same change again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscalerSpec
from springtide.cluster import kinds
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again, Controller, Permission, Watch, to_nobody
from springtide.cluster.errors import ApiError, Conflict, Forbidden
from springtide.cluster.events import normal, warning
from springtide.cluster.kinds import DEFINITIONS, Kinds
from springtide.cluster.modes import Mode
from springtide.cluster.resources import Key, Object
from springtide.cluster.tools import Tools
from springtide.controllers import trust
from springtide.controllers.horizontal_autoscaler import wording
from springtide.controllers.horizontal_autoscaler.audience import Audience
from springtide.controllers.horizontal_autoscaler.decision import EXACT, Decision, decide, sources_of
from springtide.controllers.horizontal_autoscaler.memory import Look, Memory, Rescale
from springtide.controllers.horizontal_autoscaler.readings import read_all
from springtide.controllers.horizontal_autoscaler.resources import ALL_AUTOSCALERS, HORIZONTAL_AUTOSCALERS
from springtide.controllers.horizontal_autoscaler.specs import Specs
from springtide.controllers.horizontal_autoscaler.targets import Target, Unscalable, find_target, refused
from springtide.controllers.living import with_ready
from springtide.controllers.trust import ALL_GRANTS
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesBook
from springtide.scaling import Tolerance


class HorizontalAutoscalerController(Controller):
    """Keeps targets at what the metrics of their HorizontalAutoscalers ask for."""

    name = "horizontal-autoscaler"
    watches = (
        Watch(ALL_AUTOSCALERS),
        Watch(DEFINITIONS, to_nobody),
        Watch(ALL_GRANTS, to_nobody, optional=True),
    )
    permissions = (
        Permission(HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
        Permission(HORIZONTAL_AUTOSCALERS, ("patch",), subresource="status"),
        *kinds.PERMISSIONS,
        *trust.PERMISSIONS,
    )
    workers = 16
    scales = True
    period: ClassVar[int] = 15
    """Seconds between two looks."""
    quiet_period: ClassVar[int] = 60
    """The same where nothing is under way and all that is read tells of its changes: only hands can move the target."""
    tolerance: ClassVar[Tolerance] = EXACT
    """How far a metric may be from its target before anything is done about it."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._reader = tools.services.get(MetricReader)
        self._specs = Specs(tools.default_zone)
        self._memories: dict[Key, Memory] = {}
        self._looks: dict[Key, Look] = {}
        self._woken: set[Key] = set()
        self._audience = Audience(self._reader)
        tools.follow(ALL_AUTOSCALERS, self._audience.follow)
        tools.follow(ALL_GRANTS, lambda _: self._wake(self._audience.of_grants()))
        tools.when_released(tools.services.get(SeriesBook).listen(self._changed))

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Look at the metrics and the scale, bring the scale to where it should be, and say so."""
        autoscaler = self.tools.store(ALL_AUTOSCALERS).get(key)
        if autoscaler is None:
            self._forget(key)
            return None
        last = self._looks.get(key)
        if last is not None and key not in self._woken and last.suffices(autoscaler, now):
            return Again(at=last.due)
        # A look that fails is made again, and what changes from here on is looked at again.
        self._looks.pop(key, None)
        self._woken.discard(key)
        verdict = self._specs.read(key, autoscaler, now)
        if verdict.sound is None:
            conditions = wording.invalid(verdict.words)
            await self._write(autoscaler, {}, conditions, now, trouble=conditions[0])
            return None
        try:
            due = await self._look(key, autoscaler, verdict.sound.spec, now)
        except Unscalable as problem:
            conditions = wording.unscalable(problem.reason, str(problem))
            await self._write(autoscaler, {}, conditions, now, trouble=conditions[1])
            due = now + self.period
        look = self._looks[key] = Look.at(autoscaler, now, due)
        return Again(at=look.due)

    async def _look(self, key: Key, autoscaler: Object, spec: HorizontalAutoscalerSpec, now: int) -> int:
        """Do all that is to be done now; gives when to look again."""
        target = await find_target(self.tools, spec.scale_target_ref, key.namespace)
        memory = self._remember(key, autoscaler, target)
        settled = memory.settle(target.scale.asked)
        if settled is not None:
            self._tell(autoscaler, target, settled)
        readings = await read_all(self.tools, self._reader, sources_of(spec), key.namespace)
        decision = decide(spec, target.scale, readings, memory.history, now, tolerance=self.tolerance)
        memory.history = decision.history
        conditions = decision.conditions
        trouble = conditions[0] if conditions[0].status is Truth.FALSE else None
        if decision.replicas != target.scale.asked:
            refusal = await self._rescale(autoscaler, target, decision, memory, now)
            if refusal is not None:
                conditions, trouble = (conditions[0], refusal, conditions[2]), refusal
        fields = {
            "currentReplicas": target.scale.present,
            "desiredReplicas": decision.replicas,
            "currentMetrics": list(decision.metrics) or None,
        }
        await self._write(autoscaler, fields, conditions, now, last_scale=memory.last_scale, trouble=trouble)
        quiet = target.scale.present == decision.replicas and self._is_told_of_all(spec)
        due = now + (self.quiet_period if quiet else self.period)
        return due if decision.wake_at is None else min(due, decision.wake_at)

    def _is_told_of_all(self, spec: HorizontalAutoscalerSpec) -> bool:
        """Tell whether nothing can change what is asked for without our being told.

        What is kept in proportion depends on the replicas that are there as well, and of those nobody tells.
        """
        return all(
            source.target.type == "AverageValue" and self._reader.sources(source.query) is not None
            for source in sources_of(spec)
        )

    async def _rescale(
        self, autoscaler: Object, target: Target, decision: Decision, memory: Memory, now: int
    ) -> Condition | None:
        """Set the scale; gives the condition that says why it was refused."""
        rescale = Rescale(now, target.scale.asked, decision.replicas, decision.because)
        observing = self.tools.client.mode is Mode.OBSERVE
        memory.under_way = None if observing else rescale
        try:
            await self.tools.client.scale(target.resource, rescale.after, of=target.read, because=rescale.because)
        except ApiError as failure:
            if isinstance(failure, Conflict) or failure.retriable:
                raise
            memory.under_way = None
            words = refused(target.resource, failure) if isinstance(failure, Forbidden) else failure.message
            message = f"{target.words} could not be scaled from {rescale.before} to {rescale.after}: {words}"
            return Condition("AbleToScale", Truth.FALSE, "FailedRescale", message)
        if not observing:
            memory.done(rescale)
            self._tell(autoscaler, target, rescale)
        return None

    def _tell(self, autoscaler: Object, target: Target, rescale: Rescale) -> None:
        message = f"scaled {target.words} from {rescale.before} to {rescale.after}: {rescale.because}"
        self.tools.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, normal("SuccessfulRescale", message))

    async def _write(
        self,
        autoscaler: Object,
        fields: dict[str, Any],
        conditions: Sequence[Condition],
        now: int,
        *,
        last_scale: int | None = None,
        trouble: Condition | None,
    ) -> None:
        """Write the status, and tell people of the trouble it shows."""
        before = (autoscaler.get("status") or {}).get("lastScaleTime")
        if last_scale is None and before is not None:
            last_scale = parse_instant(before)
        empty = {"currentReplicas": None, "desiredReplicas": None, "currentMetrics": None}
        status = {**empty, **fields, "lastScaleTime": None if last_scale is None else format_instant(last_scale)}
        listed = with_ready(*conditions)
        changed = await self.tools.client.apply_status(
            HORIZONTAL_AUTOSCALERS,
            Kinds(self.tools.store(DEFINITIONS)).declared(HORIZONTAL_AUTOSCALERS, status),
            listed,
            of=autoscaler,
            now=now,
            because=listed[0].message,
            observes_generation=False,
        )
        if changed and trouble is not None:
            self.tools.events.record(HORIZONTAL_AUTOSCALERS, autoscaler, warning(trouble.reason, trouble.message))

    def _remember(self, key: Key, autoscaler: Object, target: Target) -> Memory:
        """Give the past of an autoscaler and its target, which is empty if either is new."""
        subject = (str(autoscaler["metadata"].get("uid", "")), target.uid)
        memory = self._memories.get(key)
        if memory is None or memory.subject != subject:
            memory = self._memories[key] = Memory(subject)
        return memory

    def _forget(self, key: Key) -> None:
        self._specs.forget(key)
        self._memories.pop(key, None)
        self._looks.pop(key, None)
        self._woken.discard(key)

    def _changed(self, key: Key, metrics: frozenset[str]) -> None:
        self._wake(self._audience.of_series(key, metrics))

    def _wake(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._woken.add(key)
            self.tools.wake(key)
