"""Rules that fire only on days of a Calendar, or not on its days, and changes of Calendars."""

from __future__ import annotations

import pytest
from tests.controllers.cron_federated_hpa.harness import (
    changes,
    condition,
    cron,
    deployment,
    failures,
    history,
    rule,
    successes,
)
from tests.controllers.cron_federated_hpa.test_controller import EIGHT, cron_scenario, rules

from springtide.cluster.resources import Object
from springtide.simulator.scenario import create, delete, edit
from springtide.simulator.scenario.actions import Action

MONDAYS = "30 8 * * 1"


def calendar(*dates: str) -> Object:
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "holidays"},
        "spec": {"dates": list(dates)},
    }


KEEP_OFF = [{"name": "holidays", "mode": "Exclude"}]
KEEP_TO = [{"name": "holidays", "mode": "Only"}]


def test_rule_skips_the_days_of_its_calendar() -> None:
    """The rule follows changes of the calendar, and the condition reports a missing one."""
    made = cron({**EIGHT, "calendars": KEEP_OFF})
    scenario = cron_scenario(deployment(), made)
    outcome = scenario.run("10m")
    ready = condition(outcome, "Ready")
    assert ready["reason"] == "CalendarMissing"
    assert "`holidays`" in ready["message"]

    outcome = scenario.at("10m", create(calendar("2026-06-05", "2026-06-06"))).run("1h")
    assert condition(outcome, "Ready")["status"] == "True"
    assert history(outcome, "r") == {"ruleName": "r", "nextExecutionTime": "2026-06-07T08:30:00Z"}

    outcome = (
        scenario.at("10m", create(calendar("2026-06-05", "2026-06-06")))
        .at("12h", edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-05"]}}))
        .run("2d")
    )
    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-06T08:30:00Z"]


@pytest.mark.parametrize(
    ("written", "dates", "change"),
    [
        pytest.param(
            rule("r", MONDAYS, 7, calendars=KEEP_OFF),
            ["2026-06-01", "2026-06-08"],
            edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-08"]}}),
            id="past date removed",
        ),
        pytest.param(
            rule("r", MONDAYS, 7, calendars=KEEP_OFF),
            ["2026-06-01", "2026-06-08"],
            delete("Calendar", "holidays"),
            id="calendar deleted",
        ),
        pytest.param(
            rule("r", MONDAYS, 7, calendars=KEEP_OFF),
            ["2026-06-01", "2026-06-08"],
            rules(rule("r", MONDAYS, 7)),
            id="reference removed from the rule",
        ),
        pytest.param(
            rule("r", "30 8 * * *", 7, calendars=KEEP_TO),
            ["2026-12-24"],
            edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-02", "2026-12-24"]}}),
            id="past date added",
        ),
    ],
)
def test_firing_skipped_by_a_calendar_does_not_fire_later(written: Object, dates: list[str], change: Action) -> None:
    """Removing past dates from a calendar does not apply the firings that it skipped."""
    scenario = cron_scenario(deployment(), calendar(*dates), cron(written), start="2026-05-31T08:00:00Z")
    outcome = scenario.at("76h", change).run("80h")

    assert changes(outcome, "Deployment", "replicas") == []
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([], [])
