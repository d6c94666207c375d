"""Applies due firings to targets, with bounded retries, and keeps what the status does not record yet.

A firing is tried about eight times within two minutes, but not after it would be too late or the next one is due. The
count is kept in memory, so a restart begins it again; a firing that was not recorded is due again anyway.

The status write may fail after the target was changed. By all that the object says, the firing is due again then; but
to apply it once more could undo a later change by a user, and to call it missed would be wrong. So it is kept in memory
until it is recorded. If the process ends before, the next one applies it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from prometheus_client import CollectorRegistry, Histogram

from springtide.cluster.context import ControllerContext
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation
from springtide.controllers.cron_federated_hpa.history import MISSED_PREFIX, CronResults, RuleFailure, RuleSuccess
from springtide.controllers.cron_federated_hpa.messages import firing_message
from springtide.controllers.cron_federated_hpa.plan import RuleExecution
from springtide.controllers.cron_federated_hpa.records import zone_of
from springtide.controllers.cron_federated_hpa.targets import ApplyFailure, CronTargetObject, apply_executions
from springtide.controllers.decision import Decision

_SECONDS = tuple(0.001 * 2**step for step in range(12))
_RESULTS = ("success", "error")


class CronMetrics:
    """A service of the process: durations of reconciles and firings. Without a registry nothing is measured."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._objects = self._rules = None
        if registry is not None:
            self._objects = _histogram(
                "cronfederatedhpa_process_duration_seconds", "How long it took to reconcile an object.", registry
            )
            self._rules = _histogram(
                "cronfederatedhpa_rule_process_duration_seconds", "How long it took to apply a firing.", registry
            )

    @contextmanager
    def measure_reconcile(self) -> Iterator[None]:
        """Measure the block as the reconcile of one object."""
        began = perf_counter()
        result = "error"
        try:
            yield
            result = "success"
        finally:
            if self._objects is not None:
                self._objects.labels(result).observe(perf_counter() - began)

    def applied(self, seconds: float, *, success: bool) -> None:
        """Measure one attempt to apply one firing."""
        if self._rules is not None:
            self._rules.labels("success" if success else "error").observe(seconds)


def _histogram(name: str, documentation: str, registry: CollectorRegistry) -> Histogram:
    histogram = Histogram(name, documentation, ("result",), buckets=_SECONDS, registry=registry)
    for result in _RESULTS:
        histogram.labels(result)
    return histogram


RETRY_DELAYS = (1, 2, 4, 8, 16, 32, 60)
"""Seconds after each failed attempt; after the last of them there is one more attempt."""


@dataclass(frozen=True, slots=True)
class RuleAttempts:
    """The failed attempts to apply a firing."""

    at: int
    """The firing."""
    count: int
    last: str
    """Why the last attempt failed."""
    again: int
    """When it is retried."""

    @property
    def message(self) -> str:
        """The message in the history once no more attempt is made."""
        return self.last if self.count == 1 else f"{self.last} (tried {self.count} times)"


class AttemptCounter:
    """The firings of all objects that are being retried."""

    def __init__(self) -> None:
        self._tries: dict[Key, dict[str, RuleAttempts]] = {}

    def of(self, key: Key, rule: str, at: int) -> RuleAttempts | None:
        """Return the attempts of a firing; None before the first."""
        tries = self._tries.get(key, {}).get(rule)
        return tries if tries is not None and tries.at == at else None

    def under_way(self, key: Key) -> Mapping[str, RuleAttempts]:
        """Return the firings of an object that are being retried, by rule."""
        return self._tries.get(key, {})

    def is_due(self, key: Key, execution: RuleExecution, now: int) -> bool:
        """Return whether the first or the next attempt is due."""
        tries = self.of(key, execution.rule, execution.at)
        return tries is None or tries.again <= now

    def failed(self, key: Key, execution: RuleExecution, failure: ApplyFailure, now: int) -> RuleAttempts | None:
        """Count a failed attempt; gives all of them if no more is made."""
        before = self.of(key, execution.rule, execution.at)
        count = 1 if before is None else before.count + 1
        pause = RETRY_DELAYS[count - 1] if count <= len(RETRY_DELAYS) else None
        again = 0 if pause is None else now + max(pause, math.ceil(failure.retry_after or 0))
        tries = RuleAttempts(execution.at, count, failure.message, again)
        too_late = execution.last_try is not None and again > execution.last_try
        if not failure.retriable or pause is None or too_late:
            return tries
        self._tries.setdefault(key, {})[execution.rule] = tries
        return None

    def succeeded(self, key: Key, rule: str) -> None:
        """Drop the attempts of a firing that was applied."""
        self._tries.get(key, {}).pop(rule, None)

    def next_try(self, key: Key) -> int | None:
        """Return the instant of the next attempt of any firing of an object."""
        return min((tries.again for tries in self._tries.get(key, {}).values()), default=None)

    def settle(self, key: Key, pending: frozenset[str]) -> None:
        """Drop the attempts of an object, except those of rules whose firing is still pending."""
        left = {rule: tries for rule, tries in self._tries.get(key, {}).items() if rule in pending}
        if left:
            self._tries[key] = left
        else:
            self._tries.pop(key, None)


