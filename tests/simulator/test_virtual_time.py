"""Virtual time: jumps, orders, freezes, and says when nothing can happen any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.simulator.virtual_time import Stalled, VirtualClock, VirtualLoop, run

DAY = 86_400


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def test_time_jumps_to_the_next_timer() -> None:
    async def main(clock: VirtualClock) -> tuple[int, float]:
        await clock.sleep(3 * DAY)
        return clock.now(), clock.monotonic()

    assert run(main, start=1_000_000) == (1_000_000 + 3 * DAY, 3.0 * DAY)


def test_equal_deadlines_are_first_come_first_served() -> None:
    async def main(clock: VirtualClock) -> list[int]:
        order: list[int] = []
        for number in range(200):
            _loop().call_later(5, order.append, number)
        await clock.sleep(6)
        return order

    assert list(range(200)) == run(main)


@given(st.lists(st.floats(min_value=0, max_value=1e7), max_size=40))
def test_timers_fire_in_the_order_of_when_and_sequence_and_never_early(delays: list[float]) -> None:
    async def main(clock: VirtualClock) -> list[tuple[float, int]]:
        fired: list[tuple[float, int]] = []

        def fire(when: float, number: int) -> None:
            assert clock.monotonic() >= when
            fired.append((_loop().ticks, number))

        for number, delay in enumerate(delays):
            _loop().call_at(delay, fire, delay, number)
        await clock.sleep(2e7)
        return fired

    fired = run(main)

    assert sorted(fired) == fired
    assert len(delays) == len(fired)


@given(st.floats(min_value=1e-9, max_value=1e8), st.floats(min_value=1e-9, max_value=1e8))
def test_a_wait_that_looks_at_the_clock_again_ends(first: float, second: float) -> None:
    """Code that sleeps for what is left must never find a rest too small to sleep for."""

    async def main(clock: VirtualClock) -> int:
        await clock.sleep(first)
        deadline = clock.monotonic() + second
        naps = 0
        while (left := deadline - clock.monotonic()) > 0:
            naps += 1
            assert naps < 3
            await clock.sleep(left)
        return naps

    assert run(main) <= 2


def test_sleep_until_wakes_in_the_very_second_after_years() -> None:
    async def main(clock: VirtualClock) -> list[tuple[int, int]]:
        seen = []
        for day in (1, 194, 195, 400, 40_000):
            await clock.sleep_until(day * DAY)
            seen.append((clock.now(), _loop().ticks))
        return seen

    assert [(day * DAY, day * DAY * 1_000_000) for day in (1, 194, 195, 400, 40_000)] == run(main)


def test_sleeping_until_the_past_gives_others_a_turn() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        order: list[str] = []
        asyncio.get_running_loop().call_soon(order.append, "other")
        await clock.sleep_until(clock.now() - 10)
        order.append("woken")
        return order

    assert run(main, start=100) == ["other", "woken"]


def test_waiting_without_a_timer_is_an_error() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(7)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stalled, match=r"at second 7.0 all tasks wait"):
        run(main)


def test_threads_are_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="threads cannot run in virtual time"):
        run(main)


def test_cancelled_timers_do_not_pile_up() -> None:
    async def main(clock: VirtualClock) -> int:
        for _ in range(10_000):
            async with asyncio.timeout(3600):
                await clock.sleep(0.001)
        return len(_loop()._timers)

    assert run(main) < 1000


class TestFreezing:
    """A frozen owner does nothing, whatever comes up for it, and goes on where it stood."""

    def test_a_frozen_group_does_not_run_until_it_is_thawed(self) -> None:
        async def main(clock: VirtualClock) -> list[tuple[str, int]]:
            ticks: list[tuple[str, int]] = []

            async def child(name: str) -> None:
                while True:
                    await clock.sleep(10)
                    ticks.append((name, clock.now()))

            async def parent() -> None:
                await asyncio.gather(child("a"), child("b"))

            _loop().create_owned_task("owner", parent())
            await clock.sleep(15)
            _loop().freeze("owner")
            await clock.sleep(30)
            _loop().thaw("owner")
            await clock.sleep(16)
            for task in _loop().tasks_of("owner"):
                task.cancel()
            await clock.sleep(1)
            return ticks

        ticks = run(main)

        assert ticks == [("a", 10), ("b", 10), ("a", 45), ("b", 45), ("a", 55), ("b", 55)]

    def test_other_groups_keep_running(self) -> None:
        async def main(clock: VirtualClock) -> list[int]:
            seen: list[int] = []

            async def other() -> None:
                while len(seen) < 5:
                    await clock.sleep(1)
                    seen.append(clock.now())

            _loop().freeze("owner")
            await other()
            return seen

        assert run(main) == [1, 2, 3, 4, 5]

    def test_an_answer_for_a_frozen_group_waits(self) -> None:
        async def main(clock: VirtualClock) -> tuple[int, Any]:
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            seen: list[tuple[int, str]] = []

            async def ask() -> None:
                seen.append((clock.now(), await answer) if (reported := await answer) else (0, reported))

            _loop().create_owned_task("owner", ask())
            await clock.sleep(1)
            _loop().freeze("owner")
            answer.set_result("yes")
            await clock.sleep(9)
            _loop().thaw("owner")
            await clock.sleep(1)
            return seen[0]

        assert run(main) == (10, "yes")
