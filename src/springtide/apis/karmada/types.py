"""CronFederatedHPA: scales a workload, or moves the bounds of an autoscaler, at the times of cron rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from springtide.apis.fields import (
    Context,
    Count,
    PositiveCount,
    Rule,
    Time,
    View,
    Zone,
    at_most,
    by_key,
    doc,
    extension,
    int32,
    stock_required,
    text_format,
)
from springtide.apis.karmada.actions import action_problems
from springtide.apis.karmada.conflicts import collision_problems
from springtide.apis.karmada.targets import CronTarget
from springtide.apis.karmada.timing import timing_problems
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.meta.windows import CalendarReference
from springtide.apis.problems import Problem, warning


class CronFederatedHPARule(View, kw_only=True):
    """A time, or a schedule of times, and what is set then."""

    __mistaken__ = {
        "ruleName": "write `name`; `ruleName` is its name in the status only",
        "cron": "write `schedule`",
        "timezone": "write `timeZone`",
        "replicas": "write `targetReplicas`",
        "minReplicas": "write `targetMinReplicas`",
        "maxReplicas": "write `targetMaxReplicas`",
    }
    __rules__ = (
        Rule(
            "has(self.schedule) != has(self.at)",
            "Set either schedule, for a rule that repeats, or at, for one that fires once.",
            extension=True,
        ),
        Rule(
            "has(self.targetReplicas) || has(self.targetMinReplicas) || has(self.targetMaxReplicas)",
            "Set targetReplicas for a workload, targetMinReplicas or targetMaxReplicas for an autoscaler.",
            extension=True,
        ),
    )

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=32)],
        doc("Name of the rule, unique in the object; its history is kept under this name."),
    ]
    schedule: Annotated[
        Annotated[str, Meta(min_length=1), text_format("cron-rule")] | None,
        doc("When the rule fires: a cron expression of five fields."),
        stock_required,
    ] = None
    at: Annotated[Time | None, doc("The one instant at which the rule fires, instead of a schedule."), extension] = None
    target_replicas: Annotated[Count | None, doc("Replicas to set, where the target is a workload.")] = None
    target_min_replicas: Annotated[
        Count | None, doc("Minimum to set, where the target is an autoscaler; its own is left alone if not set.")
    ] = None
    target_max_replicas: Annotated[
        PositiveCount | None,
        doc("Maximum to set, where the target is an autoscaler; its own is left alone if not set."),
    ] = None
    suspend: Annotated[bool, doc("Keeps the rule from firing; what is missed meanwhile is not made up for.")] = False
    time_zone: Annotated[
        Zone | None, doc("IANA name of the zone that the schedule is read in, such as Asia/Shanghai; UTC if not set.")
    ] = None
    successful_history_limit: Annotated[
        Annotated[int, int32(1, 32)], doc("How many successful executions the status keeps.")
    ] = 3
    failed_history_limit: Annotated[
        Annotated[int, int32(0, 32)], doc("How many failed executions the status keeps; 0 keeps none.")
    ] = 3
    max_delay_seconds: Annotated[
        PositiveCount | None,
        doc("How late a firing may still be made up for; later, it counts as missed. Without limit if not set."),
        extension,
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], by_key("name")] | None,
        doc("Calendars on whose days the rule does not fire, or fires only."),
        extension,
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find rules that never fire, that fire at no certain time, or that are late before they begin."""
        yield from timing_problems(self, context)


class CronFederatedHPASpec(View, kw_only=True):
    """What is scaled, and when."""

    __mistaken__ = {"schedules": "write `rules`", "jobs": "write `rules`"}

    scale_target_ref: Annotated[CronTarget, doc("What is scaled.")]
    rules: Annotated[
        Annotated[tuple[CronFederatedHPARule, ...], at_most(256), by_key("name")],
        doc("When, and to what; each under its own name."),
    ]

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find rules that do not fit the target, and rules that contradict each other."""
        if not self.rules:
            yield warning(("rules",), "there are no rules: nothing is ever scaled", "add a rule")
        if "scaleTargetRef" in context.replaced or self.scale_target_ref.impossible:
            return  # what rules may set depends on the target
        kind = self.scale_target_ref.target_kind
        for position, rule in enumerate(self.rules):
            for problem in action_problems(rule, kind):
                yield problem.under("rules", position)
        if context.thorough:
            yield from collision_problems(self.rules, kind, context)


class SuccessfulExecution(View, kw_only=True):
    """A firing that was applied."""

    schedule_time: Annotated[Time, doc("When the rule was to fire.")]
    execution_time: Annotated[Time, doc("When it was applied.")]
    applied_replicas: Annotated[Count | None, doc("The replicas that were set.")] = None
    applied_max_replicas: Annotated[Count | None, doc("The maximum that was set.")] = None
    applied_min_replicas: Annotated[Count | None, doc("The minimum that was set.")] = None


class FailedExecution(View, kw_only=True):
    """A firing that could not be applied, or that was missed."""

    schedule_time: Annotated[Time, doc("When the rule was to fire.")]
    execution_time: Annotated[Time, doc("When it was tried.")]
    message: Annotated[str, doc("Why it failed; begins with `missed:` where it came too late.")]


class ExecutionHistory(View, kw_only=True):
    """What a rule did, and will do next."""

    rule_name: Annotated[str, doc("The rule.")]
    next_execution_time: Annotated[Time | None, doc("When it fires next; not set while it is suspended.")] = None
    successful_executions: Annotated[
        tuple[SuccessfulExecution, ...] | None, doc("The latest that were applied, newest first.")
    ] = None
    failed_executions: Annotated[tuple[FailedExecution, ...] | None, doc("The latest that failed, newest first.")] = (
        None
    )


class CronFederatedHPAStatus(View, kw_only=True):
    """What the rules did, and will do next."""

    execution_histories: Annotated[tuple[ExecutionHistory, ...] | None, doc("One entry for each rule.")] = None
    conditions: Annotated[
        Conditions | None,
        doc("Whether the rules are in force, and whether others scale the target as well."),
        extension,
    ] = None


class CronFederatedHPA(Object, kw_only=True):
    """Scales a workload, or moves the bounds of an autoscaler, at certain times."""

    spec: Annotated[CronFederatedHPASpec, doc("What is scaled, and when.")]
    status: Annotated[CronFederatedHPAStatus | None, doc("What was done, and what comes next.")] = None
