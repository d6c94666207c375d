"""Reference cases of Karmada and its users: validation, executions and histories."""

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


def cron_scenario(*objects: Object, start: str = "2026-06-05T08:00:00Z") -> Scenario:
    return Scenario("cron", start=start).given(*objects).running(CronFederatedHPAController)


@pytest.mark.parametrize(
    ("target", "made", "expected"),
    [
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 * 5", 1), [], id="valid rule"),
        pytest.param(
            {**FEDERATED, "kind": "Test"},
            rule("r", "0 0 13 * 5", targetMinReplicas=1),
            ["error spec.scaleTargetRef.kind"],
            id="unknown kind of target",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "name": "shop"},
            rule("r", "0 0 13 * 5", 1),
            ["error spec.scaleTargetRef.kind"],
            id="target without kind",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            rule("r", "0 0 13 * 5", 1),
            ["error spec.scaleTargetRef.name"],
            id="target without name",
        ),
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 *", 1), ["error spec.rules[0].schedule"], id="four schedule fields"),
        pytest.param(
            DEPLOYMENT,
            rule("r", "0 0 13 * 5", 1, timeZone="A/B"),
            ["error spec.rules[0].timeZone"],
            id="unknown time zone",
        ),
        pytest.param(
            FEDERATED,
            rule("r", "0 0 13 * 5"),
            ["error spec.rules[0].targetMaxReplicas"],
            id="FederatedHPA rule without bounds",
        ),
        *(
            pytest.param(
                FEDERATED, rule("r", "0 0 13 * 5", **bounds), [f"error spec.rules[0].{field}"], id=f"bounds: {name}"
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
            id="no successes kept",
        ),
        pytest.param(DEPLOYMENT, rule("r", "0 0 13 * 5", 1, failedHistoryLimit=0), [], id="no failures kept"),
        pytest.param(
            DEPLOYMENT,
            rule("r", "0 * * * *", 1, maxDelaySeconds=3600),
            ["error spec.rules[0].maxDelaySeconds"],
            id="delay as long as the period",
        ),
    ],
)
def test_validation_findings(target: Object, made: Object, expected: list[str]) -> None:
    """Each error names the path of its field."""
    assert shown(problems_of(cron(made, target=target))) == expected


@pytest.mark.parametrize(
    ("before", "bounds", "after"),
    [
        pytest.param((2, 5), {"targetMaxReplicas": 10}, (2, 10), id="maximum"),
        pytest.param((2, 5), {"targetMinReplicas": 3}, (3, 5), id="minimum"),
        pytest.param((2, 5), {"targetMinReplicas": 30, "targetMaxReplicas": 50}, (30, 50), id="both in one write"),
        pytest.param((None, 5), {"targetMinReplicas": 3}, (3, 5), id="unset minimum"),
    ],
)
def test_rule_sets_bounds_of_a_federated_hpa(
    before: tuple[int | None, int], bounds: Object, after: tuple[int, int]
) -> None:
    """A bound that the rule does not name is left unchanged."""
    outcome = cron_scenario(federated(*before), cron(rule("r", "30 8 * * *", **bounds), target=FEDERATED)).run("1h")

    spec = outcome.object("FederatedHPA", "shop")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == after
    (entry,) = history(outcome, "r")["successfulExecutions"]
    assert entry == {
        "scheduleTime": "2026-06-05T08:30:00Z",
        "executionTime": "2026-06-05T08:30:00Z",
        **{name.replace("target", "applied"): value for name, value in bounds.items()},
    }
    assert [kind for _, kind in writes(outcome)].count("FederatedHPA") == 1


def test_minimum_above_the_maximum_fails() -> None:
    """One failed execution with the fix; the target is unchanged. (M15)"""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=1000), target=FEDERATED)
    outcome = cron_scenario(federated(1, 10), made).run("1h")

    expected_text = (
        "the minimum 1000 would be greater than the maximum of FederatedHPA `shop`, 10;"
        " set `targetMaxReplicas` as well, or raise the maximum"
    )
    assert failures(outcome, "r") == [("2026-06-05T08:30:00Z", expected_text)]
    assert changes(outcome, "FederatedHPA", "minReplicas") == []
    assert events(outcome, "ScaleFailed") == [
        f"rule `r` could not apply its firing of 2026-06-05T08:30:00Z: {expected_text}"
    ]


def test_suspended_rule_has_no_next_execution() -> None:
    """The object is not requeued. (M16)"""
    outcome = cron_scenario(deployment(), cron(rule("r", "* * * * *", 5, suspend=True))).run("90s")

    assert outcome.object("Deployment", "shop")["spec"]["replicas"] == 1
    assert history(outcome, "r") == {"ruleName": "r"}
    assert condition(outcome, "Ready")["message"] == "rules in force: 0, suspended: `r`"


def test_newest_successes_are_kept() -> None:
    """Three of five, newest first. (M18)"""
    outcome = cron_scenario(deployment(), cron(rule("r", "* * * * *", 5))).run("330s")

    assert [at for at, _ in successes(outcome, "r")] == [f"2026-06-05T08:0{minute}:00Z" for minute in (5, 4, 3)]


def test_failure_limit_zero_keeps_no_failures() -> None:
    """The cursor moves all the same. (M19)"""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=1000, failedHistoryLimit=0), target=FEDERATED)
    outcome = cron_scenario(federated(1, 10), made).at("45m", crash("springtide-0")).run("1h")

    assert history(outcome, "r") == {"ruleName": "r", "nextExecutionTime": "2026-06-06T08:30:00Z"}
    assert len(events(outcome, "ScaleFailed")) == 1


