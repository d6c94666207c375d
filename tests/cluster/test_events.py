"""Kubernetes Events: correlation, rate limits, and what happens to events that cannot be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.cluster.memory_cluster import CONFIG_MAPS, EVENTS, START, USER, MemoryCluster, do_nothing

from springtide.cluster import events
from springtide.cluster.errors import Conflict, Forbidden, NotLeader, RequestTimeout, ServerError, TooManyRequests
from springtide.cluster.events import (
    PACE,
    CountedEvent,
    EventContent,
    EventCorrelator,
    EventRecorder,
    EventSink,
    InvolvedObject,
    normal,
    warning,
)
from springtide.cluster.resources import Key, Object, Resource
from springtide.simulator.virtual_time import VirtualClock, run

SUBJECT = InvolvedObject(CONFIG_MAPS, Key("work", "a"), "uid-a")


def seen(correlator: EventCorrelator, notice: EventContent, *times: int) -> list[CountedEvent | None]:
    return [correlator.correlate(SUBJECT, notice, time) for time in times]


def test_equal_events_are_counted() -> None:
    """One name, one first time, a growing count."""
    first, second, third = seen(EventCorrelator("c"), normal("Made", "it was made"), 10, 20, 30)

    assert first is not None
    assert second is not None
    assert third is not None
    assert first.name == second.name == third.name
    assert [(one.count, one.first, one.last) for one in (first, second, third)] == [
        (1, 10, 10),
        (2, 10, 20),
        (3, 10, 30),
    ]


def test_events_with_different_messages_can_count_as_equal() -> None:
    """Messages with a number would differ each time."""
    correlator = EventCorrelator("c")
    one = correlator.correlate(SUBJECT, normal("Busy", "3 pods wait", same="pods"), 0)
    two = correlator.correlate(SUBJECT, normal("Busy", "4 pods wait", same="pods"), 1)

    assert one is not None
    assert two is not None
    assert (one.name, two.count, two.message) == (two.name, 2, "4 pods wait")


@pytest.mark.parametrize(
    ("component", "subject", "notice"),
    [
        pytest.param("d", SUBJECT, normal("Made", "m"), id="component"),
        pytest.param("c", InvolvedObject(CONFIG_MAPS, Key("work", "a"), "uid-b"), normal("Made", "m"), id="uid"),
        pytest.param("c", InvolvedObject(EVENTS, Key("work", "a"), "uid-a"), normal("Made", "m"), id="resource"),
        pytest.param("c", SUBJECT, warning("Made", "m"), id="type"),
        pytest.param("c", SUBJECT, normal("Kept", "m"), id="reason"),
        pytest.param("c", SUBJECT, normal("Made", "n"), id="message"),
    ],
)
def test_different_events_have_different_names(component: str, subject: InvolvedObject, notice: EventContent) -> None:
    """The name depends on the whole content; a second process derives the same one."""
    plain = EventCorrelator("c").correlate(SUBJECT, normal("Made", "m"), 0)
    again = EventCorrelator("c").correlate(SUBJECT, normal("Made", "m"), 99)
    other = EventCorrelator(component).correlate(subject, notice, 0)

    assert plain is not None
    assert again is not None
    assert other is not None
    assert plain.name == again.name
    assert plain.name.startswith("a.")
    assert plain.name != other.name


def test_names_and_messages_are_truncated_to_the_limits_of_the_api() -> None:
    """A name of 253 characters leaves no room for digits, and must not end in a dash after truncation."""
    subject = InvolvedObject(CONFIG_MAPS, Key("work", "n" * 235 + "-" + "n" * 17))
    sighting = EventCorrelator("c").correlate(subject, normal("Made", "x" * 5000), 0)

    assert sighting is not None
    assert sighting.name[:235] + "." == "n" * 235 + sighting.name[235]
    assert len(sighting.name) == 235 + 17
    assert len(sighting.message) == 1024


def test_similar_events_are_combined() -> None:
    """After ten different ones within ten minutes of each other, until ten minutes without one."""
    correlator = EventCorrelator("c")
    messages = []
    for number in range(13):
        sighting = correlator.correlate(SUBJECT, normal("Busy", f"{number} pods"), number)
        assert sighting is not None
        messages.append((sighting.message, sighting.count))
    later = correlator.correlate(SUBJECT, normal("Busy", "99 pods"), 12 + 601)

    assert messages[9:] == [
        ("9 pods", 1),
        ("(combined from similar events): 10 pods", 1),
        ("(combined from similar events): 11 pods", 2),
        ("(combined from similar events): 12 pods", 3),
    ]
    assert later is not None
    assert later.message == "99 pods"


def test_events_of_one_object_are_rate_limited() -> None:
    """A burst of 25 about one object, then one every five minutes; other objects are not affected."""
    correlator = EventCorrelator("c")
    sent = seen(correlator, normal("Made", "m"), *[0] * 40, 299, 300, 301, 900)
    other = correlator.correlate(InvolvedObject(CONFIG_MAPS, Key("work", "b")), normal("Made", "m"), 0)

    assert [one is not None for one in sent] == [True] * 25 + [False] * 15 + [False, True, False, True]
    assert sent[-1] is not None
    assert sent[-1].count == 44
    assert other is not None


def test_correlation_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used entry is dropped, and its count restarts."""
    monkeypatch.setattr(events, "REMEMBERED", 2)
    correlator = EventCorrelator("c")
    counts = []
    for message in "a", "b", "a", "c", "a", "b":
        sighting = correlator.correlate(SUBJECT, normal("Made", message), 0)
        assert sighting is not None
        counts.append(sighting.count)

    assert counts == [1, 1, 2, 1, 3, 1]


