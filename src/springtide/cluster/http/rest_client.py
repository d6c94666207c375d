"""Warnings that a server sends along with its answers: a deprecated version, a field that means nothing.

The body of a write, which asks for permission at the very moment at which it leaves.

aiohttp keeps the head of a request until the first bytes of its body come, and sends the two in one piece; so the body
is the last to be asked before anything is sent. By then the connection is made, proxies and TLS included, and what
takes time is over: a lease that ran out meanwhile is noticed.

Every write has a body, deletions included.

One exchange with a server: a request goes out, an answer comes in, and nothing is tried twice.

What aiohttp, the ssl module and the operating system raise ends here; above, there are `ClusterError`s only.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import ClientConnectionResetError, Payload
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from springtide import __version__
from springtide.cluster.errors import ConnectionLost, RequestTimeout, ServerError
from springtide.cluster.http.access import ClusterAccess, on_loopback
from springtide.cluster.http.connections import TlsContexts, TrackedConnector
from springtide.cluster.http.credentials import Authentication
from springtide.cluster.http.responses import error_from_response
from springtide.cluster.http.settings import HttpSettings

warnings_log = logging.getLogger(__name__)

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_MOST_REMEMBERED_WARNINGS = 1000
"""So many texts are remembered; a server that makes up new ones with every answer is not listened to for ever."""


class WarningLog:
    """Logs every warning once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def hear(self, headers: Iterable[str]) -> None:
        """Take note of the `Warning` headers of an answer."""
        for header in headers:
            for text in _WARNING.findall(header):
                if text not in self._told and len(self._told) < _MOST_REMEMBERED_WARNINGS:
                    self._told.add(text)
                    warnings_log.warning("the server warns: %s", re.sub(r"\\(.)", r"\1", text))


class PermittedPayload(Payload):
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


JSON = "application/json"
_WEB_PAGE = "text/html"
_PLAIN = "identity"
_BUFFER = 256 * 1024
"""Bytes of an answer that are read ahead, about; many small steps cost more than few large ones."""
_LARGEST_ERROR_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, as often as it is sent."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = JSON
    seconds: float | None = None
    """For the request and its whole answer."""
    silence: float | None = None
    """Seconds within which something must come."""