def test_firing_during_downtime_is_caught_up() -> None:
    """Once, with its due time and its execution time. (M21)"""
    outcome = cron_scenario(deployment(), cron(*UP_AND_DOWN)).at("20m", crash("springtide-0", downtime=2400)).run("2h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T09:00:00Z", 1000)]
    assert successes(outcome, "up") == [("2026-06-05T08:30:00Z", "2026-06-05T09:00:00Z")]
    assert events(outcome, "Scaled") == ["rule `up` has given Deployment `shop` 1000 replicas, 1800 s late"]


def test_only_the_latest_firing_is_caught_up() -> None:
    """Superseded firings are recorded as missed. (M22)"""
    outcome = (
        cron_scenario(deployment(), cron(*UP_AND_DOWN)).at("20m", crash("springtide-0", downtime=11_400)).run("4h")
    )

    assert changes(outcome, "Deployment", "replicas") == []
    assert successes(outcome, "down") == [("2026-06-05T11:00:00Z", "2026-06-05T11:30:00Z")]
    expected_text = "rule `down` fired at 2026-06-05T11:00:00Z before this could be applied"
    assert failures(outcome, "up") == [("2026-06-05T08:30:00Z", f"missed: {expected_text}")]
    assert events(outcome, "Missed") == [f"rule `up` has missed its firing of 2026-06-05T08:30:00Z: {expected_text}"]
    assert events(outcome, "Scaled") == ["rule `down` has given Deployment `shop` 1 replica, 1800 s late"]


def test_firing_that_is_too_late_is_missed() -> None:
    """It is recorded and not applied. (M24)"""
    made = cron(rule("up", "30 8 * * *", 1000, maxDelaySeconds=600))
    outcome = cron_scenario(deployment(), made).at("20m", crash("springtide-0", downtime=2400)).run("2h")

    assert changes(outcome, "Deployment", "replicas") == []
    message = "missed: it came 1800 s late, and maxDelaySeconds is 600"
    assert failures(outcome, "up") == [("2026-06-05T08:30:00Z", message)]


def test_firings_before_the_creation_do_not_count() -> None:
    """The rule would have fired half an hour before the object was created. (M25)"""
    outcome = (
        cron_scenario(deployment(), start="2026-06-05T09:00:00Z").at("0s", create(cron(UP_AND_DOWN[0]))).run("10m")
    )

    assert history(outcome, "up") == {"ruleName": "up", "nextExecutionTime": "2026-06-06T08:30:00Z"}
    assert changes(outcome, "Deployment", "replicas") == []


def test_scale_from_zero_to_four() -> None:
    """A scale with zero replicas has no such field. (M27)"""
    outcome = cron_scenario(deployment(replicas=0), cron(rule("r", "30 8 * * *", 4))).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 4)]


def test_scale_to_zero_and_unchanged_scale_succeed() -> None:
    """An unchanged scale is recorded as a success."""
    made = cron(rule("off", "30 8 * * *", 0), rule("still-off", "40 8 * * *", 0))
    outcome = cron_scenario(deployment(replicas=3), made).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 0)]
    assert history(outcome, "still-off")["successfulExecutions"][0]["appliedReplicas"] == 0


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        pytest.param({}, 3, id="default limit"),
        pytest.param({"successfulHistoryLimit": 5, "failedHistoryLimit": 5}, 5, id="limit five"),
        pytest.param({"failedHistoryLimit": 0}, 0, id="limit zero"),
    ],
)
def test_failed_history_limit(limits: Object, kept: int) -> None:
    """The target does not exist, so every firing fails. (M28)"""
    outcome = cron_scenario(cron(rule("r", "* * * * *", 5, **limits))).run("8m")

    assert len(failures(outcome, "r")) == kept


def test_missed_firing_has_an_event_when_no_failures_are_kept() -> None:
    """The event is the only record. (M19)"""
    up = rule("up", "30 8 * * *", 1000, failedHistoryLimit=0)
    scenario = cron_scenario(deployment(), cron(up, rule("down", "0 11 * * *", 1)))
    outcome = scenario.at("20m", crash("springtide-0", downtime=11_400)).run("4h")

    assert failures(outcome, "up") == []
    assert len(events(outcome, "Missed")) == 1


def test_next_execution_time_follows_the_proposal() -> None:
    """An hourly rule at minute 3 that is applied at 9:04 fires next at 10:03, then at 11:03."""
    made = cron(rule("r", "3 * * * *", 5))
    early: Outcome = cron_scenario(deployment(), made, start="2026-06-05T09:01:00Z").run("1m")
    late: Outcome = cron_scenario(deployment(), made, start="2026-06-05T09:04:00Z").run("1m")
    after: Outcome = cron_scenario(deployment(), made, start="2026-06-05T09:04:00Z").run("1h")

    assert [history(outcome, "r")["nextExecutionTime"] for outcome in (early, late, after)] == [
        "2026-06-05T09:03:00Z",
        "2026-06-05T10:03:00Z",
        "2026-06-05T11:03:00Z",
    ]


def test_invalid_target_is_reported_in_the_status() -> None:
    """The condition says what to write, and the rules do not fire."""
    made = cron(rule("r", "* * * * *", 5), target={**DEPLOYMENT, "apiVersion": "app/v1"})
    look_again = edit("CronFederatedHPA", "daily", {"metadata": {"labels": {"a": "b"}}})
    outcome = cron_scenario(deployment(), made).at("5m", look_again).run("10m")

    ready = condition(outcome, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Invalid")
    assert "write `apiVersion: apps/v1`" in ready["message"]
    assert len(events(outcome, "Invalid")) == 1
