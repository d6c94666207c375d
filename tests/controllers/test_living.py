"""`Ready` of kinds whose conditions are all good news."""

from __future__ import annotations

import pytest

from springtide.cluster.conditions import Condition, Truth
from springtide.controllers.living import with_ready

GOOD = Condition("Active", Truth.TRUE, "Producing", "3 replicas")
BAD = Condition("AbleToScale", Truth.FALSE, "Held", "until noon")
DARK = Condition("Stabilized", Truth.UNKNOWN, "NotAsked", "nobody has looked")


@pytest.mark.parametrize(
    ("conditions", "status", "reason", "message"),
    [
        ((GOOD,), Truth.TRUE, "Ready", "3 replicas"),
        ((GOOD, BAD), Truth.FALSE, "Held", "until noon"),
        ((GOOD, DARK), Truth.UNKNOWN, "NotAsked", "nobody has looked"),
        ((DARK, BAD), Truth.FALSE, "Held", "until noon"),
    ],
    ids=["all true", "one false", "one unknown", "false before unknown"],
)
def test_ready(conditions: tuple[Condition, ...], status: Truth, reason: str, message: str) -> None:
    ready, *others = with_ready(*conditions)
    assert ready == Condition("Ready", status, reason, message)
    assert tuple(others) == conditions
