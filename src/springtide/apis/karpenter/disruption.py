"""Disruption settings of a NodePool: its budgets, and the checks of their windows and of budgets without effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from springtide.apis.karpenter.budgets import (
    ALIASES,
    DELAYED_REASONS,
    BudgetClaim,
    CompiledBudget,
    DisruptionReason,
    PoolBudgets,
    budget_claims,
    compile_budget,
    compile_pool,
    limit_over_time,
    parse_reasons,
)
from springtide.apis.kinds import (
    INT32_MAX,
    MAX_SCHEDULE,
    CelRule,
    PositiveCount,
    ValidationContext,
    View,
    Zone,
    ZonedTime,
    as_set,
    at_most,
    default,
    doc,
    extension,
    schema,
    stock,
    text_format,
)
from springtide.apis.meta.times import CalendarReference, parse_instant
from springtide.apis.problems import Problem, error, warning
from springtide.quantity import parse_karpenter_duration

if TYPE_CHECKING:
    from springtide.apis.karpenter import v1beta1


HORIZON = 366 * 24 * 3600
"""How far ahead budgets are compared: a year, so that yearly windows are included."""

MOST_CHANGES = 4000
"""Pools whose budgets change more often than this within the horizon are not compared."""


def budget_window_problems(budget: Budget, context: ValidationContext) -> Iterator[Problem]:
    """Find windows that are incomplete, over, contradictory or always open."""
    if budget.reasons == ():
        hint = "name reasons, or remove `reasons`"
        yield warning(("reasons",), "an empty list is the same as no `reasons`", hint)
    once = budget.from_ is not None or budget.until is not None
    if once and (budget.schedule is not None or budget.duration is not None):
        message = "a budget's window cannot recur and happen once"
        yield error(("from",) if budget.from_ is not None else ("until",), message, _EITHER_OR)
        return
    yield from _once_problems(budget, context) if once else _recurring_problems(budget, context)
    if budget.time_zone is not None and budget.schedule is None:
        message = "`timeZone` has no effect without `schedule`"
        yield error(("timeZone",), message, "remove `timeZone`, or set `schedule` and `duration`")
    if budget.mode == "Allow" and budget.schedule is None and not once and not budget.calendars:
        message = "an Allow budget without a window is always open: it allows at all times what Limit would"
        yield warning(("mode",), message, "set `schedule` and `duration`, or remove `mode`")


_EITHER_OR = "keep either `schedule` and `duration`, or `from` and `until`"


def _once_problems(budget: Budget, context: ValidationContext) -> Iterator[Problem]:
    if budget.from_ is None:
        yield error((), "the window never opens: `from` is not set", "add `from`, an RFC 3339 time")
    elif budget.until is None:
        yield error((), "the window never closes: `until` is not set", "add `until`, an RFC 3339 time")
    elif parse_instant(budget.until) <= parse_instant(budget.from_):
        yield error(("until",), f"`until` {budget.until} is not after `from` {budget.from_}", "write a later `until`")
    elif parse_instant(budget.until) <= context.now and budget.mode == "Limit":
        yield warning(("until",), f"the window has been over since {budget.until}", "remove the budget")
    elif parse_instant(budget.until) <= context.now:
        message = f"the window has been over since {budget.until}: the budget no longer allows anything"
        yield warning(("until",), message, "remove the budget")


def _recurring_problems(budget: Budget, context: ValidationContext) -> Iterator[Problem]:
    if budget.duration is not None and budget.schedule is None:
        hint = "set `schedule`, or remove `duration`: the budget is then always active"
        yield error(("duration",), "`duration` has no `schedule`", hint)
    elif budget.schedule is not None and budget.duration is None:
        hint = "set `duration`, or remove `schedule`: the budget is then always active"
        if budget.__lone_schedule__ == "refused":
            yield error(("schedule",), "`schedule` has no `duration`", hint)
        else:
            message = "`schedule` has no `duration`: the budget is read as always active"
            yield warning(("schedule",), message, hint)
    elif budget.schedule is not None and not budget.calendars:
        compiled = compile_budget(budget, 0, default_zone=context.default_zone)
        if not compiled.failure and compiled.open.at(context.now) and compiled.open.next_change(context.now) is None:
            message = f"every window lasts {budget.duration}, until the next one opens: the budget is always active"
            yield warning(("duration",), message, "remove `schedule` and `duration`, or shorten `duration`")


def disruption_problems(
    disruption: Disruption | v1beta1.DisruptionV1Beta1, context: ValidationContext
) -> Iterator[Problem]:
    """Find budgets that limit nothing, that never bind, or that always block a reason."""
    delays = disruption.disrupt_after
    if disruption.consolidation_policy == "WhenEmpty" and delays is not None and delays.underutilized is not None:
        message = "`Underutilized` has no effect: with the policy WhenEmpty only empty nodes are consolidated"
        yield warning(("disruptAfter", "Underutilized"), message, "remove it, or change `consolidationPolicy`")
    if not disruption.budgets:
        hint = "remove `budgets` for the default of 10%, or list budgets"
        yield warning(("budgets",), "an empty list of budgets means no limit", hint)
        return
    pool = compile_pool(disruption, default_zone=context.default_zone)
    if pool.forceful_expiry:
        yield from _ignored_by_expiry(pool)
    # Removed entries could be tighter than the others; the days of calendars and the meaning of invalid budgets are not
    # known here.
    if "budgets" in context.entries_left or any(budget.calendars for budget in disruption.budgets):
        return
    if not any(made.failure for made in pool.budgets):
        yield from _comparison_problems(pool, context.now)


def unrepaired_problems(disruption: Disruption | v1beta1.DisruptionV1Beta1) -> Iterator[Problem]:
    """Find budgets for the repair of nodes in a pool of Springtide that repairs none."""
    if disruption.repair is not None:
        return
    for index, budget in enumerate(disruption.budgets):
        if DisruptionReason.UNHEALTHY in parse_reasons(budget.reasons or ()):
            message = "no node is disrupted for Unhealthy: the pool has no `repair`"
            hint = "set `repair: {after: 30m}` under `disruption`, or remove Unhealthy"
            yield warning(("disruption", "budgets", index, "reasons"), message, hint)


def _ignored_by_expiry(pool: PoolBudgets) -> Iterator[Problem]:
    for budget in pool.budgets:
        if DisruptionReason.EXPIRED in budget.reasons:
            message = "expired nodes do not wait for this budget: `expirationPolicy` is Forceful"
            hint = "set `expirationPolicy: Graceful`"
            yield warning(("budgets", budget.index, "reasons"), message, hint)


def _comparison_problems(pool: PoolBudgets, now: int) -> Iterator[Problem]:
    states = _states_ahead(pool, now)
    if states is None:
        return
    for budget in pool.budgets:
        # A budget with a rate limits disruption whatever its number is.
        if budget.rates or not any(budget.index in state for state in states):
            continue
        if (tighter := _never_binding(pool, budget, states)) is not None:
            yield _never_binding_problem(budget, tighter)
    for reason in pool.reasons:
        blocking = [_blocking(budget_claims(pool, reason, state)) for state in states]
        if (reason is DisruptionReason.EXPIRED and pool.forceful_expiry) or not all(blocking):
            continue
        if limit_over_time(pool, reason, _is_blocked(pool, reason)).next_change(now) is not None:
            continue  # it ends after the horizon
        indexes = sorted({claim.budget.index for claim in blocking if claim})
        listed = " and ".join(f"budget {index}" for index in indexes)
        held = f"{listed} {'holds' if len(indexes) == 1 else 'hold'} it at 0 at all times"
        message = f"no node is ever disrupted for {reason}: {held}"
        yield warning(("budgets", indexes[0]), message, "give it a window, or other reasons, unless this is intended")


def _is_blocked(pool: PoolBudgets, reason: DisruptionReason) -> Callable[[tuple[int, ...]], bool]:
    return lambda active: _blocking(budget_claims(pool, reason, active)) is not None


def _states_ahead(pool: PoolBudgets, now: int) -> list[tuple[int, ...]] | None:
    """List the different sets of active budgets within the horizon; None if there are too many changes."""
    states: dict[tuple[int, ...], None] = {}
    for count, (at, active) in enumerate(pool.active.segments(now)):
        if at > now + HORIZON:
            break
        if count > MOST_CHANGES:
            return None
        states[active] = None
    return list(states)


def _never_binding(pool: PoolBudgets, budget: CompiledBudget, states: Sequence[tuple[int, ...]]) -> list[int] | None:
    """Find the budgets that are at least as tight whenever this one applies; None if it can bind.

    An empty list means that it never applies: as a fallback, it has no reason that other budgets do not name.
    """
    tighter: dict[int, None] = {}
    for reason in pool.reasons:
        if not budget.covers(reason):
            continue
        for state in states:
            made = budget_claims(pool, reason, state)
            own = next((claim for claim in made if claim.budget is budget), None)
            if own is None:
                continue
            other = next((claim for claim in made if _binds_before(claim, own)), None)
            if other is None:
                return None
            tighter[other.budget.index] = None
    return sorted(tighter)


def _binds_before(claim: BudgetClaim, own: BudgetClaim) -> bool:
    """Return whether a claim binds before another one, whatever the number of nodes."""
    if claim.budget is own.budget:
        return False
    if claim.amount.number == 0:
        return own.amount.number > 0 or claim.budget.index < own.budget.index
    if claim.amount.is_percent is not own.amount.is_percent:
        return False
    order = (claim.amount.number, claim.budget.index), (own.amount.number, own.budget.index)
    return order[0] < order[1]


def _never_binding_problem(budget: CompiledBudget, tighter: Sequence[int]) -> Problem:
    if tighter:
        listed = " or ".join(f"budget {index}" for index in tighter)
        message = f"the budget can never bind: {listed} is at least as tight whenever it is active"
    else:
        message = "the budget never applies: other budgets name every reason at all times"
    return warning(("budgets", budget.index), message, "remove it, or change `nodes`, `reasons` or its window")


def _blocking(made: Sequence[BudgetClaim]) -> BudgetClaim | None:
    return next((claim for claim in made if claim.amount.number == 0), None)


NODES_PATTERN = r"^((100|[0-9]{1,2})%|[0-9]+)$"
SCHEDULE_PATTERN = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
WINDOW_PATTERN = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"
DURATION_PATTERN = r"^([0-9]+(s|m|h))+$"
DURATION_OR_NEVER_PATTERN = r"^(([0-9]+(s|m|h))+|Never)$"

DurationOrNever = Annotated[str, schema(pattern=DURATION_OR_NEVER_PATTERN), text_format("karpenter-duration-or-never")]
Duration = Annotated[str, schema(pattern=DURATION_PATTERN), text_format("karpenter-duration")]

ReasonName = Literal[
    "Empty",
    "Drifted",
    "Underutilized",
    "Unhealthy",
    "Expired",
    "empty",
    "emptiness",
    "drifted",
    "drift",
    "underutilized",
    "underutilised",
    "consolidation",
    "consolidate",
    "unhealthy",
    "repair",
    "expired",
    "expiration",
    "expiry",
    "expire",
]


BudgetAccounting = Annotated[
    Literal["Total", "PerReason"],
    doc(
        "Which nodes count against a budget. Total: every node that is being disrupted."
        " PerReason: those that are disrupted for the same reason."
    ),
    extension,
]


class MaxPer(View, kw_only=True):
    """A rate: how many nodes in how much time."""

    nodes: Annotated[PositiveCount, doc("How many nodes at most.")]
    period: Annotated[Duration, doc("In how much time, such as 1h.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find rates without a period."""
        if parse_karpenter_duration(self.period) == 0:
            yield error(("period",), "a rate needs a period longer than 0", "write 1h, or remove `maxPer`")


