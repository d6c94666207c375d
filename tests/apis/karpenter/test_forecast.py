"""Lanes of a pool: a value for every reason, and why it changes.

Pools with errors: what cannot be evaluated blocks, and only what it names.
"""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest
from tests.apis.karpenter.samples import budgets, instant, node_pool

from springtide.almanac import DayCalendar, Days
from springtide.apis.forecast import ForecastQuery, Lane, LaneStyle, Outlook
from springtide.apis.karpenter import types, v1beta1
from springtide.apis.karpenter.budgets import BudgetDefault, disruption_limit
from springtide.apis.karpenter.forecast import forecast_pool, pool_budgets

MONDAY = instant("2026-11-23 00:00:00")
WEEK = 7 * 24 * 3600


def outlook(listed: list[dict[str, Any]], nodes: int | None = None, **more: Any) -> Outlook:
    pool = msgspec.convert(node_pool({"budgets": listed, **more}), types.NodePool)
    return forecast_pool(pool, ForecastQuery(start=MONDAY, until=MONDAY + WEEK, nodes=nodes))


def lane(found: Outlook, name: str = "Drifted") -> Lane:
    return next(lane for lane in found.lanes if lane.name == name)


def test_a_lane_for_every_reason() -> None:
    """Always the same four, in the same order."""
    found = outlook(budgets("5"))

    assert [lane.name for lane in found.lanes] == ["Empty", "Drifted", "Underutilized", "Expired"]
    assert {LaneStyle.BUDGET} == {lane.style for lane in found.lanes}


@pytest.mark.parametrize(
    ("listed", "without_nodes", "with_nodes"),
    [
        pytest.param("5", 5, 5, id="count"),
        pytest.param("20%", "20%", 2, id="share"),
        pytest.param("20%; 5", {"min": ["20%", 5]}, 2, id="both"),
        pytest.param("5; 20%; 3; 40%", {"min": ["20%", 3]}, 2, id="least-of-each"),
        pytest.param("007", 7, 7, id="canonical"),
        pytest.param("5@E", "unlimited", "unlimited", id="none"),
        pytest.param("0", 0, 0, id="zero"),
    ],
)
def test_values(listed: str, without_nodes: Any, with_nodes: Any) -> None:
    """With a number of nodes a count, else what the budgets say."""
    assert without_nodes == lane(outlook(budgets(listed))).current
    assert with_nodes == lane(outlook(budgets(listed), nodes=8)).current


def test_a_closed_allow_budget_is_zero_whatever_else_there_is() -> None:
    """Nothing is left to compare."""
    listed = [{"nodes": "5", "mode": "Allow", "schedule": "0 9 * * *", "duration": "1h"}, {"nodes": "20%"}]

    found = lane(outlook(listed))

    assert found.current == 0
    assert [change.value for change in found.changes[:2]] == [{"min": ["20%", 5]}, 0]


def test_changes_of_a_week() -> None:
    """Every change of value in the week, with the budget, the local time and what holds from then on."""
    listed = [
        {"nodes": "0", "schedule": "0 9 * * mon", "duration": "8h", "timeZone": "Europe/Berlin"},
        {"nodes": "10"},
    ]

    found = lane(outlook(listed))

    assert found.current == 10
    assert [
        (instant("2026-11-23 08:00"), 0),
        (instant("2026-11-23 16:00"), 10),
    ] == [(change.at, change.value) for change in found.changes]
    assert [change.because for change in found.changes] == [
        (
            "budget 0 starts (09:00 Europe/Berlin): budget 0 blocks in its window"
            " (`0 9 * * mon` for 8h, Europe/Berlin), the tightest of 2 that cover Drifted"
        ),
        "budget 0 ends (17:00 Europe/Berlin): budget 1 allows 10",
    ]
    assert found.next == found.changes[0]


def test_next_lies_beyond_the_week_too() -> None:
    """It is the first change after the start, however far."""
    found = lane(outlook([{"nodes": "0", "from": "2027-05-01T00:00:00Z", "until": "2027-05-02T00:00:00Z"}]))

    assert found.changes == ()
    assert found.next is not None
    assert (instant("2027-05-01 00:00:00"), 0) == (found.next.at, found.next.value)


