"""Why so many nodes, and no more, may be disrupted at an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.karpenter.budgets import (
    BudgetReading,
    Claim,
    Equation,
    PoolBudgets,
    claims,
    limit,
    over_time,
)
from springtide.apis.karpenter.equations import allowed, consuming, sharing
from springtide.apis.karpenter.reasons import REASONS, Reason

UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A limit from an instant on; no count is no limit."""

    at: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class ReasonExplanation:
    """How many nodes may be disrupted for one reason, and why."""

    limit: int | None
    consuming: int
    allowed: int
    budget: int | None
    because: str
    next: LimitChange | None

    def document(self) -> dict[str, Any]:
        """Write the explanation as scripts read it."""
        return {
            "limit": _shown(self.limit),
            "consuming": self.consuming,
            "allowed": self.allowed,
            "budget": self.budget,
            "because": self.because,
            "next": None
            if self.next is None
            else {"at": format_instant(self.next.at), "limit": _shown(self.next.limit)},
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """How many nodes of a pool may be disrupted, by reason."""

    reading: BudgetReading
    equation: Equation
    nodes: int
    reasons: dict[Reason, ReasonExplanation]

    def document(self, name: str) -> dict[str, Any]:
        """Write the explanation of the pool of this name as scripts read it."""
        return {
            "name": name,
            "reading": self.reading.value,
            "equation": self.equation.value,
            "nodes": self.nodes,
            "reasons": {reason.value: found.document() for reason, found in self.reasons.items()},
        }


def explain(
    pool: PoolBudgets,
    *,
    at: int,
    nodes: int,
    disrupting: Mapping[Reason, int] | None = None,
    unhealthy: int = 0,
    reading: BudgetReading | None = None,
    equation: Equation | None = None,
) -> Explanation:
    """Explain the limits of a pool of so many nodes at an instant.

    `disrupting` counts nodes by the reason they are being disrupted for, `unhealthy` those that are not ready and
    not among them, so that no node counts twice. `reading` and `equation` override what the pool says.
    """
    reading, equation = reading or pool.reading, equation or pool.equation
    active = pool.active.at(at)
    found: dict[Reason, ReasonExplanation] = {}
    for reason in REASONS:
        sharers = sharing(pool, reason, active, reading, equation)
        used = consuming(disrupting or {}, unhealthy, sharers)
        now = limit(pool, reason, active, nodes, reading)
        binding = [] if now.claim is None else [now.claim]
        why = because(pool, reason, active, binding, nodes=nodes, reading=reading)
        found[reason] = ReasonExplanation(
            limit=now.count,
            consuming=used,
            allowed=allowed(now.count, used, nodes),
            budget=None if now.claim is None else now.claim.budget.index,
            because=f"{why}; {_used_words(used, unhealthy, sharers)}",
            next=_next_limit(pool, reason, at, nodes, reading),
        )
    return Explanation(reading, equation, nodes, found)


def because(
    pool: PoolBudgets,
    reason: Reason,
    active: Sequence[int],
    binding: Sequence[Claim],
    *,
    nodes: int | None,
    reading: BudgetReading,
) -> str:
    """Say which claims bind and why, in words without a full stop; expiry that will not wait is mentioned."""
    made = claims(pool, reason, active, reading)
    closed = [claim for claim in made if claim.closed]
    if len(closed) > 1 and all(claim.closed for claim in binding):
        binding = closed  # each of them will open it
    words = " and ".join(_claim_words(claim, reason, nodes) for claim in binding)
    if not binding:
        words = f"no active budget covers {reason}: no limit"
    elif reading is BudgetReading.FALLBACK and not any(c.budget.reasons or c.budget.failure for c in binding):
        words += f", as no active budget names {reason}"
    elif len(made) > len(binding) and not any(claim.closed for claim in binding):
        words += f", the tightest of {len(made)} that cover {reason}"
    rates = [f"budget {claim.budget.index}: {claim.budget.rates}" for claim in made if claim.budget.rates]
    if rates:
        words += f"; what happened before counts as well ({'; '.join(rates)})"
    if reason is Reason.EXPIRED and pool.forceful_expiry:
        words += "; expiry is forceful: expired nodes do not wait for this"
    return words


def _claim_words(claim: Claim, reason: Reason, nodes: int | None) -> str:
    budget = claim.budget
    if budget.failure:
        return f"budget {budget.index} blocks because it cannot be evaluated: {budget.failure}"
    if claim.closed:
        return f"budget {budget.index} allows {reason} only in its window ({budget.window})"
    amount = budget.amount.text
    if budget.amount.is_percent and nodes is not None:
        amount = f"{amount} of {nodes} nodes = {budget.amount.of(nodes)}"
    window = f" in its window ({budget.window})" if budget.window else ""
    verb = "blocks" if budget.amount.number == 0 else f"allows {amount}"
    return f"budget {budget.index} {verb}{window}"


def _used_words(used: int, unhealthy: int, sharers: tuple[Reason, ...]) -> str:
    if not used:
        return "no node is taken yet"
    parts: list[str] = []
    if used > unhealthy:
        whose = "disrupted" if sharers == REASONS else f"disrupted for {', '.join(sharers)}"
        parts.append(f"{used - unhealthy} {whose}")
    if unhealthy:
        parts.append(f"{unhealthy} not ready")
    return f"{used} {'node is' if used == 1 else 'nodes are'} taken already ({', '.join(parts)})"


def _next_limit(pool: PoolBudgets, reason: Reason, at: int, nodes: int, reading: BudgetReading) -> LimitChange | None:
    timeline = over_time(pool, reason, lambda active: limit(pool, reason, active, nodes, reading).count, reading)
    change = timeline.next_change(at)
    return None if change is None else LimitChange(*change)


def _shown(count: int | None) -> int | str:
    return UNLIMITED if count is None else count
