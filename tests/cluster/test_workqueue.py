"""The work queue behaves like that of client-go, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.cluster.clock import Backoff, RateLimit
from springtide.cluster.controller import Urgency
from springtide.cluster.workqueue import DelayedKeys, QueueShutDown, WorkQueue
from springtide.simulator.virtual_time import VirtualClock, run

Arrivals = list[tuple[float, str]]


async def arrivals(queue: WorkQueue[str], clock: VirtualClock, seconds: float) -> Arrivals:
    """Process keys for a while, and give the time of each."""
    came: Arrivals = []

    async def work() -> None:
        while True:
            key = await queue.get()
            came.append((round(clock.monotonic(), 3), key))
            queue.done(key)

    worker = asyncio.create_task(work())
    await clock.sleep(seconds)
    worker.cancel()
    return came


def story(main: Callable[[WorkQueue[str], VirtualClock], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a test with a queue on a fresh virtual loop that begins at instant 1000."""

    async def tell(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock, **options)
        await main(queue, clock)
        queue.shut_down(drain=False)

    run(tell, start=1000)


def add(queue: WorkQueue[str], *keys: str) -> None:
    for key in keys:
        queue.add(key)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        pytest.param(lambda q: add(q, "a", "b", "c"), [(0, "a"), (0, "b"), (0, "c")], id="first come, first served"),
        pytest.param(lambda q: add(q, "a", "b", "a", "a"), [(0, "a"), (0, "b")], id="a key is queued once"),
        pytest.param(lambda q: q.add_after("a", 0), [(0, "a")], id="no delay"),
        pytest.param(lambda q: q.add_after("a", -5), [(0, "a")], id="a negative delay"),
        pytest.param(lambda q: q.add_after("a", 2.5), [(2.5, "a")], id="a delay"),
        pytest.param(lambda q: q.add_at("a", 1007), [(7, "a")], id="an instant"),
        pytest.param(lambda q: q.add_at("a", 1000), [(0, "a")], id="this instant"),
        pytest.param(lambda q: q.add_at("a", 5), [(0, "a")], id="an instant long ago"),
        pytest.param(lambda q: (q.add_after("a", 5), q.add_after("a", 2)), [(2, "a")], id="an earlier delay wins"),
        pytest.param(lambda q: (q.add_after("a", 2), q.add_after("a", 5)), [(2, "a")], id="a later delay is dropped"),
        pytest.param(lambda q: (q.add_at("a", 1005), q.add_at("a", 1002)), [(2, "a")], id="an earlier instant wins"),
        pytest.param(
            lambda q: (q.add_at("a", 1005), q.add_after("a", 2)), [(2, "a"), (5, "a")], id="instants and delays are two"
        ),
        pytest.param(lambda q: (q.add_after("a", 3), q.add("a")), [(0, "a"), (3, "a")], id="both now and later"),
        pytest.param(
            lambda q: (q.add_after("c", 2), q.add_after("a", 2), q.add_after("b", 1)),
            [(1, "b"), (2, "c"), (2, "a")],
            id="equal delays keep their order",
        ),
        pytest.param(
            lambda q: (q.add_after("a", 2), q.add_after("b", 2), q.add_after("a", 2)),
            [(2, "a"), (2, "b")],
            id="asking again for the same delay loses no turn",
        ),
        pytest.param(
            lambda q: [
                q.add_after(k, s) for k, s in [("a", 99), ("c", 150), *(("a", 99 - n) for n in range(90)), ("b", 1)]
            ],
            [(1, "b"), (10, "a"), (150, "c")],
            id="much that is replaced leaves no trace",
        ),
    ],
)
def test_times_of_keys(fill: Callable[[WorkQueue[str]], object], expected: Arrivals) -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        fill(queue)
        assert await arrivals(queue, clock, 200) == expected

    story(main)


def test_a_replaced_delay_does_not_enqueue_the_key() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_after("a", 10)
        queue.add_after("a", 1)
        assert await arrivals(queue, clock, 2) == [(1, "a")]
        queue.add_after("a", 60)
        assert await arrivals(queue, clock, 100) == [(62, "a")]

    story(main)


