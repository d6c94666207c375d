"""The budgets of a pool that may have errors: as in a cluster, what cannot be evaluated blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from springtide.almanac import Calendar
from springtide.apis.karpenter import v1beta1
from springtide.apis.karpenter.budgets import (
    BudgetReading,
    CompiledBudget,
    Equation,
    PoolBudgets,
    broken_budget,
    compile_budget,
    named_reasons,
)
from springtide.apis.karpenter.disruption import Budget, Disruption


def pool_budgets(
    value: dict[str, Any], *, default_zone: str = "UTC", calendars: Mapping[str, Calendar] | None = None
) -> PoolBudgets:
    """Compile the budgets of a NodePool from its canonical tree; each budget is judged by itself."""
    beta = str(value.get("apiVersion", "")).endswith("/v1beta1")
    budget_view, defaults = (v1beta1.Budget, v1beta1.Disruption()) if beta else (Budget, Disruption())
    spec = value.get("spec")
    disruption = spec.get("disruption") if isinstance(spec, dict) else None
    written = disruption if isinstance(disruption, dict) else {}

    def compiled(index: int, entry: Any) -> CompiledBudget:
        try:
            budget = msgspec.convert(entry, budget_view)
        except msgspec.ValidationError as failure:
            reasons = entry.get("reasons") if isinstance(entry, dict) else None
            return broken_budget(index, named_reasons(reasons if isinstance(reasons, list) else ()), str(failure))
        return compile_budget(budget, index, default_zone=default_zone, calendars=calendars)

    listed = written.get("budgets")
    if listed is None:
        listed = list(msgspec.to_builtins(defaults.budgets))
    if isinstance(listed, list):
        budgets = tuple(compiled(index, entry) for index, entry in enumerate(listed))
    else:
        budgets = (broken_budget(0, (), "`budgets` is not a list"),)
    return PoolBudgets(
        budgets=budgets,
        reading=BudgetReading(_chosen(written, "budgetDefault", list(BudgetReading), defaults.budget_default)),
        equation=Equation.PER_REASON
        if _chosen(written, "budgetAccounting", ["PerReason"], defaults.budget_accounting) == "PerReason"
        else Equation.TOTAL,
        forceful_expiry=_chosen(written, "expirationPolicy", ["Forceful", "Graceful"], defaults.expiration_policy)
        == "Forceful",
    )


def _chosen(written: dict[str, Any], key: str, legal: list[Any], default: Any) -> str:
    found = written.get(key)
    return str(found if found in legal else default)
