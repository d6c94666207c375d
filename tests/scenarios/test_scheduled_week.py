"""The design's example over a whole week: every change at its second, as a user in Los Angeles expects it."""

from __future__ import annotations

import pytest
from tests.controllers.metrics_producer.harness import ProducerHarness, events_of, status_of, writes_of

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object

WEEKDAYS = "Mon,Tue,Wed,Thu,Fri"

SCHEDULING: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "MetricsProducer",
    "metadata": {"name": "scheduling", "namespace": "default"},
    "spec": {
        "schedule": {
            "timezone": "America/Los_Angeles",
            "defaultReplicas": 2,
            "behaviors": [
                {"replicas": 1, "start": {"weekdays": "Fri", "hours": 17}, "end": {"weekdays": "Mon", "hours": 9}},
                {
                    "replicas": 3,
                    "start": {"weekdays": WEEKDAYS, "hours": 9},
                    "end": {"weekdays": WEEKDAYS, "hours": 17},
                },
                {
                    "replicas": 2,
                    "start": {"weekdays": WEEKDAYS, "hours": 17},
                    "end": {"weekdays": WEEKDAYS, "hours": 9},
                },
            ],
        }
    },
}


SUMMER = (
    ("2026-06-05T12:00:00Z", 2),  # Friday, 05:00 in Los Angeles
    ("2026-06-05T16:00:00Z", 3),  # Friday, 09:00
    ("2026-06-06T00:00:00Z", 1),  # Friday, 17:00: the weekend, which is listed before the evening
    ("2026-06-08T16:00:00Z", 3),  # Monday, 09:00
    ("2026-06-09T00:00:00Z", 2),
    ("2026-06-09T16:00:00Z", 3),
    ("2026-06-10T00:00:00Z", 2),
    ("2026-06-10T16:00:00Z", 3),
    ("2026-06-11T00:00:00Z", 2),
    ("2026-06-11T16:00:00Z", 3),
    ("2026-06-12T00:00:00Z", 2),
)
AUTUMN = (
    ("2026-10-30T12:00:00Z", 2),  # Friday, 05:00 PDT
    ("2026-10-30T16:00:00Z", 3),
    ("2026-10-31T00:00:00Z", 1),
    ("2026-11-02T17:00:00Z", 3),  # Monday, 09:00 PST: summer time has ended on Sunday
    ("2026-11-03T01:00:00Z", 2),
    ("2026-11-03T17:00:00Z", 3),
    ("2026-11-04T01:00:00Z", 2),
    ("2026-11-04T17:00:00Z", 3),
    ("2026-11-05T01:00:00Z", 2),
    ("2026-11-05T17:00:00Z", 3),
    ("2026-11-06T01:00:00Z", 2),
)


@pytest.mark.parametrize(
    "expected", [pytest.param(SUMMER, id="in-summer"), pytest.param(AUTUMN, id="when-summer-time-ends")]
)
def test_a_week_of_the_example(expected: tuple[tuple[str, int], ...]) -> None:
    """The metric changes at these instants and at no other, and so does the status, in one write for each."""
    harness = ProducerHarness()
    start = expected[0][0]

    outcome = harness.scenario(start, SCHEDULING).run("7d")

    assert harness.value_changes == [(at, "scheduling", value) for at, value in expected]
    changes = [
        (format_instant(entry.at), entry.change["status.scheduledCapacity.currentValue"][1])
        for entry in outcome.trace
        if "status.scheduledCapacity.currentValue" in entry.change
    ]
    assert changes == list(expected[1:])
    assert writes_of(outcome, "scheduling") == [start, *(at for at, _ in expected)]
    assert len(events_of(outcome, "ValueChanged")) == len(expected) - 1


def test_the_summary_of_the_example_at_the_end_of_the_week() -> None:
    """The next week looks like this one."""
    outcome = ProducerHarness().scenario(SUMMER[0][0], SCHEDULING).run("7d")

    assert status_of(outcome, "scheduling")["scheduledCapacity"] == {
        "currentValue": 2,
        "nextValue": 3,
        "nextValueTime": "2026-06-12T16:00:00Z",
        "upcoming": [
            {"at": "2026-06-12T16:00:00Z", "value": 3},
            {"at": "2026-06-13T00:00:00Z", "value": 1},
            {"at": "2026-06-15T16:00:00Z", "value": 3},
            {"at": "2026-06-16T00:00:00Z", "value": 2},
            {"at": "2026-06-16T16:00:00Z", "value": 3},
        ],
        "activeBehavior": "behaviors[2]",
        "timezone": "America/Los_Angeles",
    }
