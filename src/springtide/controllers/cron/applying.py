"""Applies what is due of an object, and decides what becomes of firings that could not be applied."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from springtide.almanac import load_zone
from springtide.cluster.kinds import Kinds
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
from springtide.controllers.cron.attempts import Attempts
from springtide.controllers.cron.history import MISSED, Failure, News, Success
from springtide.controllers.cron.judgement import Judgement
from springtide.controllers.cron.metrics import CronMetrics
from springtide.controllers.cron.plan import Execution
from springtide.controllers.cron.targets import Target, apply
from springtide.controllers.cron.unrecorded import Unrecorded
from springtide.controllers.cron.words import firing_in_words


class Applier:
    """Carries out plans; remembers how often it has tried."""

    def __init__(self, tools: Tools, kinds: Kinds, metrics: CronMetrics) -> None:
        self.attempts = Attempts()
        self.unrecorded = Unrecorded()
        self._tools = tools
        self._kinds = kinds
        self._metrics = metrics

    async def carry_out(self, key: Key, judgement: Judgement, now: int) -> tuple[News, dict[str, Execution]]:
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

    def _missed(self, key: Key, judgement: Judgement, now: int) -> News:
        """Take down what is not applied any more; what was tried before has failed, and was not only missed."""
        news = News()
        for missed in judgement.plan.missed:
            tries = self.attempts.of(key, missed.rule, missed.at)
            words = f"{MISSED}{missed.because}" if tries is None else f"{tries.message}, and then {missed.because}"
            news.failed(missed.rule, Failure(missed.at, now, words, missed.earlier))
        for rule, tries in self.attempts.under_way(key).items():
            if judgement.is_lost(rule, tries.at):
                words = f"{tries.message}, and then the rule was changed"
                news.failed(rule, Failure(tries.at, now, words))
        return news

    async def _apply(
        self, key: Key, judgement: Judgement, ready: Sequence[Execution], news: News
    ) -> dict[str, Execution]:
        target = Target(judgement.target, key.namespace)
        began = perf_counter()
        because = self._because(judgement, ready)
        troubles = await apply(self._tools.client, self._kinds, target, ready, because, shared=judgement.shared)
        seconds = perf_counter() - began
        executed = self._tools.clock.now()
        pending: dict[str, Execution] = {}
        for execution in ready:
            trouble = troubles.get(execution.rule)
            self._metrics.applied(seconds, success=trouble is None)
            if trouble is None:
                self.unrecorded.add(key, execution.rule, Success(execution.at, executed, execution.values))
                self.attempts.succeeded(key, execution.rule)
            elif (tries := self.attempts.failed(key, execution, trouble, executed)) is not None:
                news.failed(execution.rule, Failure(execution.at, executed, tries.message))
            else:
                self._tools.log.info("%s: rule %s is tried again: %s", key, execution.rule, trouble.words)
                pending[execution.rule] = execution
        return pending

    def _because(self, judgement: Judgement, executions: Sequence[Execution]) -> str:
        zones = {rule.name: rule.view.time_zone or self._tools.default_zone for rule in judgement.meaning.rules}
        return "; ".join(firing_in_words(one, load_zone(zones[one.rule])) for one in executions)
