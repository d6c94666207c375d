"""What strangers may take from a server before anybody asks who they are: few bytes, little time, one of few places.

Whoever reaches a port can connect, whatever the application thinks of them later. uvicorn takes headers of any length,
waits for a request for as long as it takes, and reads pipelined requests faster than it answers them. Here all of that
has an end, so that a client that is slow, broken or hostile costs a server no more than its connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any
from weakref import WeakSet

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from springtide.cluster.one_piece import OnePiece

IDLE_SECONDS = 75
"""How long a connection is kept that nobody uses; longer than the pools of most clients keep theirs."""
ARRIVAL_SECONDS = 60.0
"""In what time a request must have arrived, from its first byte to its last."""
MOST_CONNECTIONS = 500
"""How many connections one server has; each costs some 300 kB with TLS, also before it has said a word."""
_MOST_BYTES = 64 * 1024
"""How much may come that is no body: a request line with its headers, or what stands between the parts of a body."""
_MOST_HEADERS = 200
_MOST_WAITING = 100
"""How many requests may be sent ahead while one is being answered."""


class BoundedListener(socket.socket):
    """A socket that listens, and hangs up on those for whom there is no place; they can come again."""

    def __init__(self, family: int, *, most: int) -> None:
        # Named, for asyncio sends without delay only on what is said to be TCP.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._most = most
        self._open: WeakSet[socket.socket] = WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        """Give the next connection that has a place; as of any socket that does not block, an error where none is."""
        while True:
            connection, address = super().accept()
            if len(self._open) >= self._most:
                # Whoever had a connection may still refer to it.
                self._open = WeakSet(each for each in self._open if each.fileno() >= 0)
            if len(self._open) < self._most:
                self._open.add(connection)
                return connection, address
            connection.close()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP on one connection, with limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._whole = True
        """Whether what has come so far ends with the end of a request."""
        self._shapeless = 0
        """Bytes that have come since the last head, or piece of a body, was complete."""
        self._arrival: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered; the base class knows only the last that has come."""
        self._shown: tuple[str, ...] = ()
        """The certificate that the client has shown, in PEM; none where the server asks for none."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, for as long as for the next one later."""
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and (certificate := secured.getpeercert(binary_form=True)):
            self._shown = (ssl.DER_cert_to_PEM_cert(certificate),)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever answers that nobody listens any more."""
        self._unset_keepalive_if_required()
        self._await_rest(False)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless it is too much."""
        if self.transport.is_closing():
            return
        self._shapeless += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._shapeless > _MOST_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")
            return
        self._await_rest(not self._whole or not self._answering)

    def on_message_begin(self) -> None:
        """Note that a request has begun; who shows a certificate is known by it, as ASGI's TLS extension has it."""
        self._whole = False
        super().on_message_begin()
        if self._shown:
            self.scope["extensions"] = {"tls": {"client_cert_chain": self._shown}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, unless there are too many."""
        if len(self.headers) >= _MOST_HEADERS:
            raise ValueError(f"more than {_MOST_HEADERS} headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Take a request, unless too many wait already."""
        self._shapeless = 0
        if len(self.pipeline) >= _MOST_WAITING:
            raise ValueError(f"more than {_MOST_WAITING} requests were sent ahead")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that there is progress."""
        self._shapeless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        self._whole, self._shapeless = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, and read no others while there are some to be answered."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()

    @property
    def _answering(self) -> bool:
        return self._answered is not None and not self._answered.response_complete

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        cycle.transport = OnePiece(self.transport, self.loop)
        super()._start_asgi_task(cycle, app)

    def _await_rest(self, awaited: bool) -> None:
        """Give the rest of a request a time by which it must be there, counted from its first byte."""
        if not awaited and self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None
        elif awaited and self._arrival is None:
            self._arrival = self.loop.call_later(ARRIVAL_SECONDS, self._refuse, b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        """End the connection; with an answer, unless another one is under way."""
        if self.transport.is_closing():
            return
        if not self._answering:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()
