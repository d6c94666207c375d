"""Records what rules did: results and next firings in the status, events, and the progress of rules in the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from springtide.cluster.client import Mode
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.events import EventRecorder, normal, warning
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, RuleProgress, write_cursor
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation
from springtide.controllers.cron_federated_hpa.executor import PendingRecords
from springtide.controllers.cron_federated_hpa.history import CronResults, execution_times
from springtide.controllers.cron_federated_hpa.messages import failed_message, scaled_message
from springtide.controllers.cron_federated_hpa.plan import RuleExecution
from springtide.controllers.cron_federated_hpa.records import ALL_CRONS, CRON_FEDERATED_HPAS, CronRecord
from springtide.controllers.cron_federated_hpa.targets import CronTargetObject
from springtide.controllers.decision import Decision


class ExecutionRecorder:
    """Writes status and cursor of objects, and records their events."""

    def __init__(self, context: ControllerContext, registry: KindRegistry, pending_records: PendingRecords) -> None:
        self._context = context
        self._registry = registry
        self._pending_records = pending_records
        self._events = CronEvents(context.events)

    async def record(
        self,
        key: Key,
        record: CronRecord,
        evaluation: CronEvaluation,
        decision: Decision[RuleExecution],
        results: CronResults,
        now: int,
    ) -> None:
        """Write results and next firings in one status write, and record events."""
        histories = evaluation.histories(results)
        wanted = {"executionHistories": histories or None, **execution_times(histories), "conditions": []}
        fields = self._registry.declared(CRON_FEDERATED_HPAS, wanted)
        conditions = decision.conditions if fields.pop("conditions", None) is not None else ()
        before = record.observed()
        await self._context.client.apply_status(
            CRON_FEDERATED_HPAS, fields, conditions, of=before, now=now, because=_summary(results)
        )
        self._pending_records.settle(key)
        reference = evaluation.spec.target
        target = "" if reference is None else str(CronTargetObject(reference, key.namespace))
        done = results if self._context.client.mode is Mode.ACT else CronResults()  # observing has scaled nothing
        self._events.record(record, before["status"].get("conditions") or [], decision.conditions, done, target)

    async def save_progress(self, key: Key, record: CronRecord, progress: Mapping[str, RuleProgress]) -> None:
        """Write the progress of the rules, if it differs from the stored one."""
        cursor = write_cursor(progress)
        if cursor == record.cursor:
            return
        latest = await self.latest(key, record)
        if latest is None or latest.cursor != record.cursor:
            return  # another process or a user has changed it, and that change enqueues the object
        change: Object = {"metadata": {"annotations": {ANNOTATION: cursor}}}
        await self._context.client.patch(
            CRON_FEDERATED_HPAS, Patch.merge(change), of=latest.origin, because="progress saved"
        )

    async def latest(self, key: Key, record: CronRecord) -> CronRecord | None:
        """Return the same object with the controller's own writes; None where it is gone."""
        await self._context.wait_for_object(key)
        latest: CronRecord | None = self._context.store(ALL_CRONS).get(key)
        return latest if latest is not None and latest.origin.uid == record.origin.uid else None

    def forget(self, key: Key) -> None:
        """Drop an object that is gone."""
        self._events.forget(key)


class CronEvents:
    """Records events: one for each firing, and one when a condition becomes False."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._last: dict[tuple[Key, str], str] = {}
        """The last message of each condition, for clusters whose CRD has no conditions in its status."""

    def record(
        self,
        record: CronRecord,
        before: Iterable[Mapping[str, Any]],
        conditions: Iterable[Condition],
        results: CronResults,
        target: str,
    ) -> None:
        """Record the events of a reconcile whose histories are written."""
        for rule, successes in results.successes.items():
            for success in successes:
                message = scaled_message(target, rule, success.values, success.executed - success.at)
                self._events.record(CRON_FEDERATED_HPAS, record.origin, normal("Scaled", message))
        for rule, failures in results.failures.items():
            for failure in failures:
                event = warning("Missed" if failure.missed else "ScaleFailed", failed_message(rule, failure))
                self._events.record(CRON_FEDERATED_HPAS, record.origin, event)
        known = {entry.get("type"): entry.get("message") for entry in before}
        for condition in conditions:
            self._record_once(record, known.get(condition.type), condition)

    def forget(self, key: Key) -> None:
        """Drop an object that is gone."""
        for known in [known for known in self._last if known[0] == key]:
            del self._last[known]

    def _record_once(self, record: CronRecord, known: str | None, condition: Condition) -> None:
        place = record.origin.key, condition.type
        if condition.status is not ConditionStatus.FALSE:
            self._last.pop(place, None)
        elif condition.message not in (known, self._last.get(place)):
            self._last[place] = condition.message
            self._events.record(CRON_FEDERATED_HPAS, record.origin, warning(condition.reason, condition.message))


def _summary(results: CronResults) -> str:
    done = [f"rule `{rule}` was applied{_times(len(found))}" for rule, found in results.successes.items()]
    failed = [f"rule `{rule}` could not be applied" for rule in results.failures]
    return "; ".join((*done, *failed)) or "next executions of the rules"


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
