"""What is shown of cron rules ahead of time."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.almanac.builders import show, utc
from tests.apis.karmada.objects import FEDERATED, SCALED_OBJECT, as_cron, cron, rule

from springtide.almanac import DayCalendar, Days
from springtide.apis.forecast import ForecastQuery, Lane, LaneStyle, Outlook
from springtide.apis.karmada import KINDS

START = utc("2026-03-06T00:00:00")
WEEK = ForecastQuery(start=START, until=START + 7 * 86400)


def forecast(value: dict[str, Any], query: ForecastQuery = WEEK) -> Outlook:
    forecaster = KINDS[0].versions[0].forecaster
    assert forecaster is not None
    return forecaster(as_cron(value), query)


def lane_of(*rules: dict[str, Any], target: dict[str, Any] | None = None, query: ForecastQuery = WEEK) -> Lane:
    return forecast(cron(*rules, target=target), query).lanes[0]


def test_one_lane_for_each_rule() -> None:
    outlook = forecast(cron(rule("up", targetReplicas=1000), rule("down", "0 11 * * *", targetReplicas=1)))

    assert [(lane.name, lane.style) for lane in outlook.lanes] == [
        ("up", LaneStyle.FIRINGS),
        ("down", LaneStyle.FIRINGS),
    ]


def test_every_firing_over_a_change_of_clocks() -> None:
    lane = lane_of(rule(schedule="30 2 * * *", targetReplicas=3, timeZone="America/New_York"))

    assert [show(change.at, "America/New_York") for change in lane.changes] == [
        "2026-03-06T02:30:00-05:00",
        "2026-03-07T02:30:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
        "2026-03-10T02:30:00-04:00",
        "2026-03-11T02:30:00-04:00",
        "2026-03-12T02:30:00-04:00",
    ]
    assert {change.value["replicas"] for change in lane.changes if isinstance(change.value, dict)} == {3}
    assert lane.changes[2].because == "rule `up` fires (03:00 America/New_York)"


@pytest.mark.parametrize(
    ("target", "numbers", "value"),
    [
        pytest.param(None, {"targetReplicas": 0}, {"replicas": 0}, id="workload"),
        pytest.param(FEDERATED, {"targetMinReplicas": 2, "targetMaxReplicas": 9}, {"min": 2, "max": 9}, id="both"),
        pytest.param(FEDERATED, {"targetMaxReplicas": 9, "targetReplicas": 5}, {"max": 9}, id="ignored-replicas"),
        pytest.param(SCALED_OBJECT, {"targetMinReplicas": 0}, {"min": 0}, id="keda"),
    ],
)
def test_what_is_set(target: dict[str, Any] | None, numbers: dict[str, Any], value: dict[str, int]) -> None:
    lane = lane_of(rule(**numbers), target=target)

    assert value == lane.current
    assert value == lane.changes[0].value


def test_suspended_rule_has_nothing() -> None:
    """Neither a current value nor a next one."""
    lane = lane_of(rule(targetReplicas=1, suspend=True))

    assert (lane.current, lane.changes, lane.next) == (None, (), None)
    assert "suspended" in lane.because


def test_next_lies_beyond_the_end_too() -> None:
    lane = lane_of(rule(schedule="0 0 1 1 *", targetReplicas=1))

    assert lane.changes == ()
    assert lane.next is not None
    assert show(lane.next.at) == "2027-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("at", "current", "next_"),
    [
        pytest.param("2026-03-08T00:00:00Z", None, "2026-03-08T00:00:00+00:00", id="ahead"),
        pytest.param("2026-03-06T00:00:00Z", {"replicas": 1}, None, id="now"),
        pytest.param("2026-03-05T00:00:00Z", {"replicas": 1}, None, id="past"),
    ],
)
def test_rule_that_fires_once(at: str, current: dict[str, int] | None, next_: str | None) -> None:
    lane = lane_of(rule(schedule=None, at=at, targetReplicas=1))

    assert current == lane.current
    assert next_ == (lane.next and show(lane.next.at))


def test_zones_in_order_of_the_rules() -> None:
    """A rule without a zone is read in the default zone."""
    value = cron(
        rule("a", targetReplicas=1, timeZone="Asia/Shanghai"),
        rule("b", targetReplicas=1),
        rule("c", targetReplicas=1, timeZone="Asia/Shanghai"),
    )
    outlook = forecast(value, ForecastQuery(start=START, until=WEEK.until, default_zone="Europe/Berlin"))

    assert outlook.zones == ("Asia/Shanghai", "Europe/Berlin")
    assert outlook.lanes[1].changes[0].because == "rule `b` fires (08:30 Europe/Berlin)"


def test_first_firing_of_the_proposal() -> None:
    """07:30 in Shanghai is 23:30 UTC of the day before."""
    lane = lane_of(rule(schedule="30 07 * * *", targetReplicas=1, timeZone="Asia/Shanghai"))

    assert show(lane.changes[0].at) == "2026-03-06T23:30:00+00:00"


def test_calendars_of_the_question_apply() -> None:
    closed = DayCalendar(Days(dates=(date(2026, 3, 7), date(2026, 3, 8))))
    query = ForecastQuery(start=START, until=START + 3 * 86400, calendars={"closed": closed})
    without = lane_of(rule(targetReplicas=1, calendars=[{"name": "closed"}]), query=query)
    only = lane_of(rule(targetReplicas=1, calendars=[{"name": "closed", "mode": "Only"}]), query=query)

    assert [show(change.at) for change in without.changes] == ["2026-03-06T08:30:00+00:00"]
    assert [show(change.at) for change in only.changes] == ["2026-03-07T08:30:00+00:00", "2026-03-08T08:30:00+00:00"]


def test_collisions_within_the_question() -> None:
    value = cron(rule("a", targetReplicas=1), rule("b", "30 8 * * sun", targetReplicas=2))
    (collision,) = forecast(value).collisions

    assert show(collision.at) == "2026-03-08T08:30:00+00:00"
    assert "`b` wins" in collision.text


def test_no_rules() -> None:
    outlook = forecast(cron())

    assert (outlook.lanes, outlook.zones) == ((), ("UTC",))


DAY = 86400
UP = rule("up", "0 7 * * *", targetMinReplicas=10, targetMaxReplicas=40)
DOWN = rule("down", "0 19 * * *", targetMinReplicas=2)


@pytest.mark.parametrize(
    ("target", "rules", "levels"),
    [
        pytest.param(
            FEDERATED,
            [UP, DOWN],
            {"minimum": (2, [(7, 10), (19, 2), (31, 10), (43, 2)]), "maximum": (40, [])},
            id="each-bound-has-its-level",
        ),
        pytest.param(
            FEDERATED, [UP, {**DOWN, "suspend": True}], {"minimum": (10, []), "maximum": (40, [])}, id="suspended"
        ),
        pytest.param(
            None,
            [rule("day", "0 8 * * *", targetReplicas=9), rule("night", "0 20 * * *", targetReplicas=1)],
            {"replicas": (1, [(8, 9), (20, 1), (32, 9), (44, 1)])},
            id="replicas",
        ),
        pytest.param(
            None,
            [{"name": "once", "at": "2026-03-07T06:00:00Z", "targetReplicas": 9}],
            {"replicas": (None, [(30, 9)])},
            id="not-set-before-the-first-firing",
        ),
    ],
)
def test_the_values_that_firings_leave_behind_are_levels(
    target: dict[str, Any] | None, rules: list[dict[str, Any]], levels: dict[str, Any]
) -> None:
    """Numbers are hours after the start."""
    outlook = forecast(cron(*rules, target=target), ForecastQuery(START, START + 2 * DAY))

    assert {lane.style for lane in outlook.levels} == {LaneStyle.LEVEL}
    assert levels == {
        lane.name: (lane.current, [((change.at - START) // 3600, change.value) for change in lane.changes])
        for lane in outlook.levels
    }


def test_the_reasons_of_a_level_name_the_rule() -> None:
    (minimum, _) = forecast(cron(UP, DOWN, target=FEDERATED)).levels

    assert minimum.because == "set by rule `down` (Thu 2026-03-05 19:00 UTC)"
    assert [change.because for change in minimum.changes][:2] == [
        "rule `up` fires (07:00 UTC)",
        "rule `down` fires (19:00 UTC)",
    ]
    (once,) = forecast(cron({"name": "once", "at": "2030-01-01T06:00:00Z", "targetReplicas": 9})).levels
    assert once.because == "no rule has set the replicas yet"
