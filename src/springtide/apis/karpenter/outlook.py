"""What a pool's budgets will allow: a lane for every reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from springtide.almanac import load_zone
from springtide.apis.forecast import Lane, LaneStyle, LaneValue, Outlook, Question
from springtide.apis.karpenter.budgets import (
    Claim,
    CompiledBudget,
    PoolBudgets,
    claims,
    compile_pool,
    limit,
    over_time,
)
from springtide.apis.karpenter.explain import UNLIMITED, because
from springtide.apis.karpenter.pools import pool_budgets
from springtide.apis.karpenter.reasons import REASONS, Reason
from springtide.apis.meta.clock_times import clock_time
from springtide.apis.meta.lanes import level_lane

Active: TypeAlias = tuple[int, ...]
"""The indexes of active budgets."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A pool, what is asked about it, and every change of its active budgets in the time that is asked about."""

    pool: PoolBudgets
    question: Question
    edges: dict[int, tuple[Active, Active]]

    def edge(self, at: int) -> tuple[Active, Active]:
        """Give the active budgets before and from an instant on."""
        return self.edges.get(at) or (self.pool.active.at(at - 1), self.pool.active.at(at))


def forecast_pool(pool: Any, question: Question) -> Outlook:
    """Look ahead at a NodePool of either version."""
    return _outlook(
        compile_pool(pool.spec.disruption, default_zone=question.default_zone, calendars=question.calendars), question
    )


def forecast_broken_pool(_: Any, value: dict[str, Any], question: Question) -> Outlook:
    """Look ahead at a NodePool with errors: what cannot be evaluated blocks."""
    return _outlook(pool_budgets(value, default_zone=question.default_zone, calendars=question.calendars), question)


def _outlook(compiled: PoolBudgets, question: Question) -> Outlook:
    zones = tuple(dict.fromkeys(budget.zone for budget in compiled.budgets if budget.zone is not None))
    states = [(question.start, compiled.active.at(question.start))]
    states += compiled.active.changes(question.start, question.until)
    edges = {at: (before, after) for (_, before), (at, after) in pairwise(states)}
    look = _Look(compiled, question, edges)
    return Outlook(
        zones=zones or (question.default_zone,),
        lanes=tuple(_lane(look, reason) for reason in REASONS),
    )


def _lane(look: _Look, reason: Reason) -> Lane:
    pool, question = look.pool, look.question
    return level_lane(
        reason.value,
        LaneStyle.BUDGET,
        over_time(pool, reason, lambda active: lane_value(pool, reason, active, question.nodes)),
        question,
        because=lambda at, _: _change_words(look, reason, at),
        because_now=_state_words(look, reason, pool.active.at(question.start)),
    )


def lane_value(pool: PoolBudgets, reason: Reason, active: Sequence[int], nodes: int | None) -> LaneValue:
    """Give the limit as scripts read it; without a number of nodes percentages stay what they are."""
    if nodes is not None:
        count = limit(pool, reason, active, nodes).count
        return UNLIMITED if count is None else count
    values = [
        claim.amount.text if claim.amount.is_percent else claim.amount.number
        for claim in _tightest(pool, reason, active)
    ]
    if len(values) == 2:
        return {"min": values}
    return values[0] if values else UNLIMITED


def _tightest(pool: PoolBudgets, reason: Reason, active: Sequence[int]) -> list[Claim]:
    """Find the claims that may bind where the number of nodes is not known: the least share, the least count.

    A budget that blocks because it is closed or broken leaves nothing to compare.
    """
    made = claims(pool, reason, active)
    shut = next((claim for claim in made if claim.closed or claim.budget.failure), None)
    if shut is not None:
        return [shut]
    kinds = [[claim for claim in made if claim.amount.is_percent is kind] for kind in (True, False)]
    return [min(listed, key=lambda claim: claim.amount.number) for listed in kinds if listed]


def _state_words(look: _Look, reason: Reason, active: Active) -> str:
    nodes = look.question.nodes
    if nodes is None:
        binding = _tightest(look.pool, reason, active)
    else:
        bound = limit(look.pool, reason, active, nodes).claim
        binding = [] if bound is None else [bound]
    return because(look.pool, reason, active, binding, nodes=nodes, reading=look.pool.reading)


def _change_words(look: _Look, reason: Reason, at: int) -> str:
    """Say which windows open and close at an instant, and what holds from then on."""
    before, after = look.edge(at)
    moved = [
        f"{_edge_words(budget, opens=budget.index in after)}"
        f" ({clock_time(at, load_zone(budget.zone or look.question.default_zone))})"
        for budget in look.pool.budgets
        if budget.covers(reason) and (budget.index in before) is not (budget.index in after)
    ]
    return f"{', '.join(moved)}: {_state_words(look, reason, after)}"


def _edge_words(budget: CompiledBudget, *, opens: bool) -> str:
    if budget.allow:
        return f"the window of budget {budget.index} {'opens' if opens else 'closes'}"
    return f"budget {budget.index} {'starts' if opens else 'ends'}"
