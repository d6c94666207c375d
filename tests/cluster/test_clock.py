"""Clocks, waiting for the first of several, backoff and rate limits."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from tests.cluster.manager_process import stamp_controller
from tests.cluster.memory_cluster import MemoryCluster

from springtide.cluster.clock import (
    LONGEST_SLEEP,
    STEP_CHECK_PERIOD,
    Backoff,
    RateLimit,
    ScaledClock,
    TokenBucket,
    WallClock,
    first_of,
)
from springtide.cluster.manager import Manager
from springtide.simulator.virtual_time import VirtualClock, run


class Machine:
    """A machine whose clocks a test sets; sleeps take no real time."""

    def __init__(self) -> None:
        self.wall = 1_000_000.0
        self.elapsed = 50.0
        self.naps: list[float] = []
        self.during: Callable[[int], None] = lambda nap: None

    async def nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.wall += seconds
        self.elapsed += seconds
        self.during(len(self.naps))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(time, "time", lambda: made.wall)
    monkeypatch.setattr(time, "clock_gettime", lambda which: made.elapsed)
    monkeypatch.setattr("springtide.cluster.clock.asyncio.sleep", made.nap)
    return made


def test_a_long_wait_reads_the_wall_clock_periodically(machine: Machine) -> None:
    asyncio.run(WallClock().sleep_until(1_000_100))

    assert machine.naps == [LONGEST_SLEEP, LONGEST_SLEEP, LONGEST_SLEEP, 10]


def test_setting_the_clock_forward_ends_a_wait_within_the_longest_sleep(machine: Machine) -> None:
    def set_forward(nap: int) -> None:
        machine.wall += 1e6 if nap == 2 else 0

    machine.during = set_forward
    asyncio.run(WallClock().sleep_until(1_900_000))

    assert machine.naps == [LONGEST_SLEEP, LONGEST_SLEEP]


def test_setting_the_clock_back_prolongs_a_wait(machine: Machine) -> None:
    def set_back(nap: int) -> None:
        machine.wall -= 30 if nap == 1 else 0

    machine.during = set_back
    asyncio.run(WallClock().sleep_until(1_000_040))

    assert sum(machine.naps) == 70


def test_a_duration_counts_the_time_that_the_machine_was_suspended(machine: Machine) -> None:
    def suspend(nap: int) -> None:
        machine.elapsed += 600 if nap == 1 else 0

    machine.during = suspend
    asyncio.run(WallClock().sleep(300))

    assert machine.naps == [LONGEST_SLEEP]


def test_a_duration_ignores_steps_of_the_wall_clock(machine: Machine) -> None:
    def set_forward(nap: int) -> None:
        machine.wall += 1e6

    machine.during = set_forward
    asyncio.run(WallClock().sleep(65))

    assert sum(machine.naps) == 65


@pytest.mark.parametrize(
    ("step", "noticed"),
    [
        pytest.param(2 * 86_400, 2 * 86_400, id="two-days-forward"),
        pytest.param(-2 * 86_400, -2 * 86_400, id="two-days-back"),
        pytest.param(-2, -2, id="smallest-step"),
    ],
)
def test_a_step_of_the_wall_clock_is_noticed_at_the_next_check(machine: Machine, step: int, noticed: int) -> None:
    def set_clock(nap: int) -> None:
        machine.wall += step if nap == 3 else 0

    machine.during = set_clock

    assert asyncio.run(WallClock().stepped()) == noticed
    assert machine.naps == [STEP_CHECK_PERIOD] * 3


def test_small_corrections_add_up_to_a_step(machine: Machine) -> None:
    def slew(nap: int) -> None:
        machine.wall += 0.5

    machine.during = slew

    assert asyncio.run(WallClock().stepped()) == 2
    assert len(machine.naps) == 4


def test_a_suspended_machine_is_no_step(machine: Machine) -> None:
    class AwakeLongEnough(Exception):
        pass

    def suspend(nap: int) -> None:
        if nap == 3:
            raise AwakeLongEnough
        machine.wall += 3600
        machine.elapsed += 3600

    machine.during = suspend

    with pytest.raises(AwakeLongEnough):
        asyncio.run(WallClock().stepped())


@pytest.mark.parametrize("step", [2 * 86_400, -2 * 86_400], ids=["forward", "back"])
def test_a_live_manager_reconciles_every_object_again_after_a_step(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own clocks and event loop; only wall time is injected."""
    monkeypatch.setattr("springtide.cluster.clock.STEP_CHECK_PERIOD", 0.01)
    ahead = 0
    kind = stamp_controller()

    async def seen(count: int) -> list[int]:
        while len(kind.seen) < count:
            await asyncio.sleep(0.01)
        return [now for _, now in kind.seen]

    async def main() -> list[int]:
        nonlocal ahead
        clock = WallClock(lambda: 1_000_000_000.0 + time.monotonic() + ahead)
        world = MemoryCluster(clock)
        world.config_map("a", text="four")
        manager = Manager(world.line(), clock, [kind], random=Random(1))
        running = asyncio.ensure_future(manager.run())
        await asyncio.wait_for(seen(2), 60)  # the second one sees the own write
        before = len(kind.seen)
        ahead = step
        after = await asyncio.wait_for(seen(before + 1), 60)
        await manager.stop()
        await running
        return after[before - 1 :]

    last, following = asyncio.run(main())
    assert abs(following - last - step) < 120


