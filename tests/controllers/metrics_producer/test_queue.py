"""Queues through the controller: polling intervals, exported series, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from tests.controllers.metrics_producer.harness import (
    ProducerHarness,
    conditions_of,
    daily,
    events_of,
    producer,
    schedule,
    status_of,
    writes_of,
)

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.resources import Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.metrics_producer.decide import queue_pause
from springtide.controllers.metrics_producer.queues import MOST_CONCURRENT, MOST_PER_NAMESPACE
from springtide.metrics.queues import QueueError, QueueLength, QueueReader, QueueTarget
from springtide.simulator.scenario import crash, create, delete, edit
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

START = "2026-06-01T08:00:00Z"
LENGTH = "karpenter_queue_length"
AGE = "karpenter_queue_oldest_message_age_seconds"
ARN = "arn:aws:sqs:eu-central-1:123456789012:jobs"
QUEUE = producer(queue={"type": "AWSSQSQueue", "id": ARN})
DOWN = QueueError("NoAnswer", "sqs has not answered", retryable=True)


@dataclass(slots=True)
class FakeQueueReader(QueueReader):
    """Answers every read with the length or error that the test sets."""

    answer: QueueLength | Exception = field(default_factory=lambda: QueueLength(41))
    reads: list[str] = field(default_factory=list)
    before_answer: Callable[[], Awaitable[None]] | None = None

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        return QueueTarget(GrantedResource.QUEUE, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        self.reads.append(f"{namespace} {queue.id}")
        if self.before_answer is not None:
            await self.before_answer()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def set_answer(self, answer: QueueLength | Exception) -> Action:
        async def act(world: World) -> None:
            self.answer = answer

        return act


def _harness(queues: FakeQueueReader, *, allow_all: bool = True) -> ProducerHarness:
    return ProducerHarness(extra_services=(GrantPolicy(everything=allow_all), queues))


def test_queue_is_read_every_fifteen_seconds() -> None:
    """The metric follows; the status is written only when the length changes."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    outcome = (
        harness.scenario(START, QUEUE)
        .at("70s", harness.record_value(metric=LENGTH), queues.set_answer(QueueLength(7, 90)))
        .at("90s", harness.record_value(metric=LENGTH), harness.record_value(metric=AGE))
        .run("2m")
    )

    assert harness.recorded == [41, 7, 90]
    assert len(queues.reads) == 8
    assert set(queues.reads) == {f"default {ARN}"}
    assert status_of(outcome)["queue"] == {"length": 7, "oldestMessageAgeSeconds": 90}
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")
    assert writes_of(outcome) == ["2026-06-01T08:00:00Z", "2026-06-01T08:01:15Z"]


def test_unknown_age_is_not_exported() -> None:
    """A missing series is better than a wrong value."""
    harness = _harness(FakeQueueReader())

    outcome = harness.scenario(START, QUEUE).at("1m", harness.record_value(metric=AGE)).run("2m")

    assert harness.recorded == ["absent"]
    assert status_of(outcome)["queue"] == {"length": 41}


def test_last_value_stays_and_ages_during_a_failure() -> None:
    """One event and a condition report the failure; the condition recovers with the next answer."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    async def observe(world: World) -> None:
        series = harness.series()
        assert series is not None
        harness.recorded.append((series.values[LENGTH], series.age(world.clock.now())))

    scenario = harness.scenario(START, QUEUE).at("20s", queues.set_answer(DOWN)).at("60s", observe).at("10m", observe)
    broken = scenario.run("11m")
    queues.answer = QueueLength(41)
    corrected = scenario.at("11m", queues.set_answer(QueueLength(5))).at("16m", observe).run("17m")

    assert harness.recorded == [(41, 30), (41, 570), (41, 30), (41, 570), (5, 0)]
    assert conditions_of(broken)["Active"] == ("False", "NoAnswer")
    assert status_of(broken)["queue"] == {"length": 41}
    assert events_of(broken) == [("Warning", "NoAnswer", "sqs has not answered")]
    assert writes_of(broken) == ["2026-06-01T08:00:00Z", "2026-06-01T08:00:30Z"]
    assert conditions_of(corrected)["Ready"] == ("True", "Ready")


@pytest.mark.parametrize(
    ("failure", "pauses"),
    [
        pytest.param(None, [15], id="answer"),
        pytest.param(DOWN, [15, 30, 60, 120, 240, 240], id="no answer"),
        pytest.param(QueueError("QueueNotFound", "", retryable=False), [300, 300], id="permanent failure"),
    ],
)
def test_backoff_grows_with_failures(failure: QueueError | None, pauses: list[int]) -> None:
    """It is limited; a permanent failure has the longest delay at once."""
    assert [queue_pause(failure, failures) for failures in range(1, len(pauses) + 1)] == pauses


def test_last_value_is_restored_from_the_status_after_a_restart() -> None:
    """Its age is the time since the failure began."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    async def observe(world: World) -> None:
        series = harness.series()
        harness.recorded.append(None if series is None else (series.values[LENGTH], series.age(world.clock.now())))

    (
        harness.scenario(START, QUEUE)
        .at("20s", queues.set_answer(DOWN))
        .at("60s", crash("springtide-0", downtime=10))
        .at("90s", observe)
        .run("2m")
    )

    assert harness.recorded == [(41, 60)]