class Budget(View, kw_only=True):
    """How many nodes of the pool may be disrupted at once: always, or while the window of the budget is open."""

    __rules__: ClassVar[tuple[CelRule, ...]] = (
        CelRule("has(self.schedule) == has(self.duration)", "set `schedule` and `duration` together, or neither"),
        CelRule("has(self.from) == has(self.until)", "set `from` and `until` together, or neither", extension=True),
        CelRule(
            "!(has(self.schedule) && has(self.from))",
            "keep either `schedule` and `duration`, or `from` and `until`",
            extension=True,
        ),
        CelRule("!has(self.timeZone) || has(self.schedule)", "remove `timeZone`, or set `schedule`", extension=True),
    )
    __mistaken__: ClassVar[dict[str, str]] = {
        "reason": "write `reasons`, a list",
        "start": "write `from`, an RFC 3339 time",
        "end": "write `until`, an RFC 3339 time",
        "timezone": "write `timeZone`",
        "tz": "write `timeZone`",
        "node": "write `nodes`",
        "cron": "write `schedule`",
    }
    __lone_schedule__: ClassVar[Literal["refused", "always open"]] = "refused"
    """How a schedule without a duration is treated."""

    nodes: Annotated[
        str | int,
        doc(
            "How many nodes may be disrupted at once: a count, or a percentage of the pool's nodes (rounded up)."
            " 0 blocks."
        ),
        # The bounds are for counts; JSON Schema lets strings pass them.
        schema(pattern=NODES_PATTERN, minimum=0, maximum=INT32_MAX),
        text_format("node-count"),
        stock(type="string", pattern=NODES_PATTERN),
    ] = "10%"
    reasons: Annotated[
        Annotated[tuple[ReasonName, ...], Meta(max_length=50)] | None,
        doc("The reasons that the budget applies to; all if not set (see `budgetDefault`)."),
        as_set,
        stock(
            type="array",
            maxItems=50,
            items={"type": "string", "enum": ["Underutilized", "Empty", "Drifted", "Unhealthy"]},
            x_kubernetes_list_type="set",
        ),
    ] = None
    schedule: Annotated[
        Annotated[str, at_most(MAX_SCHEDULE), schema(pattern=SCHEDULE_PATTERN), text_format("cron-budget")] | None,
        doc("When the budget's window opens, in cron's five fields or as a macro such as @daily; always if not set."),
    ] = None
    duration: Annotated[
        Annotated[str, schema(pattern=WINDOW_PATTERN), text_format("window-duration")] | None,
        doc("How long the window stays open after each time of the schedule, in hours and minutes."),
    ] = None
    time_zone: Annotated[Zone | None, doc("The zone that the schedule is read in; UTC if not set."), extension] = None
    from_: Annotated[
        ZonedTime | None, doc("When a window that happens once opens, instead of `schedule`."), extension
    ] = None
    until: Annotated[ZonedTime | None, doc("When a window that happens once closes."), extension] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], Meta(max_length=16)] | None,
        doc("Calendars whose days the window excludes, or is restricted to."),
        extension,
    ] = None
    mode: Annotated[
        Literal["Limit", "Allow"],
        doc("Limit restricts while the window is open; Allow permits only then, and blocks at all other times."),
        extension,
    ] = "Limit"
    max_per: Annotated[MaxPer | None, doc("How many nodes may be disrupted within a period."), extension] = None
    cooldown: Annotated[Duration | None, doc("The minimum time between the disruption of two nodes."), extension] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find windows that are incomplete, over, contradictory or always open."""
        yield from budget_window_problems(self, context)


_NO_DELAY = {
    DisruptionReason.EXPIRED: "set `expireAfter`, the age at which a node expires; there is no other delay",
    DisruptionReason.UNHEALTHY: "set `repair: {after: 30m}`, with the time that a node must be unhealthy",
}
"""The reasons that `disruptAfter` has no delay for, and what to set instead."""


class DisruptAfter(View, kw_only=True):
    """How long a node waits before it is disrupted for a reason; Never disables the reason."""

    __mistaken__: ClassVar[dict[str, str]] = {
        alias: f"write `{reason}`" if reason in DELAYED_REASONS else _NO_DELAY[reason]
        for alias, reason in (*ALIASES.items(), *((reason.value, reason) for reason in _NO_DELAY))
    }

    drifted: Annotated[DurationOrNever | None, doc("The time since a node drifted; none if not set.")] = msgspec.field(
        name="Drifted", default=None
    )
    empty: Annotated[
        DurationOrNever | None,
        doc("The time since the last pod event of an empty node; `consolidateAfter` if not set."),
    ] = msgspec.field(name="Empty", default=None)
    underutilized: Annotated[
        DurationOrNever | None, doc("The time since the last pod event of a node; `consolidateAfter` if not set.")
    ] = msgspec.field(name="Underutilized", default=None)


class NodeRepair(View, kw_only=True):
    """The replacement of nodes that stay unhealthy. The annotation karpenter.sh/do-not-repair exempts a node."""

    after: Annotated[Duration, doc("How long a node must be unhealthy before it is replaced.")] = "30m"
    max_unhealthy: Annotated[
        str | int,
        doc(
            "While more nodes than this are unhealthy, none is replaced: a count, or a percentage of the pool's nodes"
            " (rounded up)."
        ),
        schema(pattern=NODES_PATTERN, minimum=0, maximum=INT32_MAX),
        text_format("node-count"),
    ] = "20%"


Budgets = Annotated[tuple[Budget, ...], Meta(max_length=50), default([{"nodes": "10%"}])]


def _method_hint(reason: DisruptionReason) -> str:
    budgets = f"list budgets under `budgets` with `reasons: [{reason}]`"
    if reason in DELAYED_REASONS:
        return f"{budgets}, and write a delay as `disruptAfter: {{{reason}: 2h}}`"
    return f"{budgets}; {_NO_DELAY[reason]}"


class Disruption(View, kw_only=True):
    """When Karpenter may disrupt nodes."""

    __mistaken__: ClassVar[dict[str, str]] = {
        "budget": "write `budgets`, a list",
        "ttlSecondsAfterEmpty": "write `consolidateAfter`",
        "ttlSecondsUntilExpired": "write `expireAfter` under `spec.template.spec`",
        **{alias: _method_hint(reason) for alias, reason in ALIASES.items() if alias != "repair"},
    }

    consolidate_after: Annotated[
        DurationOrNever,
        doc("How long the pods of a node must be unchanged before it is consolidated. Never also keeps empty nodes."),
    ] = "0s"
    consolidation_policy: Annotated[
        Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        doc("Which nodes are consolidated; Balanced weighs savings against disruption."),
    ] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[
        Budgets, doc("How many nodes may be disrupted at once; the tightest budget applies. 10% if not set.")
    ] = (Budget(),)
    budget_default: Annotated[
        Literal["Floor", "Fallback"],
        doc(
            "What a budget without reasons applies to. Floor: every reason."
            " Fallback: only reasons that no active budget names."
        ),
        extension,
    ] = "Floor"
    budget_accounting: BudgetAccounting = "Total"
    expiration_policy: Annotated[
        Literal["Forceful", "Graceful"],
        doc("Whether expired nodes are removed at once (Forceful) or as the budgets for Expired allow (Graceful)."),
        extension,
    ] = "Forceful"
    disrupt_after: Annotated[
        DisruptAfter | None,
        doc("How long a node waits before it is disrupted, by reason."),
        extension,
    ] = None
    repair: Annotated[
        NodeRepair | None,
        doc("Replaces nodes that stay unhealthy, within the budgets for Unhealthy; off if not set."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find budgets that limit nothing, that never bind, or that always block a reason."""
        yield from disruption_problems(self, context)