class EventHarness:
    """A recorder whose events are sent to a cluster in memory."""

    def __init__(self, clock: VirtualClock, world: MemoryCluster | None = None) -> None:
        self.clock = clock
        self.world = world or MemoryCluster(clock)
        self.line = self.world.line()
        self.leading = True
        self.sink = EventSink(self.line, clock, permit=self._permit)
        self.sending = asyncio.ensure_future(self.sink.run())
        self.recorder = EventRecorder("springtide-test", self.sink, clock)
        self.about = {"metadata": {"name": "a", "namespace": "work", "uid": "uid-a"}}

    def _permit(self) -> None:
        if not self.leading:
            raise NotLeader("no more")

    def record(self, notice: EventContent, about: Object | None = None) -> None:
        """Record an event about the usual object."""
        self.recorder.record(CONFIG_MAPS, about or self.about, notice)


def play(story: Callable[[EventHarness], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        harness = EventHarness(clock)
        await story(harness)
        harness.sending.cancel()

    run(main, start=START)


def counted(harness: EventHarness) -> list[tuple[str, int]]:
    return [(event["message"], event["count"]) for event in harness.world.events()]


def test_an_event_as_the_server_gets_it() -> None:
    """In the namespace of its object; about objects without a namespace in `default`."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "it was made"))
        await harness.sink.flushed()

        (event,) = harness.world.events()
        metadata = event["metadata"]
        assert metadata["namespace"] == "work"
        assert metadata["name"].startswith("a.")
        assert {name: part for name, part in event.items() if name != "metadata"} == {
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "a",
                "namespace": "work",
                "uid": "uid-a",
            },
            "type": "Normal",
            "reason": "Made",
            "message": "it was made",
            "count": 1,
            "firstTimestamp": "2026-01-05T00:00:00Z",
            "lastTimestamp": "2026-01-05T00:00:00Z",
            "source": {"component": "springtide-test"},
            "reportingComponent": "springtide-test",
            "reportingInstance": "",
        }

        harness.record(normal("Made", "it was made"), {"metadata": {"name": "cluster-wide", "uid": "2"}})
        await harness.sink.flushed()
        assert [one["metadata"]["namespace"] for one in harness.world.events()] == ["work", "default"]

    play(story)


def test_recording_never_waits() -> None:
    """Events are sent after the reconcile yields, in the order in which they were recorded."""

    async def story(harness: EventHarness) -> None:
        for number in range(3):
            harness.record(normal(f"R{number}", "m"))
        assert harness.line.asked == []
        await harness.sink.flushed()
        assert [one["reason"] for one in harness.world.events()] == ["R0", "R1", "R2"]

    play(story)


def test_equal_events_are_one_object() -> None:
    """Its count and last time increase."""

    async def story(harness: EventHarness) -> None:
        for _ in range(3):
            harness.record(normal("Made", "m"))
            await harness.clock.sleep(60)

        (event,) = harness.world.events()
        assert (event["count"], event["firstTimestamp"]) == (3, "2026-01-05T00:00:00Z")
        assert event["lastTimestamp"] == "2026-01-05T00:02:00Z"

    play(story)


def test_a_new_process_continues_the_count() -> None:
    """The name follows from the content, so the next process finds the event."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "m"))
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        await harness.clock.sleep(5)
        other = EventHarness(harness.clock, harness.world)
        for _ in range(3):
            other.record(normal("Made", "m"))
        await other.sink.flushed()

        assert counted(harness) == [("m", 5)]
        other.sending.cancel()

    play(story)


def test_an_event_that_the_server_deleted_starts_again() -> None:
    """Servers keep events for about an hour."""

    async def story(harness: EventHarness) -> None:
        for _ in range(3):
            harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        (event,) = harness.world.events()
        harness.world.server.delete(EVENTS, Key("work", event["metadata"]["name"]), USER)
        for _ in range(2):
            harness.record(normal("Made", "m"))
        await harness.sink.flushed()

        assert counted(harness) == [("m", 2)]

    play(story)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_event_is_retried_and_counted_once(when: str) -> None:
    """Also if the first try took effect and only its answer was lost."""

    async def story(harness: EventHarness) -> None:
        left = {"create": 1, "patch": 1}

        async def fail(verb: str, resource: Resource, key: Key) -> None:
            if left.get(verb, 0):
                left[verb] -= 1
                raise RequestTimeout("no answer")

        setattr(harness.line, when, fail)
        harness.record(normal("Made", "m"))
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()

        assert counted(harness) == [("m", 2)]
        assert (harness.sink.sent, harness.sink.dropped, left) == (2, 0, {"create": 0, "patch": 0})
        assert harness.clock.monotonic() == 20

    play(story)


def refusing(error: Exception) -> Callable[[str, Resource, Key], Awaitable[None]]:
    async def refuse(verb: str, resource: Resource, key: Key) -> None:
        raise error

    return refuse


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param(TooManyRequests("busy"), 110, id="tried-twelve-times"),
        pytest.param(Forbidden("not allowed"), 0, id="permanent"),
    ],
)
def test_an_event_that_cannot_be_sent_is_dropped(error: Exception, seconds: int) -> None:
    """Events are best effort: the next one is sent."""

    async def story(harness: EventHarness) -> None:
        harness.line.before = refusing(error)
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        assert (harness.clock.monotonic(), harness.sink.dropped) == (seconds, 1)

        harness.line.before = do_nothing
        harness.record(normal("Made", "n"))
        await harness.sink.flushed()
        assert counted(harness) == [("n", 1)]

    play(story)


