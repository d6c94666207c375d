"""The stream of a watch: from chunks, as they come, to runs of whole lines; and its end, where the server forgets it.

Lines are cut out of the chunks by hand: aiohttp's own limit for a line is far below the size of an object. All whole
lines that are there make one run, which is decoded at once, and nothing is awaited between its events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from springtide.cluster.errors import ConnectionLost, ServerError


class LineCutter:
    """Puts the pieces of lines together."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk, and give all whole lines that are there now."""
        end = chunk.rfind(b"\n") + 1
        run = b"".join((*self._rest, chunk[:end])) if end else b""
        if end:
            self._rest, self._size = [], 0
        self._rest.append(chunk[end:])
        self._size += len(chunk) - end
        if not run:
            self._refuse_giants()
        return run

    def finish(self) -> None:
        """Make sure that the stream did not end within a line."""
        self._refuse_giants()
        if b"".join(self._rest).strip():
            raise ConnectionLost("the watch ended in the middle of a line")

    def _refuse_giants(self) -> None:
        if self._size > self._largest:
            raise ServerError(f"an event is larger than {self._largest} bytes, and is not read")


class Deadline:
    """Ends a watch that goes on for much longer than it was asked to."""

    def __init__(self, seconds: float | None, end: Callable[[], None]) -> None:
        self.passed = False
        self._end = end
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._pass)

    def _pass(self) -> None:
        self.passed = True
        self._end()

    def cancel(self) -> None:
        """Leave the watch alone."""
        if self._timer is not None:
            self._timer.cancel()