def test_no_next_where_nothing_changes() -> None:
    """Windows of other reasons, and windows that change nothing, are no changes."""
    found = outlook(budgets("5@D; 9@D [0 9 * * * +1h]; 3@E [0 9 * * * +1h]"))

    assert lane(found).next is None
    assert lane(found, "Underutilized").next is None
    assert lane(found, "Empty").next is not None


def test_readings_differ() -> None:
    """As a fallback a budget without reasons steps aside while another one is active."""
    listed = budgets("20@D [0 9 * * mon +1h]; 5")

    floor = [change.value for change in lane(outlook(listed)).changes]
    fallback = [change.value for change in lane(outlook(listed, budgetDefault="Fallback")).changes]

    assert floor == []
    assert fallback == [20, 5]


def test_v1beta1_is_read_as_it_was_meant() -> None:
    """Budgets without reasons fall back, schedules without duration hold always, expiry waits."""
    pool = msgspec.convert(
        {
            "apiVersion": "karpenter.sh/v1beta1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "disruption": {
                    "budgets": [
                        {"nodes": "10", "reasons": ["Drifted", "Underutilized"], "schedule": "* * * * *"},
                        {"nodes": "5", "schedule": "* * * * *"},
                    ]
                }
            },
        },
        v1beta1.NodePoolV1Beta1,
    )

    found = forecast_pool(pool, ForecastQuery(start=MONDAY, until=MONDAY + WEEK))

    assert {lane.name: lane.current for lane in found.lanes} == {
        "Empty": 5,
        "Drifted": 10,
        "Underutilized": 10,
        "Expired": 5,
    }
    assert "do not wait" not in lane(found, "Expired").because


def test_forceful_expiry_is_mentioned() -> None:
    """The lane shows the limit, and says that expired nodes do not wait for it."""
    assert "do not wait" in lane(outlook(budgets("5")), "Expired").because


@pytest.mark.parametrize(
    ("listed", "zones"),
    [
        pytest.param([{"nodes": "5"}], ("UTC",), id="none"),
        pytest.param(
            [
                {"schedule": "0 9 * * *", "duration": "1h", "timeZone": "Asia/Tokyo"},
                {"schedule": "0 9 * * *", "duration": "1h"},
                {"schedule": "0 8 * * *", "duration": "1h", "timeZone": "Asia/Tokyo"},
            ],
            ("Asia/Tokyo", "UTC"),
            id="two",
        ),
    ],
)
def test_zones(listed: list[dict[str, Any]], zones: tuple[str, ...]) -> None:
    """The zones of the schedules, in their order, or the one that unset zones mean."""
    assert zones == outlook(listed).zones


def test_calendars_take_days_away() -> None:
    """A calendar that is known cuts the lane at local midnight."""
    pool = msgspec.convert(
        node_pool({"budgets": [{"nodes": "0", "calendars": [{"name": "freeze", "mode": "Only"}]}, {"nodes": "5"}]}),
        types.NodePool,
    )
    calendars = {"freeze": DayCalendar(Days(dates=(datetime.date(2026, 11, 26),)), None)}

    found = forecast_pool(pool, ForecastQuery(start=MONDAY, until=MONDAY + WEEK, calendars=calendars))

    assert [
        (instant("2026-11-26 00:00"), 0),
        (instant("2026-11-27 00:00"), 5),
    ] == [(change.at, change.value) for change in lane(found).changes]


