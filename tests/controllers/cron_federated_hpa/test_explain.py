"""Explanations of CronFederatedHPA."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.explained import MONDAY, NIGHTLY, WEB, explained, loaded, stops, written

from springtide.apis.meta.times import parse_instant
from springtide.controllers.conflicts import AutoscalerRecord
from springtide.controllers.cron_federated_hpa.decide import decide, evaluate
from springtide.controllers.cron_federated_hpa.records import compile_cron, record_of
from springtide.controllers.explanation import TargetState

UP = {
    "ruleName": "up",
    "successfulExecutions": [
        {"scheduleTime": "2026-11-16T07:30:00Z", "executionTime": "2026-11-16T07:30:42Z", "appliedReplicas": 10},
        {"scheduleTime": "2026-11-13T07:30:00Z", "executionTime": "2026-11-13T07:30:00Z", "appliedReplicas": 10},
    ],
}
DOWN = {
    "ruleName": "down",
    "successfulExecutions": [
        {"scheduleTime": "2026-11-15T19:00:00Z", "executionTime": "2026-11-15T19:00:00Z", "appliedReplicas": 2}
    ],
}
DEPLOYMENT = "Deployment `web`"


def history(*entries: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"executionHistories": list(entries), **others}


def reported_conditions(*conflicts: AutoscalerRecord) -> list[dict[str, Any]]:
    """Return the conditions that the controller writes."""
    record = record_of(load_item(NIGHTLY))
    evaluation = evaluate(record, compile_cron(record, "UTC"), {}, default_zone="UTC", now=parse_instant(MONDAY))
    found: list[dict[str, Any]] = written(decide(evaluation, conflicts, "UTC"))["conditions"]
    return found


def load_item(text: str) -> dict[str, Any]:
    value = loaded(text).value
    return {**value, "metadata": {**value["metadata"], "uid": "1", "resourceVersion": "1"}}


def failed(rule: str, message: str) -> dict[str, Any]:
    at = "2026-11-16T07:30:00Z"
    return {"ruleName": rule, "failedExecutions": [{"scheduleTime": at, "executionTime": at, "message": message}]}


def test_wanted_values_are_those_of_the_latest_execution() -> None:
    explanation = explained(NIGHTLY, status=history(DOWN, UP), target=TargetState(DEPLOYMENT, {"replicas": 10}, 7))
    assert dict(explanation.wants) == {"replicas": 10}
    assert explanation.because == (
        "rule `up` set 10 replicas on Mon 2026-11-16 08:30 Europe/Berlin, 42 s late",
        "Deployment `web` has 10 replicas, 7 of them exist",
    )
    assert explanation.stopped == ()


def test_next_firings_are_listed_in_order() -> None:
    document = explained(NIGHTLY, at="2026-11-16T12:00:00Z").document()
    assert [(one["at"], one["lane"], one["value"]) for one in document["next"]] == [
        ("2026-11-16T19:00:00Z", "down", {"replicas": 2}),
        ("2026-11-17T07:30:00Z", "up", {"replicas": 10}),
    ]


@pytest.mark.parametrize(
    ("created", "wants"),
    [
        pytest.param("2026-11-01T00:00:00Z", {"replicas": 10}, id="the latest firing counts"),
        pytest.param("2026-11-16T07:29:59Z", {"replicas": 10}, id="from the creation on"),
        pytest.param("2026-11-16T07:30:00Z", {}, id="not in the second of the creation"),
    ],
)
def test_wanted_values_are_computed_without_a_status(created: str, wants: dict[str, int]) -> None:
    explanation = explained(NIGHTLY.replace("2026-11-01T00:00:00Z", created))
    assert dict(explanation.wants) == wants
    assert stops(explanation) == ["no controller has reported yet"]
    assert ("was due on" in explanation.because[0]) is bool(wants)


@pytest.mark.parametrize(
    ("message", "what", "why"),
    [
        pytest.param("missed: too late by 5 s", "missed", "too late by 5 s", id="missed"),
        pytest.param("there is no Deployment `web`, tried 8 times", "failed", "there is no", id="failed"),
    ],
)
def test_failed_latest_execution_is_listed(message: str, what: str, why: str) -> None:
    explanation = explained(NIGHTLY, status=history(DOWN, failed("up", message)))
    (stop,) = explanation.stopped
    assert stop.what == f"rule `up` {what} on Mon 2026-11-16 08:30 Europe/Berlin"
    assert stop.why.startswith(why)
    assert explanation.history[0].bad


def test_failure_followed_by_a_success_is_not_listed() -> None:
    old = {**failed("down", "no"), "successfulExecutions": DOWN["successfulExecutions"]}
    entries = old["failedExecutions"][0]
    entries["scheduleTime"] = entries["executionTime"] = "2026-11-14T19:00:00Z"
    explanation = explained(NIGHTLY, status=history(UP, old))
    assert explanation.stopped == ()
    assert [one.bad for one in explanation.history] == [False, False, True, False]


def test_suspended_rule_is_listed_and_has_no_next_firing() -> None:
    explanation = explained(NIGHTLY.replace("name: up,", "name: up, suspend: true,"), status=history(DOWN))
    assert stops(explanation) == ["rule `up` does not fire"]
    assert [one.lane for one in explanation.next] == ["down"]


@pytest.mark.parametrize(
    ("announced", "others", "expected"),
    [
        pytest.param("2026-11-16T19:00:00Z", {}, [], id="in the future"),
        pytest.param("2026-11-16T11:59:30Z", {}, [], id="just now"),
        pytest.param(
            "2026-11-13T07:30:00Z", {}, ["nothing has been done since Fri 2026-11-13 08:30 Europe/Berlin"], id="overdue"
        ),
        pytest.param("2026-11-13T07:30:00Z", {"present": False}, [], id="another time is explained"),
        pytest.param("2026-11-13T07:30:00Z", {"paused": "an annotation"}, ["no controller touches it"], id="paused"),
        pytest.param(None, {}, [], id="no next execution"),
    ],
)
def test_missing_controller_is_listed_when_a_firing_is_overdue(
    announced: str | None, others: dict[str, Any], expected: list[str]
) -> None:
    """The next execution in the status is in the past."""
    up = UP | {"nextExecutionTime": announced}
    assert stops(explained(NIGHTLY, at="2026-11-16T12:00:00Z", status=history(up), **others)) == expected


def test_invalid_rule_does_not_hide_other_rules() -> None:
    explanation = explained(NIGHTLY.replace("30 8 * * mon-fri", "30 8 * *"), status=history(DOWN))
    assert [one.lane for one in explanation.next] == ["down"]
    assert stops(explanation) == ["spec.rules[0].schedule is wrong"]


def test_target_changed_by_another_client_is_noted() -> None:
    explanation = explained(NIGHTLY, status=history(UP), target=TargetState(DEPLOYMENT, {"replicas": 4}, 4))
    (stop,) = explanation.stopped
    assert stop.what == "Deployment `web` has 4 replicas now"
    assert "since a rule set 10 replicas" in stop.why


def test_bounds_of_an_autoscaler_are_explained() -> None:
    text = NIGHTLY.replace("apps/v1, kind: Deployment", "autoscaling/v2, kind: HorizontalPodAutoscaler")
    text = text.replace("targetReplicas: 10", "targetMinReplicas: 5, targetMaxReplicas: 9")
    text = text.replace("targetReplicas: 2", "targetMinReplicas: 1")
    applied = {
        **UP,
        "successfulExecutions": [
            {
                "scheduleTime": "2026-11-16T07:30:00Z",
                "executionTime": "2026-11-16T07:30:00Z",
                "appliedMinReplicas": 5,
                "appliedMaxReplicas": 9,
            }
        ],
    }
    lowered = {
        "ruleName": "down",
        "successfulExecutions": [
            {
                "scheduleTime": "2026-11-16T10:00:00Z",
                "executionTime": "2026-11-16T10:00:00Z",
                "appliedMinReplicas": 1,
            }
        ],
    }
    target = TargetState("HorizontalPodAutoscaler `web`", {"min": 1, "max": 9})
    explanation = explained(text, status=history(applied, lowered), target=target)
    assert dict(explanation.wants) == {"max": 9, "min": 1}
    assert explanation.headline == "a minimum of 1 and a maximum of 9"
    assert explanation.because == (
        "rule `up` set a maximum of 9 on Mon 2026-11-16 08:30 Europe/Berlin",
        "rule `down` set a minimum of 1 on Mon 2026-11-16 11:00 Europe/Berlin",
        "HorizontalPodAutoscaler `web` has min 1, max 9",
    )


@pytest.mark.parametrize(
    ("conditions", "what"),
    [
        pytest.param([], ["another autoscaler scales Deployment `web`"], id="found by explain"),
        pytest.param(
            reported_conditions(AutoscalerRecord("HorizontalAutoscaler", "web", None)),
            ["Unopposed is False"],
            id="reported by the controller, listed once",
        ),
    ],
)
def test_another_autoscaler_of_the_target_is_listed(conditions: list[dict[str, Any]], what: list[str]) -> None:
    status = history(UP, conditions=conditions)
    assert stops(explained(NIGHTLY, WEB, status=status, target=TargetState(DEPLOYMENT, {"replicas": 10}))) == what


def test_missing_target_is_listed() -> None:
    target = TargetState(DEPLOYMENT, trouble="there is no Deployment `web` in namespace shop")
    explanation = explained(NIGHTLY, status=history(UP), target=target)
    assert stops(explanation) == ["Deployment `web` cannot be scaled"]


def test_malformed_status_is_ignored() -> None:
    odd: dict[str, Any] = {
        "executionHistories": [3, {"ruleName": None, "failedExecutions": [{"scheduleTime": "soon"}]}],
        "conditions": ["x", {}],
    }
    assert dict(explained(NIGHTLY, status=odd).wants) == {}


@pytest.mark.parametrize(
    ("at", "replicas", "because"),
    [
        pytest.param("2026-11-20T12:00:00Z", 10, "`up` is due on Fri 2026-11-20 08:30", id="a coming day"),
        pytest.param("2026-11-21T20:00:00Z", 2, "`down` is due on Sat 2026-11-21 20:00", id="a coming night"),
        pytest.param("2026-11-14T12:00:00Z", 2, "`down` is due on Fri 2026-11-13 20:00", id="before the history"),
    ],
)
def test_another_time_is_computed_from_the_rules(at: str, replicas: int, because: str) -> None:
    status = history(DOWN, failed("up", "the target is not there"))
    explanation = explained(NIGHTLY, status=status, at=at, present=False)
    assert dict(explanation.wants) == {"replicas": replicas}
    assert because in explanation.because[0]
    assert stops(explanation) == []
