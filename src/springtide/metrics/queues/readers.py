"""Queue readers for HTTP endpoints (a number in a JSON document) and Prometheus queries, and the reader for all types.

The URL of an HTTP queue is user input, and its response is not trusted. Redirects are not followed, as they would
bypass the Grant; the size and the time of a response are limited; and error messages never quote it, only the host and
what was expected.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.http.connections import TrackedConnector
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, QueueTarget, whole_messages
from springtide.metrics.queues.sqs import SqsQueueReader
from springtide.metrics.reading.port import MetricReader, QueryError

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
"""An index of a list; no list has indices with more digits."""
TIMEOUT = 5.0
"""Seconds for the whole request, including DNS and reading the response."""
LARGEST = 1 << 20
"""The largest response, in bytes."""
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_SUCCESS = 2
_REDIRECT = 3
_SERVER_TROUBLE = 500
_TOO_MANY = 429


class DelegatingQueueReader(QueueReader):
    """Delegates to the reader of the type of the queue."""

    def __init__(
        self, reader: MetricReader | None = None, *, sqs: QueueReader | None = None, http: QueueReader | None = None
    ) -> None:
        """Without a metric reader, reading queues of type Prometheus is an error."""
        self._readers: dict[str, QueueReader] = {
            "AWSSQSQueue": sqs or SqsQueueReader(),
            "HTTP": http or HttpQueueReader(),
            "Prometheus": PrometheusQueueReader(reader),
        }

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Return what would be accessed to read a queue."""
        return self._readers[queue.type].target(queue)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Read the length of a queue."""
        return await self._readers[queue.type].read(queue, namespace=namespace)


class PrometheusQueueReader(QueueReader):
    """Reads queue lengths by queries of Prometheus."""

    def __init__(self, reader: MetricReader | None) -> None:
        self._reader = reader

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Return the server that would be queried; None: the query is answered in this process."""
        address = self._required().address(queue.id)
        return QueueTarget(GrantedResource.URL, address) if address is not None else None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Return the one sample of the query as the length."""
        try:
            value = await self._required().read(queue.id, namespace=namespace)
        except QueryError as failure:
            raise QueueError(failure.reason, str(failure), retryable=not failure.permanent) from failure
        return QueueLength(whole_messages(value, "the query"))

    def _required(self) -> MetricReader:
        if self._reader is None:
            msg = "no Prometheus is configured: start the controller with --prometheus-url"
            raise QueueError("NoPrometheus", msg, retryable=False)
        return self._reader


class HttpQueueReader(QueueReader):
    """Reads queues from HTTP endpoints."""

    def __init__(self, *, timeout: float = TIMEOUT, largest: int = LARGEST) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._largest = largest

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Return the URL."""
        return QueueTarget(GrantedResource.URL, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002 - URLs have no namespace
        """Send the request, and resolve the pointer in the response."""
        host = urlsplit(queue.id).hostname or ""
        try:
            body = await self._fetch(queue.id, host)
        except TimeoutError as failure:
            msg = f"{host} has not answered within {self._timeout.total:g} seconds"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            # ValueError: a host name that cannot be encoded, or an invalid URL.
            msg = f"{host} cannot be reached: {_cause(failure)}"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        number = _number(_document(body, host), queue.pointer or "", host)
        return QueueLength(whole_messages(number, host))

    async def _fetch(self, url: str, host: str) -> bytes:
        # A session for every request: requests are 15 seconds apart, and no session has to be closed elsewhere.
        async with (
            aiohttp.ClientSession(
                connector=TrackedConnector(), timeout=self._timeout, auto_decompress=False
            ) as session,
            session.get(url, headers=_HEADERS, allow_redirects=False) as response,
        ):
            if response.status // 100 != _SUCCESS:
                trouble = response.status >= _SERVER_TROUBLE or response.status == _TOO_MANY
                msg = f"{host} answers with status {response.status}, expected 200{_hint(response.status)}"
                raise QueueError("UnexpectedAnswer", msg, retryable=trouble)
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > self._largest:
                    msg = f"the answer of {host} is larger than {self._largest} bytes"
                    raise QueueError("UnexpectedAnswer", msg, retryable=False)
            return bytes(body)


class PointerError(LookupError):
    """A JSON pointer does not exist in a document; the message says which part is missing."""


def resolve(document: Any, pointer: str) -> Any:
    """Resolve a JSON pointer (RFC 6901); the empty pointer is the whole document."""
    if not pointer:
        return document
    value, walked = document, ""
    for token in pointer.removeprefix("/").split("/"):
        value = _step(value, token.replace("~1", "/").replace("~0", "~"), walked or "the top")
        walked = f"{walked}/{token}"
    return value


def _step(value: Any, name: str, place: str) -> Any:
    if isinstance(value, dict):
        if name in value:
            return value[name]
        msg = f'there is no member "{name}" at {place}'
        raise PointerError(msg)
    if isinstance(value, list):
        if _INDEX.fullmatch(name) and int(name) < len(value):
            return value[int(name)]
        msg = f'there is no entry "{name}" in the list at {place}'
        raise PointerError(msg)
    msg = f'there is nothing below {place} that could have a member "{name}"'
    raise PointerError(msg)


def _hint(status: int) -> str:
    return ": redirects are not followed, write the address that it leads to" if status // 100 == _REDIRECT else ""


def _cause(failure: Exception) -> str:
    if isinstance(failure, aiohttp.ClientConnectorDNSError):
        return "there is no host of this name"
    if isinstance(failure, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate is not trusted"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return "it refuses the connection, or there is no route to it"
    return "the connection broke" if isinstance(failure, OSError | aiohttp.ClientError) else "the URL is not valid"


def _document(body: bytes, host: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as failure:
        msg = f"the answer of {host} is not JSON"
        raise QueueError("UnexpectedAnswer", msg, retryable=False) from failure


def _number(document: Any, pointer: str, host: str) -> int | Fraction:
    try:
        value = resolve(document, pointer)
    except PointerError as failure:
        msg = f"the pointer {pointer} names nothing in the answer of {host}: {failure}"
        raise QueueError("UnexpectedAnswer", msg, retryable=False) from failure
    place = f"at {pointer} in the answer of {host}" if pointer else f"in the answer of {host}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"there is no number {place}, expected how many messages wait"
        raise QueueError("NotACount", msg, retryable=False)
    if isinstance(value, float) and not math.isfinite(value):
        msg = f"the number {place} is too large"
        raise QueueError("NotACount", msg, retryable=False)
    return Fraction(value)
