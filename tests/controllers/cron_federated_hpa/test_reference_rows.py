"""The cases of Karmada and its users, one by one: what is admitted, and what happens when."""

from __future__ import annotations

import pytest
from tests.apis.manifests import problems_of, shown
from tests.controllers.cron_federated_hpa.harness import (
    DEPLOYMENT,
    FEDERATED,
    changes,
    condition,
    cron,
    deployment,
    events,
    failures,
    federated,
    history,
    rule,
    successes,
    writes,
)

from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.simulator.scenario import Scenario, crash, create, edit
from springtide.simulator.scenario.scenario import Outcome

UP_AND_DOWN = (rule("up", "30 8 * * *", 1000), rule("down", "0 11 * * *", 1))


def story(*objects: Object, start: str = "2026-06-05T08:00:00Z") -> Scenario:
    return Scenario("cron", start=start).given(*objects).running(CronFederatedHPAController)


@pytest.mark.parametrize(
    ("target", "made", "expected"),
    [
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 * 5", 1), [], id="M01"),
        pytest.param(
            {**FEDERATED, "kind": "Test"},
            rule("r", "0 0 13 * 5", targetMinReplicas=1),
            ["error spec.scaleTargetRef.kind"],
            id="M03",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "name": "shop"},
            rule("r", "0 0 13 * 5", 1),
            ["error spec.scaleTargetRef.kind"],
            id="M04-kind",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            rule("r", "0 0 13 * 5", 1),
            ["error spec.scaleTargetRef.name"],
            id="M04-name",
        ),
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 *", 1), ["error spec.rules[0].schedule"], id="M06"),
        pytest.param(
            DEPLOYMENT, rule("r", "0 0 13 * 5", 1, timeZone="A/B"), ["error spec.rules[0].timeZone"], id="M07"
        ),
        pytest.param(FEDERATED, rule("r", "0 0 13 * 5"), ["error spec.rules[0].targetMaxReplicas"], id="M09"),
        *(
            pytest.param(
                FEDERATED, rule("r", "0 0 13 * 5", **bounds), [f"error spec.rules[0].{field}"], id=f"M10-{name}"
            )
            for name, bounds, field in (
                ("min-negative", {"targetMinReplicas": -1}, "targetMinReplicas"),
                ("min-zero", {"targetMinReplicas": 0}, "targetMinReplicas"),
                ("max-negative", {"targetMaxReplicas": -1}, "targetMaxReplicas"),
                ("max-zero", {"targetMaxReplicas": 0}, "targetMaxReplicas"),
                ("min-above-max", {"targetMinReplicas": 3, "targetMaxReplicas": 1}, "targetMinReplicas"),
            )
        ),
        pytest.param(
            DEPLOYMENT,
            rule("r", "0 0 13 * 5", 1, successfulHistoryLimit=0),
            ["error spec.rules[0].successfulHistoryLimit"],
            id="M28-none-successful",
        ),
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 * 5", 1, failedHistoryLimit=0), [], id="M28-none-failed"),
        pytest.param(
            DEPLOYMENT,
            rule("r", "0 * * * *", 1, maxDelaySeconds=3600),
            ["error spec.rules[0].maxDelaySeconds"],
            id="delay-as-long-as-the-period",
        ),
    ],
)
def test_what_is_admitted(target: Object, made: Object, expected: list[str]) -> None:
    """Everything that cannot work is refused where it stands."""
    assert shown(problems_of(cron(made, target=target))) == expected


