"""What is said about CronFederatedHPAs: conditions and events, in sentences.

Events about CronFederatedHPAs: what was scaled, what failed, what was missed, and what stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from springtide.almanac import Zone
from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import clock_time
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.events import EventRecorder, normal, warning
from springtide.cluster.resources import Key
from springtide.controllers.cron_federated_hpa.history import MISSED_PREFIX, CronResults, RuleFailure
from springtide.controllers.cron_federated_hpa.plan import RuleAction, RuleExecution
from springtide.controllers.cron_federated_hpa.records import CRON_FEDERATED_HPAS, CompiledCron, CronRecord

_LATE = 10
"""Seconds from which on a firing is called late."""
_FIELDS = {"replicas": "{} replica{}", "min": "a minimum of {}", "max": "a maximum of {}"}


def ready_condition(meaning: CompiledCron, missing_calendars: Sequence[str]) -> Condition:
    """Say which rules are in force, and why others are not."""
    sound = [rule.name for rule in meaning.rules]
    if meaning.target is None:
        return Condition("Ready", ConditionStatus.FALSE, "Invalid", f"no rule is in force: {meaning.wrong}")
    if meaning.wrong:
        left_out = [name for name in meaning.written or () if name not in sound]
        names = ", ".join(f"`{name}`" for name in left_out)
        message = f"{f'left out: {names}; ' if names else ''}{meaning.wrong}"
        return Condition("Ready", ConditionStatus.FALSE, "RulesInvalid", message)
    if missing_calendars:
        names = ", ".join(f"`{name}`" for name in missing_calendars)
        message = f"there is no usable Calendar {names}: rules fire as if they did not name it"
        return Condition("Ready", ConditionStatus.FALSE, "CalendarMissing", message)
    suspended = [rule.name for rule in meaning.rules if rule.view.suspend]
    names = f", suspended: {', '.join(f'`{name}`' for name in suspended)}" if suspended else ""
    return Condition("Ready", ConditionStatus.TRUE, "InForce", f"rules in force: {len(sound) - len(suspended)}{names}")


def firing_message(execution: RuleExecution, zone: Zone) -> str:
    """Say which firing it is that changes something."""
    return f"rule `{execution.rule}` fires ({clock_time(execution.at, zone)})"


def scaled_message(target: str, rule: str, values: RuleAction, late: int) -> str:
    """Say what a firing has set."""
    what = " and ".join(_FIELDS[field].format(value, "" if value == 1 else "s") for field, value in values.items())
    return f"rule `{rule}` has given {target} {what}{f', {late} s late' if late >= _LATE else ''}"


def failed_message(rule: str, failure: RuleFailure) -> str:
    """Say which firing was not applied, and why."""
    verb = "has missed" if failure.missed else "could not do"
    reason = failure.message.removeprefix(MISSED_PREFIX)
    return f"rule `{rule}` {verb} its firing of {format_instant(failure.at)}: {reason}"


class CronEvents:
    """Tells people of what happened, and once of what is wrong."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._told: dict[tuple[Key, str], str] = {}
        """What was said last about the conditions of objects, for clusters whose schema has no place for them."""

    def tell(
        self,
        record: CronRecord,
        before: Iterable[Mapping[str, Any]],
        conditions: Iterable[Condition],
        news: CronResults,
        target: str,
    ) -> None:
        """Tell of a pass whose records are written."""
        for rule, successes in news.successes.items():
            for success in successes:
                words = scaled_message(target, rule, success.values, success.executed - success.at)
                self._events.record(CRON_FEDERATED_HPAS, record.origin, normal("Scaled", words))
        for rule, failures in news.failures.items():
            for failure in failures:
                told = warning("Missed" if failure.missed else "ScaleFailed", failed_message(rule, failure))
                self._events.record(CRON_FEDERATED_HPAS, record.origin, told)
        known = {entry.get("type"): entry.get("message") for entry in before}
        for condition in conditions:
            self._tell_once(record, known.get(condition.type), condition)

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        for place in [place for place in self._told if place[0] == key]:
            del self._told[place]

    def _tell_once(self, record: CronRecord, known: str | None, condition: Condition) -> None:
        place = record.origin.key, condition.type
        if condition.status is not ConditionStatus.FALSE:
            self._told.pop(place, None)
        elif condition.message not in (known, self._told.get(place)):
            self._told[place] = condition.message
            self._events.record(CRON_FEDERATED_HPAS, record.origin, warning(condition.reason, condition.message))
