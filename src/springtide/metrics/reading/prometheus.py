"""Queries to a server with the HTTP API of Prometheus: settings, instant queries, and the one sample of a result.

Credentials are in files, which are read again when they change, or in headers. They are removed from error messages, as
servers and proxies may repeat them.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from springtide import __version__
from springtide.apis.redaction import redacted
from springtide.cluster.http.connections import ServerTrust, TlsContexts, TrackedConnector
from springtide.cluster.http.credentials import (
    AccessError,
    ChangingFile,
    ClientCertificate,
    bearer_header,
    read_content,
)
from springtide.metrics.reading.inprocess import many_samples
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A server with the HTTP API of Prometheus; raises `ValueError` for invalid settings."""

    url: str
    """The URL, without `/api/v1`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every query, such as `X-Scope-OrgID`."""
    bearer_token_file: Path | None = None
    """A file with a token, such as that of a service account."""
    username: str = ""
    """For basic authentication, together with `password_file`."""
    password_file: Path | None = None
    """A file with the password."""
    ca_file: Path | None = None
    """Certificate authorities, in PEM; None: those of the operating system."""
    client_certificate_file: Path | None = None
    """A client certificate, in PEM, together with `client_key_file`."""
    client_key_file: Path | None = None
    """The key of that certificate."""
    server_name: str = ""
    """The name that the server's certificate must be for; empty: the host of the URL."""
    timeout: float = 10.0
    """Seconds for a query and its response."""
    largest: int = 1024 * 1024
    """The largest response in bytes; it should be one sample."""
    connections: int = 16
    """The largest number of concurrent queries."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("a user name for Prometheus and a file with its password go together: give both or none")
        if (self.client_certificate_file is None) != (self.client_key_file is None):
            raise ValueError("a client certificate for Prometheus and its key go together: give both files or none")
        methods = [self.bearer_token_file is not None, bool(self.username), _names(self.headers, "authorization")]
        if sum(methods) > 1:
            raise ValueError("give one of a bearer token, a user name and an Authorization header for Prometheus")
        if self.timeout <= 0 or self.largest <= 0 or self.connections <= 0:
            raise ValueError("timeout, size and connections of Prometheus must be positive")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header")
            if not value.isprintable():
                raise ValueError(f"the header {name} has characters that a header cannot have")

    @property
    def address(self) -> str:
        """The URL with a trailing slash, as in Grants."""
        return self.url.rstrip("/") + "/"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        # Not quoted: it may contain a password.
        raise ValueError("the URL of Prometheus must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the URL of Prometheus must not contain a password: give a user name and a file with the password"
        )
    if parts.query or parts.fragment:
        raise ValueError("the URL of Prometheus must end with its path: give what follows a `?` as headers")


def _names(headers: Mapping[str, str], wanted: str) -> bool:
    return any(name.lower() == wanted for name in headers)


_DECIMAL = re.compile(r"[+-]?(\d{1,400}(\.\d{0,1100})?|\.\d{1,1100})([eE][+-]?\d{1,3})?")
"""Every notation of a float; exponents with more digits would take too long to expand."""


class _Sample(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    """The time and the value; a histogram has none."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


_UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises; the latter for deeply nested brackets."""
_ANSWER = msgspec.json.Decoder(_Answer)
_VECTOR = msgspec.json.Decoder(list[_Sample])
_SCALAR = msgspec.json.Decoder(tuple[float, str])


def number_of(body: bytes) -> Fraction:
    """Decode a successful response; raises `QueryError`."""
    try:
        answer = _ANSWER.decode(body)
        if answer.status != "success" or answer.data is None:
            raise _failed(answer.error_type, answer.error)
        match answer.data.result_type:
            case "scalar":
                return _exact(_SCALAR.decode(answer.data.result)[1])
            case "vector":
                return _only(_VECTOR.decode(answer.data.result))
            case other:
                raise QueryError(
                    "NotANumber",
                    f"the result is a {one_line(other)} instead of one number: "
                    "apply a function such as avg_over_time()",
                    permanent=True,
                )
    except _UNREADABLE as failure:
        raise QueryError("PrometheusFailed", f"the response is not that of a Prometheus server: {failure}") from failure


def refusal_of(code: int, body: bytes) -> QueryError:
    """Return the error of an error response."""
    if 300 <= code < 400:
        return QueryError(
            "PrometheusRefused", f"it answers {code}, a redirection, which is not followed: give the address behind it"
        )
    try:
        answer = _ANSWER.decode(body)
    except _UNREADABLE:
        answer = _Answer("")
    if answer.status == "error" and answer.error:
        return _failed(answer.error_type, answer.error)
    text = one_line(re.sub(r"<[^>]*>", " ", body.decode(errors="replace")))
    message = f"it answers {code}: {text}" if text else f"it answers {code}, and nothing more"
    return QueryError("PrometheusRefused" if code < 500 else "PrometheusFailed", message)


def one_line(text: str) -> str:
    """Quote a text of a server in one line."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _failed(kind: str, message: str) -> QueryError:
    """Return the error that Prometheus reports; its type `bad_data` is a query that it cannot parse."""
    if kind == "bad_data":
        return QueryError("NotPromQL", one_line(message), permanent=True)
    return QueryError("PrometheusFailed", one_line(message) or "it reports an error without a message")


