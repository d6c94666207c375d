"""Disruption reasons, and budgets over time: how many nodes may be disrupted for a reason.

Which budgets are active depends on time only; the resulting limit also depends on the number of nodes, the reason and
the meaning of budgets without reasons. So a pool compiles to a Timeline of its active budgets, and `disruption_limit`
turns a set of active budgets into a number.

A budget without reasons has two possible meanings. As a *floor* it applies to every reason. As a *fallback* it applies
only to reasons that no active budget names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from springtide.almanac import (
    Cron,
    CronError,
    DayCalendar,
    Dialect,
    Timeline,
    UnknownZone,
    always,
    combine,
    constant,
    load_zone,
    span,
    windows_after_hits,
)
from springtide.apis.meta.times import on_calendars, parse_instant
from springtide.quantity import AmountError, IntOrPercent, parse_window_duration

if TYPE_CHECKING:
    from springtide.apis.karpenter import v1beta1
    from springtide.apis.karpenter.disruption import Budget, Disruption


class DisruptionReason(StrEnum):
    """A reason to disrupt a node, in display order."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"
    UNHEALTHY = "Unhealthy"
    EXPIRED = "Expired"


REASONS: tuple[DisruptionReason, ...] = tuple(DisruptionReason)

ALIASES: dict[str, DisruptionReason] = {
    "empty": DisruptionReason.EMPTY,
    "emptiness": DisruptionReason.EMPTY,
    "drifted": DisruptionReason.DRIFTED,
    "drift": DisruptionReason.DRIFTED,
    "underutilized": DisruptionReason.UNDERUTILIZED,
    "underutilised": DisruptionReason.UNDERUTILIZED,
    "consolidation": DisruptionReason.UNDERUTILIZED,
    "consolidate": DisruptionReason.UNDERUTILIZED,
    "unhealthy": DisruptionReason.UNHEALTHY,
    "repair": DisruptionReason.UNHEALTHY,
    "expired": DisruptionReason.EXPIRED,
    "expiration": DisruptionReason.EXPIRED,
    "expiry": DisruptionReason.EXPIRED,
    "expire": DisruptionReason.EXPIRED,
}
"""Every accepted name, in lower case; names are case-insensitive."""


DELAYED_REASONS = (DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED)
"""The reasons for which `disruptAfter` has a delay."""


def parse_reason(name: str) -> DisruptionReason | None:
    """Return the reason with this name, in any case; None if there is none."""
    return ALIASES.get(name.lower())


V = TypeVar("V")

MOST_SEPARATE_WINDOWS = 8
"""Up to so many windows, all combinations are tried to find those that affect a value."""

_NOTHING = IntOrPercent(0)


class BudgetDefault(StrEnum):
    """What a budget without reasons applies to."""

    FLOOR = "Floor"
    FALLBACK = "Fallback"


class AccountingEquation(IntEnum):
    """Which disrupted nodes count against the limit of a reason."""

    PER_REASON = 1
    TOTAL = 2


@dataclass(frozen=True, slots=True)
class CompiledBudget:
    """A compiled budget of a pool."""

    index: int
    reasons: tuple[DisruptionReason, ...]
    """The reasons that it names; an empty tuple does not mean that it has no effect."""
    amount: IntOrPercent
    allow: bool
    """Whether it allows disruption while open and blocks at all other times, instead of limiting while open."""
    open: Timeline[bool]
    always_open: bool
    window: str
    """A description of the window; empty if the budget is always open."""
    zone: str | None = None
    """The time zone of the schedule; None for budgets without one."""
    rates: str = ""
    """A description of its rate limits, which depend on earlier disruptions."""
    failure: str = ""
    """Why the budget cannot be evaluated; such a budget blocks."""

    def covers(self, reason: DisruptionReason) -> bool:
        """Return whether the budget can apply to a reason."""
        return not self.reasons or reason in self.reasons


