"""Budgets over time, and how many nodes they let go.

Which budgets are active depends on time alone; what that comes to depends on the number of nodes, the reason and on
how budgets without reasons are read. The two are kept apart: a pool compiles to a Timeline of its active budgets, and
`limit` turns a set of active budgets into a number.

Two readings of a budget without reasons exist. As a *floor* it counts for every reason. As a *fallback* it counts for
those reasons only that no active budget names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeVar

from springtide.almanac import (
    Calendar,
    Cron,
    CronError,
    Dialect,
    Timeline,
    UnknownZone,
    always,
    combine,
    constant,
    hits_for,
    load_zone,
    span,
)
from springtide.apis.karpenter.reasons import Reason, reason_named
from springtide.apis.meta.instants import parse_instant
from springtide.apis.meta.windows import on_calendars
from springtide.quantity import AmountError, IntOrPercent, parse_window_duration

if TYPE_CHECKING:
    from springtide.apis.karpenter import v1beta1
    from springtide.apis.karpenter.disruption import Budget, Disruption

V = TypeVar("V")

MOST_SEPARATE_WINDOWS = 8
"""Up to so many windows it is tried out which of them matter to a value at all."""

_NOTHING = IntOrPercent(0)


class BudgetReading(StrEnum):
    """What a budget without reasons means."""

    FLOOR = "Floor"
    FALLBACK = "Fallback"


class Equation(IntEnum):
    """Which disrupted nodes use up the budget of a reason."""

    PER_REASON = 1
    TOTAL = 2


@dataclass(frozen=True, slots=True)
class CompiledBudget:
    """A budget of a pool, ready to be asked."""

    index: int
    reasons: tuple[Reason, ...]
    """The reasons that it names; none means that it names none, not that it has no effect."""
    amount: IntOrPercent
    allow: bool
    """Whether it permits while open and blocks at all other times, instead of limiting while open."""
    open: Timeline[bool]
    always_open: bool
    window: str
    """The window in words; empty where the budget is always open."""
    zone: str | None = None
    """The zone that the schedule is read in; none for budgets without schedule."""
    rates: str = ""
    """What else holds nodes back but depends on what happened before."""
    failure: str = ""
    """Why the budget cannot be evaluated; it then blocks."""

    def covers(self, reason: Reason) -> bool:
        """Tell whether the budget can count for a reason at all."""
        return not self.reasons or reason in self.reasons


@dataclass(frozen=True, slots=True)
class PoolBudgets:
    """All budgets of a pool and how they are read."""

    budgets: tuple[CompiledBudget, ...]
    reading: BudgetReading
    equation: Equation
    forceful_expiry: bool

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
class Claim:
    """What one budget says about a reason at an instant."""

    budget: CompiledBudget
    amount: IntOrPercent
    closed: bool = False
    """Whether it blocks because it is an Allow budget outside its window."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many nodes may be disrupted for a reason at once, and which claim binds; no count is no limit."""

    count: int | None
    claim: Claim | None


def named_by(pool: PoolBudgets, reason: Reason, active: Sequence[int]) -> tuple[CompiledBudget, ...]:
    """Find the active budgets that name a reason; Allow budgets and broken ones always count as active."""
    return tuple(budget for budget in pool.budgets if reason in budget.reasons and _counts(budget, active))


def claims(
    pool: PoolBudgets, reason: Reason, active: Sequence[int], reading: BudgetReading | None = None
) -> list[Claim]:
    """List what the budgets say about a reason, in the order of the budgets."""
    named = named_by(pool, reason, active)
    unnamed = [budget for budget in pool.budgets if not budget.reasons and _counts(budget, active)]
    if named and (reading or pool.reading) is BudgetReading.FALLBACK:
        unnamed = [budget for budget in unnamed if budget.failure]
    relevant = sorted((*named, *unnamed), key=lambda budget: budget.index)
    allowing = [budget for budget in relevant if budget.allow and not budget.failure]
    some_open = any(budget.index in active for budget in allowing)
    made: list[Claim] = []
    for budget in relevant:
        if budget.failure:
            made.append(Claim(budget, _NOTHING))
        elif budget.index in active:
            made.append(Claim(budget, budget.amount))
        elif not some_open:
            # Allow budgets are a union: one that is open speaks for all.
            made.append(Claim(budget, _NOTHING, closed=True))
    return made


def _counts(budget: CompiledBudget, active: Sequence[int]) -> bool:
    return budget.index in active or budget.allow or bool(budget.failure)


def limit(
    pool: PoolBudgets,
    reason: Reason,
    active: Sequence[int],
    nodes: int,
    reading: BudgetReading | None = None,
) -> Limit:
    """Count how many nodes may be disrupted for a reason at once; of equal claims the first one binds."""
    made = claims(pool, reason, active, reading)
    if not made:
        return Limit(None, None)
    binding = min(made, key=lambda claim: claim.amount.of(nodes))
    return Limit(binding.amount.of(nodes), binding)


def over_time(
    pool: PoolBudgets,
    reason: Reason,
    value: Callable[[tuple[int, ...]], V],
    reading: BudgetReading | None = None,
) -> Timeline[V]:
    """Follow a value of the active budgets that cover a reason: a limit in some form.

    Windows that cannot matter to the value are left out, so that a value that never changes is known at once.
    """
    relevant = [budget for budget in pool.budgets if budget.covers(reason)]
    fixed = [budget.index for budget in relevant if budget.always_open]
    moving = [budget for budget in relevant if not budget.always_open]
    known = cache(value)
    if _only_tighten(relevant, reading or pool.reading):
        moving = [budget for budget in moving if _matters(budget, [], fixed, known)]
    elif len(moving) <= MOST_SEPARATE_WINDOWS:
        moving = [budget for budget in moving if _matters(budget, moving, fixed, known)]
    if not moving:
        return constant(known(tuple(fixed)))
    chosen = _chosen([budget.index for budget in moving], fixed)
    return combine(lambda states: known(chosen(states)), [budget.open for budget in moving])


