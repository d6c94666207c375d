"""Evaluates CronFederatedHPAs at an instant, each together with the other objects that have the same target."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.cluster.context import ControllerContext
from springtide.cluster.resources import Key
from springtide.controllers.calendar.state import Calendars
from springtide.controllers.conflicts import BY_TARGET
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation, evaluate
from springtide.controllers.cron_federated_hpa.executor import PendingRecords
from springtide.controllers.cron_federated_hpa.plan import ConflictingRule
from springtide.controllers.cron_federated_hpa.records import ALL_CRONS, CronRecord, compile_cron


class CronEvaluator:
    """Evaluates objects from the caches, the calendars, and the firings that are not recorded yet."""

    def __init__(self, context: ControllerContext, pending_records: PendingRecords) -> None:
        self._store = context.store(ALL_CRONS)
        self._calendars = context.state(Calendars)
        self._default_zone = context.default_zone
        self._pending_records = pending_records
        self._evaluated: tuple[int, dict[Key, tuple[CronRecord, CronEvaluation]]] = (0, {})
        """Evaluations of objects that share their target, as of an instant."""

    def evaluate(self, record: CronRecord, now: int) -> CronEvaluation:
        """Evaluate an object with the others of its target."""
        return evaluate(
            record,
            compile_cron(record, self._default_zone),
            self._calendars.usable,
            default_zone=self._default_zone,
            now=now,
            conflicting=lambda: self._conflicting_rules(record, now),
            applied=self._pending_records.times(record.origin.key),
        )

    def _conflicting_rules(self, record: CronRecord, now: int) -> Sequence[ConflictingRule]:
        """Find the rules of other objects with the same target; paused and deleted objects do not count."""
        found: list[ConflictingRule] = []
        for other in self._store.by(BY_TARGET, record.target):
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
            zone = self._default_zone
            spec = compile_cron(record, zone)
            known = record, evaluate(record, spec, self._calendars.usable, default_zone=zone, now=now)
            self._evaluated[1][record.origin.key] = known
        return known[1]
