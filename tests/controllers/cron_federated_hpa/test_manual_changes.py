"""What people leave in cursors and histories, by hand or by copying objects: nothing crashes, loops, or is replayed."""

from __future__ import annotations

import json

import pytest
from tests.controllers.cron_federated_hpa.harness import (
    MANAGER,
    changes,
    cron,
    cursor,
    deployment,
    failures,
    rule,
    successes,
)

from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Write
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, timing_fingerprint
from springtide.simulator.scenario import Scenario, edit
from springtide.simulator.scenario.actions import Action
from springtide.simulator.scenario.scenario import Outcome
from springtide.simulator.world import World

HOURLY = rule("r", "30 * * * *", 7, successfulHistoryLimit=32)
TIMING = timing_fingerprint("30 * * * *", None, None)
MOST_WRITES = 20
"""More than a few hours of an hourly rule need, and far fewer than a loop makes."""


def story(*objects: Object) -> Scenario:
    return Scenario("cron", start="2026-06-05T08:00:00Z").given(*objects).running(CronFederatedHPAController)


def cursor_of(handled: str) -> str:
    return json.dumps({"r": {"handled": handled, "timing": TIMING}})


def with_cursor(text: str) -> Action:
    """A user writes the cursor."""
    return edit("CronFederatedHPA", "daily", {"metadata": {"annotations": {ANNOTATION: text}}})


def with_record(time: str) -> Action:
    """A user writes the history."""

    async def act(world: World) -> None:
        entry = {"scheduleTime": time, "executionTime": time, "appliedReplicas": 7}
        status = {"executionHistories": [{"ruleName": "r", "successfulExecutions": [entry]}]}
        resource, key = world.resource("CronFederatedHPA"), Key("default", "daily")
        world.server.patch(resource, key, Patch.merge({"status": status}), Write("user"), subresource="status")

    return act


def calm(outcome: Outcome) -> bool:
    return sum(entry.actor == MANAGER for entry in outcome.trace) <= MOST_WRITES


def test_a_copied_object_makes_up_for_nothing_of_the_original() -> None:
    """A backup has the cursor of long ago: nothing from before the object existed counts."""
    copied = cron(HOURLY, annotations={ANNOTATION: cursor_of("2025-01-01T00:00:00Z")})

    outcome = story(deployment(), copied).run("1h")

    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", "2026-06-05T08:30:00Z")]
    assert failures(outcome, "r") == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("nonsense", id="nonsense"),
        pytest.param('{"r": {"handled": "2026-06-05T08:30:00+99:99", "timing": 3}}', id="no-time"),
        pytest.param('{"s": {"handled": "2026-06-05T08:30:00Z", "timing": "x"}}', id="another-rule"),
        pytest.param(cursor_of("0001-01-01T00:00:00Z"), id="long-past"),
        pytest.param(cursor_of("9999-12-31T23:59:59Z"), id="far-ahead"),
    ],
)
def test_whatever_stands_in_the_cursor_the_rules_go_on(text: str) -> None:
    """What is recorded is not done again, and the next firing comes."""
    outcome = story(deployment(), cron(HOURLY)).at("45m", with_cursor(text)).run("3h")

    assert [at for at, _ in successes(outcome, "r")] == [
        "2026-06-05T10:30:00Z",
        "2026-06-05T09:30:00Z",
        "2026-06-05T08:30:00Z",
    ]
    assert failures(outcome, "r") == []
    assert cursor(outcome) == cursor_of("2026-06-05T10:30:00Z").replace(" ", "")
    assert calm(outcome)


@pytest.mark.parametrize(
    "time",
    [
        pytest.param("2026-06-05t08:30:00z", id="lower-case"),
        pytest.param("2026-06-05T08:30:00+99:99", id="no-offset"),
        pytest.param("0001-01-01T00:00:00+10:00", id="before-all-time"),
        pytest.param("9999-12-31T23:59:59Z", id="far-ahead"),
    ],
)
def test_whatever_stands_in_the_history_the_rules_go_on(time: str) -> None:
    """The server takes these times; the next firings come at theirs."""
    outcome = story(deployment(), cron(HOURLY)).at("45m", with_record(time)).run("3h")

    assert [at for at, _ in successes(outcome, "r") if at != time] == ["2026-06-05T10:30:00Z", "2026-06-05T09:30:00Z"]
    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert calm(outcome)