@dataclass(frozen=True, slots=True)
class PoolBudgets:
    """All budgets of a pool, and how they are applied."""

    budgets: tuple[CompiledBudget, ...]
    reading: BudgetDefault
    equation: AccountingEquation
    forceful_expiry: bool
    repair: bool = False
    """Whether unhealthy nodes are replaced."""
    delays: Mapping[DisruptionReason, str] = field(default_factory=dict)
    """How long a node waits before it is disrupted for a reason, as written in `disruptAfter`."""

    @property
    def reasons(self) -> tuple[DisruptionReason, ...]:
        """The reasons that apply to the pool; without `repair`, Unhealthy is one only if a budget names it."""
        unhealthy = self.repair or any(DisruptionReason.UNHEALTHY in budget.reasons for budget in self.budgets)
        return tuple(reason for reason in REASONS if unhealthy or reason is not DisruptionReason.UNHEALTHY)

    @property
    def active(self) -> Timeline[tuple[int, ...]]:
        """The indexes of the budgets whose windows are open, at every instant."""
        chosen = _chosen([budget.index for budget in self.budgets])
        return combine(chosen, [budget.open for budget in self.budgets])


def _chosen(indexes: Sequence[int], fixed: Sequence[int] = ()) -> Callable[[Sequence[bool]], tuple[int, ...]]:
    def chosen(states: Sequence[bool]) -> tuple[int, ...]:
        return tuple(sorted(chain(fixed, (i for i, state in zip(indexes, states, strict=True) if state))))

    return chosen


@dataclass(frozen=True, slots=True)
class BudgetClaim:
    """The amount that one budget allows for a reason at an instant."""

    budget: CompiledBudget
    amount: IntOrPercent
    closed: bool = False
    """Whether it blocks because it is an Allow budget outside its window."""


@dataclass(frozen=True, slots=True)
class DisruptionLimit:
    """How many nodes may be disrupted for a reason at once, and which claim binds; a count of None means no limit."""

    count: int | None
    claim: BudgetClaim | None


def named_by(pool: PoolBudgets, reason: DisruptionReason, active: Sequence[int]) -> tuple[CompiledBudget, ...]:
    """Return the active budgets that name a reason; Allow budgets and invalid ones always count as active."""
    return tuple(budget for budget in pool.budgets if reason in budget.reasons and _counts(budget, active))


def budget_claims(
    pool: PoolBudgets, reason: DisruptionReason, active: Sequence[int], reading: BudgetDefault | None = None
) -> list[BudgetClaim]:
    """List the claims of the budgets for a reason, in the order of the budgets."""
    named = named_by(pool, reason, active)
    unnamed = [budget for budget in pool.budgets if not budget.reasons and _counts(budget, active)]
    if named and (reading or pool.reading) is BudgetDefault.FALLBACK:
        unnamed = [budget for budget in unnamed if budget.failure]
    relevant = sorted((*named, *unnamed), key=lambda budget: budget.index)
    allowing = [budget for budget in relevant if budget.allow and not budget.failure]
    some_open = any(budget.index in active for budget in allowing)
    made: list[BudgetClaim] = []
    for budget in relevant:
        if budget.failure:
            made.append(BudgetClaim(budget, _NOTHING))
        elif budget.index in active:
            made.append(BudgetClaim(budget, budget.amount))
        elif not some_open:
            # Allow budgets are a union: closed ones do not block while another one is open.
            made.append(BudgetClaim(budget, _NOTHING, closed=True))
    return made


def _counts(budget: CompiledBudget, active: Sequence[int]) -> bool:
    return budget.index in active or budget.allow or bool(budget.failure)


def disruption_limit(
    pool: PoolBudgets,
    reason: DisruptionReason,
    active: Sequence[int],
    nodes: int,
    reading: BudgetDefault | None = None,
) -> DisruptionLimit:
    """Return how many nodes may be disrupted for a reason at once; of equal claims the first one binds."""
    made = budget_claims(pool, reason, active, reading)
    if not made:
        return DisruptionLimit(None, None)
    binding = min(made, key=lambda claim: claim.amount.of(nodes))
    return DisruptionLimit(binding.amount.of(nodes), binding)


