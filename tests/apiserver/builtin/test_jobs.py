"""Validation of the status of Jobs: the conditions of its end, their order, and what stays fixed."""

from __future__ import annotations

import copy

import pytest
from tests.apiserver.builtin.samples import defaulted, job, messages, validated

from springtide.cluster.resources import Object

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
        pytest.param(
            {}, {"startTime": _EARLY, "conditions": _told("SuccessCriteriaMet")}, [], id="success-criteria-met"
        ),
        pytest.param({}, _COMPLETE, [], id="complete"),
        pytest.param({}, _FAILED, [], id="failed"),
        pytest.param(
            {},
            _COMPLETE | {"conditions": _told("Complete")},
            [f"{_WHERE}: cannot set Complete=True condition without the SuccessCriteriaMet=true condition"],
            id="complete-without-success-criteria",
        ),
        pytest.param(
            {},
            _FAILED | {"conditions": _told("Failed")},
            [f"{_WHERE}: cannot set Failed=True condition without the FailureTarget=true condition"],
            id="failed-without-failure-target",
        ),
        pytest.param(
            {},
            _COMPLETE | {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [
                'status.uncountedTerminatedPods: Invalid value: {"succeeded":["a"]}: must be empty for finished job',
            ],
            id="uncounted-pods",
        ),
        pytest.param(
            {},
            _FAILED | {"active": 1, "terminating": 1},
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
            ],
            id="finished-with-active-pods",
        ),
        pytest.param(
            {},
            {"conditions": _told("SuccessCriteriaMet", "Complete")},
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.startTime: Required value: startTime is required for finished job",
            ],
            id="no-start-time",
        ),
        pytest.param(
            {},
            {"completionTime": _LATE},
            [
                f'status.completionTime: Invalid value: "{_LATE}": cannot set completionTime when there is no '
                "Complete=True condition"
            ],
            id="completion-time-without-complete",
        ),
        pytest.param(
            {},
            _COMPLETE | {"startTime": _LATE, "completionTime": _EARLY},
            [f'status.completionTime: Invalid value: "{_EARLY}": must be equal to or after `startTime`'],
            id="completion-before-start",
        ),
        pytest.param(
            {},
            _FAILED | {"conditions": _told("SuccessCriteriaMet", "FailureTarget")},
            [f"{_WHERE}: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
            id="complete-and-failed",
        ),
        pytest.param(
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["a", ""]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[1]: Invalid value: "": must not be empty',
            ],
            id="pod-counted-twice",
        ),
        pytest.param(
            {},
            {"active": -1},
            ["status.active: Invalid value: -1: must be greater than or equal to 0"],
            id="negative-counter",
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
            id="indexes-of-a-non-indexed-job",
        ),
        pytest.param(
            _FAILED,
            _FAILED | {"conditions": []},
            [
                f"{_WHERE}: cannot disable the terminal Failed=True condition",
                f"{_WHERE}: cannot disable the terminal FailureTarget=True condition",
            ],
            id="terminal-condition-removed",
        ),
        pytest.param(
            {"succeeded": 2, "failed": 1},
            {"succeeded": 1},
            [
                "status.failed: Invalid value: 0: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
            ],
            id="decreased-counter",
        ),
        pytest.param(
            {"startTime": _EARLY},
            {"startTime": _LATE},
            [
                f'status.startTime: Invalid value: "{_LATE}": field is immutable for unsuspended job once set',
            ],
            id="changed-start-time",
        ),
        pytest.param(
            {"startTime": _EARLY, "conditions": _told("Suspended")},
            {"startTime": _LATE, "conditions": [{"type": "Suspended", "status": "False"}]},
            [],
            id="resumed",
        ),
    ],
)
def test_status_updates(before: Object, after: Object, expected: list[str]) -> None:
    old = defaulted(job() | {"status": before})
    new = copy.deepcopy(old) | {"status": after}

    assert messages(validated(new, old)) == expected


def test_an_invalid_status_can_be_updated_elsewhere() -> None:
    old = defaulted(job() | {"status": {"startTime": _EARLY, "conditions": _told("Failed")}})
    new = copy.deepcopy(old)
    new["status"]["failed"] = 1

    assert messages(validated(new, old)) == []
