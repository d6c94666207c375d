"""Connections that notice when the other side has gone, and of which none is left when their session closes.

aiohttp closes what waits in its pool. A connection that has left the pool because its answer was not read to the end,
such as a watch, says goodbye in TLS first and waits for the other side to do the same: when the event loop ends before
that, its socket stays open.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp

_TURNS = 100
"""Turns of the event loop within which a connection that is cut is closed; a few are enough."""


class Connections(aiohttp.TCPConnector):
    """The connections of one session."""

    def __init__(self, **options: Any) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        super().__init__(socket_factory=self._made, **options)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close what waits for its next use, and cut what still says goodbye."""
        await super().close(abort_ssl=abort_ssl)
        for left in self._open():
            with suppress(OSError):
                left.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS):
            if not self._open():
                return
            await asyncio.sleep(0)

    def _open(self) -> list[socket.socket]:
        return [made for made in self._sockets if made.fileno() != -1]

    def _made(self, address: Any) -> socket.socket:
        made = _lively_socket(address)
        self._sockets.add(made)
        return made


def _lively_socket(address: Any) -> socket.socket:
    """Make a socket that notices within a minute or two that the other side has gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    made.setblocking(False)
    return made
