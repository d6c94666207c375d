"""Cursors and histories written by users or copied with objects: no crash, no loop, no replay."""

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
"""More writes than an hourly rule needs in a few hours, and far fewer than a loop makes."""


def cron_scenario(*objects: Object) -> Scenario:
    return Scenario("cron", start="2026-06-05T08:00:00Z").given(*objects).running(CronFederatedHPAController)


def cursor_of(handled: str) -> str:
    return json.dumps({"r": {"handled": handled, "timing": TIMING}})


def with_cursor(text: str) -> Action:
    """Return an action in which a user writes the cursor."""
    return edit("CronFederatedHPA", "daily", {"metadata": {"annotations": {ANNOTATION: text}}})


def with_record(time: str) -> Action:
    """Return an action in which a user writes the history."""

    async def act(world: World) -> None:
        entry = {"scheduleTime": time, "executionTime": time, "appliedReplicas": 7}
        status = {"executionHistories": [{"ruleName": "r", "successfulExecutions": [entry]}]}
        resource, key = world.resource("CronFederatedHPA"), Key("default", "daily")
        world.server.patch(resource, key, Patch.merge({"status": status}), Write("user"), subresource="status")

    return act


def has_few_writes(outcome: Outcome) -> bool:
    return sum(entry.actor == MANAGER for entry in outcome.trace) <= MOST_WRITES


def test_copied_object_does_not_catch_up_for_the_original() -> None:
    """A restored object has an old cursor: firings before its creation do not count."""
    copied = cron(HOURLY, annotations={ANNOTATION: cursor_of("2025-01-01T00:00:00Z")})

    outcome = cron_scenario(deployment(), copied).run("1h")

    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", "2026-06-05T08:30:00Z")]
    assert failures(outcome, "r") == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("nonsense", id="nonsense"),
        pytest.param('{"r": {"handled": "2026-06-05T08:30:00+99:99", "timing": 3}}', id="invalid-time"),
        pytest.param('{"s": {"handled": "2026-06-05T08:30:00Z", "timing": "x"}}', id="another-rule"),
        pytest.param(cursor_of("0001-01-01T00:00:00Z"), id="long-past"),
        pytest.param(cursor_of("9999-12-31T23:59:59Z"), id="far-ahead"),
    ],
)
def test_rules_fire_with_any_cursor(text: str) -> None:
    """Recorded executions are not repeated, and the next firing is applied."""
    outcome = cron_scenario(deployment(), cron(HOURLY)).at("45m", with_cursor(text)).run("3h")

    assert [at for at, _ in successes(outcome, "r")] == [
        "2026-06-05T10:30:00Z",
        "2026-06-05T09:30:00Z",
        "2026-06-05T08:30:00Z",
    ]
    assert failures(outcome, "r") == []
    assert cursor(outcome) == cursor_of("2026-06-05T10:30:00Z").replace(" ", "")
    assert has_few_writes(outcome)


@pytest.mark.parametrize(
    "time",
    [
        pytest.param("2026-06-05t08:30:00z", id="lower-case"),
        pytest.param("2026-06-05T08:30:00+99:99", id="invalid-offset"),
        pytest.param("0001-01-01T00:00:00+10:00", id="before-year-one"),
        pytest.param("9999-12-31T23:59:59Z", id="far-ahead"),
    ],
)
def test_rules_fire_with_any_history(time: str) -> None:
    """The API server accepts these times; the next firings are applied on time."""
    outcome = cron_scenario(deployment(), cron(HOURLY)).at("45m", with_record(time)).run("3h")

    assert [at for at, _ in successes(outcome, "r") if at != time] == ["2026-06-05T10:30:00Z", "2026-06-05T09:30:00Z"]
    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert has_few_writes(outcome)
