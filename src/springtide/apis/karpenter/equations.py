"""How many nodes use up a budget, and how many may therefore still be disrupted.

Two equations exist. With the second, the default, every disrupted node of the pool counts for every reason, as a node
often has several reasons at once. With the first, only the nodes disrupted for the same reason count; where budgets
without reasons are a fallback, the reasons that no active budget names share one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from springtide.apis.karpenter.budgets import BudgetReading, Equation, PoolBudgets, named_by
from springtide.apis.karpenter.reasons import REASONS, Reason


def sharing(
    pool: PoolBudgets, reason: Reason, active: Sequence[int], reading: BudgetReading, equation: Equation
) -> tuple[Reason, ...]:
    """List the reasons whose disrupted nodes count against this reason's limit."""
    if equation is Equation.TOTAL:
        return REASONS
    if reading is BudgetReading.FLOOR or named_by(pool, reason, active):
        return (reason,)
    return tuple(other for other in REASONS if not named_by(pool, other, active))


def consuming(disrupting: Mapping[Reason, int], unhealthy: int, sharers: Sequence[Reason]) -> int:
    """Count the nodes that use up a limit; `unhealthy` are those that are not being disrupted as well."""
    return unhealthy + sum(disrupting.get(reason, 0) for reason in sharers)


def allowed(limit: int | None, used: int, nodes: int) -> int:
    """Count how many more nodes may be disrupted; without a limit all that are left."""
    return max(0, (nodes if limit is None else limit) - used)
