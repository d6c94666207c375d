"""Connections that notice when the other side has gone, and of which none is left when their session closes.

aiohttp closes what waits in its pool. A connection that has left the pool because its answer was not read to the end,
such as a watch, says goodbye in TLS first and waits for the other side to do the same: when the event loop ends before
that, its socket stays open.

TLS contexts: whom we trust and what we show, made anew only when one of the two has changed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

import aiohttp

from springtide.cluster.http.credentials import AccessError, ClientCertificate, ContentSource, read_content

_LOOP_TURNS = 100
"""Turns of the event loop within which a connection that is cut is closed; a few are enough."""


class TrackedConnector(aiohttp.TCPConnector):
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
        for _ in range(_LOOP_TURNS):
            if not self._open():
                return
            await asyncio.sleep(0)

    def _open(self) -> list[socket.socket]:
        return [made for made in self._sockets if made.fileno() != -1]

    def _made(self, address: Any) -> socket.socket:
        made = _keepalive_socket(address)
        self._sockets.add(made)
        return made


def _keepalive_socket(address: Any) -> socket.socket:
    """Make a socket that notices within a minute or two that the other side has gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    made.setblocking(False)
    return made


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """How we make sure that the server is the one that is meant."""

    authority: ContentSource | None = None
    """Certificates of authorities, in PEM; without them, those that the machine trusts."""
    insecure: bool = False
    """Whether any certificate will do."""
    server_name: str = ""
    """The name that the certificate must be for, where it is not that of the address."""


class TlsContexts:
    """The context for the next connection.

    Connections are kept by context, so that one that was made with an older certificate is not used with a newer one.
    """

    def __init__(self, trust: ServerTrust) -> None:
        self._trust = trust
        self._made_from: tuple[bytes, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Give the context in which this certificate is shown."""
        authority = b"" if self._trust.authority is None else read_content(self._trust.authority)
        if self._context is None or self._made_from != (authority, certificate):
            self._context = _tls_context(authority, certificate, insecure=self._trust.insecure)
            self._made_from = (authority, certificate)
        return self._context


def _tls_context(authority: bytes, certificate: ClientCertificate | None, *, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError) as failure:
        raise AccessError(f"the certificate authority is not in PEM: {failure}") from failure
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Strict checks came with Python 3.13; certificate authorities of many clusters lack an extension that they demand,
    # and no other client of Kubernetes does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_client_certificate(context, certificate)
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # The ssl module reads certificates from files only; the folder is readable by nobody else.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(0o600)
        path.write_bytes(certificate.key.rstrip() + b"\n" + certificate.chain)
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, ValueError) as failure:
            raise AccessError(f"the client certificate and its key do not make a pair in PEM: {failure}") from failure


def _no_password() -> str:
    raise ValueError("the key is encrypted")
