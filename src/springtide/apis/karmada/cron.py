"""CronFederatedHPA: sets the replicas of a workload, or the bounds of an autoscaler, at the times of cron rules.

Also its forecast, and the repairs of this group by `springtide convert`. There are no aliases: the API server would
reject misspelt fields, so validation reports them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any

from msgspec import Meta

from springtide.apis.forecast import ForecastQuery, Lane, LaneChange, LaneStyle, LazySequence, Outlook
from springtide.apis.karmada.rules import (
    collision_problems,
    fires_text,
    firings_of,
    forecast_collisions,
    forecast_levels,
    timing_problems,
    zone_of,
)
from springtide.apis.karmada.targets import CronTarget, CronTargetKind, action_of, action_problems
from springtide.apis.kinds import (
    CelRule,
    Count,
    NormalizedTree,
    PositiveCount,
    Schedule,
    Time,
    ValidationContext,
    View,
    Zone,
    ZonedTime,
    by_key,
    doc,
    extension,
    int32,
    stock_required,
    text_format,
)
from springtide.apis.meta.repair import TreeRepair
from springtide.apis.meta.scaling import api_group_of, repair_target_version, scalable_kind_meant
from springtide.apis.meta.times import CalendarReference, clock_time
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, has_errors, warning


class CronFederatedHPARule(View, kw_only=True):
    """An instant or a cron schedule, and the values to set then."""

    __mistaken__ = {
        "ruleName": "write `name`; `ruleName` is its name in the status only",
        "cron": "write `schedule`",
        "timezone": "write `timeZone`",
        "replicas": "write `targetReplicas`",
        "minReplicas": "write `targetMinReplicas`",
        "maxReplicas": "write `targetMaxReplicas`",
    }
    __rules__ = (
        CelRule(
            "has(self.schedule) != has(self.at)",
            "Set either schedule, for a rule that repeats, or at, for one that fires once.",
            extension=True,
        ),
        CelRule(
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
        Annotated[Schedule, text_format("cron-rule")] | None,
        doc("When the rule fires: a cron expression of five fields."),
        stock_required,
    ] = None
    at: Annotated[
        ZonedTime | None, doc("The one instant at which the rule fires, instead of a schedule."), extension
    ] = None
    target_replicas: Annotated[Count | None, doc("Replicas to set, where the target is a workload.")] = None
    target_min_replicas: Annotated[
        Count | None, doc("Minimum to set, where the target is an autoscaler; its own is left alone if not set.")
    ] = None
    target_max_replicas: Annotated[
        PositiveCount | None,
        doc("Maximum to set, where the target is an autoscaler; its own is left alone if not set."),
    ] = None
    suspend: Annotated[bool, doc("Keeps the rule from firing; missed firings are not executed later.")] = False
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
        doc("How late a firing may still be executed; after that it counts as missed. Without limit if not set."),
        extension,
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], by_key("name")] | None,
        doc("Calendars on whose days the rule does not fire, or fires only."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find rules without valid times, and rules whose maximum delay reaches the next firing."""
        yield from timing_problems(self, context)


