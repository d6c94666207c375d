"""The clock of controllers, steps of it, and how long to wait: backoff and rate limits.

Code that decides, waits or measures an age uses a `Clock`, so that a simulation can run a week in seconds and an
embedded cluster can run faster than real time. Timeouts of I/O do not use it: they stay on the event loop.

`Backoff` slows down one operation that keeps failing, `TokenBucket` slows down many operations together. Both are pure
arithmetic: the caller passes in the time and the random number.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

LONGEST_SLEEP = 30.0
"""Seconds after which a wait reads the wall clock again at the latest: machines are suspended, and clocks are set."""
STEP_CHECK_PERIOD = 1.0
"""Seconds between two checks whether the wall clock was set: a rule that fires every minute must not miss a minute."""
SMALLEST_STEP = 2
"""Seconds by which the wall clock must have been set, forward or back, to count as a step."""


class Clock(Protocol):
    """Two readings of one clock, and a way to wait for it."""

    def now(self) -> int:
        """Return the instant: whole seconds since the epoch. It may step when the clock is set."""
        ...

    def monotonic(self) -> float:
        """Return the seconds that have passed since some fixed moment; it never steps. For durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Wait until `now()` has reached an instant, also if the clock is set meanwhile."""
        ...

    async def stepped(self) -> int:
        """Wait until the clock is set, and return soon after, with the seconds by which: negative for a step back."""
        ...


# The time of a suspended machine counts: its lease expires meanwhile.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class WallClock:
    """The real time."""

    def __init__(self, read: Callable[[], float] | None = None) -> None:
        """Read wall time with `read`: seconds since the epoch; those of the machine if it is not given."""
        self._read = read or time.time

    def now(self) -> int:
        """Return the instant."""
        return int(self._read())

    def monotonic(self) -> float:
        """Return the seconds since some moment, those of a suspended machine included."""
        return time.clock_gettime(_ELAPSED)

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration."""
        deadline = self.monotonic() + seconds
        await asyncio.sleep(min(seconds, LONGEST_SLEEP))
        while (left := deadline - self.monotonic()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP))

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant, also if the clock is set meanwhile."""
        while (left := at - self._read()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP))

    async def stepped(self) -> int:
        """Wait until the wall clock is set. While a machine is suspended, both clocks advance: that is no step."""
        before = self._read() - self.monotonic()
        while abs(step := self._read() - self.monotonic() - before) < SMALLEST_STEP:
            await asyncio.sleep(STEP_CHECK_PERIOD)
        return round(step)


class ScaledClock:
    """A clock that runs faster than real time by a factor.

    It ignores steps of the wall clock.
    """

    def __init__(self, speed: float, *, start: int, wall: WallClock | None = None) -> None:
        if speed <= 0:
            msg = f"a clock cannot run at {speed} times real time, expected more than 0"
            raise ValueError(msg)
        self.speed = speed
        self._wall = wall or WallClock()
        self._start = start
        self._origin = self._wall.monotonic()

    def now(self) -> int:
        """Return the instant."""
        return int(self._start + self.monotonic())

    def monotonic(self) -> float:
        """Return the seconds that have passed here since the clock was started."""
        return (self._wall.monotonic() - self._origin) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration of this clock."""
        await self._wall.sleep(seconds / self.speed)

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant of this clock."""
        while (left := at - self._start - self.monotonic()) > 0:
            await self.sleep(left)

    async def stepped(self) -> int:
        """Wait for ever: this clock is never set."""
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Wait until one of several is done, and cancel the others.

    Shield futures that must go on. It does not return which one was first, because several may be done at once: check
    their state instead.
    """
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()


_MOST_DOUBLINGS = 512
"""Above any sensible limit, and far from where a float overflows."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with every consecutive failure. The defaults are those of Kubernetes' own controllers."""

    first: float = 0.005
    """Seconds after the first failure."""
    longest: float = 1000.0
    """The maximum in seconds."""
    jitter: float = 0.0
    """The share of a delay that is added at random, so that requests that failed together are not retried together."""

    def after(self, failures: int, *, random: float = 0.0) -> float:
        """Return the seconds to wait after so many consecutive failures; `random` is a number in [0, 1)."""
        if failures <= 0:
            return 0.0
        delay = min(self.longest, math.ldexp(self.first, min(failures - 1, _MOST_DOUBLINGS)))
        return delay * (1.0 + self.jitter * random)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Operations per second on average, and how many at once. The defaults are those of Kubernetes' own controllers."""

    per_second: float = 10.0
    """Infinity switches the limit off."""
    burst: int = 100


class TokenBucket:
    """Limits the rate of operations; each reserves the next slot, in the order of the calls."""

    def __init__(self, rate: RateLimit) -> None:
        self._interval = 1.0 / rate.per_second
        self._slack = self._interval * (rate.burst - 1)
        self._next = -math.inf

    def reserve(self, now: float) -> float:
        """Reserve the next slot, and give the seconds until it comes; `now` is monotonic."""
        slot = max(self._next, now)
        self._next = slot + self._interval
        return max(0.0, slot - self._slack - now)
