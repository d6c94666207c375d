"""Explanations of any kind: pauses, deletions, conditions and events.

A status may contain anything, because other clients may write it; an explanation must not fail.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controllers.explained import NIGHTLY, PEAK, POOL, WEB, explained, stops

from springtide.apis.meta.times import parse_instant
from springtide.cli.explain import render_explanation
from springtide.controllers.explanation import PastEvent


def test_pause_and_deletion_are_listed_first() -> None:
    deleted = PEAK.replace("namespace: shop}", "namespace: shop, deletionTimestamp: 2026-11-16T11:00:00Z}")
    explanation = explained(deleted, paused="the annotation pauses it", status={"conditions": []} | {"queue": {}})
    assert stops(explanation)[:2] == ["no controller touches it", "it is being deleted"]


def test_informational_conditions_are_not_listed_as_stopping() -> None:
    conditions = [condition("Ready", "False"), condition("Unambiguous", "False"), condition("Active", "Unknown")]
    assert stops(explained(PEAK, status={"conditions": conditions})) == []


def test_ready_is_the_first_condition() -> None:
    conditions = [condition("Active", "True"), condition("Ready", "True"), condition("Calculable", "True")]
    shown = explained(PEAK, status={"conditions": conditions}).conditions
    assert [one.type for one in shown] == ["Ready", "Active", "Calculable"]


def test_events_and_unreadable_parts_are_passed_on() -> None:
    happened = PastEvent(parse_instant("2026-11-16T11:00:00Z"), "ValueChanged: from 6 to 9 replicas")
    explanation = explained(PEAK, events=(happened,), unknown=("events are not looked at: forbidden",))
    assert explanation.history == (happened,)
    assert explanation.notes[-1] == "events are not looked at: forbidden"


def test_missing_controller_is_not_listed_for_a_paused_object() -> None:
    assert stops(explained(PEAK, paused="the annotation pauses it")) == ["no controller touches it"]
    (missed,) = explained(PEAK).stopped
    assert missed.why.endswith("and does more than observe")


def test_conditions_are_not_listed_for_another_time() -> None:
    status = {"conditions": [condition("Calculable", "False")]}
    assert stops(explained(PEAK, status=status, present=False)) == []
    assert stops(explained(PEAK, present=False)) == []


def condition(type_: str, status: str, reason: str = "AnyReason", message: str = "any message") -> dict[str, Any]:
    """Build a condition as any controller may write it."""
    since = "2026-11-16T11:00:00Z"
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


NAMES = (
    "conditions",
    "type",
    "status",
    "message",
    "lastTransitionTime",
    "scheduledCapacity",
    "currentValue",
    "nextValueTime",
    "desiredReplicas",
    "lastScaleTime",
    "replicas",
    "executionHistories",
    "ruleName",
    "successfulExecutions",
    "failedExecutions",
    "scheduleTime",
    "executionTime",
    "appliedReplicas",
    "queue",
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**40),
    st.text(max_size=8),
    st.sampled_from(["Active", "True", "False", "up", "2026-11-16T11:00:00Z", "9999-12-31T23:59:59Z", "missed: no"]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)),
    max_leaves=20,
)


@pytest.mark.parametrize("text", [PEAK, WEB, NIGHTLY, POOL], ids=["producer", "autoscaler", "cron", "node group"])
@given(status=st.dictionaries(st.sampled_from(NAMES), TREES, max_size=6))
def test_any_status_is_explained(text: str, status: dict[str, Any]) -> None:
    explanation = explained(text, PEAK, WEB, status=status)
    assert msgspec.json.decode(msgspec.json.encode(explanation.document()))["kind"] == explanation.subject.kind
    assert render_explanation(explanation, width=80, unicode=True).endswith("\n")