SOONER, LATER = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def limits(budgets: Any, *, version: str = "v1") -> list[int | None]:
    value = {"apiVersion": f"karpenter.sh/{version}", "kind": "NodePool", "spec": {"disruption": {"budgets": budgets}}}
    pool = pool_budgets(value)
    return [disruption_limit(pool, reason, pool.active.at(0), 100).count for reason in pool.reasons]


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        pytest.param([{"nodes": "7"}], [7, 7, 7, 7], id="sound"),
        pytest.param(None, [10, 10, 10, 10], id="the default of a tenth"),
        pytest.param([], [None, None, None, None], id="no budgets, no limit"),
        pytest.param([{"nodes": "101%"}], [0, 0, 0, 0], id="a bad number blocks all"),
        pytest.param([{"nodes": "101%", "reasons": ["Drifted"]}], [None, 0, None, None], id="or what it names"),
        pytest.param([{"nodes": {}, "reasons": ["Empty"]}, {"nodes": "5"}], [0, 5, 5, 5], id="a wrong type"),
        pytest.param([{"nodes": "5", "reasons": ["Unhealthy"]}], [None, None, None, 5, None], id="a reason more"),
        pytest.param(["x", {"nodes": "5"}], [0, 0, 0, 0], id="no mapping"),
        pytest.param("x", [0, 0, 0, 0], id="no list"),
        pytest.param([{"nodes": "5", "schedule": "0 0 * * 7", "duration": "1h"}], [0, 0, 0, 0], id="a bad schedule"),
        pytest.param([{"nodes": "5", "schedule": "0 0 * * *"}], [0, 0, 0, 0], id="no duration"),
        pytest.param([{"nodes": None, "mode": None}], [10, 10, 10, 10], id="null is not set"),
        pytest.param([{"nodes": "5", "timeZone": "UTC"}], [0, 0, 0, 0], id="a zone for nothing"),
        pytest.param([{"nodes": "5", "from": LATER, "until": SOONER}], [0, 0, 0, 0], id="ends before it begins"),
        pytest.param([{"nodes": "5", "from": SOONER}], [0, 0, 0, 0], id="never ends"),
        pytest.param(
            [{"nodes": "5", "schedule": "0 0 * * *", "duration": "1h", "from": SOONER, "until": LATER}],
            [0, 0, 0, 0],
            id="recurs and happens once",
        ),
    ],
)
def test_what_cannot_be_evaluated_blocks(budgets: Any, expected: list[int | None]) -> None:
    assert limits(budgets) == expected


@pytest.mark.parametrize(
    ("settings", "lanes"),
    [
        pytest.param({}, ["Empty", "Drifted", "Underutilized", "Expired"], id="without-repair"),
        pytest.param({"repair": {}}, ["Empty", "Drifted", "Underutilized", "Unhealthy", "Expired"], id="with-repair"),
    ],
)
def test_unhealthy_has_a_lane_where_nodes_are_repaired(settings: dict[str, Any], lanes: list[str]) -> None:
    found = outlook(budgets("5"), **settings)

    assert [lane.name for lane in found.lanes] == lanes


def test_a_delay_is_named_beside_the_number() -> None:
    """`disruptAfter` changes no number of a budget, but what the number is worth."""
    found = outlook(budgets("5"), disruptAfter={"Drifted": "2h", "Empty": "Never"})

    assert "a node waits 2h after it drifted (`disruptAfter.Drifted`)" in lane(found, "Drifted").because
    assert "no node is disrupted for Empty: `disruptAfter.Empty` is Never" in lane(found, "Empty").because
    assert "disruptAfter" not in lane(found, "Underutilized").because


def test_v1beta1_reads_a_schedule_without_duration_as_always_active() -> None:
    assert limits([{"nodes": "5", "schedule": "0 0 * * *"}], version="v1beta1") == [5, 5, 5, 5]


@pytest.mark.parametrize(("version", "reading"), [("v1", BudgetDefault.FLOOR), ("v1beta1", BudgetDefault.FALLBACK)])
def test_the_version_decides_the_reading(version: str, reading: BudgetDefault) -> None:
    assert pool_budgets({"apiVersion": f"karpenter.sh/{version}", "spec": 5}).reading is reading


def test_a_word_that_is_no_reading_is_not_believed() -> None:
    value = {"apiVersion": "karpenter.sh/v1", "spec": {"disruption": {"budgetDefault": "fallback"}}}
    assert pool_budgets(value).reading is BudgetDefault.FLOOR


def test_an_invalid_budget_blocks_with_our_message() -> None:
    pool = pool_budgets({"spec": {"disruption": {"budgets": [{"nodes": "5", "reasons": ["Foo"]}]}}})
    assert pool.budgets[0].failure.startswith("reasons[0] must be one of ")
