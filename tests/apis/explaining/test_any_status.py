"""Whatever stands in a status, an explanation comes of it: others may have written it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.explaining.building import NIGHTLY, PEAK, POOL, WEB, explained

from springtide.cli.explaining import render

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
    assert render(explanation, width=80, unicode=True).endswith("\n")
