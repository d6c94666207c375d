"""Rules over time: edited, suspended, renamed, invalid, corrected, and missed during downtime."""

from __future__ import annotations

import msgspec
import pytest
from tests.controllers.cron_federated_hpa.harness import (
    DEPLOYMENT,
    HPA,
    autoscaler,
    changes,
    condition,
    cron,
    cursor,
    deployment,
    events,
    failures,
    history,
    rule,
    successes,
    writes,
)

from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.client import Mode
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Write
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION
from springtide.simulator.faults import Faults
from springtide.simulator.scenario import Scenario, crash, create, delete, edit, restart_server
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

EIGHT = rule("r", "30 8 * * *", 7)


def cron_scenario(*objects: Object, start: str = "2026-06-05T08:00:00Z", zone: str = "UTC") -> Scenario:
    return Scenario("cron", start=start).given(*objects).running(CronFederatedHPAController, default_zone=zone)


def rules(*made: Object) -> Action:
    """Return an action in which a user replaces the rules."""
    return edit("CronFederatedHPA", "daily", {"spec": {"rules": list(made)}})


def down(seconds: int) -> Action:
    """Return an action that stops the only process for some seconds."""
    return crash("springtide-0", downtime=seconds)


def test_controller_writes_only_at_start_and_for_firings() -> None:
    """Status and cursor at the start; then target, status and cursor for each firing."""
    outcome = cron_scenario(deployment(), cron(EIGHT)).run("2d")

    started, fired = "2026-06-05T08:00:00Z", "2026-06-05T08:30:00Z"
    next_day = "2026-06-06T08:30:00Z"
    assert writes(outcome) == [
        (started, "CronFederatedHPA"),
        (started, "CronFederatedHPA"),
        (fired, "Deployment"),
        (fired, "CronFederatedHPA"),
        (fired, "CronFederatedHPA"),
        (next_day, "CronFederatedHPA"),
        (next_day, "CronFederatedHPA"),
    ]


def test_firing_of_a_suspended_rule_is_not_caught_up() -> None:
    """Suspended at eight, resumed at noon: the firing in between does not count."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("10m", rules({**EIGHT, "suspend": True}))
        .at("4h", rules(EIGHT))
        .run("1d1h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-06T08:30:00Z", 7)]
    assert failures(outcome, "r") == []


def test_firing_of_a_suspended_rule_is_not_caught_up_after_downtime() -> None:
    """The managed fields contain the time at which the rule was resumed."""
    outcome = (
        cron_scenario(deployment(), cron(rule("r", "30 * * * *", 7)))
        .at("10m", rules(rule("r", "30 * * * *", 7, suspend=True)))
        .at("20m", down(9000))
        .at("1h45m", rules(rule("r", "30 * * * *", 7)))
        .run("3h")
    )

    assert successes(outcome, "r") == [("2026-06-05T10:30:00Z", "2026-06-05T10:50:00Z")]
    assert failures(outcome, "r") == []


def test_firing_due_during_downtime_is_missed_if_its_rule_was_suspended_since() -> None:
    """The failed execution says that the rule was suspended."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("10m", down(3600))
        .at("40m", rules({**EIGHT, "suspend": True}))
        .run("2h")
    )

    ((at, message),) = failures(outcome, "r")
    assert at == "2026-06-05T08:30:00Z"
    assert message.startswith("missed: the rule was suspended")
    assert changes(outcome, "Deployment", "replicas") == []


@pytest.mark.parametrize("downtime", [0, 5400])
def test_changed_schedule_counts_from_the_time_of_the_change(downtime: int) -> None:
    """Earlier times of the new schedule do not fire, also when the change was made during downtime."""
    scenario = cron_scenario(deployment(), cron(EIGHT), start="2026-06-05T09:00:00Z")
    if downtime:
        scenario = scenario.at("10m", down(downtime))
    outcome = scenario.at("1h", rules(rule("r", "5,10 9,10 * * *", 7))).run("4h")

    applied = "2026-06-05T10:40:00Z" if downtime else "2026-06-05T10:10:00Z"
    assert successes(outcome, "r")[0] == ("2026-06-05T10:10:00Z", applied)
    assert [at for at, _ in (*successes(outcome, "r"), *failures(outcome, "r"))] == [
        "2026-06-05T10:10:00Z",
        "2026-06-05T10:05:00Z",
    ]


