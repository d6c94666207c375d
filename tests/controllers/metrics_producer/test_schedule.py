"""Schedules through the controller: status, exported series, events, and the times of their writes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.metrics_producer.harness import (
    MANAGER,
    ProducerHarness,
    calendar,
    conditions_of,
    daily,
    events_of,
    producer,
    schedule,
    status_of,
    writes_of,
)

from springtide.apis.scheduled import schedule as conflicts
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.client import Mode
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer import schedules
from springtide.simulator.faults import Severity
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    StoresFollowTheServer,
    crash,
    create,
    delete,
    edit,
    pause,
)
from springtide.simulator.world import World

NINE_TO_FIVE = schedule(daily(3, "9", "17", name="peak"))
START = "2026-06-01T08:00:00Z"


def test_status_has_the_present_and_the_next_value() -> None:
    """All fields are present, with times in UTC, and both metrics have the value."""
    harness = ProducerHarness()

    outcome = harness.scenario(START, producer(schedule=NINE_TO_FIVE)).run("2h")

    status = status_of(outcome)
    assert status["scheduledCapacity"] == {
        "currentValue": 3,
        "nextValue": 1,
        "nextValueTime": "2026-06-01T17:00:00Z",
        "upcoming": [
            {"at": "2026-06-01T17:00:00Z", "value": 1},
            {"at": "2026-06-02T09:00:00Z", "value": 3},
            {"at": "2026-06-02T17:00:00Z", "value": 1},
            {"at": "2026-06-03T09:00:00Z", "value": 3},
            {"at": "2026-06-03T17:00:00Z", "value": 1},
        ],
        "activeBehavior": "peak",
        "timezone": "UTC",
    }
    assert status["conditions"]["Active"] == {
        "type": "Active",
        "status": "True",
        "reason": "BehaviorActive",
        "message": "3 replicas: behaviour `peak` is active (UTC)",
        "lastTransitionTime": "2026-06-01T08:00:00Z",
    }
    assert conditions_of(outcome) == {
        "Ready": ("True", "Ready"),
        "Active": ("True", "BehaviorActive"),
        "Calculable": ("True", "Compiled"),
        "Unambiguous": ("True", "NothingFound"),
    }


def test_metrics_have_the_value_of_the_status() -> None:
    """Both names have the value, which is fresh until the next change."""
    harness = ProducerHarness()

    async def observe(world: World) -> None:
        series = harness.series()
        assert series is not None
        harness.recorded.append((dict(series.values), series.fresh_until == world.clock.now() + 7 * 3600))

    harness.scenario(START, producer(schedule=NINE_TO_FIVE)).at("2h", observe).run("3h")

    assert harness.recorded == [({"karpenter_scheduled_capacity": 3, "karpenter_scheduled_replicas_value": 3}, True)]


def test_each_change_is_one_write_at_its_second() -> None:
    """The first status has two writes, as the second waits for the search; later each change has one."""
    outcome = ProducerHarness().scenario(START, producer(schedule=NINE_TO_FIVE)).run("3d")

    assert writes_of(outcome) == [
        "2026-06-01T08:00:00Z",
        "2026-06-01T08:00:00Z",
        "2026-06-01T09:00:00Z",
        "2026-06-01T17:00:00Z",
        "2026-06-02T09:00:00Z",
        "2026-06-02T17:00:00Z",
        "2026-06-03T09:00:00Z",
        "2026-06-03T17:00:00Z",
    ]


def test_value_changes_have_events() -> None:
    """The event has both values, the reason and the next change; the first value has no event."""
    outcome = ProducerHarness().scenario(START, producer(schedule=NINE_TO_FIVE)).run("10h")

    assert events_of(outcome) == [
        (
            "Normal",
            "ValueChanged",
            "from 1 to 3 replicas: behaviour `peak` is active (09:00 UTC); next is 1 on Mon 2026-06-01 17:00 UTC",
        ),
        (
            "Normal",
            "ValueChanged",
            "from 3 to 1 replica: no behaviour is active (17:00 UTC); next is 3 on Tue 2026-06-02 09:00 UTC",
        ),
    ]


def test_metric_is_exported_before_the_status_is_written() -> None:
    """When a status is written, its value is already exported."""
    harness = ProducerHarness()

    class ExportedBefore(Invariant):
        def wrote(self, world: World, written: CommittedWrite) -> None:
            if written.write.manager == MANAGER and written.resource.kind == "MetricsProducer":
                assert written.new is not None
                if harness.value() != written.new["status"]["scheduledCapacity"]["currentValue"]:
                    msg = f"the status tells another value than {harness.value()}"
                    raise InvariantViolated(msg)
                harness.recorded.append(harness.value())

    harness.scenario(START, producer(schedule=NINE_TO_FIVE)).always(ExportedBefore).run("1d")

    assert harness.recorded == [1, 1, 3, 1]


def test_changes_follow_daylight_saving_time() -> None:
    """A night in New York is an hour shorter when summer time begins; the next change is written in UTC."""
    night = schedule(daily(9, "22", "6"), zone="America/New_York")

    outcome = ProducerHarness().scenario("2026-03-06T12:00:00Z", producer(schedule=night)).run("4d")

    assert writes_of(outcome)[1:] == [
        "2026-03-06T12:00:00Z",
        "2026-03-07T03:00:00Z",  # Friday 22:00 EST
        "2026-03-07T11:00:00Z",
        "2026-03-08T03:00:00Z",  # Saturday 22:00 EST
        "2026-03-08T10:00:00Z",  # Sunday 06:00 EDT, seven hours later
        "2026-03-09T02:00:00Z",
        "2026-03-09T10:00:00Z",
        "2026-03-10T02:00:00Z",
        "2026-03-10T10:00:00Z",
    ]


@pytest.mark.parametrize(
    ("written", "at", "expected"),
    [
        pytest.param(
            schedule(daily(3, "9", "17", suspend=True)),
            "10h",
            {"currentValue": 1, "timezone": "UTC"},
            id="suspended behaviors do not count",
        ),
        pytest.param(schedule(), "1h", {"currentValue": 1, "timezone": "UTC"}, id="no behaviors"),
        pytest.param(
            schedule(
                {"replicas": 5, "from": "2026-06-01T10:00:00Z", "until": "2026-06-01T11:00:00Z"},
            ),
            "12h",
            {"currentValue": 1, "timezone": "UTC"},
            id="one-time behavior is over",
        ),
        pytest.param(
            schedule(daily(3, "9", "17", name="low"), daily(8, "10", "12", name="high", priority=10)),
            "11h",
            {"currentValue": 8, "activeBehavior": "high", "nextValue": 3, "nextValueTime": "2026-06-01T12:00:00Z"},
            id="higher priority wins",
        ),
        pytest.param(
            schedule(daily(8, "9", "17"), daily(3, "10", "12")),
            "11h",
            {"currentValue": 8, "activeBehavior": "behaviors[0]", "nextValue": 1},
            id="first listed wins a tie",
        ),
        pytest.param(
            schedule(daily(3, "9", "17", leadSeconds=600)),
            "9h",
            {"currentValue": 3, "nextValueTime": "2026-06-01T17:00:00Z"},
            id="lead begins early",
        ),
        pytest.param(
            schedule(daily(0, "9", "17"), default=2),
            "10h",
            {"currentValue": 0, "nextValue": 2},
            id="zero replicas",
        ),
        pytest.param(
            schedule(daily(3, "9", "12"), daily(3, "12", "15")),
            "13h",
            {"currentValue": 3, "activeBehavior": "behaviors[1]", "nextValueTime": "2026-06-01T15:00:00Z"},
            id="behavior is followed by one of the same value",
        ),
        pytest.param(
            schedule(daily(3, "9", "17"), zone="Asia/Tokyo"),
            "7h",
            {"currentValue": 3, "timezone": "Asia/Tokyo", "nextValueTime": "2026-06-01T08:00:00Z"},
            id="time zone of the schedule",
        ),
    ],
)
def test_status_of_a_schedule(written: Object, at: str, expected: dict[str, Any]) -> None:
    """The status has the expected fields, and no next value where none exists."""
    harness = ProducerHarness()

    outcome = harness.scenario("2026-06-01T00:00:00Z", producer(schedule=written)).run(at)

    shown = status_of(outcome)["scheduledCapacity"]
    assert {name: shown.get(name) for name in expected} == expected
    assert ("nextValue" in shown) == ("nextValueTime" in shown) == ("upcoming" in shown)
    if set(expected) == {"currentValue", "timezone"}:
        assert shown == expected


def test_default_time_zone_is_that_of_the_process() -> None:
    """The status has the effective time zone."""
    outcome = ProducerHarness().scenario(START, producer(schedule=NINE_TO_FIVE), default_zone="Europe/Berlin").run("1h")

    shown = status_of(outcome)["scheduledCapacity"]
    assert (shown["currentValue"], shown["timezone"]) == (3, "Europe/Berlin")


def test_value_is_right_at_once_after_downtime() -> None:
    """A crash over a change only delays it; a crash without a change writes nothing."""
    harness = ProducerHarness()
    scenario = harness.scenario(START, producer(schedule=NINE_TO_FIVE))

    outcome = (
        scenario.at("30m", crash("springtide-0", downtime=3600))
        .at("4h", crash("springtide-0", downtime=60))
        .at("5h", harness.record_value())
        .run("6h")
    )

    assert harness.recorded == [3]
    assert writes_of(outcome)[2:] == ["2026-06-01T09:30:00Z"]
    assert len(events_of(outcome, "ValueChanged")) == 1


def test_value_is_right_at_once_after_a_suspended_machine() -> None:
    """A machine that was suspended over two changes reports only the present value."""
    outcome = (
        ProducerHarness()
        .scenario(START, producer(schedule=NINE_TO_FIVE))
        .at("30m", pause("springtide-0", 24.75 * 3600))
        .run("26h")
    )

    assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 3
    assert writes_of(outcome)[2:] == ["2026-06-02T09:15:00Z"]


def test_producer_with_a_finalizer_exports_until_it_is_removed() -> None:
    """While a finalizer delays the deletion, readers of the metric get the right value."""
    held = producer(schedule=NINE_TO_FIVE)
    held["metadata"]["finalizers"] = ["example.com/guard"]
    harness = ProducerHarness()

    (
        harness.scenario(START, held)
        .at("10m", delete("MetricsProducer", "web"))
        .at("70m", harness.record_value(), edit("MetricsProducer", "web", {"metadata": {"finalizers": None}}))
        .at("71m", harness.record_value())
        .run("2h")
    )

    assert harness.recorded == [3, "absent"]


def test_series_of_a_deleted_producer_is_removed() -> None:
    """At once, also while all controllers are paused."""
    paused = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "springtide-pause"},
        "data": {"paused": "true"},
    }
    paused["metadata"]["namespace"] = "springtide-system"  # type: ignore[index]
    harness = ProducerHarness()

    outcome = (
        harness.scenario(START, producer(schedule=NINE_TO_FIVE), producer("api", schedule=NINE_TO_FIVE))
        .at("10m", harness.record_value(), delete("MetricsProducer", "web"))
        .at("11m", harness.record_value(), harness.record_value("api"), create(paused))
        .at("12m", delete("MetricsProducer", "api"))
        .at("13m", harness.record_value("api"))
        .run("2h")
    )

    assert harness.recorded == [1, "absent", 1, "absent"]
    assert outcome.objects("MetricsProducer") == []


def test_former_leader_exports_nothing() -> None:
    """Only the new leader exports the series after any number of leader changes."""
    harness = ProducerHarness()

    (
        harness.scenario(START, producer(schedule=NINE_TO_FIVE), replicas=2)
        .at("30m", pause("springtide-0", 120))
        .at("40m", pause("springtide-1", 120))
        .always(harness.record_exported_at_end)
        .run("1h")
    )

    assert (len(harness.stores), harness.recorded) == (2, [1])


def test_observe_mode_exports_and_writes_no_status() -> None:
    """The metrics can be compared before the controller writes a status."""
    harness = ProducerHarness()

    outcome = (
        harness.scenario(START, producer(schedule=NINE_TO_FIVE), mode=Mode.OBSERVE)
        .at("2h", harness.record_value())
        .run("3h")
    )

    assert harness.recorded == [3]
    assert writes_of(outcome) == []


class TestCalendars:
    """Schedules that reference calendars."""

    WRITTEN = schedule(daily(3, "9", "17", calendars=[{"name": "holidays", "mode": "Exclude"}]))

    def test_changed_calendar_takes_effect_at_once(self) -> None:
        """The value follows an added and a removed day."""
        harness = ProducerHarness()

        outcome = (
            harness.scenario(START, calendar("holidays", "2026-06-02"), producer(schedule=self.WRITTEN))
            .at("2h", harness.record_value(), edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-01"]}}))
            .at("3h", harness.record_value(), edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-03"]}}))
            .at("4h", harness.record_value())
            .run("5h")
        )

        assert harness.recorded == [3, 1, 3]
        assert conditions_of(outcome)["Calculable"] == ("True", "Compiled")

    def test_missing_calendar_is_reported(self) -> None:
        """The schedule ignores it and is not ready until the calendar exists."""
        harness = ProducerHarness()
        scenario = harness.scenario(START, producer(schedule=self.WRITTEN))

        before = scenario.run("2h")
        after = scenario.at("2h", create(calendar("holidays", "2026-06-01"))).run("3h")

        assert status_of(before)["scheduledCapacity"]["currentValue"] == 3
        assert conditions_of(before)["Ready"] == ("False", "CalendarUnusable")
        assert conditions_of(before)["Active"] == ("True", "BehaviorActive")
        message = "calendar `holidays` does not exist: the schedule is read as if it did not refer to it"
        assert events_of(before, "CalendarUnusable") == [("Warning", "CalendarUnusable", message)]
        assert status_of(after)["scheduledCapacity"]["currentValue"] == 1
        assert conditions_of(after)["Ready"] == ("True", "Ready")

    def test_invalid_calendar_is_reported(self) -> None:
        """It counts as missing."""
        broken = {**calendar("holidays"), "spec": {"timeZone": "Mars/Olympus", "dates": ["2026-06-01"]}}

        outcome = ProducerHarness().scenario(START, broken, producer(schedule=self.WRITTEN)).run("2h")

        assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 3
        assert "calendar `holidays` has errors" in status_of(outcome)["conditions"]["Calculable"]["message"]


class TestErrors:
    """Producers with an invalid spec."""

    BROKEN: Object = {"spec": {"schedule": {"timezone": "Mars/Olympus"}}}

    def test_last_value_stays_and_ages(self) -> None:
        """The next value is removed from the status, and all errors are listed."""
        harness = ProducerHarness()

        outcome = (
            harness.scenario(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("2h10m", harness.record_age())
            .at("20h", harness.record_age())
            .run("21h")
        )

        assert harness.recorded == [(3, 600), (3, 18 * 3600)]
        assert status_of(outcome)["scheduledCapacity"] == {"currentValue": 3}
        active = status_of(outcome)["conditions"]["Active"]
        assert (active["status"], active["reason"]) == ("False", "Invalid")
        assert active["message"].startswith("spec.schedule.timezone: ")
        assert events_of(outcome, "Invalid") == [("Warning", "Invalid", active["message"])]
        assert writes_of(outcome)[-1] == "2026-06-01T10:00:00Z"

    def test_last_value_is_restored_after_a_restart(self) -> None:
        """A process that starts after the error exports it with its age."""
        harness = ProducerHarness()

        outcome = (
            harness.scenario(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("3h", crash("springtide-0", downtime=60))
            .at("4h", harness.record_age())
            .run("5h")
        )

        assert harness.recorded == [(3, 7200)]
        assert writes_of(outcome)[-1] == "2026-06-01T10:00:00Z"

    def test_producer_without_a_value_is_not_exported(self) -> None:
        """The condition reports the error."""
        harness = ProducerHarness()
        written = producer(schedule=schedule(daily(3, "9", "25")))

        outcome = harness.scenario(START, written).at("1h", harness.record_value()).run("2h")

        assert harness.recorded == ["absent"]
        assert "scheduledCapacity" not in status_of(outcome)
        assert conditions_of(outcome)["Ready"] == ("False", "Invalid")

    def test_corrected_producer_has_its_value(self) -> None:
        """All traces of the error are removed."""
        harness = ProducerHarness()
        corrected = {"spec": {"schedule": {"timezone": "UTC"}}}

        outcome = (
            harness.scenario(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("12h", edit("MetricsProducer", "web", corrected))
            .at("13h", harness.record_age())
            .run("14h")
        )

        assert harness.recorded == [(1, 0)]
        assert conditions_of(outcome)["Ready"] == ("True", "Ready")
        assert len(status_of(outcome)["scheduledCapacity"]["upcoming"]) == 5


class TestFindings:
    """Warnings about ambiguous schedules."""

    @pytest.mark.parametrize(
        ("written", "reason", "expected_text"),
        [
            pytest.param(
                schedule(daily(3, "9", "17", name="day"), daily(5, "16", "20", name="evening")),
                "Collision",
                "behaviour `day` (replicas 3) and behaviour `evening` (replicas 5) are active at the same time:"
                " behaviour `day` wins, as it is listed first (give the one that should win a higher `priority`)",
                id="collision",
            ),
            pytest.param(
                schedule(daily(3, "9,12", "17", name="day")),
                "NotAlternating",
                "starts and ends of behaviour `day` do not alternate",
                id="starts and ends do not alternate",
            ),
        ],
    )
    def test_findings_are_reported_and_the_producer_stays_ready(
        self, written: Object, reason: str, expected_text: str
    ) -> None:
        """The condition has no dates, so that it does not change every day; the event has them."""
        outcome = ProducerHarness().scenario(START, producer(schedule=written)).run("20m")

        unambiguous = status_of(outcome)["conditions"]["Unambiguous"]
        assert (unambiguous["status"], unambiguous["reason"]) == ("False", reason)
        assert expected_text in unambiguous["message"]
        assert "2026" not in unambiguous["message"]
        assert conditions_of(outcome)["Ready"] == ("True", "Ready")
        ((kind, _, message),) = events_of(outcome, reason)
        assert (kind, "2026-06-01" in message) == ("Warning", True)

    def test_equal_schedules_are_searched_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """For any number of objects and value changes."""
        found = conflicts.schedule_findings
        searched: list[int] = []

        def counted(*arguments: Any) -> Any:
            searched.append(1)
            return found(*arguments)

        monkeypatch.setattr(schedules, "schedule_findings", counted)
        alike = [producer(f"web-{number}", schedule=NINE_TO_FIVE) for number in range(5)]
        other = producer("api", schedule=schedule(daily(4, "9", "17")))

        ProducerHarness().scenario(START, *alike, other).run("2d")

        assert len(searched) == 2

    def test_search_is_repeated_after_its_maximum_age(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Findings of past dates are removed."""
        monkeypatch.setattr(schedules, "SEARCH_AGAIN_AFTER", 2 * 86_400)
        launch = {"replicas": 50, "from": "2026-06-01T10:00:00Z", "until": "2026-06-01T20:00:00Z"}
        scenario = ProducerHarness().scenario(START, producer(schedule=schedule(daily(3, "9", "17"), launch)))

        soon, later = scenario.run("2d"), scenario.run("2d2h")

        assert conditions_of(soon)["Unambiguous"] == ("False", "Collision")
        assert conditions_of(later)["Unambiguous"] == ("True", "NothingFound")

    def test_failed_search_is_retried_with_the_next_change(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The value does not depend on the search."""
        found = conflicts.schedule_findings
        broken = [True]
        asked: list[bool] = []

        def failing(*arguments: Any) -> Any:
            asked.append(broken[0])
            if broken[0]:
                raise RuntimeError
            return found(*arguments)

        async def correct(world: World) -> None:
            broken[0] = False

        monkeypatch.setattr(schedules, "schedule_findings", failing)
        scenario = ProducerHarness().scenario(START, producer(schedule=NINE_TO_FIVE)).tolerating(RuntimeError)

        before = scenario.run("30m")
        after = scenario.at("30m", correct).run("2h")

        assert conditions_of(before)["Unambiguous"] == ("Unknown", "NotSearchedYet")
        assert conditions_of(before)["Ready"] == ("True", "Ready")
        assert conditions_of(after)["Unambiguous"] == ("True", "NothingFound")
        assert len(asked) < 8

    def test_search_uses_the_calendars(self) -> None:
        """It is repeated when a calendar changes."""
        closed = {**daily(5, "16", "20"), "calendars": [{"name": "closed", "mode": "Only"}]}
        never: Object = {"spec": {"dates": ["2020-01-01"]}}

        scenario = ProducerHarness().scenario(START, producer(schedule=schedule(daily(3, "9", "17"), closed)))
        missing = scenario.run("10m")
        scenario = scenario.at("10m", create(calendar("closed", "2026-06-03")))
        there = scenario.run("20m")
        moved = scenario.at("20m", edit("Calendar", "closed", never)).run("30m")

        assert conditions_of(missing)["Unambiguous"] == ("False", "Collision"), "one that is missing cuts nothing"
        assert conditions_of(there)["Unambiguous"] == ("False", "Collision")
        assert conditions_of(moved)["Unambiguous"] == ("False", "NeverTakesEffect")

    def test_corrected_schedule_is_searched_again(self) -> None:
        """The former findings are removed."""
        clashing = schedule(daily(3, "9", "17"), daily(5, "16", "20"))
        corrected = {"spec": {"schedule": {"behaviors": [daily(3, "9", "17")]}}}

        outcome = (
            ProducerHarness()
            .scenario(START, producer(schedule=clashing))
            .at("10m", edit("MetricsProducer", "web", corrected))
            .run("20m")
        )

        assert conditions_of(outcome)["Unambiguous"] == ("True", "NothingFound")


def test_pending_capacity_is_reported_as_not_computed() -> None:
    """No metric is exported, and the conditions say why."""
    harness = ProducerHarness()

    outcome = harness.scenario(START, producer(pendingCapacity={"nodeSelector": {"group": "a"}})).run("1h")

    assert harness.series() is None
    assert conditions_of(outcome)["Ready"] == ("False", "NotComputedYet")
    assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]


def test_another_source_replaces_a_schedule() -> None:
    """Status and series of the schedule are removed."""
    harness = ProducerHarness()
    other = {"spec": {"schedule": None, "pendingCapacity": {"nodeSelector": {"group": "a"}}}}

    outcome = (
        harness.scenario(START, producer(schedule=NINE_TO_FIVE))
        .at("30m", edit("MetricsProducer", "web", other))
        .run("3h")
    )

    assert harness.series() is None
    assert set(status_of(outcome)) == {"conditions"}
    assert set(conditions_of(outcome)) == {"Ready", "Active", "Calculable"}
    assert len(writes_of(outcome)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_value_is_right_after_heavy_faults(seed: int) -> None:
    """At the end status and metric have the value of the schedule, and one process exports it."""
    harness = ProducerHarness()

    outcome = (
        harness.scenario("2026-06-01T08:55:00Z", producer(schedule=NINE_TO_FIVE), replicas=2)
        .at("10m", edit("MetricsProducer", "web", {"spec": {"schedule": {"behaviors": [daily(4, "9", "17")]}}}))
        .under(Severity.HEAVY)
        .always(NoLostUpdates, StoresFollowTheServer, harness.record_exported_at_end)
        .settling("10m")
        .run("25m", seed=seed)
    )

    assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 4
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")
    assert harness.recorded == [4]