def test_a_clock_that_rounds_down_leads_to_one_sleep() -> None:
    async def main(clock: VirtualClock) -> None:
        sleeps: list[float] = []
        woken: list[str] = []

        async def sleep_until(when: float) -> None:
            assert not sleeps
            sleeps.append(when)

        delays: DelayedKeys[str] = DelayedKeys(lambda: 0.999_999_999, sleep_until, woken.append)
        delays.add("a", 1.0)
        await clock.sleep(1)
        assert (woken, sleeps) == (["a"], [1.0])

    run(main)


def test_delays_can_be_set_after_all_were_dropped() -> None:
    async def main(clock: VirtualClock) -> None:
        woken: list[str] = []

        async def sleep_until(when: float) -> None:
            await clock.sleep(when - clock.monotonic())

        delays: DelayedKeys[str] = DelayedKeys(clock.monotonic, sleep_until, woken.append)
        now = clock.monotonic()
        delays.add("a", now + 5)
        delays.clear()
        delays.add("b", now + 10)
        await clock.sleep(20)
        assert woken == ["b"]

    run(main)


def test_a_key_added_during_processing_is_queued_again_afterwards() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        add(queue, "a", "b")
        assert await queue.get() == "a"
        add(queue, "a", "a")
        assert len(queue) == 1
        assert await queue.get() == "b"
        assert len(queue) == 0
        queue.done("a")
        assert len(queue) == 1
        assert await queue.get() == "a"
        queue.done("a")
        queue.done("b")
        assert len(queue) == 0

    story(main)


def test_no_key_has_two_workers() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        busy: list[str] = []
        done: list[str] = []

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in busy
                busy.append(key)
                await clock.sleep(1)
                busy.remove(key)
                done.append(key)
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(3)]
        for _ in range(40):
            add(queue, "a", "b", "c", "d")
            await clock.sleep(0.3)
        await clock.sleep(10)
        for worker in workers:
            assert not worker.done()
            worker.cancel()
        # 12 seconds of four keys on three workers, and one round more of what was added meanwhile.
        assert {key: done.count(key) >= 9 for key in "abcd"} == dict.fromkeys("abcd", True)

    story(main)


def test_replaced_delays_do_not_pile_up() -> None:
    """A key whose delay is replaced again and again takes the memory of a few delays."""

    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        for n in range(1000):
            queue.add_after("key", 2000 - n)
        assert queue.delayed == 1
        assert len(queue._after._heap) < 30

    story(main)


