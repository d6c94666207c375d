"""Schedules that come and go all the time: nobody waits for them, and what they say is right at the second."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.metrics_producer.harness import (
    Stage,
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
from springtide.cluster.resources import Object
from springtide.controllers.metrics_producer import schedules
from springtide.controllers.metrics_producer.compiled_spec import (
    QUICK_BUDGET,
    SEARCH_AGAIN,
    THOROUGH_BUDGET,
    compile_with_calendars,
)
from springtide.controllers.validated import validated

NOW = 1_780_000_000
PLENTY = 10**9
HOURS = ",".join(map(str, range(24)))
MINUTES = ",".join(map(str, range(60)))
EVEN, ODD = (",".join(map(str, range(first, 60, 2))) for first in (0, 1))


def every_other_minute(replicas: int, first: str, then: str, **more: Any) -> Object:
    """Write a behaviour that begins and ends all the time."""
    start, end = ({"hours": HOURS, "minutes": minutes} for minutes in (first, then))
    return {"replicas": replicas, "start": start, "end": end, **more}


EVENS, ODDS = every_other_minute(5, EVEN, ODD), every_other_minute(5, ODD, EVEN)
UNSEEN = daily(8, "9", "17")
LEAP_DAYS = {
    "replicas": 3,
    "start": {"hours": HOURS, "minutes": MINUTES},
    "end": {"months": "feb", "days": "29", "hours": HOURS, "minutes": MINUTES},
}
RESTLESS = [
    pytest.param([*[EVENS, ODDS] * 100, UNSEEN], id="a-value-that-never-comes"),
    pytest.param([{**EVENS, "leadSeconds": 3600 + more} for more in range(100)], id="leads-without-pauses"),
    pytest.param([{**LEAP_DAYS, "leadSeconds": more} for more in range(100)], id="rare-and-dense"),
    pytest.param([{**EVENS, "replicas": more} for more in range(200)], id="all-at-once"),
]


def read(*behaviors: Object, zone: str = "Europe/Berlin", default: int = 5) -> ScheduleSpec:
    """Read a schedule as the controller does."""
    item = producer(schedule=schedule(*behaviors, default=default, zone=zone))
    sound = validated(item, MetricsProducer, now=NOW, default_zone="UTC").sound
    assert sound is not None
    assert sound.spec.schedule is not None
    return sound.spec.schedule


@pytest.mark.parametrize("behaviors", RESTLESS)
def test_a_look_on_the_way_takes_milliseconds(behaviors: list[Object]) -> None:
    """However a schedule is written, the event loop does a bounded number of steps for it, twice where that is cut."""
    plan = compile_with_calendars(read(*behaviors), "UTC", ())

    with limit_search(PLENTY) as effort:
        plan.at(NOW, 5, QUICK_BUDGET)

    assert PLENTY - effort.left < 2 * QUICK_BUDGET + 1000


@pytest.mark.parametrize("behaviors", RESTLESS)
def test_a_search_for_surprises_ends(behaviors: list[Object]) -> None:
    """A webhook and a check answer in time, and do not say what they have not seen."""
    with limit_search(PLENTY) as effort:
        found = [surprise.reason for surprise in schedule_findings(read(*behaviors), ValidationContext(now=NOW))]

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
def test_a_short_look_that_ends_says_what_a_long_one_says(behaviors: list[Object], steps: int) -> None:
    """What is called certain or complete does not depend on the number of steps; nobody looks again long after."""
    plan = compile_with_calendars(read(*behaviors), "UTC", ())
    short, long = plan.at(NOW, 5, steps), plan.at(NOW, 5, THOROUGH_BUDGET)

    if short.complete:
        assert short == long
    elif short.certain:
        assert (short.value, short.rank) == (long.value, long.rank)
        assert short.until is not None
        assert short.until <= NOW + SEARCH_AGAIN or short.until == long.until


def test_values_come_at_the_second_while_what_comes_next_is_searched() -> None:
    """The value needs no search, and the status is completed when there was one."""
    busy = [every_other_minute(5, EVEN, ODD, leadSeconds=lead) for lead in range(1, 40)]
    morning = {"replicas": 7, "start": {"hours": "9"}, "end": {"hours": "10"}, "priority": 1}
    stage = Stage()
    web = producer(schedule=schedule(*busy, *[ODDS] * 10, morning, default=5))

    outcome = stage.playing("2026-06-01T08:58:30Z", web).run("2m")

    assert stage.heard[-1] == ("2026-06-01T09:00:00Z", "web", 7)
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
        pytest.param(daily(9, "8", "20", leadSeconds=600, **LAUNCH), id="daily-and-early"),
        pytest.param(every_other_minute(9, EVEN, ODD, **LAUNCH), id="each-minute"),
        pytest.param(every_other_minute(9, EVEN, ODD, leadSeconds=60, **LAUNCH), id="each-minute-and-early"),
    ],
)
def test_a_behaviour_of_one_day_keeps_nobody_waiting(rare: Object, date: str) -> None:
    """It has nothing to say for years, or never again; the others change at their second, and say what comes."""
    stage = Stage()
    web = producer(schedule=schedule(rare, daily(7, "9", "17"), default=1))

    outcome = stage.playing("2026-06-01T08:10:00Z", web, calendar("launch", date)).run("10h")

    assert stage.heard[1:] == [("2026-06-01T09:00:00Z", "web", 7), ("2026-06-01T17:00:00Z", "web", 1)]
    assert status_of(outcome)["scheduledCapacity"]["nextValueTime"] == "2026-06-02T09:00:00Z"


def test_one_that_takes_a_long_search_makes_nobody_late() -> None:
    """A lead that fills nearly every pause hides what comes of the others: they are looked at by themselves."""
    stage = Stage()
    web = producer(schedule=schedule({**EVENS, "leadSeconds": 3600}, daily(7, "9", "17", priority=1), default=1))

    stage.playing("2026-06-01T08:10:00Z", web).run("10h")

    assert stage.heard[1:] == [("2026-06-01T09:00:00Z", "web", 7), ("2026-06-01T17:00:00Z", "web", 5)]


def test_a_look_that_failed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies takes nobody's value with it."""
    look, looks = schedules._search_present, []

    def dying(*given: Any) -> Any:
        looks.append(given)
        if len(looks) == 1:
            raise BrokenExecutor("a worker has died")
        return look(*given)

    monkeypatch.setattr(schedules, "_search_present", dying)
    monkeypatch.setattr(schedules, "QUICK_BUDGET", -1)
    stage = Stage()
    web = producer(schedule=schedule(daily(7, "9", "17")))

    stage.playing("2026-06-01T09:30:00Z", web).tolerating(BrokenExecutor).run("10m")

    assert [value for _, _, value in stage.heard] == [7]


