"""Rules that keep off the days of a Calendar, or to them, and Calendars that change."""

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
from tests.controllers.cron_federated_hpa.test_controller import EIGHT, rules, story

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


def test_calendars() -> None:
    """A rule keeps off their days, follows them when they change, and says when they are not there."""
    made = cron({**EIGHT, "calendars": KEEP_OFF})
    scenario = story(deployment(), made)
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
            id="a-past-date-is-tidied-away",
        ),
        pytest.param(
            rule("r", MONDAYS, 7, calendars=KEEP_OFF),
            ["2026-06-01", "2026-06-08"],
            delete("Calendar", "holidays"),
            id="the-calendar-goes",
        ),
        pytest.param(
            rule("r", MONDAYS, 7, calendars=KEEP_OFF),
            ["2026-06-01", "2026-06-08"],
            rules(rule("r", MONDAYS, 7)),
            id="the-rule-names-it-no-more",
        ),
        pytest.param(
            rule("r", "30 8 * * *", 7, calendars=KEEP_TO),
            ["2026-12-24"],
            edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-02", "2026-12-24"]}}),
            id="a-past-date-is-added",
        ),
    ],
)
def test_what_a_calendar_kept_from_firing_never_fires_later(written: Object, dates: list[str], change: Action) -> None:
    """Nobody who tidies a calendar up on a Wednesday wants what it forbade on Monday."""
    scenario = story(deployment(), calendar(*dates), cron(written), start="2026-05-31T08:00:00Z")
    outcome = scenario.at("76h", change).run("80h")

    assert changes(outcome, "Deployment", "replicas") == []
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([], [])
