"""Where Prometheus is, and how we prove to it who we are.

What an answer of Prometheus means: one exact number, or words for why there is none.

Answers of a server with the HTTP API of Prometheus: an instant query, and its one sample.
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
from springtide.cluster.http.connections import ServerTrust, TlsContexts, TrackedConnector
from springtide.cluster.http.credentials import AccessError, ChangingFile, ClientCertificate, bearer_header
from springtide.cluster.http.credentials import read_content as content_of
from springtide.metrics.reading.inprocess import many_samples
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A server with the HTTP API of Prometheus. What cannot work is refused with a `ValueError`.

    Secrets stand in files, which are read again when they change, or in headers; neither is ever shown.
    """

    url: str
    """Where it is, up to and without `/api/v1`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every query, such as `X-Scope-OrgID`."""
    bearer_token_file: Path | None = None
    """A file with a token, such as that of a service account."""
    username: str = ""
    """For basic authentication, together with `password_file`."""
    password_file: Path | None = None
    """A file with the password."""
    ca_file: Path | None = None
    """Certificates of authorities, in PEM; without it, those that the machine trusts."""
    client_certificate_file: Path | None = None
    """A certificate to show, in PEM, together with `client_key_file`."""
    client_key_file: Path | None = None
    """The key of that certificate."""
    server_name: str = ""
    """The name that the server's certificate must be for, where it is not that of the URL."""
    timeout: float = 10.0
    """Seconds for a query and its answer."""
    largest: int = 1024 * 1024
    """Bytes of an answer beyond which it is refused: the answer is to be one sample."""
    connections: int = 16
    """How many queries are asked side by side at most."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("a user name for Prometheus and a file with its password go together: give both or none")
        if (self.client_certificate_file is None) != (self.client_key_file is None):
            raise ValueError("a client certificate for Prometheus and its key go together: give both files or none")
        proofs = [self.bearer_token_file is not None, bool(self.username), _names(self.headers, "authorization")]
        if sum(proofs) > 1:
            raise ValueError("give one of a bearer token, a user name and an Authorization header for Prometheus")
        if self.timeout <= 0 or self.largest <= 0 or self.connections <= 0:
            raise ValueError("timeout, size and connections of Prometheus must be positive")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header")
            if not value.isprintable():
                raise ValueError(f"the header {name} has characters that no header has")

    @property
    def address(self) -> str:
        """The URL that queries are sent below, as Grants name it."""
        return self.url.rstrip("/") + "/"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        # Not shown: whatever was meant, it may have a password in it.
        raise ValueError("the URL of Prometheus must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the URL of Prometheus must not hold a password: give a user name and a file with the password"
        )
    if parts.query or parts.fragment:
        raise ValueError("the URL of Prometheus must end with its path: give what follows a `?` as headers")


def _names(headers: Mapping[str, str], wanted: str) -> bool:
    return any(name.lower() == wanted for name in headers)


_DECIMAL = re.compile(r"[+-]?(\d{1,400}(\.\d{0,1100})?|\.\d{1,1100})([eE][+-]?\d{1,3})?")
"""Every number that a float can be, written in any way; an exponent of more digits would take for ever to expand."""


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
"""What decoding raises; the latter where brackets are nested too deeply to be followed."""
_ANSWER = msgspec.json.Decoder(_Answer)
_VECTOR = msgspec.json.Decoder(list[_Sample])
_SCALAR = msgspec.json.Decoder(tuple[float, str])


def number_of(body: bytes) -> Fraction:
    """Read the answer to a query that was answered; raises `Unreadable`."""
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
                    lasting=True,
                )
    except _UNREADABLE as failure:
        raise QueryError("PrometheusFailed", f"the answer is not that of a Prometheus: {failure}") from failure


def refusal_of(code: int, body: bytes) -> QueryError:
    """Say what an answer means whose code is not that of a success."""
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
    told = f"it answers {code}: {text}" if text else f"it answers {code}, and nothing more"
    return QueryError("PrometheusRefused" if code < 500 else "PrometheusFailed", told)


def one_line(text: str) -> str:
    """Quote what a server says, in one line."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _failed(kind: str, told: str) -> QueryError:
    """Say what Prometheus says itself; what it calls bad data is a query that it does not understand."""
    if kind == "bad_data":
        return QueryError("NotPromQL", one_line(told), lasting=True)
    return QueryError("PrometheusFailed", one_line(told) or "it says that it failed, and not why")


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
        """Ask for the one sample of a query."""
        try:
            return await self._asked(query)
        except QueryError as failure:
            # First the secrets, then the length: half a secret would not be recognised.
            told = self._proofs.redacted(str(failure))
            told = told if len(told) <= _MOST_WORDS else told[:_MOST_WORDS] + "…"
            raise QueryError(failure.reason, f"{self._settings.url}: {told}", lasting=failure.lasting) from None

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:  # noqa: ARG002
        """Give None: nobody tells of changes there."""
        return None

    def address(self, query: str) -> str | None:  # noqa: ARG002
        """Give the URL of the server."""
        return self._settings.address

    async def _asked(self, query: str) -> Fraction:
        if self._session is None:
            raise QueryError("PrometheusUnreachable", "the connection is closed")
        url = URL(f"{self._settings.address}api/v1/query")
        try:
            headers, options = self._proofs.for_request(secure=url.scheme == "https")
            async with self._session.post(
                url, data={"query": query}, headers=headers, allow_redirects=False, **options
            ) as answer:
                body = await self._body_of(answer)
        except AccessError as failure:
            raise QueryError("PrometheusUnreachable", str(failure)) from failure
        except TimeoutError as failure:
            told = f"no answer within {self._settings.timeout:g} seconds"
            raise QueryError("PrometheusUnreachable", told) from failure
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
                told = (
                    f"the answer is larger than {self._settings.largest} bytes: put sum(…) or max(…) around the query"
                )
                raise QueryError("ManySamples", told)
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
        self._contexts = TlsContexts(ServerTrust(_file(settings.ca_file), server_name=settings.server_name))
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

    def redacted(self, text: str) -> str:
        """Cross out what was shown, wherever a text repeats it."""
        # Of `Bearer …` and the like, the secret is the last word.
        values = [part for value in self._settings.headers.values() for part in (value, *value.split()[-1:])]
        for secret in sorted((*self._shown, *values), key=lambda one: (-len(one), one)):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return text

    def _authorization(self) -> str:
        if self._token is not None:
            header = bearer_header(content_of(self._token).decode(errors="replace"))
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
            certificate = ClientCertificate(content_of(self._chain), content_of(self._key))
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
    return f"the connection broke: {one_line(str(failure)) or type(failure).__name__}"
