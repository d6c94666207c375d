"""The body of a write, which asks for permission at the very moment at which it leaves.

aiohttp keeps the head of a request until the first bytes of its body come, and sends the two in one piece; so the body
is the last to be asked before anything is sent. By then the connection is made, proxies and TLS included, and what
takes time is over: a lease that ran out meanwhile is noticed.

Every write has a body, deletions included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import ClientConnectionResetError, Payload
from aiohttp.abc import AbstractStreamWriter


class Parcel(Payload):
    """Bytes that are sent once, or not at all."""

    def __init__(self, content: bytes, content_type: str, permit: Callable[[], None]) -> None:
        super().__init__(content, content_type=content_type)
        self._size = len(content)
        self._content = content
        self._permit = permit
        self.refusal: Exception | None = None
        """Why permission was denied, which is raised to whoever writes."""
        self.sent = False
        """Whether any byte of the request may have left."""

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the body, and with it the head of the request."""
        # A connection that waited in the pool may have been closed by the server without the event loop having looked.
        # Two turns of the loop are one look; a write that finds it closed is certain not to have been sent.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        transport = writer.transport
        if self.sent or transport is None or transport.is_closing():
            raise ClientConnectionResetError("the server has closed the connection")
        try:
            self._permit()
        except Exception as refusal:
            self.refusal = refusal
            raise
        self.sent = self._consumed = True
        await writer.write(self._content[:content_length])

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body."""
        await self.write_with_length(writer, None)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Give the body as text."""
        return self._content.decode(encoding, errors)