def limit_over_time(
    pool: PoolBudgets,
    reason: DisruptionReason,
    value: Callable[[tuple[int, ...]], V],
    reading: BudgetDefault | None = None,
) -> Timeline[V]:
    """Return a value of the active budgets that cover a reason, such as the limit, over time.

    Windows that cannot affect the value are left out, so that a constant value needs no search.
    """
    relevant = [budget for budget in pool.budgets if budget.covers(reason)]
    fixed = [budget.index for budget in relevant if budget.always_open]
    moving = [budget for budget in relevant if not budget.always_open]
    known = cache(value)
    if _only_tighten(relevant, reading or pool.reading):
        moving = [budget for budget in moving if _affects_value(budget, [], fixed, known)]
    elif len(moving) <= MOST_SEPARATE_WINDOWS:
        moving = [budget for budget in moving if _affects_value(budget, moving, fixed, known)]
    if not moving:
        return constant(known(tuple(fixed)))
    chosen = _chosen([budget.index for budget in moving], fixed)
    return combine(lambda states: known(chosen(states)), [budget.open for budget in moving])


def _only_tighten(relevant: Sequence[CompiledBudget], reading: BudgetDefault) -> bool:
    """Return whether a budget that becomes active can only lower the limit.

    A budget that does not lower the limit of the always open budgets then never binds.
    """
    falls_back = reading is BudgetDefault.FALLBACK and len({bool(budget.reasons) for budget in relevant}) > 1
    return not falls_back and not any(budget.allow for budget in relevant)


def _affects_value(
    budget: CompiledBudget,
    moving: Sequence[CompiledBudget],
    fixed: Sequence[int],
    value: Callable[[tuple[int, ...]], V],
) -> bool:
    """Return whether a budget changes the value in any combination with the others."""
    others = [other.index for other in moving if other is not budget]
    subsets = chain.from_iterable(combinations(others, size) for size in range(len(others) + 1))
    return any(
        value(tuple(sorted((*fixed, *subset)))) != value(tuple(sorted((*fixed, *subset, budget.index))))
        for subset in subsets
    )


def compile_pool(
    disruption: Disruption | v1beta1.DisruptionV1Beta1,
    *,
    default_zone: str = "UTC",
    calendars: Mapping[str, DayCalendar] | None = None,
) -> PoolBudgets:
    """Compile the disruption settings of a pool."""
    return PoolBudgets(
        budgets=tuple(
            compile_budget(budget, index, default_zone=default_zone, calendars=calendars)
            for index, budget in enumerate(disruption.budgets)
        ),
        reading=BudgetDefault(disruption.budget_default),
        equation=AccountingEquation.PER_REASON
        if disruption.budget_accounting == "PerReason"
        else AccountingEquation.TOTAL,
        forceful_expiry=disruption.expiration_policy == "Forceful",
        repair=disruption.repair is not None,
        delays=parse_delays(msgspec.to_builtins(disruption.disrupt_after)),
    )


def compile_budget(
    budget: Budget,
    index: int,
    *,
    default_zone: str = "UTC",
    calendars: Mapping[str, DayCalendar] | None = None,
) -> CompiledBudget:
    """Compile one budget; one that cannot be evaluated has the reason in `failure`, and blocks."""
    reasons = parse_reasons(budget.reasons or ())
    try:
        amount = IntOrPercent.parse(budget.nodes)
        opened = _open_times(budget, default_zone, calendars or {})
    except (AmountError, CronError, UnknownZone, ValueError) as failure:
        return invalid_budget(index, reasons, str(failure))
    return CompiledBudget(
        index=index,
        reasons=reasons,
        amount=amount,
        allow=budget.mode == "Allow",
        open=opened or always(),
        always_open=opened is None,
        window=_describe_window(budget, default_zone, calendars or {}),
        zone=(budget.time_zone or default_zone) if budget.schedule is not None else None,
        rates=_describe_rate(budget),
    )


