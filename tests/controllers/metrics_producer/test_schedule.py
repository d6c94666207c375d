"""Schedules through the controller: what stands in the status and what is exported, when, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.metrics_producer.harness import (
    MANAGER,
    Stage,
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


def test_the_status_tells_the_present_and_what_comes() -> None:
    """All fields are there, in UTC, and the two metrics have the value."""
    stage = Stage()

    outcome = stage.playing(START, producer(schedule=NINE_TO_FIVE)).run("2h")

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


def test_the_metric_is_that_of_the_status() -> None:
    """Both names have the value, and it is good until the next change."""
    stage = Stage()

    async def look(world: World) -> None:
        reading = stage.reading()
        assert reading is not None
        stage.seen.append((dict(reading.values), reading.fresh_until == world.clock.now() + 7 * 3600))

    stage.playing(START, producer(schedule=NINE_TO_FIVE)).at("2h", look).run("3h")

    assert stage.seen == [({"karpenter_scheduled_capacity": 3, "karpenter_scheduled_replicas_value": 3}, True)]


def test_a_change_is_one_write_at_its_second_and_idling_is_none() -> None:
    """The first status comes in two steps, because nobody waits for the search; from then on each change is one."""
    outcome = Stage().playing(START, producer(schedule=NINE_TO_FIVE)).run("3d")

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


def test_people_are_told_of_changes() -> None:
    """An event says from what to what, why, and what comes next; there is none for the first value."""
    outcome = Stage().playing(START, producer(schedule=NINE_TO_FIVE)).run("10h")

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


def test_a_metric_does_not_wait_for_the_server() -> None:
    """Whenever a status takes effect, what it says is exported already."""
    stage = Stage()

    class ExportedBefore(Invariant):
        def wrote(self, world: World, written: CommittedWrite) -> None:
            if written.write.manager == MANAGER and written.resource.kind == "MetricsProducer":
                assert written.new is not None
                if stage.value() != written.new["status"]["scheduledCapacity"]["currentValue"]:
                    msg = f"the status tells another value than {stage.value()}"
                    raise InvariantViolated(msg)
                stage.seen.append(stage.value())

    stage.playing(START, producer(schedule=NINE_TO_FIVE)).always(ExportedBefore).run("1d")

    assert stage.seen == [1, 1, 3, 1]


def test_clocks_that_change_move_the_changes() -> None:
    """A night in New York is an hour shorter when summer time begins, and what comes next is told in UTC."""
    night = schedule(daily(9, "22", "6"), zone="America/New_York")

    outcome = Stage().playing("2026-03-06T12:00:00Z", producer(schedule=night)).run("4d")

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
            id="suspended-behaviours-take-no-part-and-nothing-lies-ahead",
        ),
        pytest.param(schedule(), "1h", {"currentValue": 1, "timezone": "UTC"}, id="no-behaviours"),
        pytest.param(
            schedule(
                {"replicas": 5, "from": "2026-06-01T10:00:00Z", "until": "2026-06-01T11:00:00Z"},
            ),
            "12h",
            {"currentValue": 1, "timezone": "UTC"},
            id="what-happens-once-is-over",
        ),
        pytest.param(
            schedule(daily(3, "9", "17", name="low"), daily(8, "10", "12", name="high", priority=10)),
            "11h",
            {"currentValue": 8, "activeBehavior": "high", "nextValue": 3, "nextValueTime": "2026-06-01T12:00:00Z"},
            id="the-higher-priority-wins",
        ),
        pytest.param(
            schedule(daily(8, "9", "17"), daily(3, "10", "12")),
            "11h",
            {"currentValue": 8, "activeBehavior": "behaviors[0]", "nextValue": 1},
            id="of-equals-the-first-listed-wins",
        ),
        pytest.param(
            schedule(daily(3, "9", "17", leadSeconds=600)),
            "9h",
            {"currentValue": 3, "nextValueTime": "2026-06-01T17:00:00Z"},
            id="a-lead-begins-early",
        ),
        pytest.param(
            schedule(daily(0, "9", "17"), default=2),
            "10h",
            {"currentValue": 0, "nextValue": 2},
            id="nothing-is-a-value",
        ),
        pytest.param(
            schedule(daily(3, "9", "12"), daily(3, "12", "15")),
            "13h",
            {"currentValue": 3, "activeBehavior": "behaviors[1]", "nextValueTime": "2026-06-01T15:00:00Z"},
            id="a-behaviour-hands-over-with-the-same-value",
        ),
        pytest.param(
            schedule(daily(3, "9", "17"), zone="Asia/Tokyo"),
            "7h",
            {"currentValue": 3, "timezone": "Asia/Tokyo", "nextValueTime": "2026-06-01T08:00:00Z"},
            id="in-a-zone-of-its-own",
        ),
    ],
)
def test_what_schedules_come_to(written: Object, at: str, expected: dict[str, Any]) -> None:
    """The status has what the table says, and nothing ahead where nothing lies ahead."""
    stage = Stage()

    outcome = stage.playing("2026-06-01T00:00:00Z", producer(schedule=written)).run(at)

    shown = status_of(outcome)["scheduledCapacity"]
    assert {name: shown.get(name) for name in expected} == expected
    assert ("nextValue" in shown) == ("nextValueTime" in shown) == ("upcoming" in shown)
    if set(expected) == {"currentValue", "timezone"}:
        assert shown == expected


def test_the_default_zone_is_that_of_the_process() -> None:
    """A schedule that names no zone is read in it, and the status says which."""
    outcome = Stage().playing(START, producer(schedule=NINE_TO_FIVE), default_zone="Europe/Berlin").run("1h")

    shown = status_of(outcome)["scheduledCapacity"]
    assert (shown["currentValue"], shown["timezone"]) == (3, "Europe/Berlin")


def test_after_a_time_away_all_is_right_at_once() -> None:
    """A crash over a change costs the change its punctuality, nothing else; a crash without one writes nothing."""
    stage = Stage()
    scenario = stage.playing(START, producer(schedule=NINE_TO_FIVE))

    outcome = (
        scenario.at("30m", crash("springtide-0", downtime=3600))
        .at("4h", crash("springtide-0", downtime=60))
        .at("5h", stage.note())
        .run("6h")
    )

    assert stage.seen == [3]
    assert writes_of(outcome)[2:] == ["2026-06-01T09:30:00Z"]
    assert len(events_of(outcome, "ValueChanged")) == 1


def test_after_standing_still_all_is_right_at_once() -> None:
    """A machine that was suspended over two changes tells the present, and not what it has missed."""
    outcome = (
        Stage()
        .playing(START, producer(schedule=NINE_TO_FIVE))
        .at("30m", pause("springtide-0", 24.75 * 3600))
        .run("26h")
    )

    assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 3
    assert writes_of(outcome)[2:] == ["2026-06-02T09:15:00Z"]


def test_a_producer_whose_deletion_is_held_up_is_there_until_it_goes() -> None:
    """Somebody's finalizer keeps it, so whoever reads the metric still finds the right value."""
    held = producer(schedule=NINE_TO_FIVE)
    held["metadata"]["finalizers"] = ["example.com/guard"]
    stage = Stage()

    (
        stage.playing(START, held)
        .at("10m", delete("MetricsProducer", "web"))
        .at("70m", stage.note(), edit("MetricsProducer", "web", {"metadata": {"finalizers": None}}))
        .at("71m", stage.note())
        .run("2h")
    )

    assert stage.seen == [3, "absent"]