def test_a_former_leader_sends_no_events() -> None:
    """They are withheld like any write."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "m"))
        harness.leading = False
        await harness.sink.flushed()

        assert (harness.world.events(), harness.sink.dropped) == ([], 1)

    play(story)


def about(number: int) -> Object:
    return {"metadata": {"name": f"n{number}", "namespace": "work", "uid": "1"}}


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """An API server that does not answer must fill neither the memory nor the log."""
    monkeypatch.setattr(events, "QUEUED", 50)

    async def story(harness: EventHarness) -> None:
        for flood in (1, 2):
            for number in range(55):
                harness.record(normal("Made", f"m{flood}"), about(number))
            assert harness.sink.dropped == 5 * flood
            await harness.sink.flushed()
            assert len(harness.world.events()) == 50 * flood

    play(story)
    assert [record.message.partition(",")[0] for record in caplog.records] == ["the event queue is full (50)"] * 2


@pytest.mark.parametrize(
    ("count", "seconds"),
    [pytest.param(PACE.burst, 0.0, id="a-burst"), pytest.param(PACE.burst + 75, 1.5, id="a-flood")],
)
def test_sending_is_rate_limited(count: int, seconds: float) -> None:
    """Events must not slow down the writes that they are about."""

    async def story(harness: EventHarness) -> None:
        for number in range(count):
            harness.record(normal("Made", "m"), about(number))
        await harness.sink.flushed()
        assert (harness.sink.sent, round(harness.clock.monotonic(), 3)) == (count, seconds)

    play(story)


def elsewhere(namespace: str, name: str = "x") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": "1"}}


def test_an_event_in_a_deleted_namespace_is_dropped_at_once() -> None:
    """Another try would fail as well."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "m"), elsewhere("gone"))
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        assert (harness.clock.monotonic(), harness.sink.dropped, harness.sink.sent) == (0, 1, 1)

    play(story)


