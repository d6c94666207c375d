"""The clock of the real world: it follows the wall clock when that is set, and time passes while a machine sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from springtide.cluster.clock import LONGEST_NAP, WallClock


class Machine:
    """A machine whose clocks a test sets; naps take no real time."""

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


def test_a_long_wait_looks_at_the_wall_clock_again_and_again(machine: Machine) -> None:
    asyncio.run(WallClock().sleep_until(1_000_100))

    assert machine.naps == [LONGEST_NAP, LONGEST_NAP, LONGEST_NAP, 10]


def test_a_clock_that_is_set_forward_ends_the_wait_within_a_nap(machine: Machine) -> None:
    def set_forward(nap: int) -> None:
        machine.wall += 1e6 if nap == 2 else 0

    machine.during = set_forward
    asyncio.run(WallClock().sleep_until(1_900_000))

    assert machine.naps == [LONGEST_NAP, LONGEST_NAP]


def test_a_clock_that_is_set_back_prolongs_the_wait(machine: Machine) -> None:
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

    assert machine.naps == [LONGEST_NAP]


def test_a_duration_does_not_care_how_the_wall_clock_is_set(machine: Machine) -> None:
    def set_forward(nap: int) -> None:
        machine.wall += 1e6

    machine.during = set_forward
    asyncio.run(WallClock().sleep(65))

    assert sum(machine.naps) == 65


def test_now_is_in_whole_seconds(machine: Machine) -> None:
    machine.wall = 1_000_000.9

    assert WallClock().now() == 1_000_000
