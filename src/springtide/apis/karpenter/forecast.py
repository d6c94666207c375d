"""The forecast of a NodePool: for each reason, how many nodes its budgets will allow to disrupt.

A pool may have errors: as in a cluster, a budget that cannot be evaluated blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from springtide.almanac import DayCalendar, load_zone
from springtide.apis.forecast import ForecastQuery, Lane, LaneStyle, LaneValue, Outlook, timeline_lane
from springtide.apis.karpenter import v1beta1
from springtide.apis.karpenter.budgets import (
    AccountingEquation,
    BudgetClaim,
    BudgetDefault,
    CompiledBudget,
    DisruptionReason,
    PoolBudgets,
    budget_claims,
    compile_budget,
    compile_pool,
    disruption_limit,
    invalid_budget,
    limit_over_time,
    parse_delays,
    parse_reasons,
)
from springtide.apis.karpenter.disruption import Budget, Disruption
from springtide.apis.karpenter.explain import UNLIMITED, limit_reason
from springtide.apis.kinds import ValidationContext, View
from springtide.apis.meta.times import clock_time
from springtide.apis.problems import format_path
from springtide.apis.structural_validation import check_structure


def pool_budgets(
    value: dict[str, Any], *, default_zone: str = "UTC", calendars: Mapping[str, DayCalendar] | None = None
) -> PoolBudgets:
    """Compile the budgets of a NodePool from its canonical tree; an invalid budget does not affect the others."""
    beta = str(value.get("apiVersion", "")).endswith("/v1beta1")
    budget_view, defaults = (v1beta1.BudgetV1Beta1, v1beta1.DisruptionV1Beta1()) if beta else (Budget, Disruption())
    spec = value.get("spec")
    disruption = spec.get("disruption") if isinstance(spec, dict) else None
    written = disruption if isinstance(disruption, dict) else {}
    malformed = not isinstance(spec, dict | None) or not isinstance(disruption, dict | None)

    def compiled(index: int, entry: Any) -> CompiledBudget:
        given = {key: part for key, part in entry.items() if part is not None} if isinstance(entry, dict) else entry
        try:
            budget = msgspec.convert(given, budget_view)
        except msgspec.ValidationError:
            return invalid_budget(index, _reasons(given), _first_error_message(given, budget_view))
        return compile_budget(budget, index, default_zone=default_zone, calendars=calendars)

    listed = written.get("budgets")
    if listed is None:
        listed = list(msgspec.to_builtins(defaults.budgets))
    if malformed:
        budgets: tuple[CompiledBudget, ...] = (invalid_budget(0, (), "`disruption` is not a mapping"),)
    elif isinstance(listed, list):
        budgets = tuple(compiled(index, entry) for index, entry in enumerate(listed))
    else:
        budgets = (invalid_budget(0, (), "`budgets` is not a list"),)
    return PoolBudgets(
        budgets=budgets,
        reading=BudgetDefault(
            _valid_or_default(written, "budgetDefault", list(BudgetDefault), defaults.budget_default)
        ),
        equation=AccountingEquation.PER_REASON
        if _valid_or_default(written, "budgetAccounting", ["PerReason"], defaults.budget_accounting) == "PerReason"
        else AccountingEquation.TOTAL,
        forceful_expiry=_valid_or_default(
            written, "expirationPolicy", ["Forceful", "Graceful"], defaults.expiration_policy
        )
        == "Forceful",
        repair=written.get("repair") is not None,
        delays=parse_delays(written.get("disruptAfter")),
    )


def _reasons(entry: Any) -> tuple[DisruptionReason, ...]:
    reasons = entry.get("reasons") if isinstance(entry, dict) else None
    return parse_reasons(reasons if isinstance(reasons, list) else ())


def _first_error_message(entry: Any, view: type[View]) -> str:
    """Return the first error of an entry that is no valid budget."""
    found = next(
        problem
        for problem in check_structure(entry, view, ValidationContext(now=0)).problems
        if problem.severity == "error"
    )
    return f"{format_path(found.path)} {found.message}".strip()


def _valid_or_default(written: dict[str, Any], key: str, legal: list[Any], default: Any) -> str:
    found = written.get(key)
    return str(found if found in legal else default)


ActiveBudgets: TypeAlias = tuple[int, ...]
"""The indexes of active budgets."""


@dataclass(frozen=True, slots=True)
class _ForecastInput:
    """A pool, a forecast query, and every change of its active budgets in that time."""

    pool: PoolBudgets
    query: ForecastQuery
    edges: dict[int, tuple[ActiveBudgets, ActiveBudgets]]

    def edge(self, at: int) -> tuple[ActiveBudgets, ActiveBudgets]:
        """Return the active budgets before and from an instant on."""
        return self.edges.get(at) or (self.pool.active.at(at - 1), self.pool.active.at(at))


def forecast_pool(pool: Any, query: ForecastQuery) -> Outlook:
    """Forecast a NodePool of either version."""
    return _outlook(
        compile_pool(pool.spec.disruption, default_zone=query.default_zone, calendars=query.calendars), query
    )


def forecast_invalid_pool(_: Any, value: dict[str, Any], query: ForecastQuery) -> Outlook:
    """Forecast a NodePool with errors; a budget that cannot be evaluated blocks."""
    return _outlook(pool_budgets(value, default_zone=query.default_zone, calendars=query.calendars), query)


def _outlook(compiled: PoolBudgets, query: ForecastQuery) -> Outlook:
    zones = tuple(dict.fromkeys(budget.zone for budget in compiled.budgets if budget.zone is not None))
    states = [(query.start, compiled.active.at(query.start))]
    states += compiled.active.changes(query.start, query.until)
    edges = {at: (before, after) for (_, before), (at, after) in pairwise(states)}
    given = _ForecastInput(compiled, query, edges)
    return Outlook(
        zones=zones or (query.default_zone,),
        lanes=tuple(_lane(given, reason) for reason in compiled.reasons),
    )


def _lane(given: _ForecastInput, reason: DisruptionReason) -> Lane:
    pool, query = given.pool, given.query
    return timeline_lane(
        reason.value,
        LaneStyle.BUDGET,
        limit_over_time(pool, reason, lambda active: lane_value(pool, reason, active, query.nodes)),
        query,
        because=lambda at, _: _change_reason(given, reason, at),
        because_now=_current_reason(given, reason, pool.active.at(query.start)),
    )


def lane_value(pool: PoolBudgets, reason: DisruptionReason, active: Sequence[int], nodes: int | None) -> LaneValue:
    """Return the limit as JSON-compatible data; without a number of nodes, percentages stay percentages."""
    if nodes is not None:
        count = disruption_limit(pool, reason, active, nodes).count
        return UNLIMITED if count is None else count
    values = [
        claim.amount.text if claim.amount.is_percent else claim.amount.number
        for claim in _tightest(pool, reason, active)
    ]
    if len(values) == 2:
        return {"min": values}
    return values[0] if values else UNLIMITED


def _tightest(pool: PoolBudgets, reason: DisruptionReason, active: Sequence[int]) -> list[BudgetClaim]:
    """Return the claims that may bind for an unknown number of nodes: the smallest percentage, the smallest count.

    If a budget blocks because it is closed or invalid, return only that one.
    """
    made = budget_claims(pool, reason, active)
    blocking = next((claim for claim in made if claim.closed or claim.budget.failure), None)
    if blocking is not None:
        return [blocking]
    kinds = [[claim for claim in made if claim.amount.is_percent is kind] for kind in (True, False)]
    return [min(listed, key=lambda claim: claim.amount.number) for listed in kinds if listed]


def _current_reason(given: _ForecastInput, reason: DisruptionReason, active: ActiveBudgets) -> str:
    nodes = given.query.nodes
    if nodes is None:
        binding = _tightest(given.pool, reason, active)
    else:
        bound = disruption_limit(given.pool, reason, active, nodes).claim
        binding = [] if bound is None else [bound]
    return limit_reason(given.pool, reason, active, binding, nodes=nodes, reading=given.pool.reading)


def _change_reason(given: _ForecastInput, reason: DisruptionReason, at: int) -> str:
    """Return which windows open and close at an instant, and the limit from then on."""
    before, after = given.edge(at)
    moved = [
        f"{_edge_words(budget, opens=budget.index in after)}"
        f" ({clock_time(at, load_zone(budget.zone or given.query.default_zone))})"
        for budget in given.pool.budgets
        if budget.covers(reason) and (budget.index in before) is not (budget.index in after)
    ]
    return f"{', '.join(moved)}: {_current_reason(given, reason, after)}"


def _edge_words(budget: CompiledBudget, *, opens: bool) -> str:
    if budget.allow:
        return f"the window of budget {budget.index} {'opens' if opens else 'closes'}"
    return f"budget {budget.index} {'starts' if opens else 'ends'}"
