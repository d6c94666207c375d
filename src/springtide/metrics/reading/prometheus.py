"""Answers of a server with the HTTP API of Prometheus: an instant query, and its one sample."""

from __future__ import annotations

import base64
import ssl
from fractions import Fraction
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from springtide import __version__
from springtide.cluster.http.connections import Connections
from springtide.cluster.http.credentials import AccessError, Certificate, bearer
from springtide.cluster.http.credentials import read as content_of
from springtide.cluster.http.files import ChangingFile
from springtide.cluster.http.tls import TlsContexts, Trust
from springtide.metrics.reading.port import MetricReader, OwnSeries, Unreadable
from springtide.metrics.reading.prometheus_answers import number_of, refusal_of, words
from springtide.metrics.reading.prometheus_settings import PrometheusSettings

_MOST_WORDS = 1000
"""Characters of what is said about a failure."""
_SHORTEST_SECRET = 4
"""Characters of what is crossed out: shorter texts stand everywhere."""


class PrometheusReader(MetricReader):
    """Asks one server; between `async with` and its end, over connections that are kept.

    Redirections are not followed, so that credentials go to this server only, and whatever is said about a failure
    names the server but no secret, even where the server repeats what it was sent.
    """

    def __init__(self, settings: PrometheusSettings) -> None:
        self._settings = settings
        self._proofs = _Proofs(settings)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=Connections(limit=self._settings.connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout),
            headers={"User-Agent": f"springtide/{__version__}", **self._settings.headers},
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def read(self, query: str, *, namespace: str) -> Fraction:  # noqa: ARG002 - a Grant decides who may ask
        """Ask for the one sample of a query."""
        try:
            return await self._asked(query)
        except Unreadable as failure:
            # First the secrets, then the length: half a secret would not be recognised.
            told = self._proofs.hidden_in(str(failure))
            told = told if len(told) <= _MOST_WORDS else told[:_MOST_WORDS] + "…"
            raise Unreadable(failure.reason, f"{self._settings.url}: {told}", lasting=failure.lasting) from None

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:  # noqa: ARG002
        """Give None: nobody tells of changes there."""
        return None

    def address(self, query: str) -> str | None:  # noqa: ARG002
        """Give the URL of the server."""
        return self._settings.address

    async def _asked(self, query: str) -> Fraction:
        if self._session is None:
            raise Unreadable("PrometheusUnreachable", "the connection is closed")
        url = URL(f"{self._settings.address}api/v1/query")
        try:
            headers, options = self._proofs.for_request(secure=url.scheme == "https")
            async with self._session.post(
                url, data={"query": query}, headers=headers, allow_redirects=False, **options
            ) as answer:
                body = await self._body_of(answer)
        except AccessError as failure:
            raise Unreadable("PrometheusUnreachable", str(failure)) from failure
        except TimeoutError as failure:
            told = f"no answer within {self._settings.timeout:g} seconds"
            raise Unreadable("PrometheusUnreachable", told) from failure
        except (aiohttp.ClientError, OSError) as failure:
            raise Unreadable("PrometheusUnreachable", _reason(failure)) from failure
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise refusal_of(answer.status, body)
        return number_of(body)

    async def _body_of(self, answer: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in answer.content.iter_any():
            size += len(part)
            if size > self._settings.largest:
                answer.close()
                told = (
                    f"the answer is larger than {self._settings.largest} bytes: put sum(…) or max(…) around the query"
                )
                raise Unreadable("ManySamples", told)
            parts.append(part)
        return b"".join(parts)


class _Proofs:
    """What a request shows to prove who sends it, as the files are now."""

    def __init__(self, settings: PrometheusSettings) -> None:
        self._settings = settings
        self._token = _file(settings.bearer_token_file)
        self._password = _file(settings.password_file)
        self._chain = _file(settings.client_certificate_file)
        self._key = _file(settings.client_key_file)
        self._contexts = TlsContexts(Trust(_file(settings.ca_file), server_name=settings.server_name))
        self._shown: tuple[str, ...] = ()

    def for_request(self, *, secure: bool) -> tuple[dict[str, str], dict[str, Any]]:
        """Give the headers and the TLS options of the next request; raises `AccessError`."""
        headers = {}
        if authorization := self._authorization():
            headers["Authorization"] = authorization
        options: dict[str, Any] = {}
        if secure:
            options = {"ssl": self._context(), "server_hostname": self._settings.server_name or None}
        return headers, options

    def hidden_in(self, text: str) -> str:
        """Cross out what was shown, wherever a text repeats it."""
        # Of `Bearer …` and the like, the secret is the last word.
        values = [part for value in self._settings.headers.values() for part in (value, *value.split()[-1:])]
        for secret in sorted((*self._shown, *values), key=lambda one: (-len(one), one)):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return text

    def _authorization(self) -> str:
        if self._token is not None:
            header = bearer(content_of(self._token).decode(errors="replace"))
            self._shown = (header.removeprefix("Bearer "),)
            return header
        if self._password is not None:
            password = content_of(self._password).decode(errors="replace").rstrip("\r\n")
            encoded = base64.b64encode(f"{self._settings.username}:{password}".encode()).decode()
            self._shown = (password, encoded)
            return f"Basic {encoded}"
        return ""

    def _context(self) -> ssl.SSLContext:
        certificate = None
        if self._chain is not None and self._key is not None:
            certificate = Certificate(content_of(self._chain), content_of(self._key))
        return self._contexts.context(certificate)


def _file(path: Path | None) -> ChangingFile | None:
    return None if path is None else ChangingFile(path)


def _reason(failure: Exception) -> str:
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        told = getattr(failure.certificate_error, "verify_message", "") or str(failure.certificate_error)
        return f"its certificate is not trusted: {told}"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return f"cannot connect: {failure.os_error.strerror or failure}"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    return f"the connection broke: {words(str(failure)) or type(failure).__name__}"
