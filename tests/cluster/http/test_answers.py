"""Answers that say no, read without a network."""

from __future__ import annotations

import json
import logging

import pytest
from tests.cluster.http.playing import status

from springtide.cluster.errors import Conflict
from springtide.cluster.http.answers import error_of
from springtide.cluster.http.warnings import Warnings


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param("0", 0.0, id="at once"),
        pytest.param("-7", 0.0, id="in the past"),
        pytest.param("Thu, 01 Jan 1970 00:01:40 GMT", 40.0, id="a date"),
        pytest.param("Thu, 01 Jan 1970 00:00:00 GMT", 0.0, id="a date in the past"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 600.0, id="a date that nobody waits for"),
        pytest.param("9" * 30, 600.0, id="more seconds than anybody waits"),
        pytest.param("1e999", 3.0, id="for ever"),
        pytest.param("nan", 3.0, id="no number"),
        pytest.param("soon", 3.0, id="neither"),
        pytest.param("", 3.0, id="nothing"),
    ],
)
def test_a_server_says_when_to_come_back_in_a_header_or_in_the_details(header: str, seconds: float) -> None:
    body = json.dumps(status(429, "TooManyRequests", details={"retryAfterSeconds": 3})).encode()

    assert error_of(429, body, {"Retry-After": header}, now=60.0).retry_after == seconds


@pytest.mark.parametrize(("told", "seconds"), [(-3, 0.0), (10**30, 600.0), (0, None)])
def test_details_are_believed_within_limits(told: int, seconds: float | None) -> None:
    body = json.dumps(status(503, "ServiceUnavailable", details={"retryAfterSeconds": told})).encode()

    assert error_of(503, body, {}, now=0.0).retry_after == seconds


def test_the_code_of_the_answer_goes_before_that_of_the_status() -> None:
    """A proxy between us and the server may know better what came of the request."""
    body = json.dumps(status(200, "Conflict")).encode()

    assert type(error_of(409, body, {}, now=0.0)) is Conflict


def test_a_server_that_never_ends_to_warn_is_not_listened_to_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    with caplog.at_level(logging.WARNING, "springtide.cluster.http.warnings"):
        warnings.hear(f'299 - "object {number} is odd"' for number in range(5000))

    assert len(caplog.messages) == 1000