@pytest.mark.parametrize(
    ("before", "bounds", "after"),
    [
        pytest.param((2, 5), {"targetMaxReplicas": 10}, (2, 10), id="M12"),
        pytest.param((2, 5), {"targetMinReplicas": 3}, (3, 5), id="M13"),
        pytest.param((2, 5), {"targetMinReplicas": 30, "targetMaxReplicas": 50}, (30, 50), id="both-in-one-write"),
        pytest.param((None, 5), {"targetMinReplicas": 3}, (3, 5), id="no-minimum-yet"),
    ],
)
def test_bounds_are_moved(before: tuple[int | None, int], bounds: Object, after: tuple[int, int]) -> None:
    """What a rule does not name is left alone."""
    outcome = story(federated(*before), cron(rule("r", "30 8 * * *", **bounds), target=FEDERATED)).run("1h")

    spec = outcome.object("FederatedHPA", "shop")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == after
    (entry,) = history(outcome, "r")["successfulExecutions"]
    assert entry == {
        "scheduleTime": "2026-06-05T08:30:00Z",
        "executionTime": "2026-06-05T08:30:00Z",
        **{name.replace("target", "applied"): value for name, value in bounds.items()},
    }
    assert [kind for _, kind in writes(outcome)].count("FederatedHPA") == 1


def test_m15_a_minimum_above_the_maximum_is_refused() -> None:
    """One failed entry, with the fix, and nothing is changed."""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=1000), target=FEDERATED)
    outcome = story(federated(1, 10), made).run("1h")

    words = (
        "the minimum 1000 would be greater than the maximum of FederatedHPA `shop`, 10;"
        " set `targetMaxReplicas` as well, or raise the maximum"
    )
    assert failures(outcome, "r") == [("2026-06-05T08:30:00Z", words)]
    assert changes(outcome, "FederatedHPA", "minReplicas") == []
    assert events(outcome, "ScaleFailed") == [f"rule `r` could not apply its firing of 2026-06-05T08:30:00Z: {words}"]


def test_m16_a_suspended_rule_does_nothing() -> None:
    """There is no next execution, and nobody wakes for it."""
    outcome = story(deployment(), cron(rule("r", "* * * * *", 5, suspend=True))).run("90s")

    assert outcome.object("Deployment", "shop")["spec"]["replicas"] == 1
    assert history(outcome, "r") == {"ruleName": "r"}
    assert condition(outcome, "Ready")["message"] == "rules in force: 0, suspended: `r`"


def test_m18_the_newest_successes_are_kept() -> None:
    """Three of five, newest first."""
    outcome = story(deployment(), cron(rule("r", "* * * * *", 5))).run("330s")

    assert [at for at, _ in successes(outcome, "r")] == [f"2026-06-05T08:0{minute}:00Z" for minute in (5, 4, 3)]


def test_m19_no_failures_are_kept() -> None:
    """Where none is to be kept, a failure leaves nothing, and nothing breaks; the cursor goes on all the same."""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=1000, failedHistoryLimit=0), target=FEDERATED)
    outcome = story(federated(1, 10), made).at("45m", crash("springtide-0")).run("1h")

    assert history(outcome, "r") == {"ruleName": "r", "nextExecutionTime": "2026-06-06T08:30:00Z"}
    assert len(events(outcome, "ScaleFailed")) == 1


def test_m21_a_firing_during_an_outage_is_made_up_for() -> None:
    """Once, with its own time and the time at which it was applied."""
    outcome = story(deployment(), cron(*UP_AND_DOWN)).at("20m", crash("springtide-0", downtime=2400)).run("2h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T09:00:00Z", 1000)]
    assert successes(outcome, "up") == [("2026-06-05T08:30:00Z", "2026-06-05T09:00:00Z")]
    assert events(outcome, "Scaled") == ["rule `up` has given Deployment `shop` 1000 replicas, 1800 s late"]


def test_m22_only_the_latest_firing_is_made_up_for() -> None:
    """What it supersedes is recorded as missed."""
    outcome = story(deployment(), cron(*UP_AND_DOWN)).at("20m", crash("springtide-0", downtime=11_400)).run("4h")

    assert changes(outcome, "Deployment", "replicas") == []
    assert successes(outcome, "down") == [("2026-06-05T11:00:00Z", "2026-06-05T11:30:00Z")]
    words = "rule `down` fired at 2026-06-05T11:00:00Z before this could be applied"
    assert failures(outcome, "up") == [("2026-06-05T08:30:00Z", f"missed: {words}")]
    assert events(outcome, "Missed") == [f"rule `up` has missed its firing of 2026-06-05T08:30:00Z: {words}"]
    assert events(outcome, "Scaled") == ["rule `down` has given Deployment `shop` 1 replica, 1800 s late"]


