"""`Ready` of kinds whose conditions are all good news."""

from __future__ import annotations

import pytest

from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.controllers.decision import with_ready

GOOD = Condition("Active", ConditionStatus.TRUE, "Producing", "3 replicas")
BAD = Condition("AbleToScale", ConditionStatus.FALSE, "Held", "until noon")
DARK = Condition("Stabilized", ConditionStatus.UNKNOWN, "NotAsked", "nobody has looked")


@pytest.mark.parametrize(
    ("conditions", "status", "reason", "message"),
    [
        ((GOOD,), ConditionStatus.TRUE, "Ready", "3 replicas"),
        ((GOOD, BAD), ConditionStatus.FALSE, "Held", "until noon"),
        ((GOOD, DARK), ConditionStatus.UNKNOWN, "NotAsked", "nobody has looked"),
        ((DARK, BAD), ConditionStatus.FALSE, "Held", "until noon"),
    ],
    ids=["all true", "one false", "one unknown", "false before unknown"],
)
def test_ready(conditions: tuple[Condition, ...], status: ConditionStatus, reason: str, message: str) -> None:
    ready, *others = with_ready(*conditions)
    assert ready == Condition("Ready", status, reason, message)
    assert tuple(others) == conditions
