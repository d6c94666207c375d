"""What is shown of a schedule ahead of time: values, reasons and collisions."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.almanac.builders import local, show, utc
from tests.apis.scheduled.objects import DAYTIME, NIGHT, WEEKEND, as_producer, daily, producer, scheduled

from springtide.almanac import DayCalendar, Days
from springtide.apis.forecast import Forecast, ForecastQuery, Lane, LaneChange, LaneStyle, Outlook, to_plain
from springtide.apis.scheduled import KINDS

LA = "America/Los_Angeles"
DESIGN = scheduled(
    {**WEEKEND, "name": "weekend"}, {**DAYTIME, "name": "day"}, {**NIGHT, "name": "night"}, default=2, timezone=LA
)


def forecast(value: dict[str, Any], query: ForecastQuery) -> Outlook:
    forecaster = KINDS[0].versions[0].forecaster
    assert forecaster is not None
    return forecaster(as_producer(value), query)


def lane_of(value: dict[str, Any], query: ForecastQuery) -> Lane:
    (lane,) = forecast(value, query).lanes
    return lane


def shown(lane: Lane, zone: str = "UTC") -> list[tuple[str | None, Any]]:
    return [(show(change.at, zone), change.value) for change in lane.changes]


@pytest.mark.parametrize(
    ("monday", "expected"),
    [
        pytest.param(
            "2026-06-01",
            [
                ("2026-06-01T09:00:00-07:00", 3),
                ("2026-06-01T17:00:00-07:00", 2),
                ("2026-06-02T09:00:00-07:00", 3),
                ("2026-06-02T17:00:00-07:00", 2),
                ("2026-06-03T09:00:00-07:00", 3),
                ("2026-06-03T17:00:00-07:00", 2),
                ("2026-06-04T09:00:00-07:00", 3),
                ("2026-06-04T17:00:00-07:00", 2),
                ("2026-06-05T09:00:00-07:00", 3),
                ("2026-06-05T17:00:00-07:00", 1),
            ],
            id="plain-week",
        ),
        pytest.param(
            "2026-03-05",
            [
                ("2026-03-05T09:00:00-08:00", 3),
                ("2026-03-05T17:00:00-08:00", 2),
                ("2026-03-06T09:00:00-08:00", 3),
                ("2026-03-06T17:00:00-08:00", 1),
                ("2026-03-09T09:00:00-07:00", 3),
                ("2026-03-09T17:00:00-07:00", 2),
                ("2026-03-10T09:00:00-07:00", 3),
                ("2026-03-10T17:00:00-07:00", 2),
                ("2026-03-11T09:00:00-07:00", 3),
                ("2026-03-11T17:00:00-07:00", 2),
            ],
            id="clocks-go-forward",
        ),
        pytest.param(
            "2026-10-29",
            [
                ("2026-10-29T09:00:00-07:00", 3),
                ("2026-10-29T17:00:00-07:00", 2),
                ("2026-10-30T09:00:00-07:00", 3),
                ("2026-10-30T17:00:00-07:00", 1),
                ("2026-11-02T09:00:00-08:00", 3),
                ("2026-11-02T17:00:00-08:00", 2),
                ("2026-11-03T09:00:00-08:00", 3),
                ("2026-11-03T17:00:00-08:00", 2),
                ("2026-11-04T09:00:00-08:00", 3),
                ("2026-11-04T17:00:00-08:00", 2),
            ],
            id="clocks-go-back",
        ),
    ],
)
def test_week_of_the_design(monday: str, expected: list[tuple[str, int]]) -> None:
    start = local(LA, f"{monday}T00:00:00")
    lane = lane_of(DESIGN, ForecastQuery(start=start, until=start + 7 * 86400))

    assert (lane.name, lane.style) == ("replicas", LaneStyle.LEVEL)
    assert expected == shown(lane, LA)


def test_next_lies_beyond_the_end_too() -> None:
    start = local(LA, "2026-06-05T18:00:00")
    lane = lane_of(DESIGN, ForecastQuery(start=start, until=start + 3600))

    assert lane.changes == ()
    assert lane.next is not None
    assert (show(lane.next.at, LA), lane.next.value) == ("2026-06-08T09:00:00-07:00", 3)


def test_no_next_where_nothing_changes() -> None:
    lane = lane_of(scheduled(default=4), ForecastQuery(start=0, until=86400))

    assert (lane.current, lane.changes, lane.next) == (4, (), None)


@pytest.mark.parametrize(
    ("value", "start", "because"),
    [
        pytest.param(
            DESIGN,
            "2026-06-05T15:00:00Z",
            "behaviour `day` starts (09:00 America/Los_Angeles)",
            id="starts",
        ),
        pytest.param(
            scheduled(daily(12, 13, 8, name="lunch"), daily(8, 20, 3, name="day")),
            "2026-06-05T12:30:00Z",
            "window of behaviour `lunch` over (13:00 UTC): behaviour `day` continues",
            id="gives-way",
        ),
        pytest.param(
            scheduled(daily(8, 20, 3)),
            "2026-06-05T12:30:00Z",
            "window of `behaviors[0]` over (20:00 UTC): back to the default of 1",
            id="ends",
        ),
        pytest.param(
            scheduled(daily(8, 20, 3, name="day", leadSeconds=600)),
            "2026-06-05T06:00:00Z",
            "behaviour `day` starts (07:50 UTC, 600 seconds early)",
            id="early",
        ),
        pytest.param(
            scheduled({"replicas": 3, "from": "2026-06-05T08:00:01Z", "until": "2026-06-05T09:00:00Z"}),
            "2026-06-05T06:00:00Z",
            "`behaviors[0]` starts (08:00:01 UTC)",
            id="once-with-seconds",
        ),
    ],
)
def test_reasons(value: dict[str, Any], start: str, because: str) -> None:
    lane = lane_of(value, ForecastQuery(start=utc(start), until=utc(start) + 86400))

    assert because == lane.changes[0].because


@pytest.mark.parametrize(
    ("now", "because"),
    [
        pytest.param("2026-06-05T12:00:00", "behaviour `day` is active (12:00 America/Los_Angeles)", id="active"),
        pytest.param("2026-06-06T12:00:00", "behaviour `weekend` is active (12:00 America/Los_Angeles)", id="winner"),
    ],
)
def test_reason_of_the_current_value(now: str, because: str) -> None:
    start = local(LA, now)

    assert because == lane_of(DESIGN, ForecastQuery(start=start, until=start + 1)).because


def test_default_zone_is_the_zone_of_a_schedule_without_one() -> None:
    value = scheduled(daily(9, 17))
    outlook = forecast(value, ForecastQuery(start=0, until=86400, default_zone="Asia/Tokyo"))

    assert outlook.zones == ("Asia/Tokyo",)
    # It is 09:00 in Tokyo when the Unix epoch begins.
    assert (outlook.lanes[0].current, outlook.lanes[0].changes[0].at) == (9, 8 * 3600)


def test_calendars_of_the_question_apply() -> None:
    value = scheduled(daily(9, 17, calendars=[{"name": "holidays"}]))
    start = utc("2026-12-24T00:00:00")
    query = ForecastQuery(start=start, until=start + 2 * 86400)
    closed = ForecastQuery(
        start=start, until=start + 2 * 86400, calendars={"holidays": DayCalendar(Days(dates=(date(2026, 12, 24),)))}
    )

    assert len(lane_of(value, query).changes) == 4
    assert shown(lane_of(value, closed)) == [("2026-12-25T09:00:00+00:00", 9), ("2026-12-25T17:00:00+00:00", 1)]


def test_collisions_within_the_question() -> None:
    start = local(LA, "2026-06-01T12:00:00")
    (collision,) = forecast(DESIGN, ForecastQuery(start=start, until=start + 7 * 86400)).collisions

    assert (show(collision.at, LA), show(collision.until, LA)) == (
        "2026-06-05T17:00:00-07:00",
        "2026-06-08T09:00:00-07:00",
    )
    assert "behaviour `weekend` (replicas 1) wins over behaviour `night` (replicas 2)" in collision.text


def test_collision_that_priority_decides_is_shown_as_such() -> None:
    value = scheduled(daily(9, 17, 3), daily(12, 13, 4, priority=1))
    (collision,) = forecast(value, ForecastQuery(start=utc("2026-06-01"), until=utc("2026-06-02"))).collisions

    assert "by priority" in collision.text


def test_other_producers_have_no_lanes() -> None:
    value = producer({"queue": {"type": "Prometheus", "id": "up"}})

    assert forecast(value, ForecastQuery(start=0, until=1)).lanes == ()


def test_a_forecast_for_scripts_has_the_next_change_of_each_lane() -> None:
    """Null where the value never changes."""
    style = lane_of(DESIGN, ForecastQuery(0, 1)).style
    change = LaneChange(60, 2, "because")
    lanes = (Lane("a", style, 1, (change,), change), Lane("b", style, 1, (), None))

    plain = to_plain(Forecast("v1", "Kind", None, "it", 0, 3600, ("UTC",), lanes))

    assert [lane["next"] for lane in plain["lanes"]] == [{"at": "1970-01-01T00:01:00Z", "value": 2}, None]
