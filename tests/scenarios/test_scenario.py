"""The words of a scenario: each does what it says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scenarios.calendar_lease import calendar

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.client import Mode
from springtide.cluster.errors import ConnectionLost, Invalid, NotFound
from springtide.cluster.reflector import Reflector
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Write
from springtide.controllers import CalendarController
from springtide.controllers.calendar import CALENDARS
from springtide.simulator import behaviours
from springtide.simulator.faults import Faults, Severity
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
    compact,
    crash,
    create,
    delete,
    edit,
    find,
    lose,
    pause,
    play,
    restart_server,
    scale,
)
from springtide.simulator.trace import TraceEntry
from springtide.simulator.world import World

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
BASE = Scenario("a calendar", start="2026-12-23T12:00:00Z").given(calendar("holidays", dates=["2026-12-24"]))


def _config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def _deployment(replicas: int) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def _node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def _status(scenario: Scenario, duration: str = "1h") -> Any:
    return scenario.run(duration).object("Calendar", "holidays").get("status", {}).get("nextDates")


class Writes(Invariant):
    """Counts writes, for tests."""

    def __init__(self) -> None:
        self.seen = 0

    def wrote(self, world: World, written: CommittedWrite) -> None:
        self.seen += 1


def test_each_builder_method_returns_a_new_scenario() -> None:
    BASE.given(calendar("other"))

    with pytest.raises(NotFound):
        BASE.run("1m").object("Calendar", "other")


def test_without_processes_nothing_changes() -> None:
    assert _status(BASE) is None
    assert _status(BASE.running(CalendarController)) == ["2026-12-24"]


def test_observe_mode_changes_nothing() -> None:
    assert _status(BASE.running(CalendarController, mode=Mode.OBSERVE)) is None


def test_namespaces_that_objects_name_are_made() -> None:
    outcome = Scenario("made").given(_config_map("a", namespace="team"), _config_map("b")).run("1m")

    assert outcome.object("ConfigMap", "a", namespace="team")["metadata"]["namespace"] == "team"
    assert outcome.object("ConfigMap", "b")["metadata"]["namespace"] == "default"


def test_actions_happen_at_their_time() -> None:
    outcome = (
        BASE.at("10m", create(_config_map("a")))
        .at("20m", edit("ConfigMap", "a", {"data": {"x": "y"}}, because="it was wrong"))
        .at("30m", delete("ConfigMap", "a"))
        .at("40m", delete("ConfigMap", "a"))
        .run("1h")
    )

    reported = [(entry.at % 3600, entry.verb, entry.because) for entry in outcome.trace if entry.kind == "ConfigMap"]
    assert reported == [(600, "create", ""), (1200, "patch", "it was wrong"), (1800, "delete", "")]


def test_repeated_actions_end_before_the_world_settles() -> None:
    seen: list[int] = []

    async def note(world: World) -> None:
        seen.append(world.clock.now() - world.clock.start)

    Scenario("again").every("10m", note).settling("25m").run("1h")

    assert seen == [600, 1200, 1800]


def test_workloads_are_scaled_and_lost_nodes_lose_their_pods() -> None:
    outcome = (
        Scenario("shop")
        .given(_node("a"), _node("b"), _deployment(4))
        .behaving(*behaviours.ALL)
        .at("5m", scale("Deployment", "web", 6))
        .at("10m", lose("a"))
        .run("30m")
    )

    pods = [pod for pod in outcome.objects("Pod") if "deletionTimestamp" not in pod["metadata"]]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["b"] * 6
    assert outcome.object("Deployment", "web")["status"]["availableReplicas"] == 6


def test_a_crashed_process_restarts_and_catches_up() -> None:
    scenario = BASE.running(CalendarController).at("1m", crash("springtide-0", downtime=600))
    edited = scenario.at("2m", edit("Calendar", "holidays", {"spec": {"dates": ["2026-12-25"]}}))

    assert _status(edited, "5m") == ["2026-12-24"]
    assert _status(edited, "15m") == ["2026-12-25"]


def test_a_paused_process_continues_where_it_stopped() -> None:
    scenario = BASE.running(CalendarController).at("1m", pause("springtide-0", 600))
    edited = scenario.at("2m", edit("Calendar", "holidays", {"spec": {"dates": ["2026-12-25"]}}))

    assert _status(edited, "5m") == ["2026-12-24"]
    assert _status(edited, "15m") == ["2026-12-25"]


@pytest.mark.parametrize("disturbance", [restart_server(30), compact()], ids=["restart", "compaction"])
def test_a_server_restart_does_not_restart_controllers(disturbance: Any) -> None:
    scenario = (
        BASE.running(CalendarController)
        .at("5m", disturbance)
        .at("10m", edit("Calendar", "holidays", {"spec": {"dates": ["2026-12-25"]}}))
    )

    assert _status(scenario, "15m") == ["2026-12-25"]


def test_a_standby_takes_over_when_the_leader_is_gone() -> None:
    outcome = (
        BASE.running(CalendarController, replicas=2)
        .at("1m", crash("springtide-0", downtime=3000), crash("springtide-1", downtime=30))
        .at("2m", edit("Calendar", "holidays", {"spec": {"dates": ["2026-12-25"]}}))
        .run("5m")
    )

    assert outcome.object("Calendar", "holidays")["status"]["nextDates"] == ["2026-12-25"]
    assert outcome.object("Lease", "springtide", namespace="springtide-system")["spec"]["holderIdentity"] == (
        "springtide-1-2"
    )


def test_a_custom_program_gets_a_connection_a_clock_and_an_identity() -> None:
    async def program(incarnation: ProcessRun) -> None:
        await incarnation.clock.sleep(60)
        body = _config_map(incarnation.identity)
        await incarnation.transport.create(CONFIG_MAPS, body, Write("program", "it runs"), namespace="default")

    outcome = Scenario("program").running_program("mine", program).run("5m")

    assert [item["metadata"]["name"] for item in outcome.objects("ConfigMap")] == ["mine-1"]


def test_a_program_that_fails_ends_the_scenario_with_its_failure() -> None:
    async def program(incarnation: ProcessRun) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        Scenario("fails").running_program("mine", program).run("5m", seed=8)

    assert "with seed 8" in caught.value.__notes__[0]


def test_a_controller_error_ends_the_scenario() -> None:
    class Failing(CalendarController):
        async def reconcile(self, key: Key, now: int) -> Any:
            await super().reconcile(key, now)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        BASE.running(Failing).run("5m")

    assert _status(BASE.running(Failing).tolerating(ZeroDivisionError)) == ["2026-12-24"]


def test_objects_without_a_zone_are_in_that_of_the_controllers() -> None:
    outcome = BASE.running(CalendarController, default_zone="Asia/Tokyo").run("4h")

    active = [entry.at for entry in outcome.trace if "status.conditions[Active].status" in entry.change]
    assert active == [parse_instant("2026-12-23T15:00:00Z")]


@pytest.mark.parametrize(
    ("scenario", "reported"),
    [
        pytest.param(BASE.at("5h", delete("Calendar", "x")), "after 18000 s, but a run of 1h ends", id="too late"),
        pytest.param(
            BASE.at("50m", delete("Calendar", "x")).settling("20m"), "or settles, after 2400 s", id="while it settles"
        ),
        pytest.param(BASE.settling("2h"), "is not longer than the time to settle", id="settles all the time"),
    ],
)
def test_impossible_scenarios_are_refused(scenario: Scenario, reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        scenario.run("1h")


def test_a_repetition_without_an_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="is too short a period"):
        BASE.every("0s", delete("Calendar", "x"))


def test_a_failing_seed_reports_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(Invariant):
        def end(self, world: World) -> None:
            raise InvariantViolated("never")

    with pytest.raises(InvariantViolated) as caught:
        play(BASE.always(Never), "1m", [12])

    (note,) = caught.value.__notes__
    assert note.startswith("repeat it with: SPRINGTIDE_SEED=12 .venv/bin/python -m pytest -n0 ")
    assert note.endswith("::test_a_failing_seed_reports_how_to_repeat_it")

    monkeypatch.setenv("SPRINGTIDE_SEED", "7")
    assert [outcome.seed for outcome in play(BASE, "1m", range(100))] == [7]


def test_listeners_receive_every_entry_immediately() -> None:
    heard: list[TraceEntry] = []
    outcome = BASE.running(CalendarController).traced_to(heard.append).run("1h")

    assert heard == outcome.trace
    assert heard


def test_a_failing_listener_ends_the_scenario_but_not_the_writer() -> None:
    def fail(entry: TraceEntry) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        BASE.traced_to(fail).run("1h")


def test_refused_objects_have_the_message_of_the_server() -> None:
    with pytest.raises(Invalid, match=r'Calendar.springtide.dev "bad" is invalid: \[spec.dates: Invalid value'):
        BASE.given(calendar("bad", dates="never")).run("1m")


def test_a_server_that_is_down_does_not_answer_in_a_calm_world_either() -> None:
    answers: list[str] = []

    async def program(incarnation: ProcessRun) -> None:
        for _ in range(3):
            await incarnation.clock.sleep(60)
            try:
                await incarnation.transport.get(CALENDARS, Key("", "holidays"))
                answers.append("yes")
            except ConnectionLost:
                answers.append("no")

    BASE.running_program("mine", program).at("100s", restart_server(60)).run("5m")

    assert answers == ["yes", "no", "yes"]


def test_crashes_that_overlap_leave_one_process() -> None:
    outcome = (
        BASE.running(CalendarController)
        .at("1m", crash("springtide-0", downtime=60))
        .at("90s", crash("springtide-0", downtime=10))
        .run("5m")
    )

    (process,) = outcome.world.processes
    assert process.starts == 2


def test_nodes_lost_by_the_scenario_stay_lost_when_faults_end() -> None:
    lost = Scenario("lost").given(_node("a")).behaving(*behaviours.ALL).at("5m", lose("a"))

    def ready(scenario: Scenario) -> Any:
        node = scenario.settling("10m").run("30m").object("Node", "a")
        return next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready")

    assert ready(lost) == "Unknown"
    assert ready(lost.at("10m", find("a"))) == "True"


def test_an_autoscaler_follows_the_load_that_it_is_given() -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}},
                }
            ],
        },
    }
    scenario = (
        Scenario("load")
        .given(_node("a"), _node("b"), _deployment(1), autoscaler)
        .behaving(*behaviours.ALL)
        .measuring("cpu", {"0s": "500m", "10m": "2"})
    )

    sizes = [scenario.run(span).object("Deployment", "web")["spec"]["replicas"] for span in ("9m", "20m")]
    assert sizes == [1, 4]


class TestInvariants:
    """They are judged at every step, and the first that does not hold ends the story."""

    def test_a_violation_ends_the_scenario_and_names_the_step(self) -> None:
        class NoMoreThanThree(Writes):
            def wrote(self, world: World, written: CommittedWrite) -> None:
                super().wrote(world, written)
                if self.seen > 3:
                    raise InvariantViolated("there was a fourth write")

        scenario = BASE.every("10m", edit("Calendar", "holidays", {"metadata": {"labels": {"a": "b"}}}))
        scenario = scenario.every("15m", edit("Calendar", "holidays", {"metadata": {"labels": {"a": "c"}}}))

        with pytest.raises(InvariantViolated) as caught:
            scenario.always(NoMoreThanThree).run("2h", seed=6)

        first, second, *writes = str(caught.value).splitlines()
        assert first == "a calendar: NoMoreThanThree: there was a fourth write"
        assert second == "  at 2026-12-23T12:20:00Z, with seed 6; the last writes were:"
        assert writes[-1].startswith("2026-12-23T12:20:00Z  user  patch Calendar holidays  metadata.labels.a:")

    def test_an_invariant_that_raises_another_error_is_no_violation(self) -> None:
        class Careless(Invariant):
            def wrote(self, world: World, written: CommittedWrite) -> None:
                raise KeyError("oops")

        with pytest.raises(KeyError):
            BASE.always(Careless).run("1h")

    def test_each_run_has_its_own_invariants(self) -> None:
        made: list[Writes] = []

        def make() -> Writes:
            made.append(Writes())
            return made[-1]

        scenario = BASE.always(make)
        scenario.run("1m")
        scenario.run("1m")

        assert [invariant.seen for invariant in made] == [1, 1]

    def test_invariants_check_the_end(self) -> None:
        class Never(Invariant):
            def end(self, world: World) -> None:
                raise InvariantViolated("in the end")

        with pytest.raises(InvariantViolated, match="in the end"):
            BASE.always(Never).run("1h")

    def test_invariants_are_given_as_factories(self) -> None:
        with pytest.raises(TypeError, match="Writes is an instance that all runs would share"):
            BASE.always(Writes())  # type: ignore[arg-type]

    def test_a_write_without_the_lease_is_detected_without_faults(self) -> None:
        async def usurper(incarnation: ProcessRun) -> None:
            await incarnation.clock.sleep(60)
            wish = Patch.merge({"metadata": {"labels": {"a": "b"}}})
            await incarnation.transport.patch(CALENDARS, Key("", "holidays"), wish, Write("springtide-calendar"))

        leader = BASE.running(CalendarController, replicas=2)
        lease = Key("springtide-system", "springtide")
        leader.always(lambda: OnlyTheLeaderWrites(lease, "springtide-calendar")).run("5m")

        with pytest.raises(InvariantViolated, match="mine-1 sent a write"):
            leader.running_program("mine", usurper).always(
                lambda: OnlyTheLeaderWrites(lease, "springtide-calendar")
            ).run("5m")
        with pytest.raises(InvariantViolated, match="was computed from version nothing"):
            leader.running_program("mine", usurper).always(NoLostUpdates).run("5m")

    def test_a_store_that_never_syncs_is_detected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def sleep(self: Reflector) -> None:
            await self._clock.sleep(1e9)

        monkeypatch.setattr(Reflector, "run", sleep)

        with pytest.raises(InvariantViolated, match="was never filled"):
            BASE.running(CalendarController).always(StoresFollowTheServer).run("5m")

    def test_mutating_a_shared_object_is_detected(self) -> None:
        async def meddle(world: World) -> None:
            world.server.get(CALENDARS, Key("", "holidays"))["spec"]["dates"].append("2027-01-01")

        with pytest.raises(InvariantViolated, match="was changed in place"):
            BASE.always(SharedObjectsAreNotMutated).at("1m", meddle).run("1h")


def test_severities_have_names() -> None:
    assert Faults.of(Severity.NONE) == Faults()
    assert Faults.of(Severity.HEAVY).but(crash_every=0.0).crash_every == 0.0
    assert BASE.under(Severity.LIGHT).faults == Faults.of(Severity.LIGHT)


def test_an_unknown_process_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there is no process 'unknown', expected one of springtide-0"):
        BASE.running(CalendarController).at("1m", crash("unknown")).run("5m")


def test_an_empty_patch_changes_nothing() -> None:
    """Actions of the world go through the API server."""

    async def touch(world: World) -> None:
        before = world.server.revision
        world.server.patch(CALENDARS, Key("", "holidays"), Patch.merge({"metadata": {}}), Write("user"))
        assert world.server.revision == before

    BASE.at("1m", touch).run("2m")
