"""JSON pointers (RFC 6901): a path into a JSON document.

Queues that answer over HTTP with JSON, somewhere in which their length stands.

The address is somebody's who writes objects, and the answer is somebody's whom nobody knows. So no redirect is followed
(it would lead past the Grant), an answer is read only so far and for so long, and what it says is told to nobody: a
message names the host and what was expected, never what came instead.

Queues whose length is a metric already.

All kinds of queues behind one port.
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
"""A place in a list; what has more digits is in no list that anybody has."""


class PointerError(LookupError):
    """A pointer that names nothing in a document; the message says where the way ends."""


def resolve(document: Any, pointer: str) -> Any:
    """Give the value that a pointer names; the empty pointer names the whole document."""
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


TIMEOUT = 5.0
"""Seconds for everything: finding the host, connecting, asking, reading."""
LARGEST = 1 << 20
"""Bytes of an answer that are read at most."""

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_SUCCESS = 2
_REDIRECT = 3
_SERVER_TROUBLE = 500
_TOO_MANY = 429


class HttpQueueReader(QueueReader):
    """Reads queues by their URLs."""

    def __init__(self, *, timeout: float = TIMEOUT, largest: int = LARGEST) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._largest = largest

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Name the address."""
        return QueueTarget(GrantedResource.URL, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002 - an address is no one's
        """Ask the address, and find the number in the answer."""
        host = urlsplit(queue.id).hostname or ""
        try:
            body = await self._fetch(queue.id, host)
        except TimeoutError as failure:
            msg = f"{host} has not answered within {self._timeout.total:g} seconds"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            # ValueError: a host name that cannot be written, or an address that cannot be a URL after all.
            msg = f"{host} cannot be asked: {_cause(failure)}"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        number = _number(_document(body, host), queue.pointer or "", host)
        return QueueLength(whole_messages(number, host))

    async def _fetch(self, url: str, host: str) -> bytes:
        # A session for every question: none has to be closed by anybody, and a quarter of a minute lies between two.
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


def _hint(status: int) -> str:
    return ": redirects are not followed, write the address that it leads to" if status // 100 == _REDIRECT else ""


def _cause(failure: Exception) -> str:
    if isinstance(failure, aiohttp.ClientConnectorDNSError):
        return "there is no host of this name"
    if isinstance(failure, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate is not trusted"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return "it refuses the connection, or cannot be reached"
    return "the connection broke" if isinstance(failure, OSError | aiohttp.ClientError) else "it is no valid address"


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


class PrometheusQueueReader(QueueReader):
    """Reads queues by queries."""

    def __init__(self, reader: MetricReader | None) -> None:
        self._reader = reader

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Tell which server would be asked; none where the query is answered in this process."""
        address = self._required().address(queue.id)
        return QueueTarget(GrantedResource.URL, address) if address is not None else None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Take the one sample of the query for the length."""
        try:
            value = await self._required().read(queue.id, namespace=namespace)
        except QueryError as failure:
            raise QueueError(failure.reason, str(failure), retryable=not failure.lasting) from failure
        return QueueLength(whole_messages(value, "the query"))

    def _required(self) -> MetricReader:
        if self._reader is None:
            msg = "no Prometheus is configured: start the controller with --prometheus-url"
            raise QueueError("NoPrometheus", msg, retryable=False)
        return self._reader


class DelegatingQueueReader(QueueReader):
    """Asks for each queue whoever knows queues of its type."""

    def __init__(
        self, reader: MetricReader | None = None, *, sqs: QueueReader | None = None, http: QueueReader | None = None
    ) -> None:
        """Without a reader of metrics, queues of type Prometheus cannot be read, and say so."""
        self._readers: dict[str, QueueReader] = {
            "AWSSQSQueue": sqs or SqsQueueReader(),
            "HTTP": http or HttpQueueReader(),
            "Prometheus": PrometheusQueueReader(reader),
        }

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Tell what would be reached to read a queue."""
        return self._readers[queue.type].target(queue)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Ask for the length of a queue."""
        return await self._readers[queue.type].read(queue, namespace=namespace)
