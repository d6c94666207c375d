"""The clock of a virtual world."""

from __future__ import annotations

import asyncio

from springtide.simulator.time.loop import TICKS_PER_SECOND, VirtualLoop


class VirtualClock:
    """Tells and waits for virtual time; second 0 of the loop is an instant of the calendar."""

    def __init__(self, loop: VirtualLoop, start: int = 0) -> None:
        self._loop = loop
        self.start = start

    def now(self) -> int:
        """Give the instant, in whole seconds since the epoch."""
        return self.start + self._loop.ticks // TICKS_PER_SECOND

    def monotonic(self) -> float:
        """Give the seconds since the world began."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration."""
        await asyncio.sleep(seconds)

    async def sleep_until(self, at: int) -> None:
        """Wait until an instant, to the tick."""
        ticks = (at - self.start) * TICKS_PER_SECOND
        if ticks <= self._loop.ticks:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_at_ticks(ticks, settle, woken)
        try:
            await woken
        finally:
            timer.cancel()


def settle(future: asyncio.Future[None]) -> None:
    """Wake whoever waits for a future, unless it has gone away."""
    if not future.done():
        future.set_result(None)
