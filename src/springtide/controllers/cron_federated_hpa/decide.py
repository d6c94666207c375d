"""What is due of one CronFederatedHPA at one instant, and what its status and cursor say afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec

from springtide.almanac import DayCalendar
from springtide.apis.karmada.targets import CronTarget
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import AutoscalerRecord
from springtide.controllers.cron_federated_hpa import messages
from springtide.controllers.cron_federated_hpa.cursor import (
    LARGEST_RECORDING_SKEW,
    LARGEST_SKEW,
    ObjectAge,
    RuleProgress,
    read_cursor,
    rule_window,
)
from springtide.controllers.cron_federated_hpa.history import (
    LARGEST_LIMITS,
    CronResults,
    histories_in,
    newest_in,
    written_history,
)
from springtide.controllers.cron_federated_hpa.plan import (
    CandidateRule,
    ConflictingRule,
    FiringPlan,
    RuleExecution,
    plan_firings,
)
from springtide.controllers.cron_federated_hpa.records import CompiledCronSpec, CronRecord, zone_of
from springtide.controllers.decision import Decision


@dataclass(frozen=True, slots=True)
class CronEvaluation:
    """One object at one instant: its compiled spec, its stored progress, and what is due."""

    name: str
    spec: CompiledCronSpec
    calendars: Mapping[str, DayCalendar]
    now: int
    before: Mapping[str, RuleProgress] | None
    """The stored progress of rules; None where there is no cursor yet."""
    past: Mapping[str, Object]
    """The stored histories of rules."""
    candidates: tuple[CandidateRule, ...]
    shared: bool
    """Whether rules of other objects set the same target."""
    plan: FiringPlan

    @property
    def target(self) -> CronTarget:
        """The target of the rules; it exists wherever a rule is in force."""
        assert self.spec.target is not None  # noqa: S101 - without one no rule is in force
        return self.spec.target

    @property
    def _latest_stored(self) -> int:
        """The latest instant that a stored time may name."""
        return self.now + LARGEST_SKEW

    @property
    def _recorded_rules(self) -> tuple[str, ...]:
        """The rules that have a history; where the list of rules is malformed, those that had one."""
        return tuple(self.past) if self.spec.written is None else self.spec.written

    def histories(self, results: CronResults) -> list[Object]:
        """Write the histories of all rules, in their order; those of invalid rules keep all entries."""
        limits = {rule.name: rule.limits for rule in self.spec.rules}
        return [
            written_history(
                self.past.get(name, {}),
                name,
                results,
                limits.get(name, LARGEST_LIMITS),
                self.plan.next.get(name),
                self._latest_stored,
            )
            for name in self._recorded_rules
        ]

    def first_progress(self) -> dict[str, RuleProgress]:
        """Return the progress from which the rules begin, for an object without a cursor."""
        timings = {rule.name: rule.timing for rule in self.spec.rules}
        return {one.name: RuleProgress(one.since, timings[one.name], one.ended is None) for one in self.candidates}

    def progress(self, pending: Mapping[str, RuleExecution]) -> dict[str, RuleProgress]:
        """Return the progress of the rules; `pending` firings are still being retried.

        Invalid rules keep their progress, but are not in force any more: what they miss is not applied later.
        """
        timings = {rule.name: rule.timing for rule in self.spec.rules}
        running = {one.name: one for one in self.candidates}
        before = self.before or {}
        progress: dict[str, RuleProgress] = {}
        for name in tuple(before) if self.spec.written is None else self.spec.written:
            if name in running:
                handled = pending[name].settled_before if name in pending else self.plan.settled[name]
                progress[name] = RuleProgress(handled, timings[name], running[name].ended is None)
            elif name in before:
                progress[name] = replace(before[name], in_force=False)
        return progress

    def is_lost(self, rule: str, at: int) -> bool:
        """Return whether a firing that was due is neither handled nor still due, because its rule has changed."""
        due = [(one.rule, one.at) for one in self.plan.executions] + [(one.rule, one.at) for one in self.plan.missed]
        return (rule, at) not in due and self.is_open(rule, at)

    def is_open(self, rule: str, at: int) -> bool:
        """Return whether a firing that was due before is not recorded yet, however its rule has changed."""
        if rule not in self._recorded_rules:
            return False
        if any(one.name == rule and one.since < at for one in self.candidates):
            return True
        entry = (self.before or {}).get(rule)
        return (
            entry is not None
            and max(entry.handled, newest_in(self.past.get(rule, {}), self.now + LARGEST_RECORDING_SKEW) or 0) < at
        )

    def as_conflicting_rules(self, *, precedes: bool) -> list[ConflictingRule]:
        """Return the rules that are in force, as another object with the same target sees them."""
        return [
            ConflictingRule(self.name, one.name, one.firings, one.action, one.since, one.recorded, precedes)
            for one in self.candidates
            if one.ended is None
        ]


def evaluate(
    record: CronRecord,
    spec: CompiledCronSpec,
    calendars: Mapping[str, DayCalendar],
    *,
    default_zone: str,
    now: int,
    conflicting: Callable[[], Sequence[ConflictingRule]] = tuple,
    applied: Mapping[str, frozenset[int]] = MappingProxyType({}),
) -> CronEvaluation:
    """Evaluate an object; `conflicting` is called only if a firing is due.

    `applied` are the firings of each rule that were applied and could not be recorded yet.
    """
    before = read_cursor(record.cursor)
    past = histories_in(msgspec.json.decode(record.status))
    age = ObjectAge(record.created, record.edited)
    candidates = []
    for rule in spec.rules:
        recorded = newest_in(past.get(rule.name, {}), now + LARGEST_RECORDING_SKEW)
        window = rule_window(
            before,
            rule.name,
            timing=rule.timing,
            in_force=not rule.view.suspend,
            recorded=recorded,
            age=age,
            now=now,
        )
        candidates.append(
            CandidateRule(
                rule.name,
                rule.firings(default_zone, calendars),
                rule.action,
                window.since,
                recorded,
                applied.get(rule.name, frozenset()),
                window.ended,
                rule.view.max_delay_seconds,
                max(1, rule.view.failed_history_limit),
            )
        )
    decided = plan_firings(candidates, now)
    others: Sequence[ConflictingRule] = ()
    if decided.executions:
        others = conflicting()
        decided = plan_firings(candidates, now, others)
    return CronEvaluation(
        record.origin.key.name,
        spec,
        calendars,
        now,
        before,
        past,
        tuple(candidates),
        bool(others),
        decided,
    )


def decide(
    evaluation: CronEvaluation, conflicts: Sequence[AutoscalerRecord], default_zone: str
) -> Decision[RuleExecution]:
    """Decide what to apply, from an evaluation and the other autoscalers of the target."""
    plan, spec = evaluation.plan, evaluation.spec
    ready = messages.ready_condition(spec, spec.missing_calendars(evaluation.calendars))
    remark = () if spec.target is None else (messages.target_conflict_condition(spec.target, conflicts),)
    firing = tuple(messages.firing_message(one, zone_of(spec, one.rule, default_zone)) for one in plan.executions)
    missed = tuple(messages.missed_message(one) for one in plan.missed)
    return Decision(
        actions=plan.executions,
        reasons=(*firing, *missed) or (ready.message,),
        conditions=(ready, *remark),
        requeue_at=plan.requeue_at,
    )
