"""The stories that cron rules were proposed for, with their exact times."""

from __future__ import annotations

from tests.controllers.cron_federated_hpa.harness import (
    FEDERATED,
    changes,
    cron,
    deployment,
    federated,
    history,
    rule,
    successes,
)

from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.simulator.scenario import Scenario


def story(name: str, start: str, *objects: Object) -> Scenario:
    return Scenario(name, start=start).given(*objects).running(CronFederatedHPAController)


def test_a_peak_every_morning_by_replicas() -> None:
    """A thousand replicas at half past eight, one at eleven, every day of a week."""
    made = cron(
        rule("Scale-Up", "30 08 * * *", 1000, successfulHistoryLimit=32),
        rule("Scale-Down", "0 11 * * *", 1),
    )
    outcome = story("a peak every morning", "2026-06-01T00:00:00Z", deployment(), made).run("7d")

    expected = []
    for day in range(1, 8):
        expected += [(f"2026-06-{day:02d}T08:30:00Z", 1000), (f"2026-06-{day:02d}T11:00:00Z", 1)]
    assert changes(outcome, "Deployment", "replicas") == expected
    assert successes(outcome, "Scale-Up") == [(f"2026-06-{day:02d}T08:30:00Z",) * 2 for day in range(7, 0, -1)]
    assert len(successes(outcome, "Scale-Down")) == 3
    assert history(outcome, "Scale-Up")["nextExecutionTime"] == "2026-06-08T08:30:00Z"
    assert history(outcome, "Scale-Down")["nextExecutionTime"] == "2026-06-08T11:00:00Z"


def test_a_peak_every_morning_by_the_minimum_of_an_autoscaler() -> None:
    """Only the minimum moves: what the autoscaler makes of the rest is its own business."""
    made = cron(
        rule("Scale-Up", "30 08 * * *", targetMinReplicas=1000),
        rule("Scale-Down", "0 11 * * *", targetMinReplicas=1),
        target=FEDERATED,
    )
    outcome = story("a better peak every morning", "2026-06-01T00:00:00Z", federated(1, 2000), made).run("3d")

    assert changes(outcome, "FederatedHPA", "minReplicas") == [
        ("2026-06-01T08:30:00Z", 1000),
        ("2026-06-01T11:00:00Z", 1),
        ("2026-06-02T08:30:00Z", 1000),
        ("2026-06-02T11:00:00Z", 1),
        ("2026-06-03T08:30:00Z", 1000),
        ("2026-06-03T11:00:00Z", 1),
    ]
    assert changes(outcome, "FederatedHPA", "maxReplicas") == []
    assert history(outcome, "Scale-Up")["successfulExecutions"][0] == {
        "scheduleTime": "2026-06-03T08:30:00Z",
        "executionTime": "2026-06-03T08:30:00Z",
        "appliedMinReplicas": 1000,
    }


def test_two_peaks_in_two_zones_while_clocks_change() -> None:
    """Half past seven in Shanghai and in Los Angeles, where clocks are put forward on 2026-03-08."""
    made = cron(
        rule("scale-up-asia-shanghai", "30 07 * * *", targetMinReplicas=1000, timeZone="Asia/Shanghai"),
        rule("scale-up-america-los-angeles", "30 07 * * *", targetMinReplicas=900, timeZone="America/Los_Angeles"),
        target=FEDERATED,
    )
    outcome = story("two peaks", "2026-03-06T00:00:00Z", federated(1, 2000), made).run("4d")

    assert changes(outcome, "FederatedHPA", "minReplicas") == [
        ("2026-03-06T15:30:00Z", 900),
        ("2026-03-06T23:30:00Z", 1000),
        ("2026-03-07T15:30:00Z", 900),
        ("2026-03-07T23:30:00Z", 1000),
        ("2026-03-08T14:30:00Z", 900),
        ("2026-03-08T23:30:00Z", 1000),
        ("2026-03-09T14:30:00Z", 900),
        ("2026-03-09T23:30:00Z", 1000),
    ]
    assert history(outcome, "scale-up-asia-shanghai")["nextExecutionTime"] == "2026-03-10T23:30:00Z"
    assert history(outcome, "scale-up-america-los-angeles")["nextExecutionTime"] == "2026-03-10T14:30:00Z"


def test_a_peak_whose_minimum_is_already_set_writes_nothing() -> None:
    """Both zones request a thousand: the second rule writes nothing, and succeeds."""
    made = cron(
        rule("scale-up-asia-shanghai", "30 07 * * *", targetMinReplicas=1000, timeZone="Asia/Shanghai"),
        rule("scale-up-america-los-angeles", "30 07 * * *", targetMinReplicas=1000, timeZone="America/Los_Angeles"),
        target=FEDERATED,
    )
    outcome = story("one height", "2026-03-06T00:00:00Z", federated(1, 2000), made).run("2d")

    assert changes(outcome, "FederatedHPA", "minReplicas") == [("2026-03-06T15:30:00Z", 1000)]
    assert [at for at, _ in successes(outcome, "scale-up-asia-shanghai")] == [
        "2026-03-07T23:30:00Z",
        "2026-03-06T23:30:00Z",
    ]
    assert [at for at, _ in successes(outcome, "scale-up-america-los-angeles")] == [
        "2026-03-07T15:30:00Z",
        "2026-03-06T15:30:00Z",
    ]


def test_a_time_that_does_not_exist_and_one_that_comes_twice() -> None:
    """In a gap a rule fires right after it, and of two passes only in the first."""
    night = cron(rule("night", "30 2 * * *", 5, timeZone="Europe/Berlin"), rule("off", "0 12 * * *", 1))
    spring = story("spring", "2026-03-28T00:00:00Z", deployment(), night).run("2d6h")
    autumn = story("autumn", "2026-10-24T00:00:00Z", deployment(), night).run("2d6h")

    assert [at for at, _ in reversed(successes(spring, "night"))] == [
        "2026-03-28T01:30:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:30:00Z",
    ]
    assert [at for at, _ in reversed(successes(autumn, "night"))] == [
        "2026-10-24T00:30:00Z",
        "2026-10-25T00:30:00Z",
        "2026-10-26T01:30:00Z",
    ]
