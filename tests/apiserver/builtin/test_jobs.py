"""Cron jobs: the schedules and time zones that a server takes, and its words for the others.

The status of Jobs: what may be told of their end, in which order, and what stays.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.builtin.samples import completed, job, judged, lines, pod_spec, served, thing

from springtide.apiserver.builtin.rules.jobs import schedule_problem
from springtide.cluster.resources import Object


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


_EARLY, _LATE = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"


def _told(*kinds: str) -> list[Object]:
    return [{"type": kind, "status": "True"} for kind in kinds]


_COMPLETE: Object = {
    "startTime": _EARLY,
    "completionTime": _LATE,
    "conditions": _told("SuccessCriteriaMet", "Complete"),
}
_FAILED: Object = {"startTime": _EARLY, "conditions": _told("FailureTarget", "Failed")}
_WHERE = "status.conditions: Invalid value"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"active": 2, "ready": 2, "startTime": _EARLY}, [], id="running"),
        pytest.param({}, {"startTime": _EARLY, "conditions": _told("SuccessCriteriaMet")}, [], id="going-to-complete"),
        pytest.param({}, _COMPLETE, [], id="complete"),
        pytest.param({}, _FAILED, [], id="failed"),
        pytest.param(
            {},
            _COMPLETE | {"conditions": _told("Complete")},
            [f"{_WHERE}: cannot set Complete=True condition without the SuccessCriteriaMet=true condition"],
            id="complete-at-once",
        ),
        pytest.param(
            {},
            _FAILED | {"conditions": _told("Failed")},
            [f"{_WHERE}: cannot set Failed=True condition without the FailureTarget=true condition"],
            id="failed-at-once",
        ),
        pytest.param(
            {},
            _COMPLETE | {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [
                'status.uncountedTerminatedPods: Invalid value: {"succeeded":["a"]}: must be empty for finished job',
            ],
            id="not-all-counted",
        ),
        pytest.param(
            {},
            _FAILED | {"active": 1, "terminating": 1},
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
            ],
            id="over-while-pods-run",
        ),
        pytest.param(
            {},
            {"conditions": _told("SuccessCriteriaMet", "Complete")},
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.startTime: Required value: startTime is required for finished job",
            ],
            id="no-times",
        ),
        pytest.param(
            {},
            {"completionTime": _LATE},
            [
                f'status.completionTime: Invalid value: "{_LATE}": cannot set completionTime when there is no '
                "Complete=True condition"
            ],
            id="time-of-no-completion",
        ),
        pytest.param(
            {},
            _COMPLETE | {"startTime": _LATE, "completionTime": _EARLY},
            [f'status.completionTime: Invalid value: "{_EARLY}": must be equal to or after `startTime`'],
            id="complete-before-it-started",
        ),
        pytest.param(
            {},
            _FAILED | {"conditions": _told("SuccessCriteriaMet", "FailureTarget")},
            [f"{_WHERE}: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
            id="both-ways",
        ),
        pytest.param(
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["a", ""]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[1]: Invalid value: "": must not be empty',
            ],
            id="counted-twice",
        ),
        pytest.param(
            {}, {"active": -1}, ["status.active: Invalid value: -1: must be greater than or equal to 0"], id="negative"
        ),
        pytest.param(
            {},
            {"ready": 2, "active": 1},
            ["status.ready: Invalid value: 2: cannot set more ready pods than active"],
            id="more-ready-than-active",
        ),
        pytest.param(
            {},
            {"completedIndexes": "0"},
            [
                'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode"
            ],
            id="indexes-of-a-plain-job",
        ),
        pytest.param(
            _FAILED,
            _FAILED | {"conditions": []},
            [
                f"{_WHERE}: cannot disable the terminal Failed=True condition",
                f"{_WHERE}: cannot disable the terminal FailureTarget=True condition",
            ],
            id="alive-again",
        ),
        pytest.param(
            {"succeeded": 2, "failed": 1},
            {"succeeded": 1},
            [
                "status.failed: Invalid value: 0: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
            ],
            id="counts-that-shrink",
        ),
        pytest.param(
            {"startTime": _EARLY},
            {"startTime": _LATE},
            [
                f'status.startTime: Invalid value: "{_LATE}": field is immutable for unsuspended job once set',
            ],
            id="another-start",
        ),
        pytest.param(
            {"startTime": _EARLY, "conditions": _told("Suspended")},
            {"startTime": _LATE, "conditions": [{"type": "Suspended", "status": "False"}]},
            [],
            id="resumed",
        ),
    ],
)
def test_changes_of_the_status(before: Object, after: Object, expected: list[str]) -> None:
    old = completed(job() | {"status": before})
    new = copy.deepcopy(old) | {"status": after}

    assert lines(judged(new, old)) == expected


def test_a_status_that_was_wrong_before_can_be_mended_elsewhere() -> None:
    old = completed(job() | {"status": {"startTime": _EARLY, "conditions": _told("Failed")}})
    new = copy.deepcopy(old)
    new["status"]["failed"] = 1

    assert lines(judged(new, old)) == []