def test_retried_firing_fails_when_its_schedule_changes() -> None:
    """The target does not exist, and then the rule gets another schedule: one failed execution is recorded."""
    outcome = cron_scenario(cron(EIGHT)).at("30m20s", rules(rule("r", "0 10 * * *", 7))).run("1h")

    message = "there is no Deployment `shop` (tried 5 times), and then the rule was changed"
    assert failures(outcome, "r") == [("2026-06-05T08:30:00Z", message)]
    assert len(events(outcome, "ScaleFailed")) == 1


def test_changed_values_keep_a_due_firing() -> None:
    """The firing is applied with the present values of the rule."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("10m", down(3600))
        .at("40m", rules({**EIGHT, "targetReplicas": 9}))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T09:10:00Z", 9)]


def test_history_is_removed_with_its_rule() -> None:
    """A renamed rule is a new rule: earlier firings are not caught up."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT, rule("other", "0 12 * * *", 3)))
        .at("2h", rules({**EIGHT, "name": "renamed"}))
        .run("3h")
    )

    status = outcome.object("CronFederatedHPA", "daily")["status"]
    assert (status["nextExecutionTime"], "lastExecutionTime" in status) == ("2026-06-06T08:30:00Z", False)
    assert status["executionHistories"] == [{"ruleName": "renamed", "nextExecutionTime": "2026-06-06T08:30:00Z"}]
    assert list(msgspec.json.decode(cursor(outcome))) == ["renamed"]


