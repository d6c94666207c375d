"""One HTTP exchange with a server: a request and its response, without retries.

Exceptions of aiohttp, the ssl module and the operating system become `ClusterError`s here.

The permit of a write (leadership, pauses) is checked by its body, immediately before the first byte is sent: aiohttp
holds the head of a request back until the body writes, and sends both together. By then the connection, including
proxy and TLS, is made, so a lease that expired meanwhile is noticed. Every write has a body, deletions included.

`Warning` headers of responses (deprecated versions, unknown fields) are logged once each.
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

log = logging.getLogger(__name__)
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_MOST_REMEMBERED_WARNINGS = 1000
"""After so many different texts no more are logged: the texts of a server may differ in every response."""
JSON = "application/json"
_WEB_PAGE = "text/html"
_PLAIN = "identity"
_BUFFER = 256 * 1024
"""The size of the read buffer in bytes, roughly; many small reads cost more than few large ones."""
_LARGEST_ERROR_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, without authentication and body."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = JSON
    timeout: float | None = None
    """Seconds for the request and its whole response."""
    read_timeout: float | None = None
    """Seconds without any data after which the response is given up."""


class RestClient:
    """The connections to one server: one pool for requests, and one for watches."""

    def __init__(self, access: ClusterAccess, settings: HttpSettings) -> None:
        host = urlsplit(access.server).hostname or ""
        self._access = access
        self._settings = settings
        self._contexts = TlsContexts(access.trust)
        self._warnings = WarningLog()
        self._headers = CIMultiDict(access.headers)
        self._headers["User-Agent"] = f"springtide/{__version__} ({settings.component})"
        # On loopback, compressing takes longer than sending.
        self._encoding = "gzip" if access.compress and not on_loopback(host) else _PLAIN
        self._proxy_options: dict[str, Any] = {}
        if access.proxy:
            proxy = URL(access.proxy)
            self._proxy_options = {"proxy": proxy.with_user(None), "proxy_headers": _proxy_authorization(proxy)}
            if not access.server.startswith("https:"):
                # Without TLS there is no tunnel: the request itself goes to the proxy.
                self._headers.extend(_proxy_authorization(proxy))
        self._date: str | None = None
        self._requests = self._session(settings.connections)
        self._watches = self._session(0)

    @property
    def server_time(self) -> int | None:
        """The Date header of the last response; None before the first response, and where it is absent."""
        return None if self._date is None else _parsed_date(self._date)

    async def close(self) -> None:
        """Close all connections."""
        await self._requests.close()
        await self._watches.close()

    async def exchange(
        self, request: HttpRequest, authentication: Authentication, payload: PermittedPayload | None = None
    ) -> bytes:
        """Send a request and read the whole response; raises `ApiError` for error responses."""
        async with self._answer(self._requests, request, authentication, payload, self._encoding) as answer:
            return await _body_of(answer, self._settings.max_bytes)

    @asynccontextmanager
    async def stream(
        self, request: HttpRequest, authentication: Authentication
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request whose response is read as it arrives; compression would delay it."""
        async with self._answer(self._watches, request, authentication, None, _PLAIN) as answer:
            yield answer

    @asynccontextmanager
    async def _answer(
        self,
        session: aiohttp.ClientSession,
        request: HttpRequest,
        authentication: Authentication,
        payload: PermittedPayload | None,
        encoding: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        headers["Accept-Encoding"] = encoding
        if authentication.authorization:
            headers["Authorization"] = authentication.authorization
        url = URL(self._access.server + request.path, encoded=True).update_query(request.query)
        options: dict[str, Any] = dict(self._proxy_options)
        if url.scheme == "https":
            options["ssl"] = self._contexts.context(authentication.certificate)
            options["server_hostname"] = self._access.trust.server_name or None
        with translated_errors(request, self._access, payload):
            async with session.request(
                request.method,
                url,
                headers=headers,
                data=payload,
                timeout=aiohttp.ClientTimeout(
                    total=request.timeout, sock_connect=self._settings.connect, sock_read=request.read_timeout
                ),
                allow_redirects=False,
                **options,
            ) as answer:
                self._date = answer.headers.get("Date", self._date)
                self._warnings.record(answer.headers.getall("Warning", ()))
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


class PermittedPayload(Payload):
    """A request body that is sent once, and only if its permit allows it."""

    def __init__(self, content: bytes, content_type: str, permit: Callable[[], None]) -> None:
        super().__init__(content, content_type=content_type)
        self._size = len(content)
        self._content = content
        self._permit = permit
        self.refusal: Exception | None = None
        """Why the permit refused the write; raised to the caller."""
        self.sent = False
        """Whether any byte of the request may have left."""

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the body, and with it the head of the request."""
        # The server may have closed a pooled connection without the event loop having noticed. Two iterations of the
        # loop are enough to notice; a write that finds the connection closed certainly was not sent.
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
        """Return the body as text."""
        return self._content.decode(encoding, errors)


class WarningLog:
    """Logs every warning once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def record(self, headers: Iterable[str]) -> None:
        """Log the `Warning` headers of a response."""
        for header in headers:
            for text in _WARNING.findall(header):
                if text not in self._logged and len(self._logged) < _MOST_REMEMBERED_WARNINGS:
                    self._logged.add(text)
                    log.warning("the server warns: %s", re.sub(r"\\(.)", r"\1", text))


@contextmanager
def translated_errors(request: HttpRequest, access: ClusterAccess, payload: PermittedPayload | None) -> Iterator[None]:
    """Turn exceptions of the network into `ClusterError`s."""
    where = f"{request.method} {access.server}{request.path}"
    try:
        yield
    except (aiohttp.ClientError, OSError) as failure:
        if payload is not None and payload.refusal is not None:
            raise payload.refusal from None
        if isinstance(failure, aiohttp.SocketTimeoutError):
            raise ConnectionLost(f"{where}: no data for {request.read_timeout:g} seconds") from failure
        if isinstance(failure, TimeoutError):
            raise RequestTimeout(f"{where}: no answer in time") from failure
        raise ConnectionLost(f"{where}: {_failure_reason(failure, access)}") from failure


def _failure_reason(failure: Exception, access: ClusterAccess) -> str:
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        detail = getattr(failure.certificate_error, "verify_message", "") or str(failure.certificate_error)
        return f"the server's certificate is not trusted: {detail}; {access.origin} says which authority is"
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
    """Return the message of the operating system, which says more than that of asyncio."""
    number = failure.os_error.errno
    if number is not None and number in errno.errorcode:
        return os.strerror(number)
    return failure.os_error.strerror or str(failure)


async def _body_of(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > max_bytes:
            raise ServerError(f"the answer is larger than {max_bytes} bytes, and is not read")
        parts.append(part)
    return b"".join(parts)


def _parsed_date(date: str) -> int | None:
    """Parse a Date header."""
    try:
        return int(parsedate_to_datetime(date).timestamp())
    except (ValueError, OverflowError):
        return None


def _proxy_authorization(proxy: URL) -> dict[str, str]:
    """Return the header that authenticates to a proxy."""
    if proxy.user is None:
        return {}
    secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {secret}"}
