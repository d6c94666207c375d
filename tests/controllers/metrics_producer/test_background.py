"""Schedules that change every minute: background search does not delay values, which are right at the second."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.metrics_producer.harness import (
    ProducerHarness,
    calendar,
    daily,
    events_of,
    producer,
    schedule,
    status_of,
    writes_of,
)

from springtide.almanac.search_budget import limit_search
from springtide.apis.kinds import ValidationContext
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.apis.scheduled.schedule import schedule_findings
from springtide.cluster.context import ControllerContext
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer import schedules
from springtide.controllers.metrics_producer.compiled_spec import (
    QUICK_BUDGET,
    SEARCH_AGAIN,
    THOROUGH_BUDGET,
    compile_with_calendars,
)
from springtide.controllers.metrics_producer.reserved_capacity import ReservedCapacity
from springtide.controllers.validated import validated
from springtide.simulator.scenario import delete

NOW = 1_780_000_000
PLENTY = 10**9
HOURS = ",".join(map(str, range(24)))
MINUTES = ",".join(map(str, range(60)))
EVEN, ODD = (",".join(map(str, range(first, 60, 2))) for first in (0, 1))


def every_other_minute(replicas: int, first: str, then: str, **more: Any) -> Object:
    """Build a behavior that begins or ends every minute."""
    start, end = ({"hours": HOURS, "minutes": minutes} for minutes in (first, then))
    return {"replicas": replicas, "start": start, "end": end, **more}


EVENS, ODDS = every_other_minute(5, EVEN, ODD), every_other_minute(5, ODD, EVEN)
HIDDEN = daily(8, "9", "17")
LEAP_DAYS = {
    "replicas": 3,
    "start": {"hours": HOURS, "minutes": MINUTES},
    "end": {"months": "feb", "days": "29", "hours": HOURS, "minutes": MINUTES},
}
DENSE_SCHEDULES = [
    pytest.param([*[EVENS, ODDS] * 100, HIDDEN], id="a value that never takes effect"),
    pytest.param([{**EVENS, "leadSeconds": 3600 + more} for more in range(100)], id="leads that overlap"),
    pytest.param([{**LEAP_DAYS, "leadSeconds": more} for more in range(100)], id="rare ends with dense starts"),
    pytest.param([{**EVENS, "replicas": more} for more in range(200)], id="many behaviors at once"),
]


def read(*behaviors: Object, zone: str = "Europe/Berlin", default: int = 5) -> ScheduleSpec:
    """Validate a schedule as the controller does."""
    item = producer(schedule=schedule(*behaviors, default=default, zone=zone))
    valid = validated(item, MetricsProducer, now=NOW, default_zone="UTC").sound
    assert valid is not None
    assert valid.spec.schedule is not None
    return valid.spec.schedule


@pytest.mark.parametrize("behaviors", DENSE_SCHEDULES)
def test_quick_search_is_bounded(behaviors: list[Object]) -> None:
    """The event loop does a bounded number of steps for any schedule, at most twice the budget when it is cut off."""
    plan = compile_with_calendars(read(*behaviors), "UTC", ())

    with limit_search(PLENTY) as effort:
        plan.at(NOW, 5, QUICK_BUDGET)

    assert PLENTY - effort.left < 2 * QUICK_BUDGET + 1000


@pytest.mark.parametrize("behaviors", DENSE_SCHEDULES)
def test_search_for_findings_is_bounded(behaviors: list[Object]) -> None:
    """Webhooks and checks answer in time, and report no finding that the search did not prove."""
    with limit_search(PLENTY) as effort:
        found = [finding.reason for finding in schedule_findings(read(*behaviors), ValidationContext(now=NOW))]

    assert PLENTY - effort.left < 2_100_000
    assert "NeverTakesEffect" not in found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda replicas, start, end, lead: daily(replicas, str(start), str(end), leadSeconds=lead),
            st.integers(0, 2),
            st.integers(0, 11),
            st.integers(12, 23),
            st.sampled_from((0, 600, 20_000)),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 60),
)
def test_complete_short_search_agrees_with_a_long_one(behaviors: list[Object], steps: int) -> None:
    """A result that is called certain or complete does not depend on the budget."""
    plan = compile_with_calendars(read(*behaviors), "UTC", ())
    short, long = plan.at(NOW, 5, steps), plan.at(NOW, 5, THOROUGH_BUDGET)

    if short.complete:
        assert short == long
    elif short.certain:
        assert (short.value, short.rank) == (long.value, long.rank)
        assert short.until is not None
        assert short.until <= NOW + SEARCH_AGAIN or short.until == long.until


def test_value_is_exported_at_its_second_during_the_search() -> None:
    """The value needs no search, and the status is completed after it."""
    busy = [every_other_minute(5, EVEN, ODD, leadSeconds=lead) for lead in range(1, 40)]
    morning = {"replicas": 7, "start": {"hours": "9"}, "end": {"hours": "10"}, "priority": 1}
    harness = ProducerHarness()
    web = producer(schedule=schedule(*busy, *[ODDS] * 10, morning, default=5))

    outcome = harness.scenario("2026-06-01T08:58:30Z", web).run("2m")

    assert harness.value_changes[-1] == ("2026-06-01T09:00:00Z", "web", 7)
    assert status_of(outcome)["scheduledCapacity"]["nextValueTime"] == "2026-06-01T10:00:00Z"
    assert [message.partition(" (")[0] for _, _, message in events_of(outcome, "ValueChanged")] == [
        "from 5 to 7 replicas: `behaviors[49]` is active"
    ]


LAUNCH = {"calendars": [{"name": "launch", "mode": "Only"}], "priority": 1}


@pytest.mark.parametrize("date", ["2025-11-28", "2029-01-01"], ids=["over", "in-years"])
@pytest.mark.parametrize(
    "rare",
    [
        pytest.param(daily(9, "8", "20", **LAUNCH), id="daily"),
        pytest.param(daily(9, "8", "20", leadSeconds=600, **LAUNCH), id="daily with a lead"),
        pytest.param(every_other_minute(9, EVEN, ODD, **LAUNCH), id="every minute"),
        pytest.param(every_other_minute(9, EVEN, ODD, leadSeconds=60, **LAUNCH), id="every minute with a lead"),
    ],
)
def test_rare_behavior_does_not_delay_the_others(rare: Object, date: str) -> None:
    """It is inactive for years or for ever; the others take effect at their second, with their next change."""
    harness = ProducerHarness()
    web = producer(schedule=schedule(rare, daily(7, "9", "17"), default=1))

    outcome = harness.scenario("2026-06-01T08:10:00Z", web, calendar("launch", date)).run("10h")

    assert harness.value_changes[1:] == [("2026-06-01T09:00:00Z", "web", 7), ("2026-06-01T17:00:00Z", "web", 1)]
    assert status_of(outcome)["scheduledCapacity"]["nextValueTime"] == "2026-06-02T09:00:00Z"


def test_long_search_does_not_delay_other_behaviors() -> None:
    """A lead that fills nearly every pause hides the next change of the others, which are searched separately."""
    harness = ProducerHarness()
    web = producer(schedule=schedule({**EVENS, "leadSeconds": 3600}, daily(7, "9", "17", priority=1), default=1))

    harness.scenario("2026-06-01T08:10:00Z", web).run("10h")

    assert harness.value_changes[1:] == [("2026-06-01T09:00:00Z", "web", 7), ("2026-06-01T17:00:00Z", "web", 5)]


def test_failed_search_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is kept when a worker process dies."""
    search, calls = schedules._search_present, []

    def dying(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise BrokenExecutor("a worker has died")
        return search(*given)

    monkeypatch.setattr(schedules, "_search_present", dying)
    monkeypatch.setattr(schedules, "QUICK_BUDGET", -1)
    harness = ProducerHarness()
    web = producer(schedule=schedule(daily(7, "9", "17")))

    harness.scenario("2026-06-01T09:30:00Z", web).tolerating(BrokenExecutor).run("10m")

    assert [value for _, _, value in harness.value_changes] == [7]


def test_value_that_needs_a_search_is_exported_after_it() -> None:
    """A lead that fills every pause is found by the background search, and the result stays valid."""
    harness = ProducerHarness()
    scenario = harness.scenario(
        "2026-06-01T08:00:00Z",
        producer(schedule=schedule(daily(7, "9", "17", leadSeconds=70_000))),
        producer("other", schedule=schedule(HIDDEN)),
    )

    outcome = scenario.run("2h")

    assert harness.value_changes == [
        ("2026-06-01T08:00:00Z", "other", 1),
        ("2026-06-01T08:00:00Z", "web", 7),
        ("2026-06-01T09:00:00Z", "other", 8),
    ]
    assert status_of(outcome)["scheduledCapacity"] == {
        "currentValue": 7,
        "timezone": "UTC",
        "activeBehavior": "behaviors[0]",
    }


def test_search_is_repeated_when_another_behavior_sets_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the value is the same: a lead fills every pause except that in which clocks are set back."""
    monkeypatch.setattr(schedules, "THOROUGH_BUDGET", 100_000)
    harness = ProducerHarness()
    web = producer(schedule=schedule({**EVENS, "leadSeconds": 3600}, HIDDEN, default=5, zone="Europe/Berlin"))

    outcome = harness.scenario("2026-10-25T00:50:00Z", web).run("15m")

    assert writes_of(outcome)[-2:] == ["2026-10-25T00:59:00Z", "2026-10-25T01:00:00Z"]
    assert status_of(outcome)["scheduledCapacity"]["activeBehavior"] == "behaviors[0]"


def test_deleted_producers_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may create and delete producers with ever new calendars and groups of nodes."""
    made: list[Any] = []
    for kind in (schedules.Schedules, ReservedCapacity):

        def noted(self: Any, context: ControllerContext, create: Any = kind.__init__) -> None:
            create(self, context)
            made.append(self)

        monkeypatch.setattr(kind, "__init__", noted)
    restricted = daily(3, "9", "17", name="day", calendars=[{"name": "launch"}])
    objects = [
        producer("web", schedule=schedule(restricted)),
        producer("nodes", reservedCapacity={"nodeSelector": {"group": "a"}}),
    ]
    scenario = ProducerHarness().scenario("2026-06-01T08:00:00Z", *objects)
    scenario.at("5m", delete("MetricsProducer", "web")).at("5m", delete("MetricsProducer", "nodes")).run("10m")

    scheduled, reserved = made
    assert (scheduled._users, scheduled._compiled, scheduled._states) == ({}, {}, {})
    assert (reserved._users, reserved._labels, reserved._occupancy._totals) == ({}, {}, {})
