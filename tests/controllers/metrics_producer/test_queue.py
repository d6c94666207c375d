"""Queues through the controller: how often they are asked, what is exported, and what happens when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from tests.controllers.metrics_producer.harness import (
    Stage,
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
class Waiting(QueueReader):
    """Queues that a test fills."""

    answer: QueueLength | Exception = field(default_factory=lambda: QueueLength(41))
    asked: list[str] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[None]] | None = None

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        return QueueTarget(GrantedResource.QUEUE, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        self.asked.append(f"{namespace} {queue.id}")
        if self.meanwhile is not None:
            await self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def becomes(self, answer: QueueLength | Exception) -> Action:
        async def act(world: World) -> None:
            self.answer = answer

        return act


def _stage(queues: Waiting, *, trusting: bool = True) -> Stage:
    return Stage(offered=(GrantPolicy(everything=trusting), queues))


def test_a_queue_is_asked_every_quarter_of_a_minute() -> None:
    """The metric follows; the status is written only when the length changes."""
    queues = Waiting()
    stage = _stage(queues)

    outcome = (
        stage.playing(START, QUEUE)
        .at("70s", stage.note(metric=LENGTH), queues.becomes(QueueLength(7, 90)))
        .at("90s", stage.note(metric=LENGTH), stage.note(metric=AGE))
        .run("2m")
    )

    assert stage.seen == [41, 7, 90]
    assert len(queues.asked) == 8
    assert set(queues.asked) == {f"default {ARN}"}
    assert status_of(outcome)["queue"] == {"length": 7, "oldestMessageAgeSeconds": 90}
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")
    assert writes_of(outcome) == ["2026-06-01T08:00:00Z", "2026-06-01T08:01:15Z"]


def test_an_age_that_nobody_tells_is_not_exported() -> None:
    """No number is better than a wrong one."""
    stage = _stage(Waiting())

    outcome = stage.playing(START, QUEUE).at("1m", stage.note(metric=AGE)).run("2m")

    assert stage.seen == ["absent"]
    assert status_of(outcome)["queue"] == {"length": 41}


def test_a_failure_leaves_the_last_value_which_grows_old() -> None:
    """Why is said once, in a condition and an event; when it answers again, all is well."""
    queues = Waiting()
    stage = _stage(queues)

    async def look(world: World) -> None:
        reading = stage.reading()
        assert reading is not None
        stage.seen.append((reading.values[LENGTH], reading.age(world.clock.now())))

    scenario = stage.playing(START, QUEUE).at("20s", queues.becomes(DOWN)).at("60s", look).at("10m", look)
    broken = scenario.run("11m")
    queues.answer = QueueLength(41)
    mended = scenario.at("11m", queues.becomes(QueueLength(5))).at("16m", look).run("17m")

    assert stage.seen == [(41, 30), (41, 570), (41, 30), (41, 570), (5, 0)]
    assert conditions_of(broken)["Active"] == ("False", "NoAnswer")
    assert status_of(broken)["queue"] == {"length": 41}
    assert events_of(broken) == [("Warning", "NoAnswer", "sqs has not answered")]
    assert writes_of(broken) == ["2026-06-01T08:00:00Z", "2026-06-01T08:00:30Z"]
    assert conditions_of(mended)["Ready"] == ("True", "Ready")


@pytest.mark.parametrize(
    ("failure", "pauses"),
    [
        pytest.param(None, [15], id="an-answer"),
        pytest.param(DOWN, [15, 30, 60, 120, 240, 240], id="no-answer"),
        pytest.param(QueueError("QueueNotFound", "", retryable=False), [300, 300], id="somebody-has-to-act"),
    ],
)
def test_who_keeps_failing_is_asked_less(failure: QueueError | None, pauses: list[int]) -> None:
    """The pauses grow, up to a limit; where it is of no use, the pause is long at once."""
    assert [queue_pause(failure, failures) for failures in range(1, len(pauses) + 1)] == pauses


def test_after_a_restart_the_last_value_is_there_while_nobody_answers() -> None:
    """It is read from the status, as old as the failure."""
    queues = Waiting()
    stage = _stage(queues)

    async def look(world: World) -> None:
        reading = stage.reading()
        stage.seen.append(None if reading is None else (reading.values[LENGTH], reading.age(world.clock.now())))

    (
        stage.playing(START, QUEUE)
        .at("20s", queues.becomes(DOWN))
        .at("60s", crash("springtide-0", downtime=10))
        .at("90s", look)
        .run("2m")
    )

    assert stage.seen == [(41, 60)]


def test_one_that_never_answered_has_no_value() -> None:
    """There is a condition, and no number."""
    queues = Waiting(answer=DOWN)
    stage = _stage(queues)

    outcome = stage.playing(START, QUEUE).at("1m", stage.note(metric=LENGTH)).run("2m")

    assert stage.seen == ["absent"]
    assert "queue" not in status_of(outcome)


def test_a_bug_in_a_reader_is_a_failure_as_any_other() -> None:
    """It is logged, and asked again."""
    queues = Waiting(answer=ZeroDivisionError("oops"))
    stage = _stage(queues)

    outcome = (
        stage.playing(START, QUEUE).tolerating(ZeroDivisionError).at("40s", queues.becomes(QueueLength(3))).run("2m")
    )

    assert status_of(outcome)["queue"] == {"length": 3}


def test_a_slow_queue_keeps_no_schedule_waiting() -> None:
    """However many there are that take for ever to answer."""
    queues = Waiting()
    stage = _stage(queues)
    slow = [producer(f"slow-{number}", queue={"type": "AWSSQSQueue", "id": f"{ARN}-{number}"}) for number in range(40)]

    async def take_long(world: World) -> None:
        queues.meanwhile = lambda: world.clock.sleep(100_000)

    outcome = (
        stage.playing(START, producer(schedule=schedule(daily(3, "9", "17"))))
        .at("1s", take_long)
        .at("2s", create(*slow))
        .run("2h")
    )

    assert writes_of(outcome)[-1] == "2026-06-01T09:00:00Z"
    assert len(queues.asked) == MOST_PER_NAMESPACE


def test_an_answer_that_does_not_come_lets_the_last_one_grow_old() -> None:
    """A question that hangs is no failure yet, and yet the value is not fresh."""
    queues = Waiting()
    stage = _stage(queues)

    async def hang(world: World) -> None:
        queues.meanwhile = lambda: world.clock.sleep(100_000)

    async def look(world: World) -> None:
        reading = stage.reading()
        assert reading is not None
        stage.seen.append((reading.values[LENGTH], reading.age(world.clock.now())))

    stage.playing(START, QUEUE).at("1s", hang).at("20s", look).at("2m", look).run("3m")

    assert stage.seen == [(41, 0), (41, 90)]


def test_an_edit_of_the_queue_counts_at_once() -> None:
    """The old one is asked no more."""
    queues = Waiting()
    stage = _stage(queues)

    stage.playing(START, QUEUE).at("20s", edit("MetricsProducer", "web", {"spec": {"queue": {"id": f"{ARN}-2"}}})).run(
        "1m"
    )

    assert [one.rpartition(":")[2] for one in queues.asked] == ["jobs", "jobs", "jobs-2", "jobs-2", "jobs-2"]


def test_a_producer_that_goes_is_asked_for_no_more() -> None:
    """Its series goes with it."""
    queues = Waiting()
    stage = _stage(queues)

    stage.playing(START, QUEUE).at("20s", delete("MetricsProducer", "web")).run("2m")

    assert (len(queues.asked), stage.reading()) == (2, None)


@pytest.mark.parametrize("answer", [pytest.param(DOWN, id="no-answer"), pytest.param(QueueLength(2), id="an-answer")])
def test_a_queue_takes_the_place_of_a_schedule(answer: QueueLength | QueueError) -> None:
    """Whether it answers or not, nothing of the schedule is left."""
    queues = Waiting(answer=answer)
    stage = _stage(queues)
    other = {"spec": {"schedule": None, "queue": QUEUE["spec"]["queue"]}}

    outcome = (
        stage.playing(START, producer(schedule=schedule(daily(3, "9", "17"))))
        .at("20s", stage.note(), edit("MetricsProducer", "web", other))
        .at("40s", stage.note(), stage.note(metric=LENGTH))
        .run("1m")
    )

    length = answer.length if isinstance(answer, QueueLength) else "absent"
    assert stage.seen == [1, "absent", length]
    assert "scheduledCapacity" not in status_of(outcome)


class TestGrants:
    """Whom objects of a namespace may ask, where nobody is trusted with everything."""

    GRANT: Object = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "jobs"},
        "spec": {"namespaces": ["default"], "queues": ["arn:aws:sqs:*:*:jobs"]},
    }

    def test_without_a_grant_nobody_is_asked(self) -> None:
        """The condition says what to write."""
        queues = Waiting()
        stage = _stage(queues, trusting=False)

        outcome = stage.playing(START, QUEUE).run("2m")

        assert queues.asked == []
        active = status_of(outcome)["conditions"]["Active"]
        assert (active["status"], active["reason"]) == ("False", "NotGranted")
        assert "list it under `queues` of a Grant" in active["message"]
        assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]

    def test_a_grant_that_comes_and_goes(self) -> None:
        """It counts at once; when it goes, what was learnt is taken back."""
        queues = Waiting()
        stage = _stage(queues, trusting=False)

        outcome = (
            stage.playing(START, QUEUE)
            .at("10s", create(self.GRANT))
            .at("20s", stage.note(metric=LENGTH), delete("Grant", "jobs"))
            .at("60s", stage.note(metric=LENGTH))
            .run("2m")
        )

        assert stage.seen == [41, "absent"]
        assert len(queues.asked) == 1
        assert "queue" not in status_of(outcome)

    def test_a_grant_that_comes_back(self) -> None:
        """The queue is asked anew, at once: what was known before is not shown again."""
        queues = Waiting()
        stage = _stage(queues, trusting=False)

        (
            stage.playing(START, QUEUE, self.GRANT)
            .at("5s", delete("Grant", "jobs"))
            .at("6s", queues.becomes(QueueLength(9)), create(self.GRANT))
            .at("7s", stage.note(metric=LENGTH))
            .run("10s")
        )

        assert stage.seen == [9]

    def test_a_grant_for_others_is_none(self) -> None:
        """Neither another namespace nor another queue helps."""
        queues = Waiting()
        stage = _stage(queues, trusting=False)
        elsewhere = {**self.GRANT, "metadata": {"name": "a"}, "spec": {**self.GRANT["spec"], "namespaces": ["other"]}}
        another = {**self.GRANT, "metadata": {"name": "b"}, "spec": {**self.GRANT["spec"], "queues": [f"{ARN}s"]}}

        stage.playing(START, QUEUE, elsewhere, another).run("2m")

        assert queues.asked == []


def test_a_namespace_whose_queues_never_answer_keeps_no_other_waiting() -> None:
    """However many it has: there are places left for others."""

    class Deaf(Waiting):
        async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
            self.asked.append(namespace)
            if namespace == "deaf":
                await asyncio.Event().wait()
            return QueueLength(3)

    queues = Deaf()
    stage = _stage(queues)
    deaf = [producer(f"deaf-{number:02}", queue=QUEUE["spec"]["queue"]) for number in range(2 * MOST_CONCURRENT)]
    for one in deaf:
        one["metadata"]["namespace"] = "deaf"

    stage.playing(START, *deaf).at("10s", create(QUEUE)).at("30s", stage.note(metric=LENGTH)).run("40s")

    assert stage.seen == [3]
    assert queues.asked.count("deaf") == MOST_PER_NAMESPACE
