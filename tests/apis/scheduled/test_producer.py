"""What is said about MetricsProducers: sources, patterns, zones, and behaviours that are not what they seem.

What is said about queues.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.almanac.builders import utc
from tests.apis.manifests import problems_of, shown
from tests.apis.scheduled.objects import (
    DAYTIME,
    NIGHT,
    WEEKDAYS,
    WEEKEND,
    at,
    behavior,
    daily,
    producer,
    schedule,
    scheduled,
)

from springtide.apis.kinds import ValidationContext
from springtide.apis.problems import Problem

LA = "America/Los_Angeles"
NOW = ValidationContext(now=utc("2026-06-01T00:00:00"))
START = "spec.schedule.behaviors[0].start"
ONCE: dict[str, Any] = {"from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"}


def problems(value: dict[str, Any], context: ValidationContext = NOW) -> list[Problem]:
    return problems_of(value, context)


def only(value: dict[str, Any]) -> Problem:
    found = problems(value)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"schedule": schedule()}, [], id="schedule"),
        pytest.param({"pendingCapacity": {"nodeSelector": {"group": "a"}}}, [], id="pending"),
        pytest.param({"pendingCapacity": {}}, ["error spec.pendingCapacity.nodeSelector"], id="pending-without-nodes"),
        pytest.param({"reservedCapacity": {"nodeSelector": {"group": "a"}}}, [], id="reserved"),
        pytest.param(
            {"reservedCapacity": {"nodeSelector": {}}},
            ["error spec.reservedCapacity.nodeSelector"],
            id="reserved-without-label",
        ),
        pytest.param(
            {"reservedCapacity": {"nodeSelector": {"group": "a", "zone": "b"}}},
            ["error spec.reservedCapacity.nodeSelector"],
            id="reserved-with-two-labels",
        ),
        pytest.param({}, ["error spec"], id="nothing"),
        pytest.param(
            {"schedule": schedule(), "pendingCapacity": {"nodeSelector": {"group": "a"}}},
            ["error spec.schedule"],
            id="two-sources",
        ),
        pytest.param({"scheduleSpec": schedule()}, ["warning spec.scheduleSpec"], id="alias"),
        pytest.param(
            {"scheduleSpec": schedule(), "schedule": schedule()},
            ["error spec.scheduleSpec"],
            id="alias-and-schedule",
        ),
        pytest.param({"scheduledCapacity": {}}, ["error spec", "error spec.scheduledCapacity"], id="oldest-name"),
    ],
)
def test_one_source(spec: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems(producer(spec)))


def test_several_sources_are_listed() -> None:
    found = only(producer({"schedule": schedule(), "queue": {"type": "Prometheus", "id": "up"}}))

    assert "queue, schedule" in found.message


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(at(weekdays="Mon-Fri"), [f"error {START}.weekdays"], id="weekdays"),
        pytest.param(at(months="Jan-Mar"), [f"error {START}.months"], id="months"),
        pytest.param(at(hours="*/2"), [f"error {START}.hours"], id="step"),
        pytest.param(at(hours="*"), [f"error {START}.hours"], id="star"),
        pytest.param(at(weekdays="Monday"), [], id="full-name"),
        pytest.param(at(weekdays="7"), [], id="seven-is-sunday"),
        pytest.param(at(weekdays="8"), [f"error {START}.weekdays"], id="eight"),
        pytest.param(at(weekdays="Mon, Tue"), [], id="spaces-after-commas"),
        pytest.param(at(hours=17), [], id="integer"),
        pytest.param(at(hours=""), [f"error {START}.hours"], id="empty"),
        pytest.param(at(hours="9,,10"), [f"error {START}.hours"], id="empty-element"),
        pytest.param(at(hours=24), [f"error {START}.hours"], id="hour-24"),
        pytest.param(at(minutes=60), [f"error {START}.minutes"], id="minute-60"),
        pytest.param(at(days=0), [f"error {START}.days"], id="day-0"),
        pytest.param(at(days=32), [f"error {START}.days"], id="day-32"),
        pytest.param(at(days=30, months="Feb"), [f"error {START}.days"], id="never"),
        pytest.param(at(hours=True), [f"error {START}.hours"], id="boolean"),
        pytest.param(at(hour=9), [f"error {START}.hour"], id="singular"),
        pytest.param(
            at(hours="25", weekdays="Mon-Fri", months="Jan-Mar"),
            [f"error {START}.hours", f"error {START}.months", f"error {START}.weekdays"],
            id="all-at-once",
        ),
    ],
)
def test_patterns(start: dict[str, Any], expected: list[str]) -> None:
    value = scheduled(behavior(start, at(hours=1, minutes=1)), matchPolicy="Window")

    assert expected == shown(problems(value))


def test_range_is_written_out() -> None:
    found = problems(scheduled(behavior(at(weekdays="Mon-Fri"), at(weekdays="Sat"))))

    assert any(WEEKDAYS in problem.hint for problem in found)


def test_never_ending_behaviour_is_refused() -> None:
    """31 April does not exist, and must not mean "never ends"."""
    found = problems(scheduled(behavior(at(hours=9), at(months="Apr", days=31))))

    assert shown(found) == ["error spec.schedule.behaviors[0].end.days"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            scheduled(behavior(at(months="Feb", days=29), at(months="Feb", days=29, hours=12))),
            ["warning spec.schedule.behaviors[0].end.days", "warning spec.schedule.behaviors[0].start.days"],
            id="leap-years-only",
        ),
        pytest.param(scheduled(daily(9, 17, -1)), ["error spec.schedule.behaviors[0].replicas"], id="replicas"),
        pytest.param(scheduled(daily(9, 17), default=-1), ["error spec.schedule.defaultReplicas"], id="default"),
        pytest.param(scheduled(daily(9, 17), timezone="EST"), ["warning spec.schedule.timezone"], id="abbreviation"),
        pytest.param(scheduled(daily(9, 17), timezone="Nowhere"), ["error spec.schedule.timezone"], id="unknown-zone"),
        pytest.param(scheduled(daily(9, 17), timezone=""), ["error spec.schedule.timezone"], id="empty-zone"),
        pytest.param(scheduled(daily(9, 17)), [], id="no-zone"),
        pytest.param(
            scheduled(
                behavior(at(days="1,2,3,4,5,6,7", weekdays="Mon"), at(days="1,2,3,4,5,6,7", weekdays="Mon", hours=8))
            ),
            [],
            id="days-and-weekdays",
        ),
        pytest.param(scheduled(daily(9, 9)), ["warning spec.schedule.behaviors[0].end"], id="start-equals-end"),
        pytest.param(scheduled({"replicas": 9, **ONCE}), [], id="once"),
        pytest.param(
            scheduled(daily(9, 17, **ONCE)), ["error spec.schedule.behaviors[0].from"], id="recurring-and-once"
        ),
        pytest.param(scheduled({"replicas": 9}), ["error spec.schedule.behaviors[0]"], id="no-times"),
        pytest.param(
            scheduled({"replicas": 9, "start": {"hours": 9}}), ["error spec.schedule.behaviors[0]"], id="no-end"
        ),
        pytest.param(
            scheduled({"start": {}, "end": {"hours": 1}}),
            ["error spec.schedule.behaviors[0].replicas"],
            id="no-replicas",
        ),
        pytest.param(scheduled(daily(9, 17), timeZone="UTC"), ["error spec.schedule.timeZone"], id="case-of-timezone"),
        pytest.param(scheduled(daily(9, 17), matchPolicy="Strict"), ["error spec.schedule.matchPolicy"], id="policy"),
        pytest.param(
            producer({"schedule": {"behaviors": []}}), ["error spec.schedule.defaultReplicas"], id="no-default"
        ),
        pytest.param(
            scheduled(daily(9, 17, name="a"), daily(17, 18, name="a")),
            ["error spec.schedule.behaviors[1].name"],
            id="same-name-twice",
        ),
        pytest.param(
            scheduled(daily(9, 17, calendars=[{"name": "a"}, {"name": "a"}])),
            ["error spec.schedule.behaviors[0].calendars[1].name"],
            id="same-calendar-twice",
        ),
        pytest.param(
            scheduled({"replicas": 1, "crontab": "* * * * *"}),
            ["error spec.schedule.behaviors[0]", "error spec.schedule.behaviors[0].crontab"],
            id="crontab",
        ),
        pytest.param(
            scheduled(daily(9, 17, -1), daily(10, 10)),
            ["error spec.schedule.behaviors[0].replicas", "warning spec.schedule.behaviors[1].end"],
            id="one-bad-behaviour-hides-no-other",
        ),
    ],
)
def test_schedules(value: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems(value))


def test_literal_reading_is_explained() -> None:
    """The example of the design is ambiguous; `matchPolicy` selects windows."""
    quarter = behavior(
        at(weekdays=WEEKDAYS, hours=9, months="Jan,Feb,Mar"), at(weekdays=WEEKDAYS, hours=17, months="Feb,Mar,Apr")
    )
    found = only(scheduled(quarter, timezone=LA))

    assert (found.severity, found.path[-1]) == ("warning", "start")
    assert "Fri 2027-01-01 09:00 America/Los_Angeles it is not active" in found.message
    assert "matchPolicy: Window" in found.hint
    assert problems(scheduled(quarter, timezone=LA, matchPolicy="Window")) == []


@pytest.mark.parametrize(
    ("start", "end", "first"),
    [
        pytest.param(at(hours="9,12"), at(hours=17), "Mon 2026-06-01 09:00 UTC it is not active", id="extra-start"),
        pytest.param(at(hours=9), at(hours="12,17"), "Mon 2026-06-01 12:00 UTC it is active", id="extra-end"),
        pytest.param(
            at(months="Feb", days=29, hours=1),
            at(months="Mar", days=1),
            "Mon 2026-06-01 00:00 UTC it is active",
            id="start-is-rarer",
        ),
    ],
)
def test_first_instant_of_two_readings(start: dict[str, Any], end: dict[str, Any], first: str) -> None:
    found = problems(scheduled(behavior(start, end)))

    assert any(first in problem.message for problem in found)


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(600, [], id="ten-minutes"),
        pytest.param(8 * 3600, ["warning spec.schedule.behaviors[0].leadSeconds"], id="as-long-as-the-window"),
        pytest.param(16 * 3600, ["warning spec.schedule.behaviors[0].leadSeconds"], id="as-long-as-the-pause"),
        pytest.param(-1, ["error spec.schedule.behaviors[0].leadSeconds"], id="negative"),
    ],
)
def test_leads(lead: int, expected: list[str]) -> None:
    assert expected == shown(problems(scheduled(daily(9, 17, leadSeconds=lead))))


def test_lead_that_fills_every_pause() -> None:
    assert "always active" in only(scheduled(daily(9, 17, leadSeconds=16 * 3600))).message


def test_collision_names_pair_times_and_winner() -> None:
    """The week of the design: at equal priority the first listed wins, with a warning."""
    value = scheduled(WEEKEND, DAYTIME, NIGHT, default=2, timezone=LA)
    (found,) = problems(value, ValidationContext(now=utc("2026-06-02T00:00:00")))

    assert found.severity == "warning"
    assert found.path == ("spec", "schedule", "behaviors", 2)
    for words in (
        "`behaviors[0]` (replicas 1)",
        "`behaviors[2]` (replicas 2)",
        "Fri 2026-06-05 17:00, Fri 2026-06-12 17:00, Fri 2026-06-19 17:00 America/Los_Angeles",
        "`behaviors[0]` wins",
    ):
        assert words in found.message


@pytest.mark.parametrize(
    ("behaviors", "expected"),
    [
        pytest.param([daily(9, 17, 3), daily(17, 21, 5)], [], id="one-ends-when-another-starts"),
        pytest.param([daily(9, 17, 3), daily(12, 20, 3)], [], id="same-value"),
        pytest.param([daily(9, 17, 3), daily(12, 20, 4)], ["warning spec.schedule.behaviors[1]"], id="overlap"),
        pytest.param([daily(9, 17, 3), daily(12, 20, 4, priority=1)], [], id="priority-decides"),
        pytest.param([daily(9, 17, 3), daily(12, 20, 4, suspend=True)], [], id="suspended"),
        pytest.param([daily(9, 17, 3), daily(12, 20, 4, calendars=[{"name": "a"}])], [], id="calendars-may-part-them"),
        pytest.param([daily(8, 20, 3), daily(12, 13, 8)], ["warning spec.schedule.behaviors[1]"], id="never-wins"),
        pytest.param([daily(12, 13, 8), daily(8, 20, 3)], ["warning spec.schedule.behaviors[1]"], id="inner-first"),
        pytest.param(
            [daily(12, 13, 8), daily(8, 20, 3, priority=5)],
            ["warning spec.schedule.behaviors[0]"],
            id="never-wins-by-priority",
        ),
        pytest.param([daily(12, 13, 8, name="late"), daily(8, 20, 3, priority=-1)], [], id="negative-priority"),
    ],
)
def test_meetings_of_behaviours(behaviors: list[dict[str, Any]], expected: list[str]) -> None:
    assert expected == shown(problems(scheduled(*behaviors)))


def test_behaviour_that_never_takes_effect() -> None:
    found = only(scheduled(daily(8, 20, 3), daily(12, 13, 8, name="lunch")))

    assert "behaviour `lunch` never takes effect" in found.message


def test_zone_of_the_context_is_used() -> None:
    """A schedule without a zone is read in the default zone."""
    value = scheduled(daily(9, 17, 3), daily(12, 20, 4))
    (found,) = problems(value, ValidationContext(now=NOW.now, default_zone="Asia/Tokyo"))

    assert "Mon 2026-06-01 12:00" in found.message
    assert "Asia/Tokyo" in found.message


def test_only_so_many_behaviours_are_compared() -> None:
    """A check of hundreds of behaviours takes bounded time."""
    crowd = [daily(hour % 23, hour % 23 + 1, hour) for hour in range(200)]

    assert [problem.path[3] for problem in problems(scheduled(*crowd))] == list(range(23, 50))


ARN = "arn:aws:sqs:us-west-2:123456789012:jobs"


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        pytest.param({"type": "AWSSQSQueue", "id": ARN}, [], id="sqs"),
        pytest.param({"type": "AWSSQSQueue", "id": f"{ARN}.fifo"}, [], id="fifo"),
        pytest.param({"type": "AWSSQSQueue", "id": "jobs"}, ["error spec.queue.id"], id="sqs-name"),
        pytest.param({"type": "Prometheus", "id": "sum(queue_length)"}, [], id="prometheus"),
        pytest.param(
            {"type": "Prometheus", "id": "max(a, b)"},
            ["warning spec.queue.id"],
            id="several-arguments",
        ),
        pytest.param({"type": "HTTP", "id": "https://queue.example/stats"}, [], id="http"),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example/stats", "pointer": "/data/0/a~1b"}, [], id="pointer"
        ),
        pytest.param({"type": "HTTP", "id": "queue.example/stats"}, ["error spec.queue.id"], id="no-scheme"),
        pytest.param({"type": "HTTP", "id": "https://[::1/stats"}, ["error spec.queue.id"], id="bad-host"),
        pytest.param({"type": "HTTP", "id": "https://queue.example:no/"}, ["error spec.queue.id"], id="bad-port"),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example", "pointer": "data"},
            ["error spec.queue.pointer"],
            id="pointer-without-slash",
        ),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example", "pointer": "/~2"}, ["error spec.queue.pointer"], id="tilde"
        ),
        pytest.param(
            {"type": "AWSSQSQueue", "id": ARN, "pointer": "/a"}, ["error spec.queue.pointer"], id="pointer-of-sqs"
        ),
        pytest.param({"type": "Kafka", "id": "x"}, ["error spec.queue.type"], id="unknown-type"),
        pytest.param({"type": "AWSSQSQueue"}, ["error spec.queue.id"], id="no-id"),
        pytest.param({"type": "AWSSQSQueue", "id": ""}, ["error spec.queue.id"], id="empty-id"),
    ],
)
def test_queues(queue: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(producer({"queue": queue})))


def test_address_of_a_queue_is_turned_into_its_arn() -> None:
    url = "https://sqs.us-west-2.amazonaws.com/123456789012/jobs"
    (found,) = problems_of(producer({"queue": {"type": "AWSSQSQueue", "id": url}}))

    assert ARN in found.hint