def test_queue_that_never_answered_has_no_series() -> None:
    """The condition reports the failure."""
    queues = FakeQueueReader(answer=DOWN)
    harness = _harness(queues)

    outcome = harness.scenario(START, QUEUE).at("1m", harness.record_value(metric=LENGTH)).run("2m")

    assert harness.recorded == ["absent"]
    assert "queue" not in status_of(outcome)


def test_unexpected_exception_of_a_reader_is_a_failure() -> None:
    """It is logged, and the queue is read again."""
    queues = FakeQueueReader(answer=ZeroDivisionError("oops"))
    harness = _harness(queues)

    outcome = (
        harness.scenario(START, QUEUE)
        .tolerating(ZeroDivisionError)
        .at("40s", queues.set_answer(QueueLength(3)))
        .run("2m")
    )

    assert status_of(outcome)["queue"] == {"length": 3}


def test_slow_queues_do_not_delay_schedules() -> None:
    """Any number of queues may hang."""
    queues = FakeQueueReader()
    harness = _harness(queues)
    slow = [producer(f"slow-{number}", queue={"type": "AWSSQSQueue", "id": f"{ARN}-{number}"}) for number in range(40)]

    async def take_long(world: World) -> None:
        queues.before_answer = lambda: world.clock.sleep(100_000)

    outcome = (
        harness.scenario(START, producer(schedule=schedule(daily(3, "9", "17"))))
        .at("1s", take_long)
        .at("2s", create(*slow))
        .run("2h")
    )

    assert writes_of(outcome)[-1] == "2026-06-01T09:00:00Z"
    assert len(queues.reads) == MOST_PER_NAMESPACE


def test_last_value_ages_while_a_read_hangs() -> None:
    """A hanging read is not a failure yet, but the value is not fresh."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    async def hang(world: World) -> None:
        queues.before_answer = lambda: world.clock.sleep(100_000)

    async def observe(world: World) -> None:
        series = harness.series()
        assert series is not None
        harness.recorded.append((series.values[LENGTH], series.age(world.clock.now())))

    harness.scenario(START, QUEUE).at("1s", hang).at("20s", observe).at("2m", observe).run("3m")

    assert harness.recorded == [(41, 0), (41, 90)]


def test_changed_queue_is_read_at_once() -> None:
    """The former queue is not read again."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    harness.scenario(START, QUEUE).at(
        "20s", edit("MetricsProducer", "web", {"spec": {"queue": {"id": f"{ARN}-2"}}})
    ).run("1m")

    assert [one.rpartition(":")[2] for one in queues.reads] == ["jobs", "jobs", "jobs-2", "jobs-2", "jobs-2"]


def test_queue_of_a_deleted_producer_is_not_read() -> None:
    """Its series is removed."""
    queues = FakeQueueReader()
    harness = _harness(queues)

    harness.scenario(START, QUEUE).at("20s", delete("MetricsProducer", "web")).run("2m")

    assert (len(queues.reads), harness.series()) == (2, None)


