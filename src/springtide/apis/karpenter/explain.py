"""Explains how many nodes may be disrupted at an instant: the limit of each reason, and the nodes that count.

There are two equations. In equation 2, the default, every disrupted node of the pool counts for every reason, because a
node often has several reasons. In equation 1, only nodes disrupted for the same reason count; where budgets without
reasons are a fallback, all reasons that no active budget names share one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.karpenter.budgets import (
    REASONS,
    AccountingEquation,
    BudgetClaim,
    BudgetDefault,
    DisruptionReason,
    PoolBudgets,
    budget_claims,
    disruption_limit,
    limit_over_time,
    named_by,
)


def counted_reasons(
    pool: PoolBudgets,
    reason: DisruptionReason,
    active: Sequence[int],
    reading: BudgetDefault,
    equation: AccountingEquation,
) -> tuple[DisruptionReason, ...]:
    """List the reasons whose disrupted nodes count against the limit of this reason."""
    if equation is AccountingEquation.TOTAL:
        return REASONS
    if reading is BudgetDefault.FLOOR or named_by(pool, reason, active):
        return (reason,)
    return tuple(other for other in REASONS if not named_by(pool, other, active))


def used_disruptions(
    disrupting: Mapping[DisruptionReason, int], unhealthy: int, sharers: Sequence[DisruptionReason]
) -> int:
    """Count the nodes that count against a limit; `unhealthy` excludes nodes that are being disrupted."""
    return unhealthy + sum(disrupting.get(reason, 0) for reason in sharers)


def counted_unhealthy(reason: DisruptionReason, unhealthy: int) -> int:
    """Return how many of the nodes that are not ready count: none for Unhealthy, because they are to be repaired."""
    return 0 if reason is DisruptionReason.UNHEALTHY else unhealthy


def remaining_disruptions(limit: int | None, used: int, nodes: int) -> int:
    """Return how many more nodes may be disrupted; without a limit, all others."""
    return max(0, (nodes if limit is None else limit) - used)


UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class DisruptionLimitChange:
    """A limit from an instant on; None means no limit."""

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
    next: DisruptionLimitChange | None

    def document(self) -> dict[str, Any]:
        """Return the explanation as JSON-compatible data."""
        return {
            "limit": _limit_value(self.limit),
            "consuming": self.consuming,
            "allowed": self.allowed,
            "budget": self.budget,
            "because": self.because,
            "next": None
            if self.next is None
            else {"at": format_instant(self.next.at), "limit": _limit_value(self.next.limit)},
        }


@dataclass(frozen=True, slots=True)
class DisruptionExplanation:
    """How many nodes of a pool may be disrupted, by reason."""

    reading: BudgetDefault
    equation: AccountingEquation
    nodes: int
    reasons: dict[DisruptionReason, ReasonExplanation]

    def document(self, name: str) -> dict[str, Any]:
        """Return the explanation of the pool of this name as JSON-compatible data."""
        return {
            "name": name,
            "reading": self.reading.value,
            "equation": self.equation.value,
            "nodes": self.nodes,
            "reasons": {reason.value: found.document() for reason, found in self.reasons.items()},
        }


def explain_disruption(
    pool: PoolBudgets,
    *,
    at: int,
    nodes: int,
    disrupting: Mapping[DisruptionReason, int] | None = None,
    unhealthy: int = 0,
    reading: BudgetDefault | None = None,
    equation: AccountingEquation | None = None,
) -> DisruptionExplanation:
    """Explain the limits of a pool with this number of nodes at an instant.

    `disrupting` counts nodes by the reason of their disruption, `unhealthy` the other nodes that are not ready, so that
    no node counts twice. `reading` and `equation` override the settings of the pool.
    """
    reading, equation = reading or pool.reading, equation or pool.equation
    active = pool.active.at(at)
    found: dict[DisruptionReason, ReasonExplanation] = {}
    for reason in pool.reasons:
        sharers = counted_reasons(pool, reason, active, reading, equation)
        counted = counted_unhealthy(reason, unhealthy)
        used = used_disruptions(disrupting or {}, counted, sharers)
        now = disruption_limit(pool, reason, active, nodes, reading)
        binding = [] if now.claim is None else [now.claim]
        why = limit_reason(pool, reason, active, binding, nodes=nodes, reading=reading)
        found[reason] = ReasonExplanation(
            limit=now.count,
            consuming=used,
            allowed=remaining_disruptions(now.count, used, nodes),
            budget=None if now.claim is None else now.claim.budget.index,
            because=f"{why}; {_describe_used(pool, used, counted, sharers)}{_describe_left_out(unhealthy - counted)}",
            next=_next_limit(pool, reason, at, nodes, reading),
        )
    return DisruptionExplanation(reading, equation, nodes, found)


def limit_reason(
    pool: PoolBudgets,
    reason: DisruptionReason,
    active: Sequence[int],
    binding: Sequence[BudgetClaim],
    *,
    nodes: int | None,
    reading: BudgetDefault,
) -> str:
    """Return which claims bind and why, without a full stop; forceful expiry is mentioned."""
    made = budget_claims(pool, reason, active, reading)
    closed = [claim for claim in made if claim.closed]
    if len(closed) > 1 and all(claim.closed for claim in binding):
        binding = closed  # the first one that opens ends the block
    words = " and ".join(_describe_claim(claim, reason, nodes) for claim in binding)
    if not binding:
        words = f"no active budget covers {reason}: no limit"
    elif reading is BudgetDefault.FALLBACK and not any(c.budget.reasons or c.budget.failure for c in binding):
        words += f", as no active budget names {reason}"
    elif len(made) > len(binding) and not any(claim.closed for claim in binding):
        words += f", the tightest of {len(made)} that cover {reason}"
    rates = [f"budget {claim.budget.index}: {claim.budget.rates}" for claim in made if claim.budget.rates]
    if rates:
        words += f"; earlier disruptions count as well ({'; '.join(rates)})"
    if reason is DisruptionReason.EXPIRED and pool.forceful_expiry:
        words += "; expiry is forceful: expired nodes do not wait for this"
    if (delay := pool.delays.get(reason)) is not None:
        words += f"; {_describe_delay(reason, delay)}"
    return words


_DELAY_BEGINNINGS = {
    DisruptionReason.DRIFTED: "it drifted",
    DisruptionReason.EMPTY: "its last pod event",
    DisruptionReason.UNDERUTILIZED: "its last pod event",
}


def _describe_delay(reason: DisruptionReason, delay: str) -> str:
    if delay == "Never":
        return f"no node is disrupted for {reason}: `disruptAfter.{reason}` is Never"
    return f"a node waits {delay} after {_DELAY_BEGINNINGS[reason]} (`disruptAfter.{reason}`)"


def _describe_claim(claim: BudgetClaim, reason: DisruptionReason, nodes: int | None) -> str:
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


def _describe_used(pool: PoolBudgets, used: int, unhealthy: int, sharers: tuple[DisruptionReason, ...]) -> str:
    if not used:
        return "no node is being disrupted"
    parts: list[str] = []
    if used > unhealthy:
        named = [reason for reason in sharers if reason in pool.reasons]
        whose = "disrupted" if sharers == REASONS else f"disrupted for {', '.join(named)}"
        parts.append(f"{used - unhealthy} {whose}")
    if unhealthy:
        parts.append(f"{unhealthy} not ready")
    return f"{used} {'node is' if used == 1 else 'nodes are'} unavailable already ({', '.join(parts)})"


def _describe_left_out(unhealthy: int) -> str:
    if not unhealthy:
        return ""
    nodes = "1 node is" if unhealthy == 1 else f"{unhealthy} nodes are"
    return f"; {nodes} not ready and not counted: this budget limits their repair"


def _next_limit(
    pool: PoolBudgets, reason: DisruptionReason, at: int, nodes: int, reading: BudgetDefault
) -> DisruptionLimitChange | None:
    timeline = limit_over_time(
        pool, reason, lambda active: disruption_limit(pool, reason, active, nodes, reading).count, reading
    )
    change = timeline.next_change(at)
    return None if change is None else DisruptionLimitChange(*change)


def _limit_value(count: int | None) -> int | str:
    return UNLIMITED if count is None else count
