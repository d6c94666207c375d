"""A clock that runs faster than the world: readings and waits agree with each other."""

from __future__ import annotations

import asyncio

import pytest

from springtide.cluster.clock import ScaledClock, WallClock


class _Wall(WallClock):
    """A wall clock that stands still but for the sleeps that it is asked for."""

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
        pytest.param(1, 10.0, 110, id="as the world"),
        pytest.param(600, 1.0, 700, id="ten minutes a second"),
        pytest.param(600, 0.001, 100, id="whole seconds, rounded down"),
        pytest.param(0.5, 10.0, 105, id="slower than the world"),
    ],
)
def test_the_instant_moves_by_the_speed(speed: float, elapsed: float, now: int) -> None:
    wall = _Wall()
    clock = ScaledClock(speed, start=100, wall=wall)
    wall.elapsed += elapsed
    assert clock.now() == now
    assert clock.monotonic() == pytest.approx(elapsed * speed)


def test_a_duration_takes_its_share_of_the_worlds_time() -> None:
    wall = _Wall()
    asyncio.run(ScaledClock(600, start=0, wall=wall).sleep(3600))
    assert wall.slept == [6.0]


def test_an_instant_is_reached_and_not_overslept() -> None:
    wall = _Wall()
    clock = ScaledClock(600, start=100, wall=wall)
    asyncio.run(clock.sleep_until(100 + 1800))
    assert clock.now() == 1900
    assert sum(wall.slept) == pytest.approx(3.0)


def test_an_instant_that_has_passed_is_not_waited_for() -> None:
    wall = _Wall()
    asyncio.run(ScaledClock(600, start=100, wall=wall).sleep_until(50))
    assert wall.slept == []


def test_a_clock_that_stands_still_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot run at 0 times"):
        ScaledClock(0, start=0)
