"""Looks after CronFederatedHPAs: applies the firings of their rules, and tells what became of them.

The order of writes makes every firing applied at least once and recorded exactly once: first the target, then the
status with all records of the pass, then the cursor. Whoever dies in between finds the firing due again, or recorded
and only the cursor behind. Only the first cursor of an object comes before everything else: it says that nothing is
done yet. Between two firings nothing is written, and nobody wakes, but for times at which a calendar keeps a rule from
firing: the cursor goes past them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from springtide.almanac import DayCalendar
from springtide.cluster.client import Mode
from springtide.cluster.conditions import Condition
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch, cache_only
from springtide.cluster.errors import ClusterError
from springtide.cluster.kinds import DEFINITIONS, KindRegistry
from springtide.cluster.kinds import PERMISSIONS as READING_DEFINITIONS
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.cluster.transport import Patch
from springtide.controllers import conflicts
from springtide.controllers.calendars import ALL_CALENDARS, NO_CALENDARS, CompiledCalendar, calendars_in
from springtide.controllers.calendars import PERMISSIONS as READING_CALENDARS
from springtide.controllers.conflicts import BY_TARGET, autoscalers_of
from springtide.controllers.cron_federated_hpa import conflicts as rivalry
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, RuleProgress, write_cursor
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation, evaluate
from springtide.controllers.cron_federated_hpa.executor import CronMetrics, RuleExecutor
from springtide.controllers.cron_federated_hpa.history import CronResults
from springtide.controllers.cron_federated_hpa.messages import CronEvents, ready_condition
from springtide.controllers.cron_federated_hpa.plan import ConflictingRule
from springtide.controllers.cron_federated_hpa.records import (
    ALL_CRONS,
    BY_CALENDAR,
    CRON_FEDERATED_HPAS,
    CronRecord,
    compile_cron,
)
from springtide.controllers.cron_federated_hpa.targets import CronTargetObject

OUTAGE_RETRY = 10
"""Seconds after which an object is looked at again when the cluster could not be read or written."""


class CronFederatedHPAController(Controller):
    """Applies the rules of CronFederatedHPAs at their times."""

    name = "cron-federated-hpa"
    independent = True
    scales = True
    workers = 32
    watches = (
        Watch(ALL_CRONS),
        Watch(DEFINITIONS, cache_only),
        Watch(ALL_CALENDARS, cache_only, optional=True),
        Watch(conflicts.ALL_HPAS, cache_only),
        Watch(conflicts.ALL_FEDERATED_HPAS, cache_only, optional=True),
        Watch(conflicts.ALL_HORIZONTAL_AUTOSCALERS, cache_only, optional=True),
        Watch(conflicts.ALL_SCALED_OBJECTS, cache_only, optional=True),
    )
    permissions = (
        Permission(CRON_FEDERATED_HPAS, ("get", "list", "watch", "patch")),
        Permission(CRON_FEDERATED_HPAS, ("patch",), subresource="status"),
        *READING_DEFINITIONS,
        *READING_CALENDARS,
        *rivalry.PERMISSIONS,
    )

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._kinds = KindRegistry(context.store(DEFINITIONS))
        self._metrics = _measured_by(context)
        self._applier = RuleExecutor(context, self._kinds, self._metrics)
        self._notices = CronEvents(context.events)
        self._judged: tuple[int, dict[Key, tuple[CronRecord, CronEvaluation]]] = (0, {})
        """What was found of rivals, as of an instant."""
        rivalry.requeue_on_conflict_change(context)
        context.follow(ALL_CALENDARS, self._wake_those_with)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Do what is due of one object, record it, and come back when more is."""
        record: CronRecord | None = self.context.store(ALL_CRONS).get(key)
        if record is None or record.going:
            self._applier.forget(key)
            self._notices.forget(key)
            return None
        try:
            with self._metrics.measure_reconcile():
                return await self._look_after(key, record, now)
        except ClusterError as failure:
            if not failure.retriable:
                raise
            # Pauses that grow would let a firing wait as long again as the cluster was away.
            self.context.log.warning("%s is looked at again in %d s: %s", key, OUTAGE_RETRY, failure)
            return Result(requeue_after=OUTAGE_RETRY)

    async def _look_after(self, key: Key, record: CronRecord, now: int) -> Result | None:
        judgement = self._judge(record, now)
        if judgement.before is None:
            # First of all: an object that is edited before it has a cursor loses what was due until then.
            await self._write_cursor(key, record, judgement.first_marks())
            begun = await self._seen_again(key, record)
            if begun is None:
                return None
            record, judgement = begun, self._judge(begun, now)
        news, pending = await self._applier.carry_out(key, judgement, now)
        await self._record(key, record, judgement, news, now)
        await self._write_cursor(key, record, judgement.marks(pending))
        attempts = self._applier.attempts
        attempts.settle(key, frozenset(pending))
        times = [at for at in (judgement.plan.wake, attempts.next_try(key)) if at is not None]
        return Result(requeue_at=min(times)) if times else None

    def _judge(self, record: CronRecord, now: int) -> CronEvaluation:
        zone = self.context.default_zone
        known = self._calendars(record)
        meaning = compile_cron(record, zone)
        return evaluate(
            record,
            meaning,
            known,
            default_zone=zone,
            now=now,
            rivals=lambda: self._rivals(record, now),
            applied=self._applier.unrecorded.times(record.origin.key),
        )

    def _rivals(self, record: CronRecord, now: int) -> Sequence[ConflictingRule]:
        """Find the rules of other objects that have the same target; one that is paused or going does not act."""
        found: list[ConflictingRule] = []
        for other in self.context.store(ALL_CRONS).by(BY_TARGET, record.target):
            if other.origin.uid != record.origin.uid and not (other.paused or other.going):
                found += self._alone(other, now).as_rivals(precedes=other.origin.key < record.origin.key)
        return found

    def _alone(self, record: CronRecord, now: int) -> CronEvaluation:
        """Judge an object as if it had no rivals, once in a second: all of its rivals ask for it when they fire."""
        if self._judged[0] != now:
            self._judged = (now, {})
        known = self._judged[1].get(record.origin.key)
        if known is None or known[0] is not record:
            zone = self.context.default_zone
            meaning = compile_cron(record, zone)
            known = record, evaluate(record, meaning, self._calendars(record), default_zone=zone, now=now)
            self._judged[1][record.origin.key] = known
        return known[1]

    async def _record(
        self, key: Key, record: CronRecord, judgement: CronEvaluation, news: CronResults, now: int
    ) -> None:
        """Write what happened and what comes next, all in one, and tell people."""
        conditions = self._conditions(record, judgement)
        fields = self._kinds.declared(
            CRON_FEDERATED_HPAS, {"executionHistories": judgement.histories(news) or None, "conditions": []}
        )
        told = conditions if fields.pop("conditions", None) is not None else ()
        before = record.observed()
        await self.context.client.apply_status(
            CRON_FEDERATED_HPAS, fields, told, of=before, now=now, because=_summary(news)
        )
        self._applier.unrecorded.settle(key)
        reference = judgement.meaning.target
        target = "" if reference is None else str(CronTargetObject(reference, key.namespace))
        done = news if self.context.client.mode is Mode.ACT else CronResults()  # who only observes has scaled nothing
        self._notices.tell(record, before["status"].get("conditions") or [], conditions, done, target)

    def _conditions(self, record: CronRecord, judgement: CronEvaluation) -> tuple[Condition, ...]:
        meaning = judgement.meaning
        ready = ready_condition(meaning, meaning.missing_calendars(judgement.calendars))
        if meaning.target is None:
            return (ready,)
        return ready, rivalry.conflict_condition(meaning.target, autoscalers_of(self.context, record.target))

    async def _write_cursor(self, key: Key, record: CronRecord, marks: Mapping[str, RuleProgress]) -> None:
        """Write how far the rules have come, where that is not what stands there."""
        cursor = write_cursor(marks)
        if cursor == record.cursor:
            return
        latest = await self._seen_again(key, record)
        if latest is None or latest.cursor != record.cursor:
            return  # somebody else has moved it: that change brings the object here again
        change: Object = {"metadata": {"annotations": {ANNOTATION: cursor}}}
        because = "this is how far the rules have come"
        await self.context.client.patch(CRON_FEDERATED_HPAS, Patch.merge(change), of=latest.origin, because=because)

    async def _seen_again(self, key: Key, record: CronRecord) -> CronRecord | None:
        """Give the same object as our own writes have left it; None where it is gone."""
        await self.context.wait_for_object(key)
        latest: CronRecord | None = self.context.store(ALL_CRONS).get(key)
        return latest if latest is not None and latest.origin.uid == record.origin.uid else None

    def _calendars(self, record: CronRecord) -> Mapping[str, DayCalendar]:
        return calendars_in(self.context.store(ALL_CALENDARS)) if record.calendars else NO_CALENDARS

    def _wake_those_with(self, delta: Delta[CompiledCalendar]) -> None:
        for key in self.context.store(ALL_CRONS).keys_by(BY_CALENDAR, delta.key.name):
            self.context.enqueue(key)


def _measured_by(context: ControllerContext) -> CronMetrics:
    try:
        return context.services.get(CronMetrics)
    except LookupError:
        return CronMetrics()


def _summary(news: CronResults) -> str:
    done = [f"`{rule}` was applied{_times(len(found))}" for rule, found in news.successes.items()]
    failed = [f"`{rule}` was not" for rule in news.failures]
    return f"of the rules {', '.join((*done, *failed))}" if done or failed else "the rules say what comes next"


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
