"""When nodes may be taken away: a NodePool's budgets and what goes with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from springtide.apis.fields import (
    INT32_MAX,
    Context,
    PositiveCount,
    Rule,
    Time,
    View,
    Zone,
    as_set,
    default,
    doc,
    extension,
    schema,
    stock,
    text_format,
)
from springtide.apis.karpenter import budget_checks
from springtide.apis.meta.windows import CalendarReference
from springtide.apis.problems import Problem, error
from springtide.quantity import parse_karpenter_duration

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
    "Expired",
    "empty",
    "emptiness",
    "drifted",
    "drift",
    "underutilized",
    "underutilised",
    "consolidation",
    "consolidate",
    "expired",
    "expiration",
    "expiry",
    "expire",
]


BudgetAccounting = Annotated[
    Literal["Total", "PerReason"],
    doc(
        "Which nodes use up a budget. Total: every node that is being disrupted."
        " PerReason: those that are disrupted for the same reason."
    ),
    extension,
]


class MaxPer(View, kw_only=True):
    """A rate: how many nodes in how much time."""

    nodes: Annotated[PositiveCount, doc("How many nodes at most.")]
    period: Annotated[Duration, doc("In how much time, such as 1h.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find rates without a period."""
        if parse_karpenter_duration(self.period) == 0:
            yield error(
                ("period",), "a rate needs a period that is longer than nothing", "write 1h, or remove `maxPer`"
            )


class Budget(View, kw_only=True):
    """How many nodes of the pool may be disrupted at once: always, or while the budget's window is open."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.schedule) == has(self.duration)", "set `schedule` and `duration` together, or neither"),
        Rule("has(self.from) == has(self.until)", "set `from` and `until` together, or neither", extension=True),
        Rule(
            "!(has(self.schedule) && has(self.from))",
            "keep either `schedule` and `duration`, or `from` and `until`",
            extension=True,
        ),
        Rule("!has(self.timeZone) || has(self.schedule)", "remove `timeZone`, or set `schedule`", extension=True),
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
    """What a schedule without a duration is."""

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
        doc("For which reasons the budget counts; for all if not set (see `budgetDefault`)."),
        as_set,
        stock(
            type="array",
            maxItems=50,
            items={"type": "string", "enum": ["Underutilized", "Empty", "Drifted"]},
            x_kubernetes_list_type="set",
        ),
    ] = None
    schedule: Annotated[
        Annotated[str, schema(pattern=SCHEDULE_PATTERN), text_format("cron-budget")] | None,
        doc("When the budget's window opens, in cron's five fields or as a macro such as @daily; always if not set."),
    ] = None
    duration: Annotated[
        Annotated[str, schema(pattern=WINDOW_PATTERN), text_format("window-duration")] | None,
        doc("How long the window stays open after each time of the schedule, in hours and minutes."),
    ] = None
    time_zone: Annotated[Zone | None, doc("The zone that the schedule is read in; UTC if not set."), extension] = None
    from_: Annotated[Time | None, doc("When a window that happens once opens, instead of `schedule`."), extension] = (
        None
    )
    until: Annotated[Time | None, doc("When a window that happens once closes."), extension] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], Meta(max_length=16)] | None,
        doc("Calendars whose days the window is kept out of, or kept to."),
        extension,
    ] = None
    mode: Annotated[
        Literal["Limit", "Allow"],
        doc("Limit restricts while the window is open; Allow permits only then, and blocks at all other times."),
        extension,
    ] = "Limit"
    max_per: Annotated[MaxPer | None, doc("How many nodes may be disrupted in a stretch of time."), extension] = None
    cooldown: Annotated[Duration | None, doc("How long to wait after a node before the next one."), extension] = None

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find windows that are incomplete, over, contradictory or not what they seem."""
        yield from budget_checks.window_problems(self, context)


Budgets = Annotated[tuple[Budget, ...], Meta(max_length=50), default([{"nodes": "10%"}])]


class Disruption(View, kw_only=True):
    """When Karpenter may take nodes away."""

    __mistaken__: ClassVar[dict[str, str]] = {
        "budget": "write `budgets`, a list",
        "ttlSecondsAfterEmpty": "write `consolidateAfter`",
        "ttlSecondsUntilExpired": "write `expireAfter` under `spec.template.spec`",
        "disruptAfter": "write `consolidateAfter`",
    }

    consolidate_after: Annotated[
        DurationOrNever,
        doc(
            "How long a node must be without changes of its pods before it is consolidated."
            " Never keeps it, also when it is empty."
        ),
    ] = "0s"
    consolidation_policy: Annotated[
        Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        doc("Which nodes are consolidated; Balanced weighs what is saved against what is disturbed."),
    ] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[
        Budgets, doc("How many nodes may be disrupted at once; the tightest budget counts. 10% if not set.")
    ] = (Budget(),)
    budget_default: Annotated[
        Literal["Floor", "Fallback"],
        doc(
            "What a budget without reasons means. Floor: it counts for every reason."
            " Fallback: only for reasons that no active budget names."
        ),
        extension,
    ] = "Floor"
    budget_accounting: BudgetAccounting = "Total"
    expiration_policy: Annotated[
        Literal["Forceful", "Graceful"],
        doc("Whether expired nodes go at once (Forceful), or when the budgets for Expired allow it (Graceful)."),
        extension,
    ] = "Forceful"

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find budgets that limit nothing, that never matter, or that block a reason for good."""
        yield from budget_checks.disruption_problems(self, context)
