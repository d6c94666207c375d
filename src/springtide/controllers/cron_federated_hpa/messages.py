"""What conditions and events of a CronFederatedHPA say."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.almanac import Zone
from springtide.apis.forecast import format_instant
from springtide.apis.karmada.targets import CronTarget, CronTargetKind
from springtide.apis.meta.times import clock_time
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.controllers.conflicts import CONFLICT_CONDITION, WITH_BOUNDS, AutoscalerRecord, conflict_condition
from springtide.controllers.cron_federated_hpa.history import MISSED_PREFIX, RuleFailure
from springtide.controllers.cron_federated_hpa.plan import MissedFiring, RuleAction, RuleExecution
from springtide.controllers.cron_federated_hpa.records import CompiledCronSpec

CONFLICT_REMEDY = "remove one of the two, or let the autoscaler follow a schedule of a MetricsProducer as well"
_LATE = 10
"""Seconds from which on a firing is called late."""
_FIELDS = {"replicas": "{} replica{}", "min": "a minimum of {}", "max": "a maximum of {}"}


def ready_condition(spec: CompiledCronSpec, missing_calendars: Sequence[str]) -> Condition:
    """Say which rules are in force, and why others are not."""
    sound = [rule.name for rule in spec.rules]
    if spec.target is None:
        return Condition("Ready", ConditionStatus.FALSE, "Invalid", f"no rule is in force: {spec.errors}")
    if spec.errors:
        left_out = [name for name in spec.written or () if name not in sound]
        names = ", ".join(f"`{name}`" for name in left_out)
        message = f"{f'left out: {names}; ' if names else ''}{spec.errors}"
        return Condition("Ready", ConditionStatus.FALSE, "RulesInvalid", message)
    if missing_calendars:
        names = ", ".join(f"`{name}`" for name in missing_calendars)
        message = f"there is no usable Calendar {names}: rules fire as if they did not name it"
        return Condition("Ready", ConditionStatus.FALSE, "CalendarMissing", message)
    suspended = [rule.name for rule in spec.rules if rule.view.suspend]
    names = f", suspended: {', '.join(f'`{name}`' for name in suspended)}" if suspended else ""
    return Condition("Ready", ConditionStatus.TRUE, "InForce", f"rules in force: {len(sound) - len(suspended)}{names}")


def firing_message(execution: RuleExecution, zone: Zone) -> str:
    """Say which firing changes the target."""
    return f"rule `{execution.rule}` fires ({clock_time(execution.at, zone)})"


def scaled_message(target: str, rule: str, values: RuleAction, late: int) -> str:
    """Say what a firing has set."""
    what = " and ".join(_FIELDS[field].format(value, "" if value == 1 else "s") for field, value in values.items())
    return f"rule `{rule}` has given {target} {what}{f', {late} s late' if late >= _LATE else ''}"


def failed_message(rule: str, failure: RuleFailure) -> str:
    """Say which firing was not applied, and why."""
    verb = "has missed" if failure.missed else "could not apply"
    reason = failure.message.removeprefix(MISSED_PREFIX)
    return f"rule `{rule}` {verb} its firing of {format_instant(failure.at)}: {reason}"


def missed_message(missed: MissedFiring) -> str:
    """Say which firing is not applied, and why."""
    return f"rule `{missed.rule}` misses its firing of {format_instant(missed.at)}: {missed.because}"


def target_conflict_condition(reference: CronTarget, others: Sequence[AutoscalerRecord]) -> Condition:
    """Say whether an autoscaler scales the target too, and what a user should do about it."""
    target = f"{reference.kind} `{reference.name}`"
    if others and reference.target_kind is not CronTargetKind.WORKLOAD:
        message = (
            f"{target} is made by {others[0]}, which undoes what rules set: let `scaleTargetRef` name that instead"
        )
        return Condition(CONFLICT_CONDITION, ConditionStatus.FALSE, "AlsoScaled", message)
    return conflict_condition(target, others, conflict_remedy(others))


def conflict_remedy(others: Sequence[AutoscalerRecord]) -> str:
    """Say what a user should do about other autoscalers of the target."""
    for one in others:
        if one.made_by or one.kind in WITH_BOUNDS:
            fields = "`targetMinReplicas` and `targetMaxReplicas`"
            return f"let `scaleTargetRef` name {one}, and rules set its bounds with {fields}"
    return CONFLICT_REMEDY
