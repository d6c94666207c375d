"""When a request is retried: arithmetic, without a network and without waiting."""

from __future__ import annotations

import math
from random import Random

import pytest

from springtide.cluster.clock import Backoff
from springtide.cluster.errors import ClusterError, ConnectionLost, ServerError, TooManyRequests
from springtide.cluster.http.settings import RetryBudget, RetrySettings, is_read_retryable, is_write_retryable

LOST = ConnectionLost("cut")
NEVER = math.inf


class Luck(Random):
    """Always the same number."""

    def random(self) -> float:
        return 0.5


def pauses(*errors: ClusterError, retries: RetrySettings, seconds: float = 0.0) -> list[float]:
    """Return the pause after each of these errors in a row; every attempt takes some seconds."""
    persistence = RetryBudget(retries, Luck(), began=100.0)
    now = 100.0
    found = []
    for error in errors:
        now += seconds
        found.append(persistence.pause_after(error, repeatable=True, now=now))
        now += found[-1]
    return found


@pytest.mark.parametrize(
    ("errors", "retries", "expected"),
    [
        pytest.param([LOST] * 3, RetrySettings(attempts=4, pauses=Backoff(first=1)), [1, 2, 4], id="pauses double"),
        pytest.param(
            [LOST] * 3, RetrySettings(attempts=3, pauses=Backoff(first=1)), [1, 2, NEVER], id="three attempts"
        ),
        pytest.param([LOST], RetrySettings(attempts=1), [NEVER], id="one attempt"),
        pytest.param([LOST] * 2, RetrySettings(pauses=Backoff(first=1, jitter=1)), [1.5, 3], id="jitter adds to them"),
        pytest.param(
            [TooManyRequests("busy", retry_after=3), ServerError("busy", retry_after=4)],
            RetrySettings(pauses=Backoff(first=1)),
            [3, 4],
            id="a server may ask for more",
        ),
        pytest.param(
            [TooManyRequests("busy", retry_after=0)] * 2,
            RetrySettings(pauses=Backoff(first=1)),
            [1, 2],
            id="but not for less",
        ),
        pytest.param(
            [LOST] * 3,
            RetrySettings(pauses=Backoff(first=2), max_elapsed=6),
            [2, 4, NEVER],
            id="until the time limit",
        ),
        pytest.param(
            [TooManyRequests("busy", retry_after=9)],
            RetrySettings(max_elapsed=8),
            [NEVER],
            id="the server asks for more than the time limit",
        ),
    ],
)
def test_pauses_between_attempts(errors: list[ClusterError], retries: RetrySettings, expected: list[float]) -> None:
    assert pauses(*errors, retries=retries) == expected


def test_the_time_of_attempts_counts() -> None:
    assert pauses(LOST, LOST, retries=RetrySettings(pauses=Backoff(first=1), max_elapsed=8), seconds=3) == [1, NEVER]


def test_no_pause_after_an_error_that_must_not_be_retried() -> None:
    assert RetryBudget(RetrySettings(), Luck(), began=0.0).pause_after(LOST, repeatable=False, now=0.0) == NEVER


@pytest.mark.parametrize(
    ("error", "sent", "read", "written"),
    [
        pytest.param(LOST, False, True, True, id="nothing sent"),
        pytest.param(LOST, True, True, False, id="partly sent"),
        pytest.param(ServerError("boom", retry_after=1), True, True, False, id="the server failed"),
        pytest.param(TooManyRequests("busy", retry_after=1), True, True, True, id="429 with Retry-After"),
        pytest.param(TooManyRequests("busy"), True, True, False, id="429 without Retry-After"),
        pytest.param(ClusterError("no"), False, False, False, id="anything else"),
    ],
)
def test_which_errors_are_retryable(error: ClusterError, sent: bool, read: bool, written: bool) -> None:
    assert is_read_retryable(error) is read
    assert is_write_retryable(error, sent=sent, evicting=False) is written
