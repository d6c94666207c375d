"""Explanations of MetricsProducer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.explained import GRANT, MONDAY, PEAK, WEB, explained, loaded, stops, written

from springtide.apis.meta.times import parse_instant
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.controllers.metrics_producer.compiled_spec import (
    LISTED_CHANGES,
    QUICK_BUDGET,
    compile_with_calendars,
)
from springtide.controllers.metrics_producer.decide import (
    decide_invalid,
    decide_queue_length,
    decide_schedule,
)
from springtide.metrics.queues import QueueLength


def reported(at: str, text: str = PEAK) -> dict[str, Any]:
    """Return the status that the controller writes for a schedule."""
    producer = loaded(text).view
    assert isinstance(producer, MetricsProducer)
    schedule = producer.spec.schedule
    assert schedule is not None
    compiled = compile_with_calendars(schedule, "UTC", ())
    now = parse_instant(at)
    return written(decide_schedule(compiled, compiled.at(now, LISTED_CHANGES, QUICK_BUDGET), (), {}, now))


REPORTED = reported("2026-11-16T11:30:00Z")
QUEUE = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: jobs, namespace: shop}
spec: {queue: {type: AWSSQSQueue, id: "arn:aws:sqs:us-east-1:123456789012:shop-jobs"}}
"""


@pytest.mark.parametrize(
    ("at", "wants", "because"),
    [
        pytest.param(
            "2026-11-16T11:30:00Z",
            {"replicas": 9, "behavior": "lunch", "timezone": "Europe/Berlin"},
            [
                "behaviour `lunch` is active (12:30 Europe/Berlin)",
                "behaviour `lunch` (replicas 9) wins over behaviour `day` (replicas 6), by priority",
            ],
            id="a collision and the behavior that wins",
        ),
        pytest.param(
            "2026-11-16T08:00:00Z",
            {"replicas": 6, "behavior": "day", "timezone": "Europe/Berlin"},
            ["behaviour `day` is active (09:00 Europe/Berlin)"],
            id="at the start",
        ),
        pytest.param(
            "2026-11-16T17:00:00Z",
            {"replicas": 2, "behavior": None, "timezone": "Europe/Berlin"},
            ["no behaviour is active: the default of 2 (18:00 Europe/Berlin)"],
            id="at the end",
        ),
    ],
)
def test_value_is_explained_by_its_behavior(at: str, wants: dict[str, Any], because: list[str]) -> None:
    explanation = explained(PEAK, at=at)
    assert dict(explanation.wants) == wants
    assert list(explanation.because) == because


def test_next_five_changes_have_reasons() -> None:
    document = explained(PEAK, at="2026-11-16T10:00:00Z").document()
    assert [(one["at"], one["value"]) for one in document["next"]] == [
        ("2026-11-16T11:00:00Z", 9),
        ("2026-11-16T13:00:00Z", 6),
        ("2026-11-16T17:00:00Z", 2),
        ("2026-11-17T08:00:00Z", 6),
        ("2026-11-17T11:00:00Z", 9),
    ]
    assert document["next"][0]["because"] == "behaviour `lunch` starts (12:00 Europe/Berlin)"
    assert {one["lane"] for one in document["next"]} == {"replicas"}


def test_no_next_change_after_the_last_one() -> None:
    once = PEAK.replace(
        "start: {hours: 9}, end: {hours: 18}", "from: 2026-11-16T09:00:00Z, until: 2026-11-16T18:00:00Z"
    )
    once = "\n".join(line for line in once.splitlines() if "lunch" not in line)
    explanation = explained(once)
    assert [(one.value, one.because) for one in explanation.next] == [
        (2, "window of behaviour `day` over (19:00 Europe/Berlin): back to the default of 2")
    ]


def test_schedule_is_evaluated_and_missing_controller_listed_without_a_status() -> None:
    explanation = explained(PEAK)
    assert explanation.wants["replicas"] == 9
    assert stops(explanation) == ["no controller has reported yet"]