def test_object_being_deleted_does_not_fire() -> None:
    """While it waits for its finalizers, it does not conflict with other objects."""
    deleted = cron(rule("r", "30 8 * * *", 9), name="going", finalizers=["example.com/hold"])
    other = cron(EIGHT)
    outcome = cron_scenario(deployment(), deleted, other).at("10m", delete("CronFederatedHPA", "going")).run("2h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert successes(outcome, "r", "going") == []


def test_rule_added_in_the_second_of_its_firing_does_not_supersede_others() -> None:
    """It was added during downtime: it fires first tomorrow, and the firing of the other rule is caught up."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("20m", down(1200))
        .at("30m", rules(EIGHT, rule("s", "30 8 * * *", 9)))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:40:00Z", 7)]
    assert (successes(outcome, "s"), failures(outcome, "s")) == ([], [])


def test_histories_and_cursor_entries_are_removed_with_the_last_rule() -> None:
    """The object stays with an empty cursor."""
    outcome = cron_scenario(deployment(), cron(EIGHT)).at("2h", rules()).run("3h")

    assert "executionHistories" not in outcome.object("CronFederatedHPA", "daily")["status"]
    assert cursor(outcome) == "{}"


def test_rule_with_at_fires_once() -> None:
    """After that there is no next execution."""
    outcome = cron_scenario(deployment(), cron(rule("launch", None, 50, at="2026-06-05T08:45:30Z"))).run("2d")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:45:30Z", 50)]
    assert "nextExecutionTime" not in history(outcome, "launch")


def test_invalid_rule_does_not_stop_other_rules() -> None:
    """The condition names the rule and its error."""
    bad = rule("bad", "30 25 * * *", 9)
    outcome = cron_scenario(deployment(), cron(bad, EIGHT)).run("1h")

    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", "2026-06-05T08:30:00Z")]
    ready = condition(outcome, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RulesInvalid")
    assert ready["message"].startswith("left out: `bad`; spec.rules[0].schedule: ")
    assert history(outcome, "bad") == {"ruleName": "bad"}
    assert len(events(outcome, "RulesInvalid")) == 1


def test_invalid_rule_keeps_its_history_and_catches_up_nothing() -> None:
    """An invalid rule is treated like a suspended one."""
    outcome = (
        cron_scenario(deployment(), cron(rule("r", "30 * * * *", 7)))
        .at("40m", rules(rule("r", "30 * * * *", targetMinReplicas=3)))
        .at("2h", rules(rule("r", "30 * * * *", 7)))
        .run("2h10m")
    )

    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T08:30:00Z"]
    assert history(outcome, "r")["nextExecutionTime"] == "2026-06-05T10:30:00Z"
    assert condition(outcome, "Ready")["status"] == "True"


def test_invalid_target_stops_all_rules() -> None:
    """Histories stay, there are no next executions, and nothing is caught up later."""
    wrong = edit("CronFederatedHPA", "daily", {"spec": {"scaleTargetRef": {**DEPLOYMENT, "apiVersion": "app/v1"}}})
    right = edit("CronFederatedHPA", "daily", {"spec": {"scaleTargetRef": DEPLOYMENT}})
    broken = cron_scenario(deployment(), cron(rule("r", "30 * * * *", 7))).at("40m", wrong)

    outcome = broken.run("2h")
    assert "nextExecutionTime" not in history(outcome, "r")
    assert len(successes(outcome, "r")) == 1

    outcome = broken.at("2h", right).run("3h")
    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T10:30:00Z", "2026-06-05T08:30:00Z"]
    assert failures(outcome, "r") == []


def test_history_of_another_controller_is_continued() -> None:
    """Recorded executions are not repeated; of the later firings, the latest is caught up."""
    records = [{"scheduleTime": "2026-06-05T05:00:00Z", "executionTime": "2026-06-05T05:00:00Z", "appliedReplicas": 3}]

    async def recorded(world: World) -> None:
        made = world.server.create(
            world.resource("CronFederatedHPA"), cron(rule("r", "0 5,7 * * *", 3)), Write("karmada"), namespace="default"
        )
        status = {"executionHistories": [{"ruleName": "r", "successfulExecutions": records}]}
        world.server.patch(
            world.resource("CronFederatedHPA"),
            Key("default", made["metadata"]["name"]),
            Patch.merge({"status": status}),
            Write("karmada"),
            subresource="status",
        )

    outcome = (
        Scenario("cron", start="2026-06-05T04:00:00Z")
        .given(deployment())
        .running(CronFederatedHPAController)
        .at("0s", down(4 * 3600))
        .at("1s", recorded)
        .run("5h")
    )

    assert successes(outcome, "r") == [
        ("2026-06-05T07:00:00Z", "2026-06-05T08:00:00Z"),
        ("2026-06-05T05:00:00Z", "2026-06-05T05:00:00Z"),
    ]


def test_history_replaces_a_removed_cursor() -> None:
    """A user has removed the annotation: recorded executions are not repeated."""
    lost = edit("CronFederatedHPA", "daily", {"metadata": {"annotations": {ANNOTATION: None}}})
    outcome = cron_scenario(deployment(), cron(EIGHT)).at("1h", lost).run("2h")

    assert len(successes(outcome, "r")) == 1
    assert cursor(outcome).startswith('{"r":{"handled":"2026-06-05T08:30:00Z"')


def test_last_listed_rule_wins_a_tie() -> None:
    """The failed execution of the other rule says so."""
    outcome = cron_scenario(deployment(), cron(rule("a", "30 8 * * *", 3), rule("b", "30 8 * * *", 5))).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 5)]
    message = "missed: rule `b` fires at the same time and wins, as it is listed last"
    assert failures(outcome, "a") == [("2026-06-05T08:30:00Z", message)]


def test_latest_firing_of_a_target_is_applied_across_objects() -> None:
    """After downtime only the latest firing is applied, whichever object has the rule."""
    outcome = (
        cron_scenario(
            deployment(),
            cron(rule("up", "30 8 * * *", 1000), name="mornings"),
            cron(rule("down", "0 11 * * *", 2), name="afternoons"),
        )
        .at("20m", down(11_400))
        .run("4h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T11:30:00Z", 2)]
    ((at, message),) = failures(outcome, "up", "mornings")
    assert at == "2026-06-05T08:30:00Z"
    assert message.startswith("missed: rule `down` of CronFederatedHPA `afternoons` fired at 2026-06-05T11:00:00Z")


@pytest.mark.parametrize("paused", [False, True])
def test_paused_object_does_not_supersede_others(paused: bool) -> None:
    """Two objects fire together and the later name wins, unless it is paused."""
    annotations = {PAUSED: "true"} if paused else {}
    other = cron(rule("other", "30 8 * * *", 3), name="weekly", annotations=annotations)
    outcome = cron_scenario(deployment(), cron(EIGHT), other).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7 if paused else 3)]
    assert len(failures(outcome, "r")) == (not paused)


def test_default_time_zone_is_that_of_the_process() -> None:
    """A rule may name its own time zone."""
    made = cron(rule("ours", "0 9 * * *", 3), rule("own", "0 9 * * *", 5, timeZone="UTC"))
    outcome = cron_scenario(deployment(), made, start="2026-06-04T23:00:00Z", zone="Asia/Tokyo").run("12h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T00:00:00Z", 3), ("2026-06-05T09:00:00Z", 5)]


def test_observe_mode_does_not_scale(caplog: pytest.LogCaptureFixture) -> None:
    """What would be done is logged and stays due; no event or history claims that it was done."""
    caplog.set_level("INFO", logger="springtide")
    outcome = (
        Scenario("cron", start="2026-06-05T08:00:00Z")
        .given(deployment(), cron(EIGHT))
        .running(CronFederatedHPAController, mode=Mode.OBSERVE)
        .run("2d")
    )

    assert writes(outcome) == []
    assert outcome.objects("Event") == []
    assert any(one.startswith("would scale Deployment default/shop from 1 to 7: ") for one in caplog.messages)


def test_observe_mode_logs_bounds_before_and_after(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="springtide")
    daily = {"name": "r", "schedule": "30 8 * * *", "targetMinReplicas": 4, "targetMaxReplicas": 12}
    (
        Scenario("cron", start="2026-06-05T08:00:00Z")
        .given(deployment(), autoscaler(1, 10), cron(daily, target=HPA))
        .running(CronFederatedHPAController, mode=Mode.OBSERVE)
        .run("1h")
    )
    written = (
        "would set minReplicas from 1 to 4 and maxReplicas from 10 to 12 of HorizontalPodAutoscaler default/shop: "
    )
    assert any(one.startswith(written) for one in caplog.messages)


def test_conditions_are_left_out_with_the_upstream_schema() -> None:
    """All other fields are written, and an event reports errors."""
    (stock,) = [one for one in all_crds(Flavour.STOCK) if one["spec"]["names"]["kind"] == "CronFederatedHPA"]

    async def install(world: World) -> None:
        patch = Patch.json({"op": "replace", "path": "/spec/versions", "value": stock["spec"]["versions"]})
        world.server.patch(
            world.resource("CustomResourceDefinition"), Key("", stock["metadata"]["name"]), patch, Write("setup")
        )

    outcome = (
        Scenario("cron", start="2026-06-05T08:00:00Z")
        .given(deployment())
        .running(CronFederatedHPAController)
        .at("1m", install)
        .at("2m", create(cron(EIGHT, rule("bad", "30 25 * * *", 9))))
        .run("1h")
    )

    status = outcome.object("CronFederatedHPA", "daily")["status"]
    assert list(status) == ["executionHistories"]
    assert len(successes(outcome, "r")) == 1
    assert len(events(outcome, "RulesInvalid")) == 1
    assert [kind for _, kind in writes(outcome)] == ["CronFederatedHPA"] * 2 + ["Deployment"] + ["CronFederatedHPA"] * 2


def test_deleted_object_does_not_fire() -> None:
    """A new object of the same name has no history."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("10m", delete("CronFederatedHPA", "daily"))
        .at("1h", create(cron(EIGHT)))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == []
    assert history(outcome, "r") == {"ruleName": "r", "nextExecutionTime": "2026-06-06T08:30:00Z"}


def test_firing_is_applied_within_seconds_after_a_server_outage() -> None:
    """The API server does not answer for an hour."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT)).at("20m", restart_server(3600)).under(Faults(latency=0.01)).run("2h")
    )

    ((at, executed),) = successes(outcome, "r")
    assert at == "2026-06-05T08:30:00Z"
    assert "2026-06-05T09:20:00Z" <= executed <= "2026-06-05T09:20:20Z"
    assert failures(outcome, "r") == []
