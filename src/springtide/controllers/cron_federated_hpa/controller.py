"""The CronFederatedHPA controller: applies the firings of rules, and records them in the status.

The order of writes makes every firing applied at least once and recorded exactly once: first the target, then the
status with all results of the reconcile, then the cursor. If the process ends in between, the next one finds the firing
due again, or recorded with only the cursor behind. Only the first cursor of an object is written before anything else:
it says that nothing has been applied yet. Between two firings nothing is written and no key is requeued, except at
times at which a calendar prevents a firing: the cursor goes past them.
"""

from __future__ import annotations

from dataclasses import replace

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Urgency, Watch
from springtide.cluster.errors import ClusterError
from springtide.cluster.kinds import PERMISSIONS as DEFINITION_PERMISSIONS
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key
from springtide.controllers import conflicts
from springtide.controllers.calendar.state import PERMISSIONS as CALENDAR_PERMISSIONS
from springtide.controllers.calendar.state import Calendars
from springtide.controllers.conflicts import BY_TARGET, AutoscalerRecord, ScaleTargetKey, ScaleTargets
from springtide.controllers.cron_federated_hpa.cursor import write_cursor
from springtide.controllers.cron_federated_hpa.decide import decide
from springtide.controllers.cron_federated_hpa.evaluator import CronEvaluator
from springtide.controllers.cron_federated_hpa.executor import CronMetrics, RuleExecutor
from springtide.controllers.cron_federated_hpa.recorder import ExecutionRecorder
from springtide.controllers.cron_federated_hpa.records import ALL_CRONS, BY_CALENDAR, CRON_FEDERATED_HPAS, CronRecord

OUTAGE_RETRY = 10
"""Seconds until an object is requeued when the API server did not answer."""


class CronFederatedHPAController(Controller):
    """Applies the rules of CronFederatedHPAs at their times."""

    name = "cron-federated-hpa"
    independent = True
    skips_own_writes = True
    scales = True
    workers = 32
    watches = (Watch(ALL_CRONS),)
    states = (KindRegistry, Calendars, ScaleTargets)
    optional_needs = (CronMetrics,)
    permissions = (
        Permission(CRON_FEDERATED_HPAS, ("get", "list", "watch", "patch")),
        Permission(CRON_FEDERATED_HPAS, ("patch",), subresource="status"),
        *DEFINITION_PERMISSIONS,
        *CALENDAR_PERMISSIONS,
        Permission(conflicts.HORIZONTAL_POD_AUTOSCALERS, ("get", "list", "watch", "patch")),
        Permission(conflicts.FEDERATED_HPAS, ("get", "list", "watch", "patch")),
        Permission(conflicts.SCALED_OBJECTS, ("get", "list", "watch", "patch")),
        Permission(conflicts.HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
    )

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        registry = context.state(KindRegistry)
        self._metrics = context.optional_dependency(CronMetrics) or CronMetrics()
        self._targets = context.state(ScaleTargets)
        self._executor = RuleExecutor(context, registry, self._metrics)
        self._evaluator = CronEvaluator(context, self._executor.pending_records)
        self._recorder = ExecutionRecorder(context, registry, self._executor.pending_records)
        context.subscribe(ScaleTargets, self._enqueue_conflicting)
        context.subscribe(Calendars, self._enqueue_users)

    def urgency(self, record: CronRecord, now: int) -> Urgency:
        """Objects with a due rule come first, then those whose rules are not known to be all in the future."""
        return record.urgency(now)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Apply what is due of one object, record it, and requeue the object for its next firing."""
        record: CronRecord | None = self.context.store(ALL_CRONS).get(key)
        if record is None or record.deleting:
            self._executor.forget(key)
            self._recorder.forget(key)
            return None
        try:
            with self._metrics.measure_reconcile():
                return await self._run(key, record, now)
        except ClusterError as failure:
            if not failure.retriable:
                raise
            # With a growing backoff, a firing could wait as long again as the API server was away.
            self.context.log.warning("%s is requeued in %d s: %s", key, OUTAGE_RETRY, failure)
            return Result(requeue_after=OUTAGE_RETRY)

    async def _run(self, key: Key, record: CronRecord, now: int) -> Result | None:
        evaluation = self._evaluator.evaluate(record, now)
        if evaluation.before is None:
            # First of all: an object that is edited before it has a cursor loses what was due until then.
            first = evaluation.first_progress()
            await self._recorder.save_progress(key, record, first)
            latest = await self._recorder.latest(key, record)
            if latest is None:
                return None
            if latest.differs_only_in_cursor(record, write_cursor(first)):
                evaluation = replace(evaluation, before=first)
            else:
                evaluation = self._evaluator.evaluate(latest, now)
            record = latest
        decision = decide(evaluation, self._targets.autoscalers_of(record.target), self.context.default_zone)
        results, pending = await self._executor.execute(key, evaluation, decision, now)
        await self._recorder.record(key, record, evaluation, decision, results, now)
        await self._recorder.save_progress(key, record, evaluation.progress(pending))
        attempts = self._executor.attempts
        attempts.settle(key, frozenset(pending))
        times = [at for at in (decision.requeue_at, attempts.next_try(key)) if at is not None]
        return Result(requeue_at=min(times)) if times else None

    def _enqueue_users(self, calendar: str) -> None:
        """Enqueue the objects that refer to a calendar."""
        for key in self.context.store(ALL_CRONS).keys_by(BY_CALENDAR, calendar):
            self.context.enqueue(key)

    def _enqueue_conflicting(self, change: tuple[ScaleTargetKey, AutoscalerRecord]) -> None:
        """Enqueue the objects whose target an autoscaler scales, or is."""
        for key in self.context.store(ALL_CRONS).keys_by(BY_TARGET, change[0]):
            self.context.enqueue(key)
