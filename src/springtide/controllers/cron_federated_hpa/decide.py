"""One object at one instant: what it says, what is due, and what is to be written about it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec

from springtide.almanac import DayCalendar
from springtide.apis.karmada.targets import CronTarget
from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa.cursor import (
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
from springtide.controllers.cron_federated_hpa.records import CompiledCron, CronRecord


@dataclass(frozen=True, slots=True)
class CronEvaluation:
    """What is known and decided about an object."""

    name: str
    meaning: CompiledCron
    calendars: Mapping[str, DayCalendar]
    now: int
    before: Mapping[str, RuleProgress] | None
    """The marks that stand in the cursor; None where there is none yet."""
    past: Mapping[str, Object]
    """The histories that stand in the status."""
    candidates: tuple[CandidateRule, ...]
    shared: bool
    """Whether rules of other objects set the same target."""
    plan: FiringPlan

    @property
    def target(self) -> CronTarget:
        """What the rules scale; there is one wherever a rule is in force."""
        assert self.meaning.target is not None  # noqa: S101 - without one no rule is sound
        return self.meaning.target

    @property
    def _believed(self) -> int:
        """Up to when times that were written are believed."""
        return self.now + LARGEST_SKEW

    @property
    def _told(self) -> tuple[str, ...]:
        """The rules that have a history; where it cannot be told which there are, those that had one."""
        return tuple(self.past) if self.meaning.written is None else self.meaning.written

    def histories(self, news: CronResults) -> list[Object]:
        """Write the histories of all rules, in the order of the rules; of those that cannot be used, nothing goes."""
        limits = {rule.name: rule.limits for rule in self.meaning.rules}
        return [
            written_history(
                self.past.get(name, {}),
                name,
                news,
                limits.get(name, LARGEST_LIMITS),
                self.plan.next.get(name),
                self._believed,
            )
            for name in self._told
        ]

    def first_marks(self) -> dict[str, RuleProgress]:
        """Give from where the rules begin, for an object that has no cursor yet."""
        timings = {rule.name: rule.timing for rule in self.meaning.rules}
        return {one.name: RuleProgress(one.since, timings[one.name], one.ended is None) for one in self.candidates}

    def marks(self, pending: Mapping[str, RuleExecution]) -> dict[str, RuleProgress]:
        """Give how far the rules have come, but for firings that are still being tried.

        Rules that cannot be used keep their marks, but are in force no more: what they miss is not made up for.
        """
        timings = {rule.name: rule.timing for rule in self.meaning.rules}
        running = {one.name: one for one in self.candidates}
        before = self.before or {}
        marks: dict[str, RuleProgress] = {}
        for name in tuple(before) if self.meaning.written is None else self.meaning.written:
            if name in running:
                handled = pending[name].settled_before if name in pending else self.plan.settled[name]
                marks[name] = RuleProgress(handled, timings[name], running[name].ended is None)
            elif name in before:
                marks[name] = replace(before[name], in_force=False)
        return marks

    def is_lost(self, rule: str, at: int) -> bool:
        """Tell whether a firing that once was due is neither settled nor due any more: its rule is another one now."""
        due = [(one.rule, one.at) for one in self.plan.executions] + [(one.rule, one.at) for one in self.plan.missed]
        return (rule, at) not in due and self.is_open(rule, at)

    def is_open(self, rule: str, at: int) -> bool:
        """Tell whether a firing that once was due is still to be recorded, whatever became of its rule meanwhile."""
        if rule not in self._told:
            return False
        if any(one.name == rule and one.since < at for one in self.candidates):
            return True
        mark = (self.before or {}).get(rule)
        return mark is not None and max(mark.handled, newest_in(self.past.get(rule, {}), self._believed) or 0) < at

    def as_rivals(self, *, precedes: bool) -> list[ConflictingRule]:
        """Give the rules that are in force, as they appear to other objects with the same target."""
        return [
            ConflictingRule(self.name, one.name, one.firings, one.action, one.since, one.recorded, precedes)
            for one in self.candidates
            if one.ended is None
        ]


def evaluate(
    record: CronRecord,
    meaning: CompiledCron,
    calendars: Mapping[str, DayCalendar],
    *,
    default_zone: str,
    now: int,
    rivals: Callable[[], Sequence[ConflictingRule]] = tuple,
    applied: Mapping[str, frozenset[int]] = MappingProxyType({}),
) -> CronEvaluation:
    """Judge an object; `rivals` is asked only where something is due.

    `applied` are the firings of each rule that have been applied and could not be recorded yet.
    """
    before = read_cursor(record.cursor)
    past = histories_in(msgspec.json.decode(record.status))
    life = ObjectAge(record.created, record.edited)
    candidates = []
    for rule in meaning.rules:
        recorded = newest_in(past.get(rule.name, {}), now + LARGEST_SKEW)
        standing = rule_window(
            before,
            rule.name,
            timing=rule.timing,
            in_force=not rule.view.suspend,
            recorded=recorded,
            life=life,
            now=now,
        )
        candidates.append(
            CandidateRule(
                rule.name,
                rule.firings(default_zone, calendars),
                rule.action,
                standing.since,
                recorded,
                applied.get(rule.name, frozenset()),
                standing.ended,
                rule.view.max_delay_seconds,
                max(1, rule.view.failed_history_limit),
            )
        )
    decided = plan_firings(candidates, now)
    others: Sequence[ConflictingRule] = ()
    if decided.executions:
        others = rivals()
        decided = plan_firings(candidates, now, others)
    return CronEvaluation(
        record.origin.key.name,
        meaning,
        calendars,
        now,
        before,
        past,
        tuple(candidates),
        bool(others),
        decided,
    )