def _only_tighten(relevant: Sequence[CompiledBudget], reading: BudgetReading) -> bool:
    """Tell whether a budget that becomes active can only lower the limit, never raise it.

    What does not lower the limit of the budgets that are always open then never will.
    """
    falls_back = reading is BudgetReading.FALLBACK and len({bool(budget.reasons) for budget in relevant}) > 1
    return not falls_back and not any(budget.allow for budget in relevant)


def _matters(
    budget: CompiledBudget,
    moving: Sequence[CompiledBudget],
    fixed: Sequence[int],
    value: Callable[[tuple[int, ...]], V],
) -> bool:
    """Try out whether a budget changes the value beside any of the others."""
    others = [other.index for other in moving if other is not budget]
    subsets = chain.from_iterable(combinations(others, size) for size in range(len(others) + 1))
    return any(
        value(tuple(sorted((*fixed, *subset)))) != value(tuple(sorted((*fixed, *subset, budget.index))))
        for subset in subsets
    )


def compile_pool(
    disruption: Disruption | v1beta1.Disruption,
    *,
    default_zone: str = "UTC",
    calendars: Mapping[str, Calendar] | None = None,
) -> PoolBudgets:
    """Compile what a pool says about its disruption."""
    return PoolBudgets(
        budgets=tuple(
            compile_budget(budget, index, default_zone=default_zone, calendars=calendars)
            for index, budget in enumerate(disruption.budgets)
        ),
        reading=BudgetReading(disruption.budget_default),
        equation=Equation.PER_REASON if disruption.budget_accounting == "PerReason" else Equation.TOTAL,
        forceful_expiry=disruption.expiration_policy == "Forceful",
    )


def compile_budget(
    budget: Budget,
    index: int,
    *,
    default_zone: str = "UTC",
    calendars: Mapping[str, Calendar] | None = None,
) -> CompiledBudget:
    """Compile one budget; one that cannot be evaluated says why and blocks."""
    reasons = named_reasons(budget.reasons or ())
    try:
        amount = IntOrPercent.parse(budget.nodes)
        opened = _open_times(budget, default_zone, calendars or {})
    except (AmountError, CronError, UnknownZone, ValueError) as failure:
        return broken_budget(index, reasons, str(failure))
    return CompiledBudget(
        index=index,
        reasons=reasons,
        amount=amount,
        allow=budget.mode == "Allow",
        open=opened or always(),
        always_open=opened is None,
        window=_window_words(budget, default_zone, calendars or {}),
        zone=(budget.time_zone or default_zone) if budget.schedule is not None else None,
        rates=_rate_words(budget),
    )


def broken_budget(index: int, reasons: tuple[Reason, ...], failure: str) -> CompiledBudget:
    """Stand in for a budget that cannot be evaluated: it blocks the reasons it names, all if it names none."""
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


def named_reasons(names: Sequence[Any]) -> tuple[Reason, ...]:
    """Give the reasons of a list of names in any spelling, each once."""
    found = (reason_named(name) for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(reason for reason in found if reason is not None))


def _open_times(budget: Budget, default_zone: str, calendars: Mapping[str, Calendar]) -> Timeline[bool] | None:
    """Give the times at which the budget's window is open; none where it always is."""
    zone = load_zone(budget.time_zone or default_zone)
    references = budget.calendars or ()
    opened: Timeline[bool] | None = None
    if (failure := _contradiction(budget)) is not None:
        raise ValueError(failure)
    if budget.schedule is not None and budget.duration is not None:
        cron = Cron.parse(budget.schedule, Dialect.BUDGET)
        opened = hits_for(cron, parse_window_duration(budget.duration), zone)
    elif budget.from_ is not None and budget.until is not None:
        opened = span(parse_instant(budget.from_), parse_instant(budget.until))
    if not any(reference.name in calendars for reference in references):
        return opened
    return on_calendars(opened or always(), references, calendars, zone)


def _contradiction(budget: Budget) -> str | None:
    """Say why the fields of a window do not make one; none where they do, or where there is no window."""
    once = budget.from_ is not None or budget.until is not None
    if once and (budget.schedule is not None or budget.duration is not None):
        return "its window recurs and happens once"
    if budget.time_zone is not None and budget.schedule is None:
        return "`timeZone` has no `schedule`"
    if budget.duration is not None and budget.schedule is None:
        return "`duration` has no `schedule`"
    if budget.schedule is not None and budget.duration is None and budget.__lone_schedule__ == "refused":
        return "`schedule` has no `duration`"
    if (budget.from_ is None) is not (budget.until is None):
        return "of `from` and `until` only one is set"
    if budget.from_ is not None and budget.until is not None:
        return None if parse_instant(budget.from_) < parse_instant(budget.until) else "`until` is not after `from`"
    return None


def _window_words(budget: Budget, default_zone: str, calendars: Mapping[str, Calendar]) -> str:
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


def _rate_words(budget: Budget) -> str:
    words: list[str] = []
    if budget.max_per is not None:
        words.append(f"at most {budget.max_per.nodes} nodes per {budget.max_per.period}")
    if budget.cooldown is not None:
        words.append(f"{budget.cooldown} between two nodes")
    return " and ".join(words)
