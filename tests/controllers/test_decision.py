"""`Ready` as the summary of conditions whose normal status is True."""

from __future__ import annotations

import pytest

from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.controllers.decision import with_ready

GOOD = Condition("Active", ConditionStatus.TRUE, "Producing", "3 replicas")
BAD = Condition("AbleToScale", ConditionStatus.FALSE, "Held", "until noon")
UNKNOWN = Condition("Stabilized", ConditionStatus.UNKNOWN, "NotObserved", "not observed yet")


@pytest.mark.parametrize(
    ("conditions", "status", "reason", "message"),
    [
        ((GOOD,), ConditionStatus.TRUE, "Ready", "3 replicas"),
        ((GOOD, BAD), ConditionStatus.FALSE, "Held", "until noon"),
        ((GOOD, UNKNOWN), ConditionStatus.UNKNOWN, "NotObserved", "not observed yet"),
        ((UNKNOWN, BAD), ConditionStatus.FALSE, "Held", "until noon"),
    ],
    ids=["all true", "one false", "one unknown", "false before unknown"],
)
def test_ready_takes_the_first_false_then_the_first_unknown_condition(
    conditions: tuple[Condition, ...], status: ConditionStatus, reason: str, message: str
) -> None:
    ready, *others = with_ready(*conditions)
    assert ready == Condition("Ready", status, reason, message)
    assert tuple(others) == conditions
