"""Conditions of kinds whose `Ready` is true when all others are."""

from __future__ import annotations

from springtide.cluster.conditions import Condition, ConditionStatus


def with_ready(*conditions: Condition) -> tuple[Condition, ...]:
    """Put `Ready` in front: true where all are, else with the words of the first that is not; false before unknown."""
    bad = [one for one in conditions if one.status is ConditionStatus.FALSE] or [
        one for one in conditions if one.status is ConditionStatus.UNKNOWN
    ]
    if bad:
        return Condition("Ready", bad[0].status, bad[0].reason, bad[0].message), *conditions
    return Condition("Ready", ConditionStatus.TRUE, "Ready", "; ".join(one.message for one in conditions)), *conditions
