"""Serves an ASGI application on a port of this process, with or without TLS, within a block of code.

The webhooks, the metrics and the embedded API server are served this way. By default it binds to loopback; port 0 means
any free port; signals are left to the program.

Every client that reaches the port can connect before it is authenticated. uvicorn accepts headers of any length, waits
for a request without limit, and reads pipelined requests faster than it answers them. `BoundedListener` and
`BoundedProtocol` limit all of that, so that a slow, broken or hostile client costs no more than its connection.

uvicorn sends the head of a response in a write (and TLS record) of its own. `CoalescedWrites` sends it with the
beginning of the body, so that a client wakes up once.
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
from weakref import WeakSet, WeakValueDictionary

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from springtide.cluster.certificates import CertificatePair

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class CoalescedWrites(asyncio.Transport):
    """The transport of one response, whose first write is its head.

    If no body follows in the same iteration of the event loop (a watch), the head is sent in the next.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head: bytes = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data, together with the head if that was not sent yet; the head itself is sent later."""
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
        """Return whether nothing more can be sent."""
        return self._transport.is_closing()

    def _send_head(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)


IDLE_SECONDS = 75
"""How long an idle connection is kept; longer than the connection pools of most clients keep theirs."""
SILENT_SECONDS = 15
"""How long a connection is kept on which no request has begun: clients connect in order to send one."""
ARRIVAL_SECONDS = 60.0
"""The time in which a request must arrive, from its first byte to its last."""
MOST_CONNECTIONS = 500
"""The maximum of connections of one server; each costs some 300 kB with TLS, also without a request."""
MOST_PER_PEER = 200
"""The maximum of connections from one address, so that one client cannot occupy all places of a server."""
_REFUSED_AT_ONCE = 100
"""How many connections are refused in a row before the event loop does other work."""
_MOST_BYTES = 64 * 1024
"""The maximum of bytes outside a body: a request line with its headers, or framing between chunks of a body."""
_MOST_HEADERS = 200
_MOST_WAITING = 100
"""The maximum of pipelined requests while one is being answered."""


class _OpenConnections:
    """The connections that are open, up to a maximum."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: WeakSet[socket.socket] = WeakSet()

    def full(self) -> bool:
        """Return whether there is no place for another one."""
        if len(self._open) >= self._most:
            # Closed connections may still be referenced.
            self._open = WeakSet(each for each in self._open if each.fileno() >= 0)
        return len(self._open) >= self._most

    def add(self, connection: _AcceptedConnection) -> None:
        """Add a connection, which keeps this count alive as long as it is open."""
        self._open.add(connection)
        connection.counts.append(self)


class _AcceptedConnection(socket.socket):
    """A connection of a client."""

    counts: list[_OpenConnections]


