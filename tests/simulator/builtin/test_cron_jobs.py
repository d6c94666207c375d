"""Cron jobs: the schedules and time zones that a server takes, and its words for the others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.builtin.samples import completed, judged, lines, pod_spec, served, thing

from springtide.simulator.api.builtin.rules.cron_jobs import schedule_problem


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "0 3 * * 1-5",
        "*/15 0 1,15 * mon-fri",
        "5/10 ? * JAN,dec sun",
        "0 0 31 2 *",
        "0 0 * * 0-6/2",
        "@hourly",
        "@every 1h30m",
        "TZ=Europe/Berlin 0 3 * * *",
        "CRON_TZ=UTC @daily",
        "0,,5 * * * *",
    ],
)
def test_a_schedule_that_can_be_read(schedule: str) -> None:
    assert schedule_problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        pytest.param("daily at noon", "expected exactly 5 fields, found 3: [daily at noon]", id="words"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="too large"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="too small"),
        pytest.param("* * * * 7", "end of range (7) above maximum (6): 7", id="seventh weekday"),
        pytest.param("9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5", id="backwards"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="no step"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="hyphens"),
        pytest.param("1/2/3 * * * *", "too many slashes: 1/2/3", id="slashes"),
        pytest.param(
            "a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax', id="a letter"
        ),
        pytest.param("@sometimes", "unrecognized descriptor: @sometimes", id="unknown descriptor"),
        pytest.param(
            "@every day", 'failed to parse duration @every day: time: invalid duration "day"', id="no duration"
        ),
        pytest.param(
            "TZ=Mars/Olympus * * * * *",
            "provided bad location Mars/Olympus: unknown time zone Mars/Olympus",
            id="unknown zone",
        ),
    ],
)
def test_a_schedule_that_cannot_be_read(schedule: str, problem: str) -> None:
    assert schedule_problem(schedule) == problem


def _cron_job(schedule: str = "0 3 * * *", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": pod_spec() | {"restartPolicy": "Never"}}}}
    return thing("CronJob", "batch/v1", spec={"schedule": schedule, "jobTemplate": template, **spec})


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(_cron_job(timeZone="Europe/Berlin"), [], id="in a zone"),
        pytest.param(
            _cron_job("x"),
            ['spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]'],
            id="no schedule",
        ),
        pytest.param(
            _cron_job("TZ=UTC 0 3 * * *"),
            [
                'spec.schedule: Invalid value: "TZ=UTC 0 3 * * *": '
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            ],
            id="zone in the schedule",
        ),
        pytest.param(
            _cron_job(timeZone="Mars/Olympus"),
            ['spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'],
            id="unknown zone",
        ),
        pytest.param(
            _cron_job(timeZone="local"),
            [
                'spec.timeZone: Invalid value: "local": '
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            ],
            id="the zone of the machine",
        ),
        pytest.param(
            _cron_job(timeZone=""),
            ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
            id="empty zone",
        ),
        pytest.param(
            _cron_job(startingDeadlineSeconds=-1),
            ["spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"],
            id="negative deadline",
        ),
    ],
)
def test_judged(item: dict[str, Any], expected: list[str]) -> None:
    assert lines(judged(item)) == expected


def test_a_zone_in_the_schedule_may_stay_but_not_beside_the_field() -> None:
    """Who has such a schedule from before the field existed keeps it."""
    old = completed(_cron_job("TZ=UTC 0 3 * * *"))
    new = completed(_cron_job("TZ=UTC 0 4 * * *", timeZone="UTC"))

    assert lines(served(old).judge(completed(_cron_job("TZ=UTC 0 4 * * *")), old)) == []
    assert lines(served(old).judge(new, old)) == [
        'spec.schedule: Invalid value: "TZ=UTC 0 4 * * *": cannot use both timeZone field and TZ or CRON_TZ in schedule'
    ]