def _only(samples: list[_Sample]) -> Fraction:
    if not samples:
        raise QueryError("NoSample", "the result has no sample: no series is selected, or all are older than 5 minutes")
    if len(samples) > 1:
        raise QueryError("ManySamples", many_samples([_labels(sample.metric) for sample in samples]))
    if samples[0].value is None:
        raise QueryError(
            "NotANumber", "the result is a histogram instead of a number: apply histogram_quantile() or histogram_sum()"
        )
    return _exact(samples[0].value[1])


def _exact(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if text.lstrip("+-").lower() in ("nan", "inf", "infinity"):
        raise QueryError("NoValue", f"the result is {text}, not a number: is there something to divide by?")
    raise QueryError("PrometheusFailed", f"the answer has {one_line(text)!r} where a number should be")


def _labels(metric: dict[str, Any]) -> str:
    name = metric.get("__name__", "")
    return one_line(
        name + "{" + ",".join(f'{key}="{metric[key]}"' for key in sorted(metric) if key != "__name__") + "}"
    )


_LONGEST_MESSAGE = 1000
"""The longest message of a failure, in characters."""
_SHORTEST_SECRET = 4
"""The shortest secret that is redacted, in characters: shorter texts occur everywhere."""


class PrometheusReader(MetricReader):
    """Queries one server over pooled connections, within an `async with` block.

    Redirects are not followed, so that credentials are sent to this server only. Error messages name the server.
    """

    def __init__(self, settings: PrometheusSettings) -> None:
        self._settings = settings
        self._authentication = _RequestAuthentication(settings)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=TrackedConnector(limit=self._settings.connections),
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
        """Query the server for one sample."""
        try:
            return await self._query(query)
        except QueryError as failure:
            # Redacted before it is cut: a part of a secret would not be recognised.
            message = self._authentication.redacted(str(failure))
            message = message if len(message) <= _LONGEST_MESSAGE else message[:_LONGEST_MESSAGE] + "…"
            raise QueryError(failure.reason, f"{self._settings.url}: {message}", permanent=failure.permanent) from None

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:  # noqa: ARG002
        """Return None: the server must be polled."""
        return None

    def address(self, query: str) -> str | None:  # noqa: ARG002
        """Return the URL of the server."""
        return self._settings.address

    async def _query(self, query: str) -> Fraction:
        if self._session is None:
            raise QueryError("PrometheusUnreachable", "the connection is closed")
        url = URL(f"{self._settings.address}api/v1/query")
        try:
            headers, options = self._authentication.for_request(secure=url.scheme == "https")
            async with self._session.post(
                url, data={"query": query}, headers=headers, allow_redirects=False, **options
            ) as answer:
                body = await self._body_of(answer)
        except AccessError as failure:
            raise QueryError("PrometheusUnreachable", str(failure)) from failure
        except TimeoutError as failure:
            message = f"no answer within {self._settings.timeout:g} seconds"
            raise QueryError("PrometheusUnreachable", message) from failure
        except (aiohttp.ClientError, OSError) as failure:
            raise QueryError("PrometheusUnreachable", _reason(failure)) from failure
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
                message = (
                    f"the answer is larger than {self._settings.largest} bytes: put sum(…) or max(…) around the query"
                )
                raise QueryError("ManySamples", message)
            parts.append(part)
        return b"".join(parts)


class _RequestAuthentication:
    """The authentication of requests, as the files are now."""

    def __init__(self, settings: PrometheusSettings) -> None:
        self._settings = settings
        self._token = _file(settings.bearer_token_file)
        self._password = _file(settings.password_file)
        self._chain = _file(settings.client_certificate_file)
        self._key = _file(settings.client_key_file)
        self._contexts = TlsContexts(ServerTrust(_file(settings.ca_file), server_name=settings.server_name))
        self._secrets: tuple[str, ...] = ()

    def for_request(self, *, secure: bool) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the headers and the TLS options of the next request; raises `AccessError`."""
        headers = {}
        if authorization := self._authorization():
            headers["Authorization"] = authorization
        options: dict[str, Any] = {}
        if secure:
            options = {"ssl": self._context(), "server_hostname": self._settings.server_name or None}
        return headers, options

    def redacted(self, text: str) -> str:
        """Remove the secrets of requests from a text."""
        # The secret of `Bearer …` is the last word.
        values = [part for value in self._settings.headers.values() for part in (value, *value.split()[-1:])]
        for secret in sorted((*self._secrets, *values), key=lambda one: (-len(one), one)):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return redacted(text)

    def _authorization(self) -> str:
        if self._token is not None:
            header = bearer_header(read_content(self._token).decode(errors="replace"))
            self._secrets = (header.removeprefix("Bearer "),)
            return header
        if self._password is not None:
            password = read_content(self._password).decode(errors="replace").rstrip("\r\n")
            encoded = base64.b64encode(f"{self._settings.username}:{password}".encode()).decode()
            self._secrets = (password, encoded)
            return f"Basic {encoded}"
        return ""

    def _context(self) -> ssl.SSLContext:
        certificate = None
        if self._chain is not None and self._key is not None:
            certificate = ClientCertificate(read_content(self._chain), read_content(self._key))
        return self._contexts.context(certificate)


def _file(path: Path | None) -> ChangingFile | None:
    return None if path is None else ChangingFile(path)


def _reason(failure: Exception) -> str:
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        detail = getattr(failure.certificate_error, "verify_message", "") or str(failure.certificate_error)
        return f"its certificate is not trusted: {detail}"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return f"cannot connect: {failure.os_error.strerror or failure}"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    return f"the connection broke: {one_line(str(failure)) or type(failure).__name__}"
