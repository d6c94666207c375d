"""How long the controller takes, under the names that upstream gives these metrics.

How often firings have been tried, and when they are tried again.

Tries are bounded: about eight within two minutes, none when the firing would be too late, and none when the next one
comes. The count is kept in memory, so a restart begins it anew; what was not recorded is due again in any case.

What has been applied, and does not stand in the status yet.

A status cannot always be written: somebody is faster, or the server refuses. The firing is due again then, by all that
the object says. To apply it once more could undo what somebody did since, and to call it missed would be untrue. It is
kept in memory: who dies in between applies it again, as nothing tells that it was.

Applies what is due of an object, and decides what becomes of firings that could not be applied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from prometheus_client import CollectorRegistry, Histogram

from springtide.almanac import load_zone
from springtide.cluster.context import ControllerContext
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation
from springtide.controllers.cron_federated_hpa.history import MISSED_PREFIX, CronResults, RuleFailure, RuleSuccess
from springtide.controllers.cron_federated_hpa.messages import firing_message
from springtide.controllers.cron_federated_hpa.plan import RuleExecution
from springtide.controllers.cron_federated_hpa.targets import ApplyFailure, CronTargetObject, apply_executions

_SECONDS = tuple(0.001 * 2**step for step in range(12))
_RESULTS = ("success", "error")


class CronMetrics:
    """A service of the process: what is measured of CronFederatedHPAs. Without a registry nothing is."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._objects = self._rules = None
        if registry is not None:
            self._objects = _histogram(
                "cronfederatedhpa_process_duration_seconds", "How long it took to look after an object.", registry
            )
            self._rules = _histogram(
                "cronfederatedhpa_rule_process_duration_seconds", "How long it took to apply a firing.", registry
            )

    @contextmanager
    def measure_reconcile(self) -> Iterator[None]:
        """Measure what happens in the block as the time for one object."""
        began = perf_counter()
        result = "error"
        try:
            yield
            result = "success"
        finally:
            if self._objects is not None:
                self._objects.labels(result).observe(perf_counter() - began)

    def applied(self, seconds: float, *, success: bool) -> None:
        """Take note of one try to apply one firing."""
        if self._rules is not None:
            self._rules.labels("success" if success else "error").observe(seconds)


def _histogram(name: str, words: str, registry: CollectorRegistry) -> Histogram:
    histogram = Histogram(name, words, ("result",), buckets=_SECONDS, registry=registry)
    for result in _RESULTS:
        histogram.labels(result)
    return histogram


RETRY_DELAYS = (1, 2, 4, 8, 16, 32, 60)
"""Seconds after each try that failed; after the last of them there is one more try."""


@dataclass(frozen=True, slots=True)
class RuleAttempts:
    """What became of a firing so far."""

    at: int
    """The firing."""
    count: int
    last: str
    """Why the last try failed."""
    again: int
    """When it is tried again."""

    @property
    def message(self) -> str:
        """Say that it is given up, as the history does."""
        return self.last if self.count == 1 else f"{self.last} (tried {self.count} times)"


class AttemptCounter:
    """The firings that are being tried, of all objects."""

    def __init__(self) -> None:
        self._tries: dict[Key, dict[str, RuleAttempts]] = {}

    def of(self, key: Key, rule: str, at: int) -> RuleAttempts | None:
        """Tell what became of a firing so far; None where it was not tried yet."""
        tries = self._tries.get(key, {}).get(rule)
        return tries if tries is not None and tries.at == at else None

    def under_way(self, key: Key) -> Mapping[str, RuleAttempts]:
        """Give the firings of an object that are being tried, by rule."""
        return self._tries.get(key, {})

    def is_due(self, key: Key, execution: RuleExecution, now: int) -> bool:
        """Tell whether it is time for the first or the next try of a firing."""
        tries = self.of(key, execution.rule, execution.at)
        return tries is None or tries.again <= now

    def failed(self, key: Key, execution: RuleExecution, trouble: ApplyFailure, now: int) -> RuleAttempts | None:
        """Count a try that failed; gives what was tried in all where that was the last one."""
        before = self.of(key, execution.rule, execution.at)
        count = 1 if before is None else before.count + 1
        pause = RETRY_DELAYS[count - 1] if count <= len(RETRY_DELAYS) else None
        again = 0 if pause is None else now + max(pause, math.ceil(trouble.retry_after or 0))
        tries = RuleAttempts(execution.at, count, trouble.words, again)
        too_late = execution.last_try is not None and again > execution.last_try
        if not trouble.passing or pause is None or too_late:
            return tries
        self._tries.setdefault(key, {})[execution.rule] = tries
        return None

    def succeeded(self, key: Key, rule: str) -> None:
        """Forget the tries of a firing that was applied in the end."""
        self._tries.get(key, {}).pop(rule, None)

    def next_try(self, key: Key) -> int | None:
        """Tell when one of the firings of an object is tried again."""
        return min((tries.again for tries in self._tries.get(key, {}).values()), default=None)

    def settle(self, key: Key, pending: frozenset[str]) -> None:
        """Forget all firings of an object but those of the rules that are still being tried."""
        left = {rule: tries for rule, tries in self._tries.get(key, {}).items() if rule in pending}
        if left:
            self._tries[key] = left
        else:
            self._tries.pop(key, None)


