"""What is said about queues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.judging import judge, shown
from tests.apis.scheduled.objects import producer

ARN = "arn:aws:sqs:us-west-2:123456789012:jobs"


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        pytest.param({"type": "AWSSQSQueue", "id": ARN}, [], id="sqs"),
        pytest.param({"type": "AWSSQSQueue", "id": f"{ARN}.fifo"}, [], id="fifo"),
        pytest.param({"type": "AWSSQSQueue", "id": "jobs"}, ["error spec.queue.id"], id="sqs-name"),
        pytest.param({"type": "Prometheus", "id": "sum(queue_length)"}, [], id="prometheus"),
        pytest.param({"type": "Prometheus", "id": "max(a, b)"}, ["warning spec.queue.id"], id="X9"),
        pytest.param({"type": "HTTP", "id": "https://queue.example/stats"}, [], id="http"),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example/stats", "pointer": "/data/0/a~1b"}, [], id="pointer"
        ),
        pytest.param({"type": "HTTP", "id": "queue.example/stats"}, ["error spec.queue.id"], id="no-scheme"),
        pytest.param({"type": "HTTP", "id": "https://[::1/stats"}, ["error spec.queue.id"], id="bad-host"),
        pytest.param({"type": "HTTP", "id": "https://queue.example:no/"}, ["error spec.queue.id"], id="bad-port"),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example", "pointer": "data"},
            ["error spec.queue.pointer"],
            id="pointer-without-slash",
        ),
        pytest.param(
            {"type": "HTTP", "id": "https://queue.example", "pointer": "/~2"}, ["error spec.queue.pointer"], id="tilde"
        ),
        pytest.param(
            {"type": "AWSSQSQueue", "id": ARN, "pointer": "/a"}, ["error spec.queue.pointer"], id="pointer-of-sqs"
        ),
        pytest.param({"type": "Kafka", "id": "x"}, ["error spec.queue.type"], id="unknown-type"),
        pytest.param({"type": "AWSSQSQueue"}, ["error spec.queue.id"], id="no-id"),
        pytest.param({"type": "AWSSQSQueue", "id": ""}, ["error spec.queue.id"], id="empty-id"),
    ],
)
def test_queues(queue: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(judge(producer({"queue": queue})))


def test_address_of_a_queue_is_turned_into_its_arn() -> None:
    url = "https://sqs.us-west-2.amazonaws.com/123456789012/jobs"
    (found,) = judge(producer({"queue": {"type": "AWSSQSQueue", "id": url}}))

    assert ARN in found.hint
