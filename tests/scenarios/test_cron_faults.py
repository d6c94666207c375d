"""Every due firing is recorded exactly once, whatever happens; and if it were not, these scenarios would find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.scenarios.cron_faults import LENGTH, cron_under_faults

from springtide.cluster.resources import Key
from springtide.controllers.cron_federated_hpa import decide, executor
from springtide.controllers.cron_federated_hpa.cursor import RuleProgress, RuleWindow, rule_window
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation
from springtide.controllers.cron_federated_hpa.history import CronResults, newest_in
from springtide.controllers.cron_federated_hpa.plan import RuleExecution
from springtide.controllers.cron_federated_hpa.recorder import ExecutionRecorder
from springtide.controllers.cron_federated_hpa.records import CronRecord
from springtide.controllers.cron_federated_hpa.targets import ApplyFailure, apply_executions
from springtide.controllers.decision import Decision
from springtide.simulator.scenario import InvariantViolated, play

_BLOCK = 25
_ENOUGH = 10


@pytest.mark.parametrize("first", range(0, 6, 3))
def test_a_sample_of_seeds_breaks_nothing(first: int) -> None:
    """Whichever process crashes, the trace holds one record of each firing, and no write of a second writer."""
    play(cron_under_faults(), LENGTH, range(first, first + 3))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 2000, _BLOCK))
def test_a_thousand_seeds_break_nothing(first: int) -> None:
    """The same, a thousand times."""
    play(cron_under_faults(), LENGTH, range(first, first + _BLOCK))


def forget_the_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded does not count as handled: only the cursor does."""
    monkeypatch.setattr(decide, "newest_in", lambda history, until: newest_in({}, until))


def forget_long_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where all records are still listed, and only a second one beside the first tells."""

    def forgetful(history: Mapping[str, Any], until: int) -> int | None:
        return newest_in(history, until) if history.get("ruleName") == "every" else None

    monkeypatch.setattr(decide, "newest_in", forgetful)


def write_the_cursor_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor goes ahead of the records."""
    record = ExecutionRecorder.record

    async def late(
        self: ExecutionRecorder,
        key: Key,
        item: CronRecord,
        evaluation: CronEvaluation,
        decision: Decision[RuleExecution],
        results: CronResults,
        now: int,
    ) -> None:
        await self.save_progress(key, item, evaluation.progress({}))
        ahead = await self.latest(key, item)
        if ahead is not None:
            await record(self, key, ahead, evaluation, decision, results, now)

    monkeypatch.setattr(ExecutionRecorder, "record", late)


def make_up_for_suspended_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is resumed goes on where it stopped."""

    def careless(before: Mapping[str, RuleProgress] | None, name: str, **more: Any) -> RuleWindow:
        marks = (
            None
            if before is None
            else {key: RuleProgress(mark.handled, mark.timing, True) for key, mark in before.items()}
        )
        return rule_window(marks, name, **more)

    monkeypatch.setattr(decide, "rule_window", careless)


def call_everything_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the target are ignored."""

    async def deaf(*given: Any, **more: Any) -> dict[str, ApplyFailure]:
        await apply_executions(*given, **more)
        return {}

    monkeypatch.setattr(executor, "apply_executions", deaf)


@pytest.mark.parametrize(
    "bug",
    [
        forget_the_histories,
        forget_long_histories,
        write_the_cursor_first,
        make_up_for_suspended_time,
        call_everything_a_success,
    ],
)
def test_a_deliberate_bug_is_found(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that catches nothing is worth nothing."""
    bug(monkeypatch)

    assert any(_breaks(seed) for seed in range(_ENOUGH))


def _breaks(seed: int) -> bool:
    try:
        cron_under_faults().run(LENGTH, seed=seed)
    except InvariantViolated:
        return True
    return False