def test_later_delays_do_not_begin_the_sleep_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an earlier one does; thousands of delays are set at a start."""
    made: list[object] = []

    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        create = loop.create_task

        def counted(coroutine: Any, **options: Any) -> Any:
            made.append(coroutine)
            return create(coroutine, **options)

        monkeypatch.setattr(loop, "create_task", counted)
        for n in (10, 20, 30, 5, 15, 25):
            queue.add_after(f"key-{n}", n)
        assert len(made) == 2
        await clock.sleep(100)
        assert len(queue) == 6

    story(main)


def test_delays_need_one_task_for_any_number_of_keys() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        before = len(asyncio.all_tasks())
        for n in range(1000):
            queue.add_after(f"key-{n}", 1000 - n)
        await clock.sleep(0.5)
        assert queue.delayed == 1000
        assert len(asyncio.all_tasks()) == before + 1
        await clock.sleep(2000)
        assert queue.delayed == 0
        assert len(queue) == 1000
        assert len(asyncio.all_tasks()) == before

    story(main)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [pytest.param(n, s, id=f"after {n}") for n, s in [(1, 0.005), (2, 0.01), (3, 0.02), (18, 655.36), (30, 1000.0)]],
)
def test_a_failing_key_has_growing_backoff(failures: int, seconds: float) -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        for _ in range(failures):
            began = clock.monotonic()
            queue.add_failed("a")
            assert await queue.get() == "a"
            queue.done("a")
        assert clock.monotonic() - began == pytest.approx(seconds, abs=1e-5)
        assert queue.failures("a") == failures
        queue.forget("a")
        assert queue.failures("a") == 0
        began = clock.monotonic()
        queue.add_failed("a")
        await queue.get()
        assert clock.monotonic() - began == pytest.approx(0.005, abs=1e-5)

    story(main)


def test_keys_that_fail_together_are_rate_limited() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        for n in range(103):
            queue.add_failed(f"key-{n}")
        came = await arrivals(queue, clock, 60)
        assert [at for at, _ in came] == [0.005] * 100 + [0.1, 0.2, 0.3]

    story(main)


def test_backoff_and_rate_are_settings() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_failed("a")
        queue.add_failed("b")
        assert await arrivals(queue, clock, 60) == [(2.0, "a"), (10.0, "b")]

    story(main, backoff=Backoff(first=2.0), rate=RateLimit(per_second=0.1, burst=1))


class SetClock(VirtualClock):
    """A clock that a test sets; like a live one it reads the time periodically while it waits."""

    offset = 0

    def now(self) -> int:
        return super().now() + self.offset

    async def sleep_until(self, at: int) -> None:
        while self.now() < at:
            await self.sleep(min(at - self.now(), 30))


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(0, [(100, "after"), (100, "at")], id="not set"),
        pytest.param(50, [(50, "at"), (100, "after")], id="forwards"),
        pytest.param(-50, [(100, "after"), (150, "at")], id="backwards"),
    ],
)
def test_instants_follow_a_clock_that_is_set_and_durations_do_not(offset: int, expected: Arrivals) -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        shifted = SetClock(loop, 1000)  # type: ignore[arg-type]
        queue: WorkQueue[str] = WorkQueue(shifted)
        queue.add_at("at", 1100)
        queue.add_after("after", 100)
        loop.call_later(10, setattr, shifted, "offset", offset)
        assert sorted(await arrivals(queue, clock, 300)) == expected

    run(main)


@pytest.mark.parametrize("when", ["before it is woken", "after it is woken"])
def test_a_cancelled_worker_loses_no_key(when: str) -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await clock.sleep(1)
        if when == "before it is woken":
            first.cancel()
            queue.add("a")
        else:
            queue.add("a")
            first.cancel()
        assert await second == "a"

    story(main)


def test_returning_a_key_that_was_not_taken_is_an_error() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add("a")
        with pytest.raises(ValueError, match="key 'a' is returned, but no worker has it"):
            queue.done("a")

    story(main)


def test_shutting_down_without_drain_drops_all_keys_and_wakes_all_workers() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        add(queue, "a", "b")
        queue.add_after("c", 5)
        queue.add_at("d", 1005)
        assert await queue.get() == "a"
        queue.add("a")
        queue.shut_down(drain=False)
        add(queue, "e")
        queue.add_after("f", 1)
        queue.add_at("g", 1001)
        queue.add_failed("h")
        assert (len(queue), queue.delayed) == (0, 0)
        with pytest.raises(QueueShutDown):
            await queue.get()
        queue.done("a")
        await clock.sleep(100)
        assert (len(queue), queue.delayed) == (0, 0)

    story(main)


def test_shutting_down_wakes_waiting_workers() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await clock.sleep(1)
        queue.shut_down(drain=True)
        for worker in workers:
            with pytest.raises(QueueShutDown):
                await worker

    story(main)


def test_draining_hands_out_queued_keys_and_those_added_during_processing() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        add(queue, "a", "b")
        queue.add_after("late", 1)
        assert await queue.get() == "a"
        queue.add("a")
        queue.shut_down(drain=True)
        assert await queue.get() == "b"
        others = [asyncio.create_task(queue.get()) for _ in range(2)]
        await clock.sleep(10)
        assert not any(other.done() for other in others)
        queue.done("a")
        assert await others[0] == "a"
        queue.done("b")
        queue.done("a")
        with pytest.raises(QueueShutDown):
            await others[1]

    story(main)


class Model:
    """A naive model of the queue: all due times in a list, searched from the start each time."""

    def __init__(self) -> None:
        self.queued: list[tuple[float, str]] = []
        self.added = 0
        self.busy: list[str] = []
        self.again: list[str] = []
        self.delays: dict[tuple[str, str], float] = {}
        self.failures: dict[str, int] = {}

    def add(self, key: str, at: float) -> None:
        if key in self.busy:
            if key not in self.again:
                self.again.append(key)
        elif all(key != other for _, other in self.queued):
            self.queued.append((at, key))

    def delay(self, kind: str, key: str, until: float) -> None:
        self.delays[kind, key] = min(until, self.delays.get((kind, key), until))

    def pass_time(self, now: float) -> None:
        due = sorted((until, key, kind) for (kind, key), until in self.delays.items() if until <= now)
        for until, key, kind in due:
            del self.delays[kind, key]
            self.add(key, until)

    def may_come(self) -> list[str]:
        """List the keys that may come next: those that were due first, in whatever order."""
        first = self.queued[0][0]
        return [key for at, key in self.queued if at == first]

    def take(self, key: str) -> None:
        self.queued = [entry for entry in self.queued if entry[1] != key]
        self.busy.append(key)

    def done(self, key: str, at: float) -> None:
        self.busy.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.add(key, at)


KEYS = st.sampled_from("abcde")
WORK = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "fail", "forget"]), KEYS, st.just(0.0)),
        st.tuples(st.just("after"), KEYS, st.sampled_from([0.0, 0.25, 1.0, 3.7, 60.0])),
        st.tuples(st.just("at"), KEYS, st.sampled_from([-1.0, 0.0, 1.0, 4.0, 90.0])),
        st.tuples(st.just("get"), st.just(""), st.just(0.0)),
        st.tuples(st.just("done"), KEYS, st.just(0.0)),
        st.tuples(st.just("wait"), st.just(""), st.sampled_from([0.004, 0.02, 0.5, 1.0, 7.0, 100.0])),
    ),
    max_size=80,
)


@settings(max_examples=300)
@given(WORK)
def test_the_queue_equals_a_naive_model(work: list[tuple[str, str, float]]) -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        model = Model()
        for turn, (verb, key, number) in enumerate(work):
            now = clock.monotonic()
            unique = now + turn * 1e-12  # what is added at once is in a strict order
            if verb == "add":
                queue.add(key)
                model.add(key, unique)
            elif verb == "fail":
                queue.add_failed(key)
                model.failures[key] = model.failures.get(key, 0) + 1
                model.delay("after", key, now + Backoff().after(model.failures[key]))
            elif verb == "forget":
                queue.forget(key)
                model.failures.pop(key, None)
            elif verb == "after":
                queue.add_after(key, number)
                model.delay("after", key, now + number) if number else model.add(key, unique)
            elif verb == "at":
                instant = clock.now() + int(number)
                queue.add_at(key, instant)
                model.delay("at", key, instant - 1000) if number > 0 else model.add(key, unique)
            elif verb == "get" and model.queued:
                taken = await asyncio.wait_for(queue.get(), 0.0001)
                assert taken in model.may_come()
                model.take(taken)
            elif verb == "done" and key in model.busy:
                queue.done(key)
                model.done(key, unique)
            elif verb == "wait":
                await clock.sleep(number)
                while any(abs(until - clock.monotonic()) < 5e-6 for until in model.delays.values()):
                    await clock.sleep(1e-5)  # not in the very microsecond in which a key comes
                model.pass_time(clock.monotonic())

            assert len(queue) == len(model.queued)
            assert queue.delayed == len(model.delays)
            assert queue.failures(key) == model.failures.get(key, 0)

    story(main, rate=RateLimit(per_second=float("inf")))


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param([("a", 2), ("b", 1), ("c", 0)], "cba", id="most-urgent-first"),
        pytest.param([("a", 2), ("b", 2), ("c", 2)], "abc", id="equals-in-order"),
        pytest.param([("a", 2), ("b", 2), ("b", 0)], "ba", id="more-urgent-when-added-again"),
        pytest.param([("a", 0), ("b", 0), ("a", 2)], "ab", id="never-less-urgent"),
        pytest.param([("a", 2), ("b", 1), ("a", 1), ("c", 1)], "bac", id="among-equals-by-the-last-rise"),
    ],
)
def test_keys_are_handed_out_by_urgency(added: list[tuple[str, int]], expected: str) -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        for key, urgency in added:
            queue.add(key, Urgency(urgency))
        assert len(queue) == len(expected)
        assert "".join(key for _, key in await arrivals(queue, clock, 1)) == expected

    story(main)


def test_a_key_that_is_added_while_it_is_processed_keeps_its_urgency() -> None:
    async def main(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a", Urgency.LATER)
        queue.add("b", Urgency.UNKNOWN)
        queue.done("a")
        assert [key for _, key in await arrivals(queue, clock, 1)] == ["b", "a"]

    story(main)
