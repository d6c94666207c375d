"""What the controller may do: read what metrics are made from, and write the status of producers."""

from __future__ import annotations

from springtide.controllers import calendar, trust
from springtide.controllers.metrics_producer import METRICS_PRODUCERS, MetricsProducerController
from springtide.controllers.metrics_producer.node_records import NODES, PODS


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
        trust.GRANTS,
        NODES,
        PODS,
        "customresourcedefinitions.apiextensions.k8s.io",
    )

    assert needed == {(str(one), verb, "") for one in read for verb in ("get", "list", "watch")} | {
        (str(METRICS_PRODUCERS), "patch", "status")
    }