@pytest.mark.parametrize("answer", [pytest.param(DOWN, id="no answer"), pytest.param(QueueLength(2), id="answer")])
def test_queue_replaces_a_schedule(answer: QueueLength | QueueError) -> None:
    """The series and status of the schedule are removed, also if the queue does not answer."""
    queues = FakeQueueReader(answer=answer)
    harness = _harness(queues)
    other = {"spec": {"schedule": None, "queue": QUEUE["spec"]["queue"]}}

    outcome = (
        harness.scenario(START, producer(schedule=schedule(daily(3, "9", "17"))))
        .at("20s", harness.record_value(), edit("MetricsProducer", "web", other))
        .at("40s", harness.record_value(), harness.record_value(metric=LENGTH))
        .run("1m")
    )

    length = answer.length if isinstance(answer, QueueLength) else "absent"
    assert harness.recorded == [1, "absent", length]
    assert "scheduledCapacity" not in status_of(outcome)


class TestGrants:
    """Queues that a namespace may read when Grants are required."""

    GRANT: Object = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "jobs"},
        "spec": {"namespaces": ["default"], "queues": ["arn:aws:sqs:*:*:jobs"]},
    }

    def test_queue_is_not_read_without_a_grant(self) -> None:
        """The condition says what to write."""
        queues = FakeQueueReader()
        harness = _harness(queues, allow_all=False)

        outcome = harness.scenario(START, QUEUE).run("2m")

        assert queues.reads == []
        active = status_of(outcome)["conditions"]["Active"]
        assert (active["status"], active["reason"]) == ("False", "NotGranted")
        assert "list it under `queues` of a Grant" in active["message"]
        assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]

    def test_grant_takes_effect_and_ends_at_once(self) -> None:
        """When the Grant is deleted, the series and the status are removed."""
        queues = FakeQueueReader()
        harness = _harness(queues, allow_all=False)

        outcome = (
            harness.scenario(START, QUEUE)
            .at("10s", create(self.GRANT))
            .at("20s", harness.record_value(metric=LENGTH), delete("Grant", "jobs"))
            .at("60s", harness.record_value(metric=LENGTH))
            .run("2m")
        )

        assert harness.recorded == [41, "absent"]
        assert len(queues.reads) == 1
        assert "queue" not in status_of(outcome)

    def test_recreated_grant_reads_the_queue_again(self) -> None:
        """The former value is not exported again."""
        queues = FakeQueueReader()
        harness = _harness(queues, allow_all=False)

        (
            harness.scenario(START, QUEUE, self.GRANT)
            .at("5s", delete("Grant", "jobs"))
            .at("6s", queues.set_answer(QueueLength(9)), create(self.GRANT))
            .at("7s", harness.record_value(metric=LENGTH))
            .run("10s")
        )

        assert harness.recorded == [9]

    def test_grants_for_other_namespaces_or_queues_do_not_apply(self) -> None:
        """One Grant names another namespace, the other one another queue."""
        queues = FakeQueueReader()
        harness = _harness(queues, allow_all=False)
        elsewhere = {**self.GRANT, "metadata": {"name": "a"}, "spec": {**self.GRANT["spec"], "namespaces": ["other"]}}
        another = {**self.GRANT, "metadata": {"name": "b"}, "spec": {**self.GRANT["spec"], "queues": [f"{ARN}s"]}}

        harness.scenario(START, QUEUE, elsewhere, another).run("2m")

        assert queues.reads == []


def test_hanging_queues_of_a_namespace_do_not_delay_others() -> None:
    """The number of concurrent reads is limited for each namespace."""

    class HangingQueueReader(FakeQueueReader):
        async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
            self.reads.append(namespace)
            if namespace == "hanging":
                await asyncio.Event().wait()
            return QueueLength(3)

    queues = HangingQueueReader()
    harness = _harness(queues)
    hanging = [producer(f"hanging-{number:02}", queue=QUEUE["spec"]["queue"]) for number in range(2 * MOST_CONCURRENT)]
    for one in hanging:
        one["metadata"]["namespace"] = "hanging"

    harness.scenario(START, *hanging).at("10s", create(QUEUE)).at("30s", harness.record_value(metric=LENGTH)).run("40s")

    assert harness.recorded == [3]
    assert queues.reads.count("hanging") == MOST_PER_NAMESPACE
