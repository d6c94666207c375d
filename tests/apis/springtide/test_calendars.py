"""Calendars: what is said about them, and the days that they come to."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.forecast import ForecastQuery, format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apis.springtide.calendars import Calendar, CalendarSpec, compile_calendar, forecast_calendar


def calendar(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "days"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {
                "timeZone": "Europe/Berlin",
                "dates": ["2026-12-24"],
                "ranges": [{"from": "2026-12-27", "until": "2026-12-31"}],
                "yearly": ["01-01"],
                "holidays": {"country": "DE", "subdivision": "BE"},
            },
            [],
            id="everything",
        ),
        pytest.param({}, ["warning spec"], id="no-days"),
        pytest.param({"dates": []}, ["warning spec"], id="empty-list"),
        pytest.param({"dates": ["2026-02-30"]}, ["error spec.dates[0]"], id="no-such-day"),
        pytest.param({"dates": ["24.12.2026"]}, ["error spec.dates[0]"], id="other-notation"),
        pytest.param({"dates": [20261224]}, ["error spec.dates[0]"], id="number"),
        pytest.param({"dates": ["2026-12-24", "2026-12-24"]}, ["error spec.dates[1]"], id="day-twice"),
        pytest.param({"ranges": [{"from": "2026-12-24", "until": "2026-12-24"}]}, [], id="range-of-one-day"),
        pytest.param(
            {"ranges": [{"from": "2026-12-31", "until": "2026-12-27"}]}, ["error spec.ranges[0].until"], id="backwards"
        ),
        pytest.param({"ranges": [{"from": "2026-12-31"}]}, ["error spec.ranges[0].until"], id="no-end"),
        pytest.param(
            {"ranges": [{"start": "2026-12-31", "end": "2027-01-01"}]},
            ["error spec.ranges[0].end", "error spec.ranges[0].start"],
            id="other-names",
        ),
        pytest.param({"yearly": ["02-29"]}, ["warning spec.yearly[0]"], id="leap-day"),
        pytest.param({"yearly": ["02-30"]}, ["error spec.yearly[0]"], id="day-of-no-year"),
        pytest.param({"yearly": ["1-1"]}, ["error spec.yearly[0]"], id="one-digit"),
        pytest.param({"holidays": {"country": "XX"}}, ["error spec.holidays.country"], id="unknown-country"),
        pytest.param(
            {"holidays": {"country": "DE", "subdivision": "ZZ"}}, ["error spec.holidays.subdivision"], id="unknown-part"
        ),
        pytest.param(
            {"holidays": {"country": "XX", "subdivision": "ZZ"}}, ["error spec.holidays.country"], id="part-of-unknown"
        ),
        pytest.param({"timeZone": "CEST", "yearly": ["01-01"]}, ["error spec.timeZone"], id="zone"),
    ],
)
def test_problems(spec: dict[str, Any], expected: list[str]) -> None:
    """Each calendar has exactly these problems."""
    assert expected == shown(problems_of(calendar(**spec)))


def test_a_country_in_lower_case_is_recognised() -> None:
    """The hint has the likely code."""
    (problem,) = problems_of(calendar(holidays={"country": "de"}))

    assert problem.hint == "did you mean DE?"


def test_without_the_package_holidays_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the holidays package the country is only a warning, and the hint says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    monkeypatch.setattr("springtide.apis.springtide.calendars.find_spec", lambda name: None)

    (problem,) = problems_of(calendar(holidays={"country": "DE"}))

    assert problem.severity == "warning"
    assert "springtide[holidays]" in problem.hint


def lane_of(spec: dict[str, Any], start: str, until: str, zone: str = "UTC") -> list[tuple[str, object]]:
    view = msgspec.convert(calendar(**spec), Calendar)
    outlook = forecast_calendar(view, ForecastQuery(parse_instant(start), parse_instant(until), default_zone=zone))
    (lane,) = outlook.lanes
    assert lane.name == "active"
    return [(format_instant(change.at), change.value) for change in lane.changes]


def test_days_run_from_midnight_to_midnight_of_their_zone() -> None:
    """Days that touch are one stretch, ranges include both ends, and yearly days come every year."""
    spec = {
        "timeZone": "Europe/Berlin",
        "dates": ["2026-12-24"],
        "ranges": [{"from": "2026-12-27", "until": "2026-12-31"}],
        "yearly": ["01-01"],
    }

    assert lane_of(spec, "2026-12-20T00:00:00Z", "2027-12-31T00:00:00Z") == [
        ("2026-12-23T23:00:00Z", True),
        ("2026-12-24T23:00:00Z", False),
        ("2026-12-26T23:00:00Z", True),
        ("2027-01-01T23:00:00Z", False),
    ]


def test_a_calendar_without_zone_is_shown_in_the_one_asked_for() -> None:
    """A calendar without a zone has the zone of the referring object."""
    spec = {"dates": ["2026-12-24"]}

    assert lane_of(spec, "2026-12-20T00:00:00Z", "2026-12-31T00:00:00Z", "Asia/Tokyo") == [
        ("2026-12-23T15:00:00Z", True),
        ("2026-12-24T15:00:00Z", False),
    ]
    assert compile_calendar(msgspec.convert(spec, CalendarSpec)).zone is None


def test_public_holidays() -> None:
    """Berlin rests on the eighth of March, other parts of Germany do not."""
    if importlib.util.find_spec("holidays") is None:
        pytest.skip("needs the holidays package: pip install './springtide[holidays]', in the folder with the clone")
    march = ("2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z")

    assert lane_of({"holidays": {"country": "DE", "subdivision": "BE"}}, *march) == [
        ("2026-03-08T00:00:00Z", True),
        ("2026-03-09T00:00:00Z", False),
    ]
    assert lane_of({"holidays": {"country": "DE", "subdivision": "HH"}}, *march) == []


def test_reasons_name_day_and_zone() -> None:
    """Every change says which clock it is read from."""
    view = msgspec.convert(calendar(dates=["2026-12-24"], timeZone="Europe/Berlin"), Calendar)
    query = ForecastQuery(parse_instant("2026-12-23T00:00:00Z"), parse_instant("2026-12-26T00:00:00Z"))
    (lane,) = forecast_calendar(view, query).lanes

    assert lane.because == "the day is not in the calendar (Europe/Berlin)"
    assert [change.because for change in lane.changes] == [
        "days of the calendar begin (Thu 2026-12-24 00:00 Europe/Berlin)",
        "the days of the calendar are over (Fri 2026-12-25 00:00 Europe/Berlin)",
    ]