def test_a_producer_that_goes_takes_its_series_along() -> None:
    """At once, and also while everything is paused."""
    paused = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "springtide-pause"},
        "data": {"paused": "true"},
    }
    paused["metadata"]["namespace"] = "springtide-system"  # type: ignore[index]
    stage = Stage()

    outcome = (
        stage.playing(START, producer(schedule=NINE_TO_FIVE), producer("api", schedule=NINE_TO_FIVE))
        .at("10m", stage.note(), delete("MetricsProducer", "web"))
        .at("11m", stage.note(), stage.note("api"), create(paused))
        .at("12m", delete("MetricsProducer", "api"))
        .at("13m", stage.note("api"))
        .run("2h")
    )

    assert stage.seen == [1, "absent", 1, "absent"]
    assert outcome.objects("MetricsProducer") == []


def test_a_process_that_leads_no_more_exports_nothing() -> None:
    """Its successor does: there is one series, however often the lease has changed hands."""
    stage = Stage()

    (
        stage.playing(START, producer(schedule=NINE_TO_FIVE), replicas=2)
        .at("30m", pause("springtide-0", 120))
        .at("40m", pause("springtide-1", 120))
        .always(stage.exported_in_the_end)
        .run("1h")
    )

    assert (len(stage.books), stage.seen) == (2, [1])