def test_a_scaled_clock_is_never_set() -> None:
    async def main() -> bool:
        waiting = asyncio.ensure_future(ScaledClock(600, start=0).stepped())
        await asyncio.sleep(0)
        ended = waiting.done()
        waiting.cancel()
        return ended

    assert asyncio.run(main()) is False


def test_a_virtual_clock_can_be_set() -> None:
    """Instants follow the step, durations do not."""

    async def main(clock: VirtualClock) -> list[float]:
        ended: dict[str, float] = {}

        async def note(name: str, waiting: Awaitable[object]) -> None:
            await waiting
            ended[name] = clock.monotonic()

        tasks = [
            asyncio.ensure_future(note("instant passed by the step", clock.sleep_until(1_000_500))),
            asyncio.ensure_future(note("later instant", clock.sleep_until(1_002_000))),
            asyncio.ensure_future(note("duration", clock.sleep(700))),
            asyncio.ensure_future(note("step", clock.stepped())),
        ]
        await clock.sleep(100)
        clock.step(1000)
        await clock.sleep(300)
        clock.step(-200)
        await asyncio.gather(*tasks)
        return [ended[name] for name in ("instant passed by the step", "later instant", "duration", "step")]

    assert run(main, start=1_000_000) == [100, 1200, 700, 100]


def test_now_is_in_whole_seconds(machine: Machine) -> None:
    machine.wall = 1_000_000.9

    assert WallClock().now() == 1_000_000


class _Wall(WallClock):
    """A wall clock that advances only by sleeps."""

    def __init__(self) -> None:
        self.elapsed = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds


@pytest.mark.parametrize(
    ("speed", "elapsed", "now"),
    [
        pytest.param(1, 10.0, 110, id="real time"),
        pytest.param(600, 1.0, 700, id="600 times real time"),
        pytest.param(600, 0.001, 100, id="whole seconds, rounded down"),
        pytest.param(0.5, 10.0, 105, id="slower than real time"),
    ],
)
def test_the_instant_moves_by_the_speed(speed: float, elapsed: float, now: int) -> None:
    wall = _Wall()
    clock = ScaledClock(speed, start=100, wall=wall)
    wall.elapsed += elapsed
    assert clock.now() == now
    assert clock.monotonic() == pytest.approx(elapsed * speed)


def test_a_duration_takes_real_time_divided_by_the_speed() -> None:
    wall = _Wall()
    asyncio.run(ScaledClock(600, start=0, wall=wall).sleep(3600))
    assert wall.slept == [6.0]


