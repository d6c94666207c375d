"""The clock that controllers live by.

Whatever decides, waits or measures an age goes through a `Clock`, so that a simulation can run a week in seconds and an
embedded cluster can run faster than the world. Timeouts of I/O are not its business: they stay on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

LONGEST_NAP = 30.0
"""Live waits look at the wall clock at least this often: machines are suspended, and clocks are set."""


class Clock(Protocol):
    """Two readings of one clock, and a way to wait for it."""

    def now(self) -> int:
        """Give the instant: whole seconds since the epoch. It may step when somebody sets the clock."""
        ...

    def monotonic(self) -> float:
        """Give the seconds that have passed since some fixed moment; it never steps. For durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Wait until `now()` has reached an instant."""
        ...


# A machine that is suspended must not believe that no time has passed: its lease has run out meanwhile.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class WallClock:
    """The world's own clock."""

    def now(self) -> int:
        """Give the instant."""
        return int(time.time())

    def monotonic(self) -> float:
        """Give the seconds since some moment, those of a suspended machine included."""
        return time.clock_gettime(_ELAPSED)

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration."""
        deadline = self.monotonic() + seconds
        await asyncio.sleep(min(seconds, LONGEST_NAP))
        while (left := deadline - self.monotonic()) > 0:
            await asyncio.sleep(min(left, LONGEST_NAP))

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant, however the clock is set meanwhile."""
        while (left := at - time.time()) > 0:
            await asyncio.sleep(min(left, LONGEST_NAP))


class ScaledClock:
    """A clock that runs faster than the world's: everything that waits for it comes sooner.

    It does not follow when somebody sets the world's clock: it has left it behind anyway.
    """

    def __init__(self, speed: float, *, start: int, wall: WallClock | None = None) -> None:
        if speed <= 0:
            msg = f"a clock cannot run at {speed} times the world's speed, expected more than 0"
            raise ValueError(msg)
        self.speed = speed
        self._wall = wall or WallClock()
        self._start = start
        self._origin = self._wall.monotonic()

    def now(self) -> int:
        """Give the instant."""
        return int(self._start + self.monotonic())

    def monotonic(self) -> float:
        """Give the seconds that have passed here since the clock was started."""
        return (self._wall.monotonic() - self._origin) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration of this clock."""
        await self._wall.sleep(seconds / self.speed)

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant of this clock."""
        while (left := at - self._start - self.monotonic()) > 0:
            await self.sleep(left)
