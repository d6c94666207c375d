"""The clock of a cluster is set while controllers run: whatever they wait for, they follow the new time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.controllers.cron_federated_hpa.harness import changes, cron, deployment, rule, successes
from tests.scenarios.calendar_lease import calendar
from tests.scenarios.scaling_on_time import AUTOSCALER, DEPLOYMENT

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.assembly.services import simulated_services
from springtide.cluster.resources import Object
from springtide.controllers import CONTROLLERS
from springtide.controllers.calendar import CalendarController
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.metrics.series import SeriesStore
from springtide.simulator.scenario import Invariant, Outcome, Scenario, step_clock
from springtide.simulator.world import World

DAY, HOUR, MINUTE = 86_400, 3600, 60
START = "2026-06-05T08:00:10Z"
"""Some seconds after a minute, so that no firing falls together with a step."""


class WriteSeconds(Invariant):
    """Records at which seconds of the run, whatever the clock shows, the Deployment got another size."""

    def __init__(self, seconds: list[int]) -> None:
        self._seconds = seconds

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Note a change of the size."""
        if written.resource.kind == "Deployment" and written.write.manager == "springtide-cron-federated-hpa":
            self._seconds.append(int(world.loop.time()))


def cron_run(length: str, *steps: tuple[str, int]) -> list[int]:
    """Run two rules that fire in turn every minute; returns at which seconds the target was changed."""
    seconds: list[int] = []
    rules = rule("even", "*/2 * * * *", 4), rule("odd", "1-59/2 * * * *", 6)
    scenario = Scenario("cron", start=START).given(deployment(), cron(*rules)).running(CronFederatedHPAController)
    for when, step in steps:
        scenario = scenario.at(when, step_clock(step))
    scenario.always(lambda: WriteSeconds(seconds)).run(length)
    return seconds


def within(seconds: Sequence[int], begin: int, end: int) -> list[int]:
    """Choose the seconds from one on, and before another."""
    return [second for second in seconds if begin <= second < end]


@pytest.mark.parametrize("step", [2 * DAY, -2 * DAY, 3 * HOUR])
def test_cron_rules_fire_within_a_minute_of_a_step(step: int) -> None:
    applied = cron_run("10m", ("5m", step))

    assert within(applied, 300, 360)
    assert len(within(applied, 300, 600)) >= 5


@pytest.mark.parametrize("step", [2 * DAY, -2 * DAY])
def test_cron_rules_fire_within_a_minute_of_a_step_there_and_back(step: int) -> None:
    applied = cron_run("15m", ("5m", step), ("10m", -step))

    assert within(applied, 600, 660)
    assert len(within(applied, 600, 900)) >= 5


def test_firings_that_a_small_step_back_repeats_are_not_applied_again() -> None:
    applied = cron_run("20m", ("10m", -5 * MINUTE))

    assert within(applied, 600, 890) == []
    assert within(applied, 890, 960)


def test_a_firing_in_the_history_is_not_applied_again_when_its_time_comes() -> None:
    """It was applied and recorded while the clock was two days ahead."""
    ahead = 2 * DAY + HOUR
    outcome = (
        Scenario("cron", start=START)
        .given(deployment(), cron(rule("day", "30 8 * * *", 7), rule("night", "30 20 * * *", 2)))
        .running(CronFederatedHPAController)
        .at("5m", step_clock(ahead))
        .at("10m", step_clock(-ahead))
        .run("4d")
    )

    assert changes(outcome, "Deployment", "replicas") == [
        ("2026-06-07T09:05:10Z", 7),
        ("2026-06-05T20:30:00Z", 2),
        ("2026-06-06T08:30:00Z", 7),
        ("2026-06-06T20:30:00Z", 2),
        # 7 June 08:30 is in the history.
        ("2026-06-08T08:30:00Z", 7),
        ("2026-06-08T20:30:00Z", 2),
    ]
    assert [at for at, _ in successes(outcome, "day")] == [f"2026-06-0{day}T08:30:00Z" for day in (8, 7, 6)]


@pytest.mark.parametrize(
    ("step", "listed"),
    [
        pytest.param(2 * DAY, "True", id="forward-into-the-day"),
        pytest.param(0, "False", id="no-step"),
    ],
)
def test_a_calendar_follows_a_step_forward(step: int, listed: str) -> None:
    outcome = (
        Scenario("calendar", start=START)
        .given(calendar("days", dates=["2026-06-07"]))
        .running(CalendarController)
        .at("5m", step_clock(step))
        .run("6m")
    )

    assert active(outcome) == listed


def test_a_calendar_follows_a_step_back() -> None:
    outcome = (
        Scenario("calendar", start="2026-06-07T12:00:10Z")
        .given(calendar("days", dates=["2026-06-07"]))
        .running(CalendarController)
        .at("5m", step_clock(-2 * DAY))
        .run("6m")
    )

    assert active(outcome) == "False"


def active(outcome: Outcome) -> str:
    """Return the status of the condition that tells whether today is in the calendar."""
    conditions = outcome.object("Calendar", "days")["status"]["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "Active"))


@pytest.mark.parametrize("step", [2 * DAY, -2 * DAY])
@pytest.mark.parametrize("back", [False, True], ids=["once", "there-and-back"])
def test_schedules_and_their_autoscalers_follow_a_step(step: int, back: bool) -> None:
    """A window of one hour; the autoscaler lets nothing wait longer than its quiet period."""
    start = parse_instant(START)
    window = start + step - HOUR // 2, start + step + HOUR // 2
    producer: Object = {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": "night", "namespace": "default"},
        "spec": {
            "schedule": {
                "defaultReplicas": 2,
                "behaviors": [
                    {
                        "name": "once",
                        "replicas": 9,
                        "from": format_instant(window[0]),
                        "until": format_instant(window[1]),
                    }
                ],
            }
        },
    }
    scenario = (
        Scenario("step", start=START)
        .given(producer, AUTOSCALER, DEPLOYMENT)
        .running(*CONTROLLERS, services=lambda run: simulated_services(SeriesStore(), run.clock))
        .at("10m", step_clock(step))
    )
    scenario = scenario.at("15m", step_clock(-step)) if back else scenario

    outcome = scenario.run("17m" if back else "12m")

    wanted = 2 if back else 9
    assert outcome.object("MetricsProducer", "night")["status"]["scheduledCapacity"]["currentValue"] == wanted
    assert outcome.object("Deployment", "web")["spec"]["replicas"] == wanted
