"""What is wrong with budgets beyond single fields: windows that make no sense, and budgets that never matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from springtide.apis.fields import Context
from springtide.apis.karpenter.budgets import (
    Claim,
    CompiledBudget,
    PoolBudgets,
    claims,
    compile_budget,
    compile_pool,
    over_time,
)
from springtide.apis.karpenter.reasons import REASONS, Reason
from springtide.apis.meta.instants import parse_instant
from springtide.apis.problems import Problem, error, warning

if TYPE_CHECKING:
    from springtide.apis.karpenter import v1beta1
    from springtide.apis.karpenter.disruption import Budget, Disruption

HORIZON = 366 * 24 * 3600
"""How far ahead budgets are compared: every window that recurs within a year is met."""

MOST_CHANGES = 4000
"""Pools whose budgets change more often than this within the horizon are not compared."""


def window_problems(budget: Budget, context: Context) -> Iterator[Problem]:
    """Find windows that are incomplete, over, contradictory or not what they seem."""
    if budget.reasons == ():
        hint = "name reasons, or remove `reasons`"
        yield warning(("reasons",), "an empty list names no reason: the budget is read as if it had none", hint)
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


def _once_problems(budget: Budget, context: Context) -> Iterator[Problem]:
    if budget.from_ is None:
        yield error((), "the window has no beginning: `from` is not set", "add `from`, an RFC 3339 time")
    elif budget.until is None:
        yield error((), "the window has no end: `until` is not set", "add `until`, an RFC 3339 time")
    elif parse_instant(budget.until) <= parse_instant(budget.from_):
        yield error(("until",), f"`until` {budget.until} is not after `from` {budget.from_}", "swap them")
    elif parse_instant(budget.until) <= context.now and budget.mode == "Limit":
        yield warning(("until",), f"the window is over since {budget.until}", "remove the budget")
    elif parse_instant(budget.until) <= context.now:
        message = f"the window is over since {budget.until}: by itself the budget allows nothing any more"
        yield warning(("until",), message, "remove the budget")


def _recurring_problems(budget: Budget, context: Context) -> Iterator[Problem]:
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


def disruption_problems(disruption: Disruption | v1beta1.Disruption, context: Context) -> Iterator[Problem]:
    """Find budgets that limit nothing, that never matter, or that block a reason for good."""
    if not disruption.budgets:
        hint = "remove `budgets` for the default of 10%, or list budgets"
        yield warning(("budgets",), "an empty list of budgets is no limit at all", hint)
        return
    pool = compile_pool(disruption, default_zone=context.default_zone)
    if pool.forceful_expiry:
        yield from _unheeded(pool)
    # What is left out for its errors could outdo the others; which days calendars take away is not known here, and
    # what broken budgets were meant to say not at all.
    if "budgets" in context.entries_left or any(budget.calendars for budget in disruption.budgets):
        return
    if not any(made.failure for made in pool.budgets):
        yield from _compare(pool, context.now)


def _unheeded(pool: PoolBudgets) -> Iterator[Problem]:
    for budget in pool.budgets:
        if Reason.EXPIRED in budget.reasons:
            message = "expired nodes do not wait for this budget: `expirationPolicy` is Forceful"
            hint = "set `expirationPolicy: Graceful`"
            yield warning(("budgets", budget.index, "reasons"), message, hint)


def _compare(pool: PoolBudgets, now: int) -> Iterator[Problem]:
    states = _states_ahead(pool, now)
    if states is None:
        return
    for budget in pool.budgets:
        # A rate holds nodes back whatever the number is.
        if budget.rates or not any(budget.index in state for state in states):
            continue
        if (rivals := _always_outdone(pool, budget, states)) is not None:
            yield _idle(budget, rivals)
    for reason in REASONS:
        blocking = [_blocking(claims(pool, reason, state)) for state in states]
        if (reason is Reason.EXPIRED and pool.forceful_expiry) or not all(blocking):
            continue
        if over_time(pool, reason, _is_blocked(pool, reason)).next_change(now) is not None:
            continue  # it ends, only not soon
        indexes = sorted({claim.budget.index for claim in blocking if claim})
        listed = " and ".join(f"budget {index}" for index in indexes)
        held = f"{listed} {'holds' if len(indexes) == 1 else 'hold'} it at 0 at all times"
        message = f"no node is ever disrupted for {reason}: {held}"
        yield warning(("budgets", indexes[0]), message, "give it a window, or other reasons, unless this is meant")


def _is_blocked(pool: PoolBudgets, reason: Reason) -> Callable[[tuple[int, ...]], bool]:
    return lambda active: _blocking(claims(pool, reason, active)) is not None


def _states_ahead(pool: PoolBudgets, now: int) -> list[tuple[int, ...]] | None:
    """List the different sets of active budgets within the horizon; none where there are too many changes."""
    states: dict[tuple[int, ...], None] = {}
    for count, (at, active) in enumerate(pool.active.segments(now)):
        if at > now + HORIZON:
            break
        if count > MOST_CHANGES:
            return None
        states[active] = None
    return list(states)


def _always_outdone(pool: PoolBudgets, budget: CompiledBudget, states: Sequence[tuple[int, ...]]) -> list[int] | None:
    """Find the budgets that are at least as tight whenever this one counts; none where it can bind.

    An empty list means that it never counts: budgets that name reasons leave nothing for it to fall back to.
    """
    rivals: dict[int, None] = {}
    for reason in REASONS:
        if not budget.covers(reason):
            continue
        for state in states:
            made = claims(pool, reason, state)
            own = next((claim for claim in made if claim.budget is budget), None)
            if own is None:
                continue
            rival = next((claim for claim in made if _outdoes(claim, own)), None)
            if rival is None:
                return None
            rivals[rival.budget.index] = None
    return sorted(rivals)


def _outdoes(rival: Claim, own: Claim) -> bool:
    """Tell whether a claim binds before another one whatever the number of nodes."""
    if rival.budget is own.budget:
        return False
    if rival.amount.number == 0:
        return own.amount.number > 0 or rival.budget.index < own.budget.index
    if rival.amount.is_percent is not own.amount.is_percent:
        return False
    order = (rival.amount.number, rival.budget.index), (own.amount.number, own.budget.index)
    return order[0] < order[1]


def _idle(budget: CompiledBudget, rivals: Sequence[int]) -> Problem:
    if rivals:
        listed = " or ".join(f"budget {index}" for index in rivals)
        message = f"the budget can never bind: {listed} is at least as tight whenever it is active"
    else:
        message = "the budget never counts: every reason is named by other budgets at all times"
    return warning(("budgets", budget.index), message, "remove it, or change `nodes`, `reasons` or its window")


def _blocking(made: Sequence[Claim]) -> Claim | None:
    return next((claim for claim in made if claim.amount.number == 0), None)