class PendingRecords:
    """The firings of all objects that have been applied and are still to be recorded."""

    def __init__(self) -> None:
        self._successes: dict[Key, dict[str, list[RuleSuccess]]] = {}

    def add(self, key: Key, rule: str, success: RuleSuccess) -> None:
        """Keep a firing until it is recorded."""
        self._successes.setdefault(key, {}).setdefault(rule, []).append(success)

    def times(self, key: Key) -> Mapping[str, frozenset[int]]:
        """Give the times of the firings of an object, by rule."""
        return {
            rule: frozenset(success.at for success in found) for rule, found in self._successes.get(key, {}).items()
        }

    def of(self, key: Key) -> Iterator[tuple[str, RuleSuccess]]:
        """Yield the firings of an object, each with its rule."""
        for rule, found in self._successes.get(key, {}).items():
            for success in found:
                yield rule, success

    def settle(self, key: Key) -> None:
        """Forget the firings of an object: they are recorded, or it is gone."""
        self._successes.pop(key, None)


class RuleExecutor:
    """Carries out plans; remembers how often it has tried."""

    def __init__(self, context: ControllerContext, kinds: KindRegistry, metrics: CronMetrics) -> None:
        self.attempts = AttemptCounter()
        self.unrecorded = PendingRecords()
        self._tools = context
        self._kinds = kinds
        self._metrics = metrics

    async def carry_out(
        self, key: Key, judgement: CronEvaluation, now: int
    ) -> tuple[CronResults, dict[str, RuleExecution]]:
        """Do what a plan says; gives what there is to record, and what is to be tried again, by rule."""
        news = self._missed(key, judgement, now)
        executions = judgement.plan.executions
        ready = [one for one in executions if self.attempts.is_due(key, one, now)]
        pending = {one.rule: one for one in executions if one not in ready}
        if ready:
            pending |= await self._apply(key, judgement, ready, news)
        for rule, success in self.unrecorded.of(key):
            if judgement.is_open(rule, success.at):
                news.succeeded(rule, success)
        return news, pending

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self.attempts.settle(key, frozenset())
        self.unrecorded.settle(key)

    def _missed(self, key: Key, judgement: CronEvaluation, now: int) -> CronResults:
        """Take down what is not applied any more; what was tried before has failed, and was not only missed."""
        news = CronResults()
        for missed in judgement.plan.missed:
            tries = self.attempts.of(key, missed.rule, missed.at)
            words = (
                f"{MISSED_PREFIX}{missed.because}" if tries is None else f"{tries.message}, and then {missed.because}"
            )
            news.failed(missed.rule, RuleFailure(missed.at, now, words, missed.earlier))
        for rule, tries in self.attempts.under_way(key).items():
            if judgement.is_lost(rule, tries.at):
                words = f"{tries.message}, and then the rule was changed"
                news.failed(rule, RuleFailure(tries.at, now, words))
        return news

    async def _apply(
        self, key: Key, judgement: CronEvaluation, ready: Sequence[RuleExecution], news: CronResults
    ) -> dict[str, RuleExecution]:
        target = CronTargetObject(judgement.target, key.namespace)
        began = perf_counter()
        because = self._because(judgement, ready)
        troubles = await apply_executions(
            self._tools.client, self._kinds, target, ready, because, shared=judgement.shared
        )
        seconds = perf_counter() - began
        executed = self._tools.clock.now()
        pending: dict[str, RuleExecution] = {}
        for execution in ready:
            trouble = troubles.get(execution.rule)
            self._metrics.applied(seconds, success=trouble is None)
            if trouble is None:
                self.unrecorded.add(key, execution.rule, RuleSuccess(execution.at, executed, execution.values))
                self.attempts.succeeded(key, execution.rule)
            elif (tries := self.attempts.failed(key, execution, trouble, executed)) is not None:
                news.failed(execution.rule, RuleFailure(execution.at, executed, tries.message))
            else:
                self._tools.log.info("%s: rule %s is tried again: %s", key, execution.rule, trouble.words)
                pending[execution.rule] = execution
        return pending

    def _because(self, judgement: CronEvaluation, executions: Sequence[RuleExecution]) -> str:
        zones = {rule.name: rule.view.time_zone or self._tools.default_zone for rule in judgement.meaning.rules}
        return "; ".join(firing_message(one, load_zone(zones[one.rule])) for one in executions)
