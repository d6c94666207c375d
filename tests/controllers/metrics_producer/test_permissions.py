"""What the controller may do: read what metrics are made from, and write the status of producers.

What a producer will export is known from what its author has written, right or wrong.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from springtide.cluster.resources import NODES, PODS
from springtide.controllers import calendar
from springtide.controllers.grant import state as grants
from springtide.controllers.metrics_producer import METRICS_PRODUCERS, MetricsProducerController
from springtide.controllers.metrics_producer.decide import SCHEDULE_METRICS
from springtide.controllers.metrics_producer.records import expected_metrics


def test_the_permissions_are_those_that_are_used() -> None:
    """Whatever is watched can be read, and nothing else is written."""
    needed = {
        (str(permission.resource), verb, permission.subresource)
        for permission in MetricsProducerController.permissions
        for verb in permission.verbs
    }
    read = (
        METRICS_PRODUCERS,
        calendar.CALENDARS,
        grants.GRANTS,
        NODES,
        PODS,
        "customresourcedefinitions.apiextensions.k8s.io",
    )

    assert needed == {(str(one), verb, "") for one in read for verb in ("get", "list", "watch")} | {
        (str(METRICS_PRODUCERS), "patch", "status")
    }


QUEUE = ("karpenter_queue_length", "karpenter_queue_oldest_message_age_seconds")


@pytest.mark.parametrize(
    ("spec", "metrics"),
    [
        pytest.param({"schedule": {"behaviors": []}}, SCHEDULE_METRICS, id="a schedule"),
        pytest.param({"schedule": "wrong"}, SCHEDULE_METRICS, id="one that cannot be read"),
        pytest.param({"queue": {}}, QUEUE, id="a queue"),
        pytest.param({"queue": {}, "schedule": {}}, (*SCHEDULE_METRICS, *QUEUE), id="too many"),
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
