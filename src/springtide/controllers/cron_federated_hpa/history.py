"""What rules did, as the status tells it: newest first, and no more of it than each rule keeps.

A missed firing begins with `missed:`. Of many that are missed at once only the newest are listed, and the first of
these says how many more there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in, parse_instant
from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa.plan import RuleAction

MISSED_PREFIX = "missed: "
"""How the message of a firing begins that was not even tried."""

_HISTORY_FIELDS = ("successfulExecutions", "failedExecutions")
_APPLIED = {"replicas": "appliedReplicas", "min": "appliedMinReplicas", "max": "appliedMaxReplicas"}


@dataclass(frozen=True, slots=True)
class RuleSuccess:
    """A firing that was applied."""

    at: int
    executed: int
    values: RuleAction

    def entry(self) -> Object:
        """Write it as the status has it."""
        applied = {_APPLIED[name]: value for name, value in self.values.items()}
        return {"scheduleTime": format_instant(self.at), "executionTime": format_instant(self.executed)} | applied


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A firing that could not be applied, or that was missed."""

    at: int
    executed: int
    words: str
    earlier: int = 0
    """How many more of the rule were missed before it, and are not listed."""

    @property
    def missed(self) -> bool:
        """Whether it was not even tried."""
        return self.words.startswith(MISSED_PREFIX)

    @property
    def message(self) -> str:
        """Say why, and how many more there were."""
        more = {0: "", 1: ", and 1 earlier one was missed"}
        return self.words + more.get(self.earlier, f", and {self.earlier} earlier ones were missed")

    def entry(self) -> Object:
        """Write it as the status has it."""
        return {
            "scheduleTime": format_instant(self.at),
            "executionTime": format_instant(self.executed),
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of its history a rule keeps."""

    successes: int
    failures: int


LARGEST_LIMITS = HistoryLimits(32, 32)
"""The highest limits that the API allows: for rules whose own cannot be told."""


@dataclass(slots=True)
class CronResults:
    """What happened in one pass, by rule."""

    successes: dict[str, list[RuleSuccess]] = field(default_factory=dict)
    failures: dict[str, list[RuleFailure]] = field(default_factory=dict)

    def succeeded(self, rule: str, success: RuleSuccess) -> None:
        """Note a firing that was applied."""
        self.successes.setdefault(rule, []).append(success)

    def failed(self, rule: str, failure: RuleFailure) -> None:
        """Note a firing that was not."""
        self.failures.setdefault(rule, []).append(failure)


def histories_in(status: Mapping[str, Any]) -> dict[str, Object]:
    """Find the history of each rule, without entries of which nobody can tell what firing they speak of."""
    return {
        history["ruleName"]: history
        | {kept: [*filter(_dated, history[kept])] for kept in _HISTORY_FIELDS if history.get(kept)}
        for history in status.get("executionHistories") or ()
    }


def newest_in(history: Mapping[str, Any], until: int) -> int | None:
    """Give the time of the newest firing that a history speaks of: it has been handled.

    What lies after an instant is not believed: it was written under a wrong clock.
    """
    entries = (entry for kept in _HISTORY_FIELDS for entry in history.get(kept) or ())
    times = (parse_instant(entry["scheduleTime"]) for entry in entries)
    return max((at for at in times if at <= until), default=None)


def written_history(
    before: Mapping[str, Any],
    rule: str,
    news: CronResults,
    limits: HistoryLimits,
    next_execution: int | None,
    until: int,
) -> Object:
    """Write the history of a rule, with what is new; records from after an instant are the first to go."""
    successes = _newest_first(
        (success.entry() for success in news.successes.get(rule, ())),
        before.get("successfulExecutions") or (),
        limits.successes,
        until,
    )
    failures = _newest_first(
        (failure.entry() for failure in listed(news.failures.get(rule, ()), limits.failures)),
        before.get("failedExecutions") or (),
        limits.failures,
        until,
    )
    return {
        "ruleName": rule,
        **({} if next_execution is None else {"nextExecutionTime": format_instant(next_execution)}),
        **({"successfulExecutions": successes} if successes else {}),
        **({"failedExecutions": failures} if failures else {}),
    }


def listed(failures: Iterable[RuleFailure], kept: int) -> list[RuleFailure]:
    """Choose the failures of one pass that are written, newest first; the newest counts those that are not."""
    ordered = sorted(failures, key=lambda failure: failure.at, reverse=True)
    more = sum(failure.earlier for failure in ordered) + len(ordered[kept:])
    return [replace(failure, earlier=0 if place else more) for place, failure in enumerate(ordered[:kept])]


def _dated(entry: Mapping[str, Any]) -> bool:
    return instant_in(entry["scheduleTime"]) is not None


def _newest_first(new: Iterable[Object], old: Sequence[Object], kept: int, until: int) -> list[Object]:
    def rank(entry: Object) -> tuple[bool, int]:
        at = parse_instant(entry["scheduleTime"])
        return at <= until, at

    return sorted([*new, *old], key=rank, reverse=True)[:kept]
