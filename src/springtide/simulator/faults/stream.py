"""A watch as it arrives at a process: buffered, late, and broken off."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from springtide.cluster.port import Event
from springtide.simulator.time import VirtualLoop


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
                # In order: an event never overtakes the one before it.
                self._last = max(self._last, self._loop.time() + self._lag())
                self._arriving.append((self._last, event))
                self._wake()
        except Exception as raised:  # whatever it is, it is for the reader
            failure = raised
        self.break_off(failure)

    def break_off(self, failure: Exception | None) -> None:
        """End the stream: what has arrived can still be read."""
        if not self._over:
            self._over, self._failure = True, failure
            self._wake()

    async def read(self) -> Event | None:
        """Give the next event; None at the end. Raises what broke the stream."""
        while not self._arriving:
            if self._over:
                if self._failure is not None:
                    raise self._failure
                return None
            self._waiting = self._loop.create_future()
            await self._waiting
        at, event = self._arriving[0]
        if at > self._loop.time():
            await asyncio.sleep(at - self._loop.time())
        self._arriving.popleft()
        return event

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
