"""Serves an ASGI application on a port of this process, with or without TLS, for as long as a block of code lasts.

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

import uvicorn

from springtide.cluster.certificates import Pair
from springtide.cluster.connections import IDLE_SECONDS, MOST_CONNECTIONS, BoundedListener, BoundedProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"


class ServingFailed(Exception):
    """The address cannot be had; the message says why."""


class TlsIdentity:
    """What a server proves itself with; it can be replaced while the server runs."""

    def __init__(self, pair: Pair) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.replace(pair)

    def replace(self, pair: Pair) -> None:
        """Show another certificate, to whoever connects from now on."""
        # The ssl module reads certificates from files only; the folder is readable by nobody else.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.touch(0o600)
            path.write_bytes(pair.key + pair.certificate)
            self.context.load_cert_chain(path)


@dataclass(frozen=True, slots=True)
class Serving:
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
) -> AsyncIterator[Serving]:
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
    server = _Quiet(config)
    running = asyncio.create_task(server.serve(sockets=[listener]), name=f"serving {host}")
    try:
        while not server.started and not running.done():
            await asyncio.sleep(0.01)
        if running.done():
            await running
        yield Serving(host, listener.getsockname()[1], identity is not None)
    finally:
        server.should_exit = True
        await asyncio.wait((running,), timeout=grace)
        # Whoever still reads or writes is hung up on: to those who answer that is a client who leaves, and no failure.
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()
        await asyncio.wait((running,))


class _Quiet(uvicorn.Server):
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