@pytest.mark.parametrize(
    ("status", "present", "what"),
    [
        pytest.param(REPORTED, True, [], id="status agrees with the schedule"),
        pytest.param(
            reported("2026-11-16T10:30:00Z"),
            True,
            ["the metric is still 6"],
            id="status is behind",
        ),
        pytest.param(reported("2026-11-16T10:30:00Z"), False, [], id="another time is explained"),
    ],
)
def test_outdated_status_is_listed(status: dict[str, Any], present: bool, what: list[str]) -> None:
    explanation = explained(PEAK, status=status, present=present, at="2026-11-16T11:30:00Z")
    assert stops(explanation) == what
    if what:
        assert "since 2026-11-16T11:00:00Z" in explanation.stopped[0].why


def test_autoscalers_that_read_it_are_noted() -> None:
    assert explained(PEAK, WEB, status=REPORTED).notes[-1] == (
        'HorizontalAutoscaler `web` follows it for Deployment `web`: karpenter_scheduled_capacity{name="peak"}'
    )
    elsewhere = WEB.replace("namespace: shop", "namespace: other").replace('"peak"', '"peak",namespace="shop"')
    assert "`web` in namespace other follows it" in explained(PEAK, elsewhere, status=REPORTED).notes[-1]
    assert explained(PEAK, WEB.replace('"peak"', '"quiet"')).notes[-1].startswith("no HorizontalAutoscaler follows it")


def test_calendars_apply_and_missing_ones_are_listed() -> None:
    closed = PEAK.replace("name: day, ", "name: day, calendars: [{name: closed}, {name: gone}], ")
    calendar = (
        'apiVersion: springtide.dev/v1alpha1\nkind: Calendar\nmetadata: {name: closed}\nspec: {dates: ["2026-11-16"]}\n'
    )
    explanation = explained(closed, calendar, at="2026-11-16T09:00:00Z")
    assert explanation.wants["replicas"] == 2
    assert "Calendar `gone` does not exist: its days do not count" in explanation.notes
    assert not any("`closed`" in note for note in explanation.notes)


def test_suspended_behaviors_are_noted() -> None:
    explanation = explained(PEAK.replace("name: lunch, ", "name: lunch, suspend: true, "))
    assert explanation.wants["replicas"] == 6
    assert "behaviour `lunch` is suspended" in explanation.because


def test_invalid_object_lists_its_errors_and_the_last_reported_value() -> None:
    wrong = PEAK.replace("Europe/Berlin", "Europe/Berln")
    kept = written(decide_invalid("spec.schedule.timezone: it is wrong", REPORTED, None, parse_instant(MONDAY)))
    explanation = explained(wrong, status=kept)
    assert dict(explanation.wants) == {"schedule": {"currentValue": 9}}
    assert stops(explanation) == ["spec.schedule.timezone is wrong"]
    assert "Europe/Berlin" in explanation.stopped[0].why
    assert explanation.next == ()


@pytest.mark.parametrize(
    ("others", "status", "notes"),
    [
        pytest.param([GRANT], {}, ["is allowed by Grant `for-shop`"], id="granted"),
        pytest.param([], {}, ["no Grant allows the queue"], id="not granted, no status"),
        pytest.param(
            [],
            written(decide_queue_length(QueueLength(41), parse_instant(MONDAY), {})),
            [],
            id="observed without a Grant",
        ),
    ],
)
def test_queue_is_explained_from_the_status(others: list[str], status: dict[str, Any], notes: list[str]) -> None:
    explanation = explained(QUEUE, *others, status=status, at=MONDAY)
    assert explanation.headline == ("length 41" if status else "nothing yet")
    assert [any(part in note for note in explanation.notes) for part in notes] == [True] * len(notes)
    assert any("Grant" in note for note in explanation.notes) is bool(notes)
