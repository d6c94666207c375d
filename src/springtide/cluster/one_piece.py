"""Answers in one piece: the head of an answer waits for the beginning of its body, and the two are sent together.

uvicorn sends a head as soon as there is one. That makes two writes of every answer, each encrypted and sent by itself,
and whoever waits for it wakes up twice.
"""

from __future__ import annotations

import asyncio


class OnePiece(asyncio.Transport):
    """The transport of one answer, whose first write is its head.

    A head after which nothing comes in the same turn of the event loop, such as that of a watch, is sent in the next.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head: bytes = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data, after the head if that is still here; the head itself a little later."""
        if not self._begun:
            self._begun, self._head = True, bytes(data)
            self._loop.call_soon(self._send_head)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(b"".join((head, data)))
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        """Tell whether nothing more can be sent."""
        return self._transport.is_closing()

    def _send_head(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)
