"""Answers in one piece: the head of an answer waits for the beginning of its body, and the two are sent together.

uvicorn sends a head as soon as there is one. That makes two writes of every answer, each encrypted and sent by itself,
and whoever waits for it wakes up twice.

What strangers may take from a server before anybody asks who they are: few bytes, little time, one of few places.

Whoever reaches a port can connect, whatever the application thinks of them later. uvicorn takes headers of any length,
waits for a request for as long as it takes, and reads pipelined requests faster than it answers them. Here all of that
has an end, so that a client that is slow, broken or hostile costs a server no more than its connection.

Serves an ASGI application on a port of this process, with or without TLS, for as long as a block of code lasts.

The webhooks, the metrics and the embedded API server are all served so. It binds to loopback unless told otherwise,
leaves signals to whoever runs the process, and takes port 0 as "any that is free". What clients may take from it is
bounded, see `connections`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from springtide.cluster.certificates import CertificatePair

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class CoalescedWrites(asyncio.Transport):
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
        cycle.transport = CoalescedWrites(self.transport, self.loop)
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


LOOPBACK = "127.0.0.1"


class ServingFailed(Exception):
    """The address cannot be had; the message says why."""


class TlsIdentity:
    """What a server proves itself with; it can be replaced while the server runs."""

    def __init__(self, pair: CertificatePair) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.replace(pair)

    def replace(self, pair: CertificatePair) -> None:
        """Show another certificate, to whoever connects from now on."""
        # The ssl module reads certificates from files only; the folder is readable by nobody else.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.touch(0o600)
            path.write_bytes(pair.key + pair.certificate)
            self.context.load_cert_chain(path)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is up."""

    host: str
    port: int
    secure: bool

    @property
    def url(self) -> str:
        """Where it is reached."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


@asynccontextmanager
async def serving(
    app: ASGIApp,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    identity: TlsIdentity | None = None,
    grace: int = 2,
    dated: bool = True,
) -> AsyncIterator[RunningServer]:
    """Serve an application within the block; when it is left, requests that are under way get `grace` seconds.

    With `dated`, answers bear this machine's time; an application that has a time of its own says it itself.
    """
    listener = _bound(host, port)
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        # It warns of every request that cannot be read, and tells how to install what we do without.
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=dated,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=grace + 1,
        reset_contextvars=True,
    )
    config.load()
    config.ssl = identity.context if identity is not None else None
    server = _EmbeddedServer(config)
    running = asyncio.create_task(server.serve(sockets=[listener]), name=f"serving {host}")
    try:
        while not server.started and not running.done():
            await asyncio.sleep(0.01)
        if running.done():
            await running
        yield RunningServer(host, listener.getsockname()[1], identity is not None)
    finally:
        server.should_exit = True
        await asyncio.wait((running,), timeout=grace)
        # Whoever still reads or writes is hung up on: to those who answer that is a client who leaves, and no failure.
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()
        await asyncio.wait((running,))


class _EmbeddedServer(uvicorn.Server):
    """A server among others in a process: signals are not its business."""

    def capture_signals(self) -> Any:
        """Leave the signals as they are."""
        return nullcontext()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = BoundedListener(family, most=MOST_CONNECTIONS)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Whoever has gone without a word is noticed some day, also where nobody talks to them.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.bind((host, port))
    except OSError as failure:
        listener.close()
        raise ServingFailed(f"cannot listen on {host}:{port}: {failure.strerror}") from failure
    return listener
