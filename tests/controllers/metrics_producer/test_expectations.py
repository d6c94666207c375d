"""What a producer will export is known from what its author has written, right or wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from springtide.controllers.metrics_producer.expectations import expected_metrics
from springtide.controllers.metrics_producer.schedule_outcomes import METRICS

QUEUE = ("karpenter_queue_length", "karpenter_queue_oldest_message_age_seconds")


@pytest.mark.parametrize(
    ("spec", "metrics"),
    [
        pytest.param({"schedule": {"behaviors": []}}, METRICS, id="a schedule"),
        pytest.param({"schedule": "wrong"}, METRICS, id="one that cannot be read"),
        pytest.param({"queue": {}}, QUEUE, id="a queue"),
        pytest.param({"queue": {}, "schedule": {}}, (*METRICS, *QUEUE), id="too many"),
        pytest.param({"queue": {}, "schedule": None}, QUEUE, id="one that is null"),
        pytest.param({"pendingCapacity": {}}, (), id="what is not computed yet"),
        pytest.param({}, (), id="nothing"),
        pytest.param(None, (), id="no spec"),
        pytest.param("wrong", (), id="no object"),
    ],
)
def test_expected_metrics(spec: Any, metrics: tuple[str, ...]) -> None:
    assert expected_metrics(msgspec.json.encode(spec)) == metrics


def test_reserved_capacity_has_nine() -> None:
    found = expected_metrics(b'{"reservedCapacity": {}}')

    assert len(found) == 9
    assert all(name.startswith("karpenter_reserved_capacity_") for name in found)