@pytest.mark.parametrize("removed", [False, True], ids=["changed", "removed"])
def test_a_conflict_is_retried_at_once(removed: bool) -> None:
    """Other events do not wait for it."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        key = Key("work", harness.world.events()[0]["metadata"]["name"])
        meddled: list[str] = []

        async def meddle(verb: str, resource: Resource, _: Key) -> None:
            if verb == "patch" and not meddled:
                meddled.append(verb)
                if removed:
                    harness.world.server.delete(EVENTS, key, USER)
                else:
                    harness.world.change(key.name, resource=EVENTS, count=7)

        harness.line.before = meddle
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        assert harness.clock.monotonic() == 0
        # A count that others have brought up does not fall.
        assert counted(harness) == [("m", 1 if removed else 7)]

    play(story)


def test_an_event_that_fails_delays_others_by_one_pause() -> None:
    """It moves to the end of the queue, before later counts of the same event."""

    async def story(harness: EventHarness) -> None:
        async def fail(verb: str, resource: Resource, key: Key) -> None:
            if key.name.startswith("bad") and harness.clock.monotonic() < 25:
                raise ServerError("a webhook is out of order")

        harness.line.before = fail
        for name in "bad", "bad", "good", "fine":
            harness.record(normal("Made", "m"), elsewhere("work", name))
        await harness.clock.sleep(11)
        assert [event["involvedObject"]["name"] for event in harness.world.events()] == ["fine", "good"]
        await harness.sink.flushed()
        assert [(event["involvedObject"]["name"], event["count"]) for event in harness.world.events()] == [
            ("bad", 2),
            ("fine", 1),
            ("good", 1),
        ]

    play(story)


def test_an_event_with_permanent_conflicts_is_dropped() -> None:
    """After as many tries as for any other failure."""

    async def story(harness: EventHarness) -> None:
        harness.line.before = refusing(Conflict("it has changed"))
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        assert (harness.clock.monotonic(), harness.sink.dropped) == (110, 1)

    play(story)


def test_a_later_process_counts_a_retried_event_once() -> None:
    """The first try took effect, and changed the count on the server."""

    async def story(harness: EventHarness) -> None:
        harness.record(normal("Made", "m"))
        await harness.sink.flushed()
        await harness.clock.sleep(5)
        other = EventHarness(harness.clock, harness.world)
        lost: list[str] = []

        async def lose(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch" and not lost:
                lost.append(verb)
                raise RequestTimeout("no answer")

        other.line.after = lose
        other.record(normal("Made", "m"))
        await other.sink.flushed()
        assert (counted(harness), lost) == ([("m", 2)], ["patch"])
        other.sending.cancel()

    play(story)


def test_the_window_of_similar_events_is_extended_by_each() -> None:
    """The ten minutes count from the last of them, not from the first."""
    correlator = EventCorrelator("c")
    for number in range(12):
        correlator.correlate(SUBJECT, normal("Busy", f"{number} pods"), number * 400)
    last = correlator.correlate(SUBJECT, normal("Busy", "99 pods"), 12 * 400)

    assert last is not None
    assert last.message == "(combined from similar events): 99 pods"


def test_tokens_do_not_exceed_the_burst() -> None:
    """After any time without events."""
    correlator = EventCorrelator("c")
    seen(correlator, normal("Made", "m"), 0)
    sent = seen(correlator, normal("Made", "m"), *[10**6] * 40)

    assert sum(one is not None for one in sent) == 25
