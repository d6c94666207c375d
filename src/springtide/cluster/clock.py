"""The clock that controllers live by.

Whatever decides, waits or measures an age goes through a `Clock`, so that a simulation can run a week in seconds and an
embedded cluster can run faster than the world. Timeouts of I/O are not its business: they stay on the event loop.

Waiting for whatever comes first.

How long to wait before trying again.

Two limits, both pure arithmetic: `Backoff` slows down one thing that keeps failing, `Bucket` slows down many things
that fail together. Neither reads a clock or draws a random number; whoever uses them passes in the time and the luck.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

LONGEST_SLEEP = 30.0
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
        await asyncio.sleep(min(seconds, LONGEST_SLEEP))
        while (left := deadline - self.monotonic()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP))

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant, however the clock is set meanwhile."""
        while (left := at - time.time()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP))


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


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Wait until one of several is done, and cancel the others; what became of it is not told.

    Futures of the caller's own that must go on are to be shielded. Which one was first is deliberately not given: it
    would depend on the order in which sets are iterated. Look at what has happened instead.
    """
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()


_MOST_DOUBLINGS = 512
"""Beyond any limit that makes sense, and far from where a float overflows."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with every failure in a row. The defaults are those of Kubernetes' own controllers."""

    first: float = 0.005
    """Seconds after the first failure."""
    longest: float = 1000.0
    """Seconds that the doubling ends at."""
    jitter: float = 0.0
    """The share of a delay that luck may add to it, so that many who failed at once do not come back at once."""

    def after(self, failures: int, *, random: float = 0.0) -> float:
        """Give the seconds to wait after so many failures in a row; `luck` is a random number in [0, 1)."""
        if failures <= 0:
            return 0.0
        delay = min(self.longest, math.ldexp(self.first, min(failures - 1, _MOST_DOUBLINGS)))
        return delay * (1.0 + self.jitter * random)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many a second in the long run, and so many at once. The defaults are those of Kubernetes' own controllers."""

    per_second: float = 10.0
    """Infinity switches the limit off."""
    burst: int = 100


class TokenBucket:
    """Shares a rate among all who ask: everybody gets a turn, in the order of asking."""

    def __init__(self, rate: RateLimit) -> None:
        self._interval = 1.0 / rate.per_second
        self._slack = self._interval * (rate.burst - 1)
        self._next = -math.inf

    def reserve(self, now: float) -> float:
        """Take the next turn, and give the seconds until it comes; `now` is monotonic."""
        turn = max(self._next, now)
        self._next = turn + self._interval
        return max(0.0, turn - self._slack - now)