class RestClient:
    """The connections to one server: a pool for requests, and one apart for watches."""

    def __init__(self, access: ClusterAccess, settings: HttpSettings) -> None:
        host = urlsplit(access.server).hostname or ""
        self._access = access
        self._settings = settings
        self._contexts = TlsContexts(access.trust)
        self._warnings = WarningLog()
        self._headers = CIMultiDict(access.headers)
        self._headers["User-Agent"] = f"springtide/{__version__} ({settings.component})"
        # On this machine compressing takes longer than sending.
        self._encoding = "gzip" if access.compress and not on_loopback(host) else _PLAIN
        self._way: dict[str, Any] = {}
        if access.proxy:
            proxy = URL(access.proxy)
            self._way = {"proxy": proxy.with_user(None), "proxy_headers": _proxy_authorization(proxy)}
            if not access.server.startswith("https:"):
                # There is no tunnel to ask for: the request itself goes to the proxy.
                self._headers.extend(_proxy_authorization(proxy))
        self._date: str | None = None
        self._requests = self._session(settings.connections)
        self._watches = self._session(0)

    @property
    def server_time(self) -> int | None:
        """What time it was there at the last answer; None before the first, and where answers do not say."""
        return None if self._date is None else _parsed_date(self._date)

    async def close(self) -> None:
        """Close all connections."""
        await self._requests.close()
        await self._watches.close()

    async def exchange(
        self, request: HttpRequest, proof: Authentication, parcel: PermittedPayload | None = None
    ) -> bytes:
        """Send a request and read the whole answer; `ApiError` where it is no."""
        async with self._answer(self._requests, request, proof, parcel, self._encoding) as answer:
            return await _body_of(answer, self._settings.largest)

    @asynccontextmanager
    async def stream(self, request: HttpRequest, proof: Authentication) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request whose answer is read as it comes; compressed, it would come in blocks, and late."""
        async with self._answer(self._watches, request, proof, None, _PLAIN) as answer:
            yield answer

    @asynccontextmanager
    async def _answer(
        self,
        session: aiohttp.ClientSession,
        request: HttpRequest,
        proof: Authentication,
        parcel: PermittedPayload | None,
        encoding: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        headers["Accept-Encoding"] = encoding
        if proof.authorization:
            headers["Authorization"] = proof.authorization
        url = URL(self._access.server + request.path, encoded=True).update_query(request.query)
        options: dict[str, Any] = dict(self._way)
        if url.scheme == "https":
            options["ssl"] = self._contexts.context(proof.certificate)
            options["server_hostname"] = self._access.trust.server_name or None
        with translated_errors(request, self._access, parcel):
            async with session.request(
                request.method,
                url,
                headers=headers,
                data=parcel,
                timeout=aiohttp.ClientTimeout(
                    total=request.seconds, sock_connect=self._settings.connect, sock_read=request.silence
                ),
                allow_redirects=False,
                **options,
            ) as answer:
                self._date = answer.headers.get("Date", self._date)
                self._warnings.hear(answer.headers.getall("Warning", ()))
                if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                    body = await _body_of(answer, _LARGEST_ERROR_BODY)
                    raise error_from_response(answer.status, body, answer.headers, now=time())
                if answer.content_type == _WEB_PAGE:
                    raise ServerError(f"{self._access.server} answers with a web page: it is no API server")
                yield answer

    def _session(self, connections: int) -> aiohttp.ClientSession:
        connector = TrackedConnector(limit=connections, keepalive_timeout=self._settings.idle)
        return aiohttp.ClientSession(
            connector=connector, read_bufsize=_BUFFER, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )


@contextmanager
def translated_errors(request: HttpRequest, access: ClusterAccess, parcel: PermittedPayload | None) -> Iterator[None]:
    """Say in the words of `errors` what went wrong below."""
    where = f"{request.method} {access.server}{request.path}"
    try:
        yield
    except (aiohttp.ClientError, OSError) as failure:
        if parcel is not None and parcel.refusal is not None:
            raise parcel.refusal from None
        if isinstance(failure, aiohttp.SocketTimeoutError):
            raise ConnectionLost(f"{where}: nothing has come for {request.silence:g} seconds") from failure
        if isinstance(failure, TimeoutError):
            raise RequestTimeout(f"{where}: no answer in time") from failure
        raise ConnectionLost(f"{where}: {_failure_reason(failure, access)}") from failure


def _failure_reason(failure: Exception, access: ClusterAccess) -> str:
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        told = getattr(failure.certificate_error, "verify_message", "") or str(failure.certificate_error)
        return f"the server's certificate is not trusted: {told}; {access.origin} says which authority is"
    if isinstance(failure, aiohttp.ClientProxyConnectionError):
        return f"cannot connect to the proxy {failure.host}:{failure.port}: {_system_error(failure)}"
    if isinstance(failure, aiohttp.ClientHttpProxyError):
        return f"the proxy refuses with {failure.status} {failure.message}"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return f"cannot connect: {_system_error(failure)}"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    return f"the connection broke: {str(failure) or type(failure).__name__}"


def _system_error(failure: aiohttp.ClientConnectorError) -> str:
    """Say why nobody was reached; asyncio has words of its own where the operating system has better ones."""
    number = failure.os_error.errno
    if number is not None and number in errno.errorcode:
        return os.strerror(number)
    return failure.os_error.strerror or str(failure)


async def _body_of(answer: aiohttp.ClientResponse, largest: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > largest:
            raise ServerError(f"the answer is larger than {largest} bytes, and is not read")
        parts.append(part)
    return b"".join(parts)


def _parsed_date(date: str) -> int | None:
    """Read the header `Date`."""
    try:
        return int(parsedate_to_datetime(date).timestamp())
    except (ValueError, OverflowError):
        return None


def _proxy_authorization(proxy: URL) -> dict[str, str]:
    """Give the header that proves to a proxy who we are."""
    if proxy.user is None:
        return {}
    secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {secret}"}
