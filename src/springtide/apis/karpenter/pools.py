"""The budgets of a pool that may have errors: as in a cluster, what cannot be evaluated blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from springtide.almanac import Calendar
from springtide.apis.fields import Context, View
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
from springtide.apis.karpenter.reasons import Reason
from springtide.apis.problems import format_path
from springtide.apis.structure import check


def pool_budgets(
    value: dict[str, Any], *, default_zone: str = "UTC", calendars: Mapping[str, Calendar] | None = None
) -> PoolBudgets:
    """Compile the budgets of a NodePool from its canonical tree; each budget is judged by itself."""
    beta = str(value.get("apiVersion", "")).endswith("/v1beta1")
    budget_view, defaults = (v1beta1.Budget, v1beta1.Disruption()) if beta else (Budget, Disruption())
    spec = value.get("spec")
    disruption = spec.get("disruption") if isinstance(spec, dict) else None
    written = disruption if isinstance(disruption, dict) else {}
    misshapen = not isinstance(spec, dict | None) or not isinstance(disruption, dict | None)

    def compiled(index: int, entry: Any) -> CompiledBudget:
        given = {key: part for key, part in entry.items() if part is not None} if isinstance(entry, dict) else entry
        try:
            budget = msgspec.convert(given, budget_view)
        except msgspec.ValidationError:
            return broken_budget(index, _reasons(given), _first_error(given, budget_view))
        return compile_budget(budget, index, default_zone=default_zone, calendars=calendars)

    listed = written.get("budgets")
    if listed is None:
        listed = list(msgspec.to_builtins(defaults.budgets))
    if misshapen:
        budgets: tuple[CompiledBudget, ...] = (broken_budget(0, (), "`disruption` is not a mapping"),)
    elif isinstance(listed, list):
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


def _reasons(entry: Any) -> tuple[Reason, ...]:
    reasons = entry.get("reasons") if isinstance(entry, dict) else None
    return named_reasons(reasons if isinstance(reasons, list) else ())


def _first_error(entry: Any, view: type[View]) -> str:
    """Say in our own words why no budget can be made of an entry."""
    found = next(problem for problem in check(entry, view, Context(now=0)).problems if problem.severity == "error")
    return f"{format_path(found.path)} {found.message}".strip()


def _chosen(written: dict[str, Any], key: str, legal: list[Any], default: Any) -> str:
    found = written.get(key)
    return str(found if found in legal else default)
