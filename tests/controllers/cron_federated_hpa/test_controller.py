"""What happens to rules while time goes by: they are edited, suspended, renamed, broken and mended."""

from __future__ import annotations

import msgspec
import pytest
from tests.controllers.cron_federated_hpa.harness import (
    DEPLOYMENT,
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


def story(*objects: Object, start: str = "2026-06-05T08:00:00Z", zone: str = "UTC") -> Scenario:
    return Scenario("cron", start=start).given(*objects).running(CronFederatedHPAController, default_zone=zone)


def rules(*made: Object) -> Action:
    """A user gives the object other rules."""
    return edit("CronFederatedHPA", "daily", {"spec": {"rules": list(made)}})


def down(seconds: int) -> Action:
    """The only process is killed, and comes back after so many seconds."""
    return crash("springtide-0", downtime=seconds)


def test_nothing_is_written_while_nothing_is_due() -> None:
    """Status and cursor at the beginning; then target, status and cursor for each firing, and nothing between."""
    outcome = story(deployment(), cron(EIGHT)).run("2d")

    begun, fired = "2026-06-05T08:00:00Z", "2026-06-05T08:30:00Z"
    next_day = "2026-06-06T08:30:00Z"
    assert writes(outcome) == [
        (begun, "CronFederatedHPA"),
        (begun, "CronFederatedHPA"),
        (fired, "Deployment"),
        (fired, "CronFederatedHPA"),
        (fired, "CronFederatedHPA"),
        (next_day, "CronFederatedHPA"),
        (next_day, "CronFederatedHPA"),
    ]


def test_a_rule_is_not_made_up_for_while_it_was_suspended() -> None:
    """Suspended at eight, resumed at noon: the firing between is nobody's."""
    outcome = (
        story(deployment(), cron(EIGHT)).at("10m", rules({**EIGHT, "suspend": True})).at("4h", rules(EIGHT)).run("1d1h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-06T08:30:00Z", 7)]
    assert failures(outcome, "r") == []


def test_nor_if_nobody_was_there_to_see_it_resumed() -> None:
    """The managed fields tell when the spec was changed."""
    outcome = (
        story(deployment(), cron(rule("r", "30 * * * *", 7)))
        .at("10m", rules(rule("r", "30 * * * *", 7, suspend=True)))
        .at("20m", down(9000))
        .at("1h45m", rules(rule("r", "30 * * * *", 7)))
        .run("3h")
    )

    assert successes(outcome, "r") == [("2026-06-05T10:30:00Z", "2026-06-05T10:50:00Z")]
    assert failures(outcome, "r") == []


def test_what_was_due_before_a_rule_was_suspended_is_missed() -> None:
    """Nobody was there to apply it, and then it was not wanted any more."""
    outcome = (
        story(deployment(), cron(EIGHT)).at("10m", down(3600)).at("40m", rules({**EIGHT, "suspend": True})).run("2h")
    )

    ((at, message),) = failures(outcome, "r")
    assert at == "2026-06-05T08:30:00Z"
    assert message.startswith("missed: the rule was suspended")
    assert changes(outcome, "Deployment", "replicas") == []


@pytest.mark.parametrize("downtime", [0, 5400])
def test_other_times_begin_when_they_are_written(downtime: int) -> None:
    """A schedule that would have fired this morning does not, whether somebody saw the change or not."""
    scenario = story(deployment(), cron(EIGHT), start="2026-06-05T09:00:00Z")
    if downtime:
        scenario = scenario.at("10m", down(downtime))
    outcome = scenario.at("1h", rules(rule("r", "5,10 9,10 * * *", 7))).run("4h")

    applied = "2026-06-05T10:40:00Z" if downtime else "2026-06-05T10:10:00Z"
    assert successes(outcome, "r")[0] == ("2026-06-05T10:10:00Z", applied)
    assert [at for at, _ in (*successes(outcome, "r"), *failures(outcome, "r"))] == [
        "2026-06-05T10:10:00Z",
        "2026-06-05T10:05:00Z",
    ]


def test_a_firing_that_was_being_tried_under_other_times_has_failed() -> None:
    """Its target is not there, and then its rule has another schedule: it is recorded all the same, once."""
    outcome = story(cron(EIGHT)).at("30m20s", rules(rule("r", "0 10 * * *", 7))).run("1h")

    message = "there is no Deployment `shop` (tried 5 times), and then the rule was changed"
    assert failures(outcome, "r") == [("2026-06-05T08:30:00Z", message)]
    assert len(events(outcome, "ScaleFailed")) == 1


def test_other_values_are_no_other_times() -> None:
    """A firing that is due is applied with what the rule says now."""
    outcome = (
        story(deployment(), cron(EIGHT))
        .at("10m", down(3600))
        .at("40m", rules({**EIGHT, "targetReplicas": 9}))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T09:10:00Z", 9)]


def test_rules_come_and_go_with_their_history() -> None:
    """A renamed rule is another one: its firings of this morning are not made up for."""
    outcome = (
        story(deployment(), cron(EIGHT, rule("other", "0 12 * * *", 3)))
        .at("2h", rules({**EIGHT, "name": "renamed"}))
        .run("3h")
    )

    status = outcome.object("CronFederatedHPA", "daily")["status"]
    assert status["executionHistories"] == [{"ruleName": "renamed", "nextExecutionTime": "2026-06-06T08:30:00Z"}]
    assert list(msgspec.json.decode(cursor(outcome))) == ["renamed"]


def test_an_object_that_is_being_deleted_does_nothing_any_more() -> None:
    """It only waits for its finalizers, and is no rival of others either."""
    going = cron(rule("r", "30 8 * * *", 9), name="going", finalizers=["example.com/hold"])
    staying = cron(EIGHT)
    outcome = story(deployment(), going, staying).at("10m", delete("CronFederatedHPA", "going")).run("2h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert successes(outcome, "r", "going") == []


def test_a_rule_that_begins_in_the_second_of_its_time_takes_nothing_from_others() -> None:
    """Nobody was there when it was added: its own first time is tomorrow's, and the other's is made up for."""
    outcome = (
        story(deployment(), cron(EIGHT))
        .at("20m", down(1200))
        .at("30m", rules(EIGHT, rule("s", "30 8 * * *", 9)))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:40:00Z", 7)]
    assert (successes(outcome, "s"), failures(outcome, "s")) == ([], [])


def test_no_rules_at_all() -> None:
    """Histories and marks go with the rules."""
    outcome = story(deployment(), cron(EIGHT)).at("2h", rules()).run("3h")

    assert "executionHistories" not in outcome.object("CronFederatedHPA", "daily")["status"]
    assert cursor(outcome) == "{}"


def test_one_instant() -> None:
    """A rule with `at` fires once, and then nothing lies ahead."""
    outcome = story(deployment(), cron(rule("launch", None, 50, at="2026-06-05T08:45:30Z"))).run("2d")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:45:30Z", 50)]
    assert "nextExecutionTime" not in history(outcome, "launch")


def test_one_bad_rule_stops_no_other() -> None:
    """The condition names it and the fix; when it is mended, what it missed is not made up for."""
    bad = rule("bad", "30 25 * * *", 9)
    outcome = story(deployment(), cron(bad, EIGHT)).run("1h")

    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", "2026-06-05T08:30:00Z")]
    ready = condition(outcome, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RulesInvalid")
    assert ready["message"].startswith("left out: `bad`; spec.rules[0].schedule: ")
    assert history(outcome, "bad") == {"ruleName": "bad"}
    assert len(events(outcome, "RulesInvalid")) == 1


def test_a_rule_that_breaks_keeps_its_history_and_makes_up_for_nothing() -> None:
    """As if it had been suspended meanwhile."""
    outcome = (
        story(deployment(), cron(rule("r", "30 * * * *", 7)))
        .at("40m", rules(rule("r", "30 * * * *", targetMinReplicas=3)))
        .at("2h", rules(rule("r", "30 * * * *", 7)))
        .run("2h10m")
    )

    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T08:30:00Z"]
    assert history(outcome, "r")["nextExecutionTime"] == "2026-06-05T10:30:00Z"
    assert condition(outcome, "Ready")["status"] == "True"


def test_a_target_that_breaks_stops_all_rules() -> None:
    """Histories stay, nothing lies ahead, and nothing is made up for."""
    wrong = edit("CronFederatedHPA", "daily", {"spec": {"scaleTargetRef": {**DEPLOYMENT, "apiVersion": "app/v1"}}})
    right = edit("CronFederatedHPA", "daily", {"spec": {"scaleTargetRef": DEPLOYMENT}})
    broken = story(deployment(), cron(rule("r", "30 * * * *", 7))).at("40m", wrong)

    outcome = broken.run("2h")
    assert "nextExecutionTime" not in history(outcome, "r")
    assert len(successes(outcome, "r")) == 1

    outcome = broken.at("2h", right).run("3h")
    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T10:30:00Z", "2026-06-05T08:30:00Z"]
    assert failures(outcome, "r") == []


def test_an_object_of_another_controller_is_taken_over() -> None:
    """Its history says what was done; of what came since, the latest is made up for."""
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


def test_without_its_cursor_an_object_goes_by_its_history() -> None:
    """Somebody has removed the annotation: what is recorded is not done again."""
    lost = edit("CronFederatedHPA", "daily", {"metadata": {"annotations": {ANNOTATION: None}}})
    outcome = story(deployment(), cron(EIGHT)).at("1h", lost).run("2h")

    assert len(successes(outcome, "r")) == 1
    assert cursor(outcome).startswith('{"r":{"handled":"2026-06-05T08:30:00Z"')


def test_a_tie_is_won_by_the_last_listed() -> None:
    """And the record of the other says so."""
    outcome = story(deployment(), cron(rule("a", "30 8 * * *", 3), rule("b", "30 8 * * *", 5))).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 5)]
    message = "missed: rule `b` fires at the same time and wins, as it is listed last"
    assert failures(outcome, "a") == [("2026-06-05T08:30:00Z", message)]


def test_objects_with_one_target_know_of_each_other() -> None:
    """After an outage the latest firing of the target is applied, whichever object it belongs to."""
    outcome = (
        story(
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
def test_an_object_that_is_paused_takes_nothing_from_others(paused: bool) -> None:
    """Two fire together, and the later name wins: but not while somebody has paused it."""
    annotations = {PAUSED: "true"} if paused else {}
    other = cron(rule("other", "30 8 * * *", 3), name="weekly", annotations=annotations)
    outcome = story(deployment(), cron(EIGHT), other).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7 if paused else 3)]
    assert len(failures(outcome, "r")) == (not paused)


def test_an_unset_zone_is_that_of_the_process() -> None:
    """Unless the rule names its own."""
    made = cron(rule("ours", "0 9 * * *", 3), rule("own", "0 9 * * *", 5, timeZone="UTC"))
    outcome = story(deployment(), made, start="2026-06-04T23:00:00Z", zone="Asia/Tokyo").run("12h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T00:00:00Z", 3), ("2026-06-05T09:00:00Z", 5)]


def test_observing_changes_nothing() -> None:
    """What would be done is logged, goes on being due, and is told to nobody as if it had been done."""
    outcome = (
        Scenario("cron", start="2026-06-05T08:00:00Z")
        .given(deployment(), cron(EIGHT))
        .running(CronFederatedHPAController, mode=Mode.OBSERVE)
        .run("2d")
    )

    assert writes(outcome) == []
    assert outcome.objects("Event") == []


def test_a_stock_definition_has_no_place_for_conditions() -> None:
    """They are left out, everything else is written, and what is wrong is told by an event."""
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


def test_an_object_that_goes_is_forgotten() -> None:
    """Nothing is scaled for it any more; one of the same name begins anew."""
    outcome = (
        story(deployment(), cron(EIGHT))
        .at("10m", delete("CronFederatedHPA", "daily"))
        .at("1h", create(cron(EIGHT)))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == []
    assert history(outcome, "r") == {"ruleName": "r", "nextExecutionTime": "2026-06-06T08:30:00Z"}


def test_a_long_outage_of_the_server_delays_nothing_beyond_itself() -> None:
    """Nobody answers for an hour: the firing is applied within seconds after it."""
    outcome = story(deployment(), cron(EIGHT)).at("20m", restart_server(3600)).under(Faults(latency=0.01)).run("2h")

    ((at, executed),) = successes(outcome, "r")
    assert at == "2026-06-05T08:30:00Z"
    assert "2026-06-05T09:20:00Z" <= executed <= "2026-06-05T09:20:20Z"
    assert failures(outcome, "r") == []