class PendingRecords:
    """The firings of all objects that were applied and are not recorded in the status yet."""

    def __init__(self) -> None:
        self._successes: dict[Key, dict[str, list[RuleSuccess]]] = {}

    def add(self, key: Key, rule: str, success: RuleSuccess) -> None:
        """Keep a firing until it is recorded."""
        self._successes.setdefault(key, {}).setdefault(rule, []).append(success)

    def times(self, key: Key) -> Mapping[str, frozenset[int]]:
        """Return the instants of the firings of an object, by rule."""
        return {
            rule: frozenset(success.at for success in found) for rule, found in self._successes.get(key, {}).items()
        }

    def of(self, key: Key) -> Iterator[tuple[str, RuleSuccess]]:
        """Yield the firings of an object, each with its rule."""
        for rule, found in self._successes.get(key, {}).items():
            for success in found:
                yield rule, success

    def settle(self, key: Key) -> None:
        """Drop the firings of an object: they are recorded, or the object is gone."""
        self._successes.pop(key, None)


class RuleExecutor:
    """Applies the actions of decisions, retries them, and keeps what is not recorded yet."""

    def __init__(self, context: ControllerContext, kinds: KindRegistry, metrics: CronMetrics) -> None:
        self.attempts = AttemptCounter()
        self.pending_records = PendingRecords()
        self._context = context
        self._registry = kinds
        self._metrics = metrics

    async def execute(
        self, key: Key, evaluation: CronEvaluation, decision: Decision[RuleExecution], now: int
    ) -> tuple[CronResults, dict[str, RuleExecution]]:
        """Apply what is due; gives what to record, and the firings to retry, by rule."""
        results = self._missed(key, evaluation, now)
        executions = decision.actions
        ready = [one for one in executions if self.attempts.is_due(key, one, now)]
        pending = {one.rule: one for one in executions if one not in ready}
        if ready:
            pending |= await self._apply(key, evaluation, ready, results)
        for rule, success in self.pending_records.of(key):
            if evaluation.is_open(rule, success.at):
                results.succeeded(rule, success)
        return results, pending

    def forget(self, key: Key) -> None:
        """Drop an object that is gone."""
        self.attempts.settle(key, frozenset())
        self.pending_records.settle(key)

    def _missed(self, key: Key, evaluation: CronEvaluation, now: int) -> CronResults:
        """Record what is not applied any more; a firing with attempts has failed, others were missed."""
        results = CronResults()
        for missed in evaluation.plan.missed:
            tries = self.attempts.of(key, missed.rule, missed.at)
            reason = (
                f"{MISSED_PREFIX}{missed.because}" if tries is None else f"{tries.message}, and then {missed.because}"
            )
            results.failed(missed.rule, RuleFailure(missed.at, now, reason, missed.earlier))
        for rule, tries in self.attempts.under_way(key).items():
            if evaluation.is_lost(rule, tries.at):
                reason = f"{tries.message}, and then the rule was changed"
                results.failed(rule, RuleFailure(tries.at, now, reason))
        return results

    async def _apply(
        self, key: Key, evaluation: CronEvaluation, ready: Sequence[RuleExecution], results: CronResults
    ) -> dict[str, RuleExecution]:
        target = CronTargetObject(evaluation.target, key.namespace)
        began = perf_counter()
        because = "; ".join(self._firing(evaluation, one) for one in ready)
        failures = await apply_executions(
            self._context.client, self._registry, target, ready, because, shared=evaluation.shared
        )
        seconds = perf_counter() - began
        executed = self._context.clock.now()
        pending: dict[str, RuleExecution] = {}
        for execution in ready:
            failure = failures.get(execution.rule)
            self._metrics.applied(seconds, success=failure is None)
            if failure is None:
                self.pending_records.add(key, execution.rule, RuleSuccess(execution.at, executed, execution.values))
                self.attempts.succeeded(key, execution.rule)
            elif (tries := self.attempts.failed(key, execution, failure, executed)) is not None:
                results.failed(execution.rule, RuleFailure(execution.at, executed, tries.message))
            else:
                self._context.log.info("%s: rule %s is retried: %s", key, execution.rule, failure.message)
                pending[execution.rule] = execution
        return pending

    def _firing(self, evaluation: CronEvaluation, execution: RuleExecution) -> str:
        return firing_message(execution, zone_of(evaluation.spec, execution.rule, self._context.default_zone))