def invalid_budget(index: int, reasons: tuple[DisruptionReason, ...], failure: str) -> CompiledBudget:
    """Return the replacement of an invalid budget, which blocks the reasons that it names, or all if it names none."""
    return CompiledBudget(
        index=index,
        reasons=reasons,
        amount=_NOTHING,
        allow=False,
        open=always(),
        always_open=True,
        window="",
        failure=failure,
    )


def parse_reasons(names: Sequence[Any]) -> tuple[DisruptionReason, ...]:
    """Return the reasons of a list of names, each once; unknown names are ignored."""
    found = (parse_reason(name) for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(reason for reason in found if reason is not None))


def parse_delays(written: Any) -> dict[DisruptionReason, str]:
    """Return the delays of `disruptAfter` by reason; what is malformed is ignored."""
    given = written if isinstance(written, dict) else {}
    return {reason: text for reason in DELAYED_REASONS if isinstance(text := given.get(reason.value), str)}


def _open_times(budget: Budget, default_zone: str, calendars: Mapping[str, DayCalendar]) -> Timeline[bool] | None:
    """Return the times at which the window of the budget is open; None if it always is."""
    zone = load_zone(budget.time_zone or default_zone)
    references = budget.calendars or ()
    opened: Timeline[bool] | None = None
    if (failure := _window_error(budget)) is not None:
        raise ValueError(failure)
    if budget.schedule is not None and budget.duration is not None:
        cron = Cron.parse(budget.schedule, Dialect.BUDGET)
        opened = windows_after_hits(cron, parse_window_duration(budget.duration), zone)
    elif budget.from_ is not None and budget.until is not None:
        opened = span(parse_instant(budget.from_), parse_instant(budget.until))
    if not any(reference.name in calendars for reference in references):
        return opened
    return on_calendars(opened or always(), references, calendars, zone)


def _window_error(budget: Budget) -> str | None:
    """Return why the fields of a window are contradictory; None if they are valid or not set."""
    once = budget.from_ is not None or budget.until is not None
    if once and (budget.schedule is not None or budget.duration is not None):
        return "its window is both recurring and single"
    if budget.time_zone is not None and budget.schedule is None:
        return "`timeZone` has no `schedule`"
    if budget.duration is not None and budget.schedule is None:
        return "`duration` has no `schedule`"
    if budget.schedule is not None and budget.duration is None and budget.__lone_schedule__ == "refused":
        return "`schedule` has no `duration`"
    if (budget.from_ is None) is not (budget.until is None):
        return "only one of `from` and `until` is set"
    if budget.from_ is not None and budget.until is not None:
        return None if parse_instant(budget.from_) < parse_instant(budget.until) else "`until` is not after `from`"
    return None


def _describe_window(budget: Budget, default_zone: str, calendars: Mapping[str, DayCalendar]) -> str:
    words = ""
    if budget.schedule is not None and budget.duration is not None:
        words = f"`{budget.schedule}` for {budget.duration}, {budget.time_zone or default_zone}"
    elif budget.from_ is not None:
        words = f"{budget.from_} to {budget.until}"
    if budget.calendars:
        listed = ", ".join(
            f"{'not on' if reference.mode == 'Exclude' else 'only on'} {reference.name}"
            + ("" if reference.name in calendars else ", which is not known here")
            for reference in budget.calendars
        )
        words = f"{words}, {listed}" if words else listed
    return words


def _describe_rate(budget: Budget) -> str:
    words: list[str] = []
    if budget.max_per is not None:
        words.append(f"at most {budget.max_per.nodes} nodes per {budget.max_per.period}")
    if budget.cooldown is not None:
        words.append(f"{budget.cooldown} between two nodes")
    return " and ".join(words)
