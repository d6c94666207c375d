"""All kinds of queues behind one port, and those whose length is a metric."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import pytest

from springtide.apis.scheduled.queue import QueueSpec
from springtide.apis.springtide.grants import Reach
from springtide.metrics.queues import QueueError, QueueLength, QueueReader, Queues, Target
from springtide.metrics.reading.port import MetricReader, OwnSeries, Unreadable

QUERY = QueueSpec(type="Prometheus", id="sum(jobs)")


class Metrics(MetricReader):
    """Answers every query alike."""

    def __init__(self, answer: Fraction | Unreadable, address: str | None = None) -> None:
        self._answer = answer
        self._address = address

    async def read(self, query: str, *, namespace: str) -> Fraction:
        assert (query, namespace) == ("sum(jobs)", "default")
        if isinstance(self._answer, Unreadable):
            raise self._answer
        return self._answer

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        return None

    def address(self, query: str) -> str | None:
        return self._address


class Named(QueueReader):
    """Says who it is by the length."""

    def __init__(self, length: int) -> None:
        self._length = length

    def target(self, queue: QueueSpec) -> Target | None:
        return Target(Reach.QUEUE, str(self._length))

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        return QueueLength(self._length)


def _read(queues: QueueReader, queue: QueueSpec) -> QueueLength:
    return asyncio.run(queues.read(queue, namespace="default"))


@pytest.mark.parametrize(
    ("queue", "length"),
    [
        pytest.param(QueueSpec(type="AWSSQSQueue", id="arn"), 1, id="sqs"),
        pytest.param(QueueSpec(type="HTTP", id="http://x/"), 2, id="http"),
        pytest.param(QUERY, 3, id="prometheus"),
    ],
)
def test_whoever_knows_the_type_is_asked(queue: QueueSpec, length: int) -> None:
    """One reader for each type."""
    queues = Queues(Metrics(Fraction(3)), sqs=Named(1), http=Named(2))

    assert _read(queues, queue) == QueueLength(length)
    target = queues.target(queue)
    assert target == (None if length == 3 else Target(Reach.QUEUE, str(length)))


def test_a_query_that_leaves_the_process_needs_a_grant() -> None:
    """For the address of the server."""
    queues = Queues(Metrics(Fraction(3), "https://prom.example.com/"))

    assert queues.target(QUERY) == Target(Reach.URL, "https://prom.example.com/")


@pytest.mark.parametrize(
    ("value", "length"),
    [
        pytest.param(Fraction(0), 0, id="none"),
        pytest.param(Fraction(5, 2), 3, id="a-part-of-a-message-counts-as-one"),
        pytest.param(Fraction(41), 41, id="whole"),
    ],
)
def test_a_sample_is_a_length(value: Fraction, length: int) -> None:
    """Rounded up."""
    assert _read(Queues(Metrics(value)), QUERY) == QueueLength(length)


@pytest.mark.parametrize(
    ("reader", "reason", "retryable"),
    [
        pytest.param(None, "NoPrometheus", False, id="nobody-to-ask"),
        pytest.param(Metrics(Unreadable("NoSample", "there is none")), "NoSample", True, id="no-sample"),
        pytest.param(Metrics(Unreadable("NotPromQL", "no", lasting=True)), "NotPromQL", False, id="a-bad-query"),
        pytest.param(Metrics(Fraction(-1)), "NotACount", False, id="less-than-none"),
    ],
)
def test_what_is_no_length(reader: MetricReader | None, reason: str, retryable: bool) -> None:
    """The words of whoever was asked are passed on."""
    with pytest.raises(QueueError) as caught:
        _read(Queues(reader), QUERY)

    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)


def test_a_negative_number_of_any_length_is_no_length() -> None:
    """It is not repeated: exact numbers may be longer than what can be written."""
    with pytest.raises(QueueError, match="the query gives a number below 0") as failed:
        _read(Queues(Metrics(Fraction(-1, 7**6000))), QUERY)
    assert failed.value.reason == "NotACount"
