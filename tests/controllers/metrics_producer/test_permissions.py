"""Permissions of the controller, and the metrics that are expected of a spec.

The expected metrics of a producer are known from its spec, valid or not.
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


def test_controller_reads_watched_kinds_and_writes_only_the_status() -> None:
    """Every watched kind can be read, and only the status of producers is written."""
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
        pytest.param({"schedule": "wrong"}, SCHEDULE_METRICS, id="an unreadable schedule"),
        pytest.param({"queue": {}}, QUEUE, id="a queue"),
        pytest.param({"queue": {}, "schedule": {}}, (*SCHEDULE_METRICS, *QUEUE), id="two sources"),
        pytest.param({"queue": {}, "schedule": None}, QUEUE, id="a null schedule"),
        pytest.param({"pendingCapacity": {}}, (), id="pending capacity"),
        pytest.param({}, (), id="an empty spec"),
        pytest.param(None, (), id="no spec"),
        pytest.param("wrong", (), id="a spec that is no object"),
    ],
)
def test_expected_metrics(spec: Any, metrics: tuple[str, ...]) -> None:
    assert expected_metrics(msgspec.json.encode(spec)) == metrics


def test_reserved_capacity_has_nine_metrics() -> None:
    found = expected_metrics(b'{"reservedCapacity": {}}')

    assert len(found) == 9
    assert all(name.startswith("karpenter_reserved_capacity_") for name in found)