def test_a_value_that_needs_a_search_comes_after_it() -> None:
    """A lead that fills every pause is found out beside everything else, and then holds for good."""
    stage = Stage()
    scenario = stage.playing(
        "2026-06-01T08:00:00Z",
        producer(schedule=schedule(daily(7, "9", "17", leadSeconds=70_000))),
        producer("other", schedule=schedule(UNSEEN)),
    )

    outcome = scenario.run("2h")

    assert stage.heard == [
        ("2026-06-01T08:00:00Z", "other", 1),
        ("2026-06-01T08:00:00Z", "web", 7),
        ("2026-06-01T09:00:00Z", "other", 8),
    ]
    assert status_of(outcome)["scheduledCapacity"] == {
        "currentValue": 7,
        "timezone": "UTC",
        "activeBehavior": "behaviors[0]",
    }


def test_who_sets_the_value_is_searched_again_when_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the value is the same: a lead that fills every pause but the one in which clocks are set back."""
    monkeypatch.setattr(schedules, "THOROUGH_BUDGET", 100_000)
    stage = Stage()
    web = producer(schedule=schedule({**EVENS, "leadSeconds": 3600}, UNSEEN, default=5, zone="Europe/Berlin"))

    outcome = stage.playing("2026-10-25T00:50:00Z", web).run("15m")

    assert writes_of(outcome)[-2:] == ["2026-10-25T00:59:00Z", "2026-10-25T01:00:00Z"]
    assert status_of(outcome)["scheduledCapacity"]["activeBehavior"] == "behaviors[0]"
