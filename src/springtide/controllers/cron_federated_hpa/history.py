"""The history of each rule in the status of a CronFederatedHPA: newest first, as many entries as the rule keeps.

The message of a missed firing begins with `missed:`. If many are missed at once, only the newest are listed, and the
newest of all says how many more there were.
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
"""How the message of a firing begins that was never tried."""

_SUCCESSES, _FAILURES = _HISTORY_FIELDS = "successfulExecutions", "failedExecutions"
APPLIED_FIELDS = {"replicas": "appliedReplicas", "min": "appliedMinReplicas", "max": "appliedMaxReplicas"}


@dataclass(frozen=True, slots=True)
class RuleSuccess:
    """A firing that was applied."""

    at: int
    executed: int
    values: RuleAction

    def entry(self) -> Object:
        """Write it as an entry of the status."""
        applied = {APPLIED_FIELDS[name]: value for name, value in self.values.items()}
        return {"scheduleTime": format_instant(self.at), "executionTime": format_instant(self.executed)} | applied


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A firing that could not be applied, or that was missed."""

    at: int
    executed: int
    reason: str
    earlier: int = 0
    """How many more of the rule were missed before it, and are not listed."""

    @property
    def missed(self) -> bool:
        """Whether it was never tried."""
        return self.reason.startswith(MISSED_PREFIX)

    @property
    def message(self) -> str:
        """The reason, and how many more were missed."""
        more = {0: "", 1: ", and 1 earlier one was missed"}
        return self.reason + more.get(self.earlier, f", and {self.earlier} earlier ones were missed")

    def entry(self) -> Object:
        """Write it as an entry of the status."""
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
"""The highest limits that the API allows: for invalid rules, whose own limits are unknown."""


@dataclass(slots=True)
class CronResults:
    """What one reconcile has applied and failed to apply, by rule."""

    successes: dict[str, list[RuleSuccess]] = field(default_factory=dict)
    failures: dict[str, list[RuleFailure]] = field(default_factory=dict)

    def succeeded(self, rule: str, success: RuleSuccess) -> None:
        """Note a firing that was applied."""
        self.successes.setdefault(rule, []).append(success)

    def failed(self, rule: str, failure: RuleFailure) -> None:
        """Note a firing that failed or was missed."""
        self.failures.setdefault(rule, []).append(failure)


def histories_in(status: Mapping[str, Any]) -> dict[str, Object]:
    """Read the history of each rule from a status, without malformed entries."""
    found: dict[str, Object] = {}
    for history in _objects(status.get("executionHistories")):
        if isinstance(name := history.get("ruleName"), str):
            entries = {kept: [one for one in _objects(history.get(kept)) if _is_dated(one)] for kept in _HISTORY_FIELDS}
            found[name] = history | {kept: listed for kept, listed in entries.items() if listed or kept in history}
    return found


def execution_times(histories: Iterable[Mapping[str, Any]]) -> dict[str, str | None]:
    """Return the next and the last execution of all rules, as fields of the status."""
    ahead, past = [], []
    for history in histories:
        if instant := history.get("nextExecutionTime"):
            ahead.append(parse_instant(instant))
        past += [instant_in(entry.get("executionTime")) for entry in history.get("successfulExecutions") or ()]
    return {
        "nextExecutionTime": format_instant(min(ahead)) if ahead else None,
        "lastExecutionTime": format_instant(max(done)) if (done := [at for at in past if at is not None]) else None,
    }


def newest_in(history: Mapping[str, Any], until: int) -> int | None:
    """Return the newest firing of a history, which has been handled.

    Entries after `until` were written before the clock was set back: they count when their time comes. Failures that
    were recorded after it do not count at all: those firings were not applied, and come again.
    """
    failures = (one for one in history.get(_FAILURES) or () if _recorded_at(one) <= until)
    entries = (*(history.get(_SUCCESSES) or ()), *failures)
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
    """Write the history of a rule with new results; entries from after `until` are dropped first.

    A firing that is applied after all, since the clock was set back, is not listed as a failure any more.
    """
    applied = {success.at for success in news.successes.get(rule, ())}
    successes = _newest_first(
        (success.entry() for success in news.successes.get(rule, ())),
        before.get(_SUCCESSES) or (),
        limits.successes,
        until,
    )
    failures = _newest_first(
        (failure.entry() for failure in listed(news.failures.get(rule, ()), limits.failures)),
        [one for one in before.get(_FAILURES) or () if parse_instant(one["scheduleTime"]) not in applied],
        limits.failures,
        until,
    )
    return {
        "ruleName": rule,
        **({} if next_execution is None else {"nextExecutionTime": format_instant(next_execution)}),
        **({_SUCCESSES: successes} if successes else {}),
        **({_FAILURES: failures} if failures else {}),
    }


def listed(failures: Iterable[RuleFailure], kept: int) -> list[RuleFailure]:
    """Choose the failures that the history keeps, newest first; the newest counts those that are dropped."""
    ordered = sorted(failures, key=lambda failure: failure.at, reverse=True)
    more = sum(failure.earlier for failure in ordered) + len(ordered[kept:])
    return [replace(failure, earlier=0 if place else more) for place, failure in enumerate(ordered[:kept])]


def _objects(value: object) -> list[Object]:
    """Return the entries of a list that are objects."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _recorded_at(entry: Mapping[str, Any]) -> int:
    return instant_in(str(entry.get("executionTime"))) or 0


def _is_dated(entry: Mapping[str, Any]) -> bool:
    at = entry.get("scheduleTime")
    return isinstance(at, str) and instant_in(at) is not None


def _newest_first(new: Iterable[Object], old: Sequence[Object], kept: int, until: int) -> list[Object]:
    def rank(entry: Object) -> tuple[bool, int]:
        at = parse_instant(entry["scheduleTime"])
        return at <= until, at

    return sorted([*new, *old], key=rank, reverse=True)[:kept]