def test_observing_exports_and_writes_nothing() -> None:
    """In observe mode the metrics can be looked at before anybody relies on the status."""
    stage = Stage()

    outcome = stage.playing(START, producer(schedule=NINE_TO_FIVE), mode=Mode.OBSERVE).at("2h", stage.note()).run("3h")

    assert stage.seen == [3]
    assert writes_of(outcome) == []


class TestCalendars:
    """Schedules that look at calendars."""

    WRITTEN = schedule(daily(3, "9", "17", calendars=[{"name": "holidays", "mode": "Exclude"}]))

    def test_an_excluded_day_counts_as_soon_as_it_is_written(self) -> None:
        """The value follows an edit of the calendar, back and forth."""
        stage = Stage()

        outcome = (
            stage.playing(START, calendar("holidays", "2026-06-02"), producer(schedule=self.WRITTEN))
            .at("2h", stage.note(), edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-01"]}}))
            .at("3h", stage.note(), edit("Calendar", "holidays", {"spec": {"dates": ["2026-06-03"]}}))
            .at("4h", stage.note())
            .run("5h")
        )

        assert stage.seen == [3, 1, 3]
        assert conditions_of(outcome)["Calculable"] == ("True", "Compiled")

    def test_one_that_does_not_exist_is_named(self) -> None:
        """The schedule goes on without it, is not ready, and is when it comes."""
        stage = Stage()
        scenario = stage.playing(START, producer(schedule=self.WRITTEN))

        before = scenario.run("2h")
        after = scenario.at("2h", create(calendar("holidays", "2026-06-01"))).run("3h")

        assert status_of(before)["scheduledCapacity"]["currentValue"] == 3
        assert conditions_of(before)["Ready"] == ("False", "CalendarUnusable")
        assert conditions_of(before)["Active"] == ("True", "BehaviorActive")
        message = "calendar `holidays` does not exist: the schedule is read as if it did not refer to it"
        assert events_of(before, "CalendarUnusable") == [("Warning", "CalendarUnusable", message)]
        assert status_of(after)["scheduledCapacity"]["currentValue"] == 1
        assert conditions_of(after)["Ready"] == ("True", "Ready")

    def test_one_with_errors_is_named(self) -> None:
        """It counts as absent."""
        broken = {**calendar("holidays"), "spec": {"timeZone": "Mars/Olympus", "dates": ["2026-06-01"]}}

        outcome = Stage().playing(START, broken, producer(schedule=self.WRITTEN)).run("2h")

        assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 3
        assert "calendar `holidays` has errors" in status_of(outcome)["conditions"]["Calculable"]["message"]


class TestErrors:
    """Producers that cannot be read."""

    BROKEN: Object = {"spec": {"schedule": {"timezone": "Mars/Olympus"}}}

    def test_the_last_value_stays_and_grows_old(self) -> None:
        """What was foretold is taken back, and all that is wrong is said."""
        stage = Stage()

        outcome = (
            stage.playing(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("2h10m", stage.note_age())
            .at("20h", stage.note_age())
            .run("21h")
        )

        assert stage.seen == [(3, 600), (3, 18 * 3600)]
        assert status_of(outcome)["scheduledCapacity"] == {"currentValue": 3}
        active = status_of(outcome)["conditions"]["Active"]
        assert (active["status"], active["reason"]) == ("False", "Invalid")
        assert active["message"].startswith("spec.schedule.timezone: ")
        assert events_of(outcome, "Invalid") == [("Warning", "Invalid", active["message"])]
        assert writes_of(outcome)[-1] == "2026-06-01T10:00:00Z"

    def test_the_last_value_outlives_the_process(self) -> None:
        """A process that was not there when it was good exports it all the same, as old as it is."""
        stage = Stage()

        outcome = (
            stage.playing(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("3h", crash("springtide-0", downtime=60))
            .at("4h", stage.note_age())
            .run("5h")
        )

        assert stage.seen == [(3, 7200)]
        assert writes_of(outcome)[-1] == "2026-06-01T10:00:00Z"

    def test_what_never_had_a_value_is_not_exported(self) -> None:
        """There is a condition, and no number."""
        stage = Stage()
        written = producer(schedule=schedule(daily(3, "9", "25")))

        outcome = stage.playing(START, written).at("1h", stage.note()).run("2h")

        assert stage.seen == ["absent"]
        assert "scheduledCapacity" not in status_of(outcome)
        assert conditions_of(outcome)["Ready"] == ("False", "Invalid")

    def test_mending_brings_the_value_back(self) -> None:
        """Nothing of the error is left."""
        stage = Stage()
        mended = {"spec": {"schedule": {"timezone": "UTC"}}}

        outcome = (
            stage.playing(START, producer(schedule=NINE_TO_FIVE))
            .at("2h", edit("MetricsProducer", "web", self.BROKEN))
            .at("12h", edit("MetricsProducer", "web", mended))
            .at("13h", stage.note_age())
            .run("14h")
        )

        assert stage.seen == [(1, 0)]
        assert conditions_of(outcome)["Ready"] == ("True", "Ready")
        assert len(status_of(outcome)["scheduledCapacity"]["upcoming"]) == 5


class TestSurprises:
    """Schedules that may not mean what their authors think."""

    @pytest.mark.parametrize(
        ("written", "reason", "words"),
        [
            pytest.param(
                schedule(daily(3, "9", "17", name="day"), daily(5, "16", "20", name="evening")),
                "Collision",
                "behaviour `day` (replicas 3) and behaviour `evening` (replicas 5) are active at the same time:"
                " behaviour `day` wins, as it is listed first (give the one that should win a higher `priority`)",
                id="a-collision",
            ),
            pytest.param(
                schedule(daily(3, "9,12", "17", name="day")),
                "NotAlternating",
                "starts and ends of behaviour `day` do not alternate",
                id="starts-and-ends-that-do-not-take-turns",
            ),
        ],
    )
    def test_they_are_told_and_leave_the_producer_ready(self, written: Object, reason: str, words: str) -> None:
        """The condition has no dates, so that it says the same tomorrow; the event has."""
        outcome = Stage().playing(START, producer(schedule=written)).run("20m")

        unambiguous = status_of(outcome)["conditions"]["Unambiguous"]
        assert (unambiguous["status"], unambiguous["reason"]) == ("False", reason)
        assert words in unambiguous["message"]
        assert "2026" not in unambiguous["message"]
        assert conditions_of(outcome)["Ready"] == ("True", "Ready")
        ((kind, _, message),) = events_of(outcome, reason)
        assert (kind, "2026-06-01" in message) == ("Warning", True)

    def test_schedules_that_are_written_the_same_are_searched_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many objects have them, and however often their values change."""
        found = conflicts.schedule_findings
        searched: list[int] = []

        def counted(*arguments: Any) -> Any:
            searched.append(1)
            return found(*arguments)

        monkeypatch.setattr(schedules, "schedule_findings", counted)
        alike = [producer(f"web-{number}", schedule=NINE_TO_FIVE) for number in range(5)]
        other = producer("api", schedule=schedule(daily(4, "9", "17")))

        Stage().playing(START, *alike, other).run("2d")

        assert len(searched) == 2

    def test_what_happened_once_is_forgotten_some_day(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A schedule is searched anew when the last search is old."""
        monkeypatch.setattr(schedules, "SEARCH_AGAIN_AFTER", 2 * 86_400)
        launch = {"replicas": 50, "from": "2026-06-01T10:00:00Z", "until": "2026-06-01T20:00:00Z"}
        scenario = Stage().playing(START, producer(schedule=schedule(daily(3, "9", "17"), launch)))

        soon, later = scenario.run("2d"), scenario.run("2d2h")

        assert conditions_of(soon)["Unambiguous"] == ("False", "Collision")
        assert conditions_of(later)["Unambiguous"] == ("True", "NothingFound")

    def test_a_search_that_fails_is_made_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The value does not depend on it, and the next change asks again."""
        found = conflicts.schedule_findings
        broken = [True]
        asked: list[bool] = []

        def failing(*arguments: Any) -> Any:
            asked.append(broken[0])
            if broken[0]:
                raise RuntimeError
            return found(*arguments)

        async def mend(world: World) -> None:
            broken[0] = False

        monkeypatch.setattr(schedules, "schedule_findings", failing)
        scenario = Stage().playing(START, producer(schedule=NINE_TO_FIVE)).tolerating(RuntimeError)

        before = scenario.run("30m")
        after = scenario.at("30m", mend).run("2h")

        assert conditions_of(before)["Unambiguous"] == ("Unknown", "NotSearchedYet")
        assert conditions_of(before)["Ready"] == ("True", "Ready")
        assert conditions_of(after)["Unambiguous"] == ("True", "NothingFound")
        assert len(asked) < 8

    def test_what_calendars_leave_may_meet_others_as_well(self) -> None:
        """It is searched with the calendars that there are, and anew when one changes."""
        closed = {**daily(5, "16", "20"), "calendars": [{"name": "closed", "mode": "Only"}]}
        never: Object = {"spec": {"dates": ["2020-01-01"]}}

        scenario = Stage().playing(START, producer(schedule=schedule(daily(3, "9", "17"), closed)))
        missing = scenario.run("10m")
        scenario = scenario.at("10m", create(calendar("closed", "2026-06-03")))
        there = scenario.run("20m")
        moved = scenario.at("20m", edit("Calendar", "closed", never)).run("30m")

        assert conditions_of(missing)["Unambiguous"] == ("False", "Collision"), "one that is missing cuts nothing"
        assert conditions_of(there)["Unambiguous"] == ("False", "Collision")
        assert conditions_of(moved)["Unambiguous"] == ("False", "NeverTakesEffect")

    def test_a_mended_schedule_is_searched_anew(self) -> None:
        """What was said of the old one is taken back."""
        clashing = schedule(daily(3, "9", "17"), daily(5, "16", "20"))
        mended = {"spec": {"schedule": {"behaviors": [daily(3, "9", "17")]}}}

        outcome = (
            Stage()
            .playing(START, producer(schedule=clashing))
            .at("10m", edit("MetricsProducer", "web", mended))
            .run("20m")
        )

        assert conditions_of(outcome)["Unambiguous"] == ("True", "NothingFound")


def test_pending_capacity_says_that_it_is_not_computed() -> None:
    """There is no metric that could mislead, and the conditions say why."""
    stage = Stage()

    outcome = stage.playing(START, producer(pendingCapacity={"nodeSelector": {"group": "a"}})).run("1h")

    assert stage.reading() is None
    assert conditions_of(outcome)["Ready"] == ("False", "NotComputedYet")
    assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]


def test_another_source_takes_the_place_of_a_schedule() -> None:
    """Nothing of the schedule is left, in the status or in the metrics."""
    stage = Stage()
    other = {"spec": {"schedule": None, "pendingCapacity": {"nodeSelector": {"group": "a"}}}}

    outcome = (
        stage.playing(START, producer(schedule=NINE_TO_FIVE)).at("30m", edit("MetricsProducer", "web", other)).run("3h")
    )

    assert stage.reading() is None
    assert set(status_of(outcome)) == {"conditions"}
    assert set(conditions_of(outcome)) == {"Ready", "Active", "Calculable"}
    assert len(writes_of(outcome)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_under_heavy_faults_the_value_is_that_of_the_schedule(seed: int) -> None:
    """Whatever crashes or is lost: when all has settled, status and metric are right, and one process exports it."""
    stage = Stage()

    outcome = (
        stage.playing("2026-06-01T08:55:00Z", producer(schedule=NINE_TO_FIVE), replicas=2)
        .at("10m", edit("MetricsProducer", "web", {"spec": {"schedule": {"behaviors": [daily(4, "9", "17")]}}}))
        .under(Severity.HEAVY)
        .always(NoLostUpdates, StoresFollowTheServer, stage.exported_in_the_end)
        .settling("10m")
        .run("25m", seed=seed)
    )

    assert status_of(outcome)["scheduledCapacity"]["currentValue"] == 4
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")
    assert stage.seen == [4]