def test_a_wait_for_an_instant_ends_exactly_then() -> None:
    wall = _Wall()
    clock = ScaledClock(600, start=100, wall=wall)
    asyncio.run(clock.sleep_until(100 + 1800))
    assert clock.now() == 1900
    assert sum(wall.slept) == pytest.approx(3.0)


def test_a_past_instant_is_not_waited_for() -> None:
    wall = _Wall()
    asyncio.run(ScaledClock(600, start=100, wall=wall).sleep_until(50))
    assert wall.slept == []


def test_a_speed_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot run at 0 times"):
        ScaledClock(0, start=0)


def test_the_other_futures_are_cancelled() -> None:
    """What lost has no reason to go on."""

    async def main(clock: VirtualClock) -> tuple[float, bool]:
        slow = asyncio.ensure_future(clock.sleep(1000))
        await first_of(clock.sleep(3), slow)
        await asyncio.wait((slow,))
        return clock.monotonic(), slow.cancelled()

    assert run(main) == (3, True)


def test_a_shielded_future_goes_on() -> None:
    """A future of the caller's own is not ended by our waiting for it."""

    async def main(clock: VirtualClock) -> bool:
        own = asyncio.ensure_future(clock.sleep(10))
        await first_of(clock.sleep(3), asyncio.shield(own))
        await own
        return own.cancelled()

    assert run(main) is False


def test_cancelling_the_wait_cancels_all_futures() -> None:
    """All of them end with the one who waits."""

    async def main(clock: VirtualClock) -> None:
        parts = [asyncio.ensure_future(clock.sleep(1000)) for _ in range(2)]
        waiting = asyncio.ensure_future(first_of(*parts))
        await clock.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait(parts)
        assert clock.monotonic() == 1

    run(main)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        pytest.param(-1, 0.0, id="negative"),
        pytest.param(0, 0.0, id="none"),
        pytest.param(1, 0.005, id="first"),
        pytest.param(2, 0.01, id="second"),
        pytest.param(11, 5.12, id="eleventh"),
        pytest.param(18, 655.36, id="last below the limit"),
        pytest.param(19, 1000.0, id="first at the limit"),
        pytest.param(10**9, 1000.0, id="no overflow"),
    ],
)
def test_backoff_doubles_up_to_the_limit(failures: int, seconds: float) -> None:
    assert Backoff().after(failures) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("jitter", "random", "seconds"),
    [
        pytest.param(0.0, 0.9, 30.0, id="without jitter the random number is ignored"),
        pytest.param(1.0, 0.0, 30.0, id="a random number of zero adds nothing"),
        pytest.param(1.0, 0.5, 45.0, id="jitter may exceed the limit"),
        pytest.param(0.1, 0.5, 31.5, id="a small share"),
    ],
)
def test_jitter_adds_a_share_of_the_delay(jitter: float, random: float, seconds: float) -> None:
    assert Backoff(first=0.8, longest=30.0, jitter=jitter).after(50, random=random) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("rate", "times", "delays"),
    [
        pytest.param(RateLimit(10, 3), [0, 0, 0, 0, 0], [0, 0, 0, 0.1, 0.2], id="a burst, then one by one"),
        pytest.param(RateLimit(10, 1), [0, 0, 0.5], [0, 0.1, 0], id="no burst; time refills"),
        pytest.param(RateLimit(1, 2), [0, 0, 1, 1], [0, 0, 0, 1], id="one token comes back in a second"),
        pytest.param(RateLimit(1, 2), [0, 100, 100, 100], [0, 0, 0, 1], id="a long wait gives no more than a burst"),
        pytest.param(RateLimit(1, 1), [0, 0, 0, 2.5], [0, 1, 2, 0.5], id="reserved slots count"),
        pytest.param(RateLimit(math.inf, 1), [0, 0, 0], [0, 0, 0], id="no limit"),
    ],
)
def test_a_token_bucket_limits_the_rate(rate: RateLimit, times: list[float], delays: list[float]) -> None:
    bucket = TokenBucket(rate)

    assert [bucket.reserve(now) for now in times] == pytest.approx(delays)