class CronFederatedHPASpec(View, kw_only=True):
    """What is scaled, and when."""

    __mistaken__ = {"schedules": "write `rules`", "jobs": "write `rules`"}

    scale_target_ref: Annotated[CronTarget, doc("What is scaled.")]
    rules: Annotated[
        Annotated[tuple[CronFederatedHPARule, ...], by_key("name")],
        doc("When, and to what; each under its own name."),
    ]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find rules that do not fit the target, and rules that conflict with each other."""
        if not self.rules:
            yield warning(("rules",), "there are no rules: nothing is ever scaled", "add a rule")
        target = self.scale_target_ref
        misspelt = scalable_kind_meant(target.kind, api_group_of(target.api_version or ""))
        if "scaleTargetRef" in context.replaced or target.impossible or misspelt is not None:
            return  # the valid values depend on the target
        kind = self.scale_target_ref.target_kind
        for position, rule in enumerate(self.rules):
            for problem in action_problems(rule, kind):
                yield problem.under("rules", position)
        if context.deep_search:
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
    execution_time: Annotated[Time, doc("When it was attempted.")]
    message: Annotated[str, doc("Why it failed; begins with `missed:` if it was too late.")]


class ExecutionHistory(View, kw_only=True):
    """The executions of a rule, past and next."""

    rule_name: Annotated[str, doc("The rule.")]
    next_execution_time: Annotated[Time | None, doc("When it fires next; not set while it is suspended.")] = None
    successful_executions: Annotated[
        tuple[SuccessfulExecution, ...] | None, doc("The latest that were applied, newest first.")
    ] = None
    failed_executions: Annotated[tuple[FailedExecution, ...] | None, doc("The latest that failed, newest first.")] = (
        None
    )


class CronFederatedHPAStatus(View, kw_only=True):
    """The executions of the rules."""

    execution_histories: Annotated[tuple[ExecutionHistory, ...] | None, doc("One entry for each rule.")] = None
    next_execution_time: Annotated[Time | None, doc("When the next rule fires."), extension] = None
    last_execution_time: Annotated[
        Time | None, doc("When a rule was applied last, of the executions that the histories have."), extension
    ] = None
    conditions: Annotated[
        Conditions | None,
        doc("Whether the rules are in force, and whether other autoscalers scale the target."),
        extension,
    ] = None


class CronFederatedHPA(Object, kw_only=True):
    """Sets the replicas of a workload, or the bounds of an autoscaler, at certain times."""

    spec: Annotated[CronFederatedHPASpec, doc("What is scaled, and when.")]
    status: Annotated[CronFederatedHPAStatus | None, doc("The executions of the rules.")] = None


def forecast_rules(cron: CronFederatedHPA, query: ForecastQuery) -> Outlook:
    """Forecast a lane for each rule, with a mark for each firing."""
    return _outlook(cron.spec.rules, cron.spec.scale_target_ref.target_kind, query)


def forecast_valid_rules(view: View | None, _: object, query: ForecastQuery) -> Outlook | None:
    """Forecast the valid rules of an object with errors."""
    if not isinstance(view, CronFederatedHPA):
        return None
    kind = view.spec.scale_target_ref.target_kind
    context = ValidationContext(now=query.start, default_zone=query.default_zone)
    sound = [
        rule
        for rule in view.spec.rules
        if not has_errors((*timing_problems(rule, context), *action_problems(rule, kind)))
    ]
    return _outlook(sound, kind, query)


def _outlook(rules: Sequence[CronFederatedHPARule], kind: CronTargetKind, query: ForecastQuery) -> Outlook:
    zones = dict.fromkeys(zone_of(rule, query.default_zone).name for rule in rules)
    return Outlook(
        zones=tuple(zones) or (query.default_zone,),
        lanes=tuple(_lane(rule, kind, query) for rule in rules),
        collisions=LazySequence(lambda: forecast_collisions(rules, kind, query)),
        levels=tuple(forecast_levels(rules, kind, query)),
    )


def _lane(rule: CronFederatedHPARule, kind: CronTargetKind, query: ForecastQuery) -> Lane:
    if rule.suspend:
        return Lane(rule.name, LaneStyle.FIRINGS, None, (), None, because=f"rule `{rule.name}` is suspended")
    zone = zone_of(rule, query.default_zone)
    firings = firings_of(rule, query.default_zone, query.calendars)
    action = action_of(rule, kind)

    because = lru_cache(maxsize=2048)(partial(fires_text, rule))  # a frequent rule has few different reasons

    def change(at: int) -> LaneChange:
        return LaneChange(at, action, because(clock_time(at, zone)))

    latest, following = firings.at_or_before(query.start), firings.after(query.start)
    return Lane(
        name=rule.name,
        style=LaneStyle.FIRINGS,
        current=None if latest is None else action,
        changes=LazySequence(lambda: map(change, firings.between(query.start, query.until))),
        next=None if following is None else change(following),
        because=_not_fired_reason(rule, following) if latest is None else change(latest).because,
    )


def _not_fired_reason(rule: CronFederatedHPARule, following: int | None) -> str:
    if following is not None:
        return f"rule `{rule.name}` has not fired yet"
    return f"calendars exclude every time of rule `{rule.name}`"


def fixes(value: dict[str, Any]) -> NormalizedTree:
    """Repair mistakes with only one possible meaning."""
    repair = TreeRepair(value)
    if value.get("kind") in ("CronFederatedHPA", "FederatedHPA"):
        repair_target_version(repair, ("spec", "scaleTargetRef"))
    if value.get("kind") == "CronFederatedHPA":
        for rule in repair.entries(("spec", "rules")):
            repair.rename(rule, "ruleName", "name", "`ruleName` was renamed to `name`")
    return repair.result()
