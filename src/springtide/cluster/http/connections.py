"""TCP connections and TLS contexts of HTTP sessions.

Connections use TCP keep-alive, so that a dead peer is noticed, and all of them are closed with their session. aiohttp
alone would not do that: it closes the idle connections of its pool, but one whose response was not read to the end,
such as a watch, performs a TLS shutdown first and waits for the peer. If the event loop ends before that, the socket
stays open.

A TLS context is made again only when the certificate authorities or the client certificate have changed.
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
"""Iterations of the event loop within which a shut down connection is closed; a few are enough."""


class TrackedConnector(aiohttp.TCPConnector):
    """Tracks the sockets of one session, to close all of them."""

    def __init__(self, **options: Any) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        super().__init__(socket_factory=self._made, **options)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close the idle connections, and shut down those that still wait for the TLS shutdown of the peer."""
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
    """Create a socket with TCP keep-alive: it notices within one or two minutes that the peer is dead."""
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
    """How the certificate of a server is verified."""

    authority: ContentSource | None = None
    """Certificate authorities, in PEM; None: those of the operating system."""
    insecure: bool = False
    """Whether the certificate is not verified at all."""
    server_name: str = ""
    """The name that the certificate must be for; empty: the host of the URL."""


class TlsContexts:
    """The TLS context for the next connection.

    aiohttp pools connections by context, so a connection made with an old certificate is not used after it changed.
    """

    def __init__(self, trust: ServerTrust) -> None:
        self._trust = trust
        self._made_from: tuple[bytes, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Return the context for a client certificate."""
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
    # Python 3.13 made strict checks the default; the certificate authorities of many clusters lack an extension that
    # these require, and no other client of Kubernetes requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_client_certificate(context, certificate)
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # The ssl module loads certificates from files only; only this user can read the folder.
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