def test_m24_what_is_too_late_is_missed() -> None:
    """It is recorded, and not applied."""
    made = cron(rule("up", "30 8 * * *", 1000, maxDelaySeconds=600))
    outcome = story(deployment(), made).at("20m", crash("springtide-0", downtime=2400)).run("2h")

    assert changes(outcome, "Deployment", "replicas") == []
    message = "missed: it came 1800 s late, and maxDelaySeconds is 600"
    assert failures(outcome, "up") == [("2026-06-05T08:30:00Z", message)]


def test_m25_nothing_from_before_the_object_was_there() -> None:
    """A rule that fired half an hour before it was written has not fired."""
    outcome = story(deployment(), start="2026-06-05T09:00:00Z").at("0s", create(cron(UP_AND_DOWN[0]))).run("10m")

    assert history(outcome, "up") == {"ruleName": "up", "nextExecutionTime": "2026-06-06T08:30:00Z"}
    assert changes(outcome, "Deployment", "replicas") == []


def test_m27_from_nothing_to_four() -> None:
    """A scale without replicas has no such field."""
    outcome = story(deployment(replicas=0), cron(rule("r", "30 8 * * *", 4))).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 4)]


def test_to_nothing_and_no_change_at_all() -> None:
    """Zero replicas are a number like any other; where nothing is to change, that is a success as well."""
    made = cron(rule("off", "30 8 * * *", 0), rule("still-off", "40 8 * * *", 0))
    outcome = story(deployment(replicas=3), made).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 0)]
    assert history(outcome, "still-off")["successfulExecutions"][0]["appliedReplicas"] == 0


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        pytest.param({}, 3, id="M28-default"),
        pytest.param({"successfulHistoryLimit": 5, "failedHistoryLimit": 5}, 5, id="M28-five"),
        pytest.param({"failedHistoryLimit": 0}, 0, id="M28-none"),
    ],
)
def test_how_many_failures_are_kept(limits: Object, kept: int) -> None:
    """A target that is not there fails again and again."""
    outcome = story(cron(rule("r", "* * * * *", 5, **limits))).run("8m")

    assert len(failures(outcome, "r")) == kept


def test_what_is_missed_is_told_even_where_none_is_kept() -> None:
    """M19: the event is all that is left of it."""
    up = rule("up", "30 8 * * *", 1000, failedHistoryLimit=0)
    scenario = story(deployment(), cron(up, rule("down", "0 11 * * *", 1)))
    outcome = scenario.at("20m", crash("springtide-0", downtime=11_400)).run("4h")

    assert failures(outcome, "up") == []
    assert len(events(outcome, "Missed")) == 1


def test_the_next_execution_is_what_the_proposal_says() -> None:
    """Applied at 9:04 an hourly rule at minute 3 fires next at 10:03, and then at 11:03."""
    made = cron(rule("r", "3 * * * *", 5))
    early: Outcome = story(deployment(), made, start="2026-06-05T09:01:00Z").run("1m")
    late: Outcome = story(deployment(), made, start="2026-06-05T09:04:00Z").run("1m")
    after: Outcome = story(deployment(), made, start="2026-06-05T09:04:00Z").run("1h")

    assert [history(outcome, "r")["nextExecutionTime"] for outcome in (early, late, after)] == [
        "2026-06-05T09:03:00Z",
        "2026-06-05T10:03:00Z",
        "2026-06-05T11:03:00Z",
    ]


def test_an_object_with_a_wrong_target_is_told_so() -> None:
    """The status says what to write; its rules are not in force."""
    made = cron(rule("r", "* * * * *", 5), target={**DEPLOYMENT, "apiVersion": "app/v1"})
    look_again = edit("CronFederatedHPA", "daily", {"metadata": {"labels": {"a": "b"}}})
    outcome = story(deployment(), made).at("5m", look_again).run("10m")

    ready = condition(outcome, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Invalid")
    assert "write `apiVersion: apps/v1`" in ready["message"]
    assert len(events(outcome, "Invalid")) == 1
