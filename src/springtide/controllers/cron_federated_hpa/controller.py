"""The CronFederatedHPA controller: applies the firings of rules, and records them in the status.

The order of writes makes every firing applied at least once and recorded exactly once: first the target, then the
status with all results of the reconcile, then the cursor. If the process ends in between, the next one finds the firing
due again, or recorded with only the cursor behind. Only the first cursor of an object is written before anything else:
it says that nothing has been applied yet. Between two firings nothing is written and no key is requeued, except at
times at which a calendar prevents a firing: the cursor goes past them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from springtide.cluster.client import Mode
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import ClusterError
from springtide.cluster.kinds import PERMISSIONS as DEFINITION_PERMISSIONS
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch
from springtide.controllers import conflicts
from springtide.controllers.calendar.state import PERMISSIONS as CALENDAR_PERMISSIONS
from springtide.controllers.calendar.state import Calendars
from springtide.controllers.conflicts import BY_TARGET, AutoscalerRecord, ScaleTargetKey, ScaleTargets
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, RuleProgress, write_cursor
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation, decide, evaluate
from springtide.controllers.cron_federated_hpa.executor import CronMetrics, RuleExecutor
from springtide.controllers.cron_federated_hpa.history import CronResults
from springtide.controllers.cron_federated_hpa.messages import CronEvents
from springtide.controllers.cron_federated_hpa.plan import ConflictingRule, RuleExecution
from springtide.controllers.cron_federated_hpa.records import (
    ALL_CRONS,
    BY_CALENDAR,
    CRON_FEDERATED_HPAS,
    CronRecord,
    compile_cron,
)
from springtide.controllers.cron_federated_hpa.targets import CronTargetObject
from springtide.controllers.decision import Decision

OUTAGE_RETRY = 10
"""Seconds until an object is requeued when the API server did not answer."""


class CronFederatedHPAController(Controller):
    """Applies the rules of CronFederatedHPAs at their times."""

    name = "cron-federated-hpa"
    independent = True
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
        self._registry = context.state(KindRegistry)
        self._metrics = context.optional_dependency(CronMetrics) or CronMetrics()
        self._executor = RuleExecutor(context, self._registry, self._metrics)
        self._events = CronEvents(context.events)
        self._evaluated: tuple[int, dict[Key, tuple[CronRecord, CronEvaluation]]] = (0, {})
        """Evaluations of objects that share their target, as of an instant."""
        self._calendars, self._targets = context.state(Calendars), context.state(ScaleTargets)
        context.subscribe(ScaleTargets, self._enqueue_conflicting)
        context.subscribe(Calendars, self._enqueue_users)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Apply what is due of one object, record it, and requeue the object for its next firing."""
        record: CronRecord | None = self.context.store(ALL_CRONS).get(key)
        if record is None or record.deleting:
            self._executor.forget(key)
            self._events.forget(key)
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
        evaluation = self._evaluate(record, now)
        if evaluation.before is None:
            # First of all: an object that is edited before it has a cursor loses what was due until then.
            await self._write_cursor(key, record, evaluation.first_progress())
            latest = await self._latest(key, record)
            if latest is None:
                return None
            record, evaluation = latest, self._evaluate(latest, now)
        decision = decide(evaluation, self._targets.autoscalers_of(record.target), self.context.default_zone)
        results, pending = await self._executor.execute(key, evaluation, decision, now)
        await self._record(key, record, evaluation, decision, results, now)
        await self._write_cursor(key, record, evaluation.progress(pending))
        attempts = self._executor.attempts
        attempts.settle(key, frozenset(pending))
        times = [at for at in (decision.requeue_at, attempts.next_try(key)) if at is not None]
        return Result(requeue_at=min(times)) if times else None

    def _evaluate(self, record: CronRecord, now: int) -> CronEvaluation:
        zone = self.context.default_zone
        return evaluate(
            record,
            compile_cron(record, zone),
            self._calendars.usable,
            default_zone=zone,
            now=now,
            conflicting=lambda: self._conflicting_rules(record, now),
            applied=self._executor.pending_records.times(record.origin.key),
        )

    def _conflicting_rules(self, record: CronRecord, now: int) -> Sequence[ConflictingRule]:
        """Find the rules of other objects with the same target; paused and deleted objects do not count."""
        found: list[ConflictingRule] = []
        for other in self.context.store(ALL_CRONS).by(BY_TARGET, record.target):
            if other.origin.uid != record.origin.uid and not (other.paused or other.deleting):
                precedes = other.origin.key < record.origin.key
                found += self._evaluate_alone(other, now).as_conflicting_rules(precedes=precedes)
        return found

    def _evaluate_alone(self, record: CronRecord, now: int) -> CronEvaluation:
        """Evaluate an object without the others of its target, once per instant for all of those."""
        if self._evaluated[0] != now:
            self._evaluated = (now, {})
        known = self._evaluated[1].get(record.origin.key)
        if known is None or known[0] is not record:
            zone = self.context.default_zone
            spec = compile_cron(record, zone)
            known = record, evaluate(record, spec, self._calendars.usable, default_zone=zone, now=now)
            self._evaluated[1][record.origin.key] = known
        return known[1]

    async def _record(
        self,
        key: Key,
        record: CronRecord,
        evaluation: CronEvaluation,
        decision: Decision[RuleExecution],
        results: CronResults,
        now: int,
    ) -> None:
        """Write results and next firings in one status write, and record events."""
        histories = evaluation.histories(results) or None
        fields = self._registry.declared(CRON_FEDERATED_HPAS, {"executionHistories": histories, "conditions": []})
        conditions = decision.conditions if fields.pop("conditions", None) is not None else ()
        before = record.observed()
        await self.context.client.apply_status(
            CRON_FEDERATED_HPAS, fields, conditions, of=before, now=now, because=_summary(results)
        )
        self._executor.pending_records.settle(key)
        reference = evaluation.spec.target
        target = "" if reference is None else str(CronTargetObject(reference, key.namespace))
        done = results if self.context.client.mode is Mode.ACT else CronResults()  # observing has scaled nothing
        self._events.record(record, before["status"].get("conditions") or [], decision.conditions, done, target)

    async def _write_cursor(self, key: Key, record: CronRecord, progress: Mapping[str, RuleProgress]) -> None:
        """Write the progress of the rules, if it differs from the stored one."""
        cursor = write_cursor(progress)
        if cursor == record.cursor:
            return
        latest = await self._latest(key, record)
        if latest is None or latest.cursor != record.cursor:
            return  # another process or a user has changed it, and that change enqueues the object
        change: Object = {"metadata": {"annotations": {ANNOTATION: cursor}}}
        await self.context.client.patch(
            CRON_FEDERATED_HPAS, Patch.merge(change), of=latest.origin, because="progress saved"
        )

    async def _latest(self, key: Key, record: CronRecord) -> CronRecord | None:
        """Return the same object with the controller's own writes; None where it is gone."""
        await self.context.wait_for_object(key)
        latest: CronRecord | None = self.context.store(ALL_CRONS).get(key)
        return latest if latest is not None and latest.origin.uid == record.origin.uid else None

    def _enqueue_users(self, calendar: str) -> None:
        """Enqueue the objects that refer to a calendar."""
        for key in self.context.store(ALL_CRONS).keys_by(BY_CALENDAR, calendar):
            self.context.enqueue(key)

    def _enqueue_conflicting(self, change: tuple[ScaleTargetKey, AutoscalerRecord]) -> None:
        """Enqueue the objects whose target an autoscaler scales, or is."""
        for key in self.context.store(ALL_CRONS).keys_by(BY_TARGET, change[0]):
            self.context.enqueue(key)


def _summary(results: CronResults) -> str:
    done = [f"rule `{rule}` was applied{_times(len(found))}" for rule, found in results.successes.items()]
    failed = [f"rule `{rule}` could not be applied" for rule in results.failures]
    return "; ".join((*done, *failed)) or "next executions of the rules"


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
