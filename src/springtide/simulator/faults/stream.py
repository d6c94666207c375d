"""A watch as it arrives at a process: buffered, late, and broken off."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from springtide.cluster.port import Event
from springtide.simulator.time import VirtualLoop
from springtide.simulator.time.clock import settle


class Stream:
    """Events on their way to a process, in order; each may be read `lag` seconds after it was sent."""

    def __init__(self, loop: VirtualLoop, *, lag: Callable[[], float]) -> None:
        self._loop = loop
        self._lag = lag
        self._arriving: deque[tuple[float, Event]] = deque()
        self._last = 0.0
        self._over = False
        self._failure: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def pump(self, events: AsyncIterator[Event]) -> None:
        """Take events from the server until it, or the network, ends the stream."""
        failure: Exception | None = None
        try:
            async for event in events:
                if self._over:
                    return
                # In order: an event never overtakes the one before it.
                self._last = max(self._last, self._loop.time() + self._lag())
                self._arriving.append((self._last, event))
                self._wake()
        except Exception as raised:  # whatever it is, it is for the reader
            failure = raised
        self.break_off(failure)

    def break_off(self, failure: Exception | None) -> None:
        """End the stream: what has arrived can still be read; what is under way is lost where the connection broke."""
        if not self._over:
            self._over, self._failure = True, failure
            if failure is not None:
                now = self._loop.time()
                self._arriving = deque((at, event) for at, event in self._arriving if at <= now)
            self._wake()

    async def read(self) -> Event | None:
        """Give the next event; None at the end. Raises what broke the stream."""
        while True:
            at = self._arriving[0][0] if self._arriving else None
            if at is not None and at <= self._loop.time():
                return self._arriving.popleft()[1]
            if at is None and self._over:
                if self._failure is not None:
                    raise self._failure
                return None
            await self._woken(at)

    async def _woken(self, at: float | None) -> None:
        """Wait for news of the stream, at most until the next event arrives."""
        waiting = self._waiting = self._loop.create_future()
        timer = None if at is None else self._loop.call_at(at, settle, waiting)
        try:
            await waiting
        finally:
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
