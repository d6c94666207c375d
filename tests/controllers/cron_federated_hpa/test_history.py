"""Execution histories: newest first, limited in length, with the number of omitted failures."""

from __future__ import annotations

import pytest

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa.history import (
    CronResults,
    HistoryLimits,
    RuleFailure,
    RuleSuccess,
    execution_times,
    histories_in,
    listed,
    newest_in,
    written_history,
)


def failure(at: int, earlier: int = 0) -> RuleFailure:
    return RuleFailure(at, 1000, f"no {at}", earlier)


@pytest.mark.parametrize(
    ("failures", "kept", "expected"),
    [
        pytest.param([], 3, [], id="none"),
        pytest.param([failure(1), failure(2)], 3, ["no 2", "no 1"], id="newest-first"),
        pytest.param(
            [failure(3), failure(2), failure(1)], 2, ["no 3, and 1 earlier one was missed", "no 2"], id="one omitted"
        ),
        pytest.param(
            [failure(9), failure(8, 57)],
            2,
            ["no 9, and 57 earlier ones were missed", "no 8"],
            id="omitted failures of a record",
        ),
        pytest.param(
            [failure(9), failure(8, 57)],
            1,
            ["no 9, and 58 earlier ones were missed"],
            id="omitted failures are added up",
        ),
        pytest.param([failure(9)], 0, [], id="limit zero"),
    ],
)
def test_failures_are_limited_and_the_newest_counts_the_rest(
    failures: list[RuleFailure], kept: int, expected: list[str]
) -> None:
    """The message of the newest failure has the number of those that are not listed."""
    assert [one.message for one in listed(failures, kept)] == expected


def entry(at: int) -> Object:
    return {"scheduleTime": format_instant(at), "executionTime": format_instant(at), "message": "old"}


def test_records_are_ordered_and_limited() -> None:
    """The order is that of the due times."""
    news = CronResults()
    news.failed("r", failure(50))
    news.succeeded("r", RuleSuccess(60, 61, {"min": 1, "max": 2}))
    before = {"ruleName": "r", "failedExecutions": [entry(40), entry(30)]}

    written = written_history(before, "r", news, HistoryLimits(1, 2), None, 1000)

    assert [one["scheduleTime"] for one in written["failedExecutions"]] == [format_instant(50), format_instant(40)]
    assert written["successfulExecutions"] == [
        {
            "scheduleTime": format_instant(60),
            "executionTime": format_instant(61),
            "appliedMinReplicas": 1,
            "appliedMaxReplicas": 2,
        }
    ]
    assert "nextExecutionTime" not in written
    assert newest_in(written, 1000) == 60
    assert newest_in({}, 1000) is None


def test_rule_without_records() -> None:
    """It has a name, and the next execution if there is one."""
    assert written_history({}, "r", CronResults(), HistoryLimits(3, 3), 60, 1000) == {
        "ruleName": "r",
        "nextExecutionTime": format_instant(60),
    }


@pytest.mark.parametrize("time", ["2026-06-05t08:30:00z", "2026-06-05T08:30:00+99:99", "0001-01-01T00:00:00+10:00"])
def test_entry_with_an_invalid_time_is_dropped(time: str) -> None:
    """The API server accepts such times; the other entries are kept."""
    bad = {"scheduleTime": time, "executionTime": time}
    status = {"executionHistories": [{"ruleName": "r", "successfulExecutions": [bad, entry(40)]}]}

    found = histories_in(status)["r"]

    assert found == {"ruleName": "r", "successfulExecutions": [entry(40)]}
    assert newest_in(found, 1000) == 40


def test_records_from_the_future_are_dropped_first() -> None:
    """They do not count as executions, and stay only while the limit allows it."""
    before = {"ruleName": "r", "failedExecutions": [entry(5000), entry(4000), entry(40)]}
    news = CronResults()
    news.failed("r", failure(50))

    written = written_history(before, "r", news, HistoryLimits(3, 3), None, 1000)

    assert [one["scheduleTime"] for one in written["failedExecutions"]] == [format_instant(at) for at in (50, 40, 5000)]
    assert newest_in(before, 1000) == 40
    assert newest_in({"failedExecutions": [entry(5000)]}, 1000) is None


def test_execution_times_are_the_next_and_the_last_of_all_rules() -> None:
    """A failed execution has changed nothing; an invalid time of a record is ignored."""
    histories: list[Object] = [
        {"ruleName": "a", "nextExecutionTime": format_instant(90), "successfulExecutions": [entry(40), entry(30)]},
        {"ruleName": "b", "nextExecutionTime": format_instant(80), "failedExecutions": [entry(70)]},
        {"ruleName": "c", "successfulExecutions": [entry(50), entry(10) | {"executionTime": "soon"}]},
    ]

    assert execution_times(histories) == {
        "nextExecutionTime": format_instant(80),
        "lastExecutionTime": format_instant(50),
    }
    assert execution_times([{"ruleName": "d"}]) == {"nextExecutionTime": None, "lastExecutionTime": None}