class BoundedListener(socket.socket):
    """A listening socket with a maximum of connections, of each peer and in all.

    It closes further ones, which may reconnect.
    """

    def __init__(self, family: int, *, most: int, most_per_peer: int) -> None:
        # With its protocol, since asyncio sets TCP_NODELAY only on sockets that say TCP.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._most_per_peer = most_per_peer
        self._all = _OpenConnections(most)
        self._peers: WeakValueDictionary[str, _OpenConnections] = WeakValueDictionary()
        """By address, as long as one of its connections is referenced."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection within the maximum; raises `BlockingIOError` if there is none."""
        for _ in range(_REFUSED_AT_ONCE):
            number, address = self._accept()  # type: ignore[attr-defined]
            connection = _AcceptedConnection(self.family, self.type, self.proto, fileno=number)
            connection.counts = []
            peer = self._peers.get(address[0])
            if peer is None:
                peer = self._peers[address[0]] = _OpenConnections(self._most_per_peer)
            if not peer.full() and not self._all.full():
                peer.add(connection)
                self._all.add(connection)
                return connection, address
            connection.close()
        raise BlockingIOError


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 on one connection, with limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete = True
        """Whether the received bytes end with the end of a request."""
        self._unparsed = 0
        """Bytes since the last complete head or chunk of a body."""
        self._arrival: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered; the base class knows only the last one received."""
        self._client_certificate: tuple[str, ...] = ()
        """The client certificate in PEM; empty if the server asks for none."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and (certificate := secured.getpeercert(binary_form=True)):
            self._client_certificate = (ssl.DER_cert_to_PEM_cert(certificate),)
        silent = min(self.timeout_keep_alive, SILENT_SECONDS)
        self.timeout_keep_alive_task = self.loop.call_later(silent, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Return the application that the client has disconnected."""
        self._unset_keepalive_if_required()
        self._limit_arrival(False)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless it exceeds the limit."""
        if self.transport.is_closing():
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unparsed > _MOST_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")
            return
        self._limit_arrival(not self._complete or not self._answering)

    def on_message_begin(self) -> None:
        """Note that a request has begun; pass on the client certificate by ASGI's TLS extension."""
        self._complete = False
        super().on_message_begin()
        if self._client_certificate:
            self.scope["extensions"] = {"tls": {"client_cert_chain": self._client_certificate}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Accept a header, unless there are too many."""
        if len(self.headers) >= _MOST_HEADERS:
            raise ValueError(f"more than {_MOST_HEADERS} headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Accept a request, unless too many are pipelined."""
        self._unparsed = 0
        if len(self.pipeline) >= _MOST_WAITING:
            raise ValueError(f"more than {_MOST_WAITING} pipelined requests")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note a chunk of a body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        self._complete, self._unparsed = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request, and read no more while pipelined ones wait."""
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

    def _limit_arrival(self, awaited: bool) -> None:
        """Start or stop the timeout for the rest of a request, counted from its first byte."""
        if not awaited and self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None
        elif awaited and self._arrival is None:
            self._arrival = self.loop.call_later(ARRIVAL_SECONDS, self._refuse, b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        """Close the connection, with a response unless another one is under way."""
        if self.transport.is_closing():
            return
        if not self._answering:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()


LOOPBACK = "127.0.0.1"


class ServingFailed(Exception):
    """The address cannot be bound; the message says why."""


class TlsIdentity:
    """The certificate and key of a server; they can be replaced while it runs."""

    def __init__(self, pair: CertificatePair) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.replace(pair)

    def replace(self, pair: CertificatePair) -> None:
        """Use another certificate for new connections."""
        # The ssl module reads certificates only from files; other users cannot read this folder.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.touch(0o600)
            path.write_bytes(pair.key + pair.certificate)
            self.context.load_cert_chain(path)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts connections."""

    host: str
    port: int
    secure: bool

    @property
    def url(self) -> str:
        """Its base URL."""
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
    idle: int | None = None,
    most_per_peer: int | None = None,
) -> AsyncIterator[RunningServer]:
    """Serve an application within the block; at its end, requests that are under way get `grace` seconds.

    With `dated`, responses have a `Date` header with this machine's time; an application with a virtual clock sets it
    itself. `idle` is how many seconds an idle connection is kept, by default `IDLE_SECONDS`; `most_per_peer` how many
    connections one address may have, by default `MOST_PER_PEER`.
    """
    listener = _bound(host, port, MOST_PER_PEER if most_per_peer is None else most_per_peer)
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        # It would warn of every malformed request, and advise to install optional packages.
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=dated,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS if idle is None else idle,
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
        # Connections that are still open are aborted: the application sees a client that disconnects, and no failure.
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()
        await asyncio.wait((running,))


class _EmbeddedServer(uvicorn.Server):
    """A server that leaves signals to the program, and limits the time of TLS handshakes."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn would leave a handshake the 60 seconds of asyncio."""
        config = self.config
        loop = asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            return BoundedProtocol(config=config, server_state=self.server_state, app_state=self.lifespan.state)

        self.servers = [
            await loop.create_server(
                connection,
                sock=listener,
                backlog=config.backlog,
                ssl=config.ssl,
                ssl_handshake_timeout=None if config.ssl is None else SILENT_SECONDS,
            )
            for listener in sockets or ()
        ]
        self.started = True

    def capture_signals(self) -> Any:
        """Install no signal handlers."""
        return nullcontext()


def _bound(host: str, port: int, most_per_peer: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = BoundedListener(family, most=MOST_CONNECTIONS, most_per_peer=most_per_peer)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Clients that have gone without closing their connection are noticed in the end.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.bind((host, port))
    except OSError as failure:
        listener.close()
        raise ServingFailed(f"cannot listen on {host}:{port}: {failure.strerror}") from failure
    return listener
